"""The model file: safetensors arrays, a JSON header and a checksum. Nothing in it can run code.

The same sections may come as a JSON document (``document``), which has no checksum.

The header names sections; arrays are called ``section/name``. A reader rejects an unknown section that is required and
ignores an optional one, so files can gain sections without a new format number.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from crisptree import limits
from crisptree.files import read_file, reading
from crisptree.persistence.writing import atomic_write

FORMAT = 1
KEY, DIGEST = "crisptree", "sha256"
NO_DIGEST = "0" * 64
"""Placeholder of the checksum while that of the whole file is computed."""

LABEL_CHARACTERS = 2**20
"""Characters that the array of class labels may take beyond sixteen times those in the file."""

MAX_CHANNELS = 2**31 - 1

Arrays = dict[str, npt.NDArray[Any]]


class ModelFileError(ValueError):
    """A file that is not a complete and valid model; the message says what is wrong with it."""


@dataclass(frozen=True, eq=False)
class Section:
    """A JSON object and named arrays; a reader ignores an unknown section unless it is required."""

    content: dict[str, Any]
    arrays: Arrays = field(default_factory=dict)
    required: bool = True


Sections = dict[str, Section]


@dataclass(frozen=True, eq=False)
class ModelFile:
    """Sections of a file, and its path."""

    path: str | PathLike[str]
    sections: Sections

    def section(self, name: str) -> Section:
        """Return a section that must exist."""
        if name not in self.sections:
            raise ModelFileError(f"the section {name!r} is missing in {self.path}.")
        return self.sections[name]


def write(path: str | PathLike[str], sections: Sections) -> None:
    """Write a file atomically: a crash leaves an earlier one unchanged."""
    contents = {name: {"required": section.required, **section.content} for name, section in sections.items()}
    arrays = {
        f"{name}/{own}": np.ascontiguousarray(array)
        for name, section in sections.items()
        for own, array in section.arrays.items()
    }
    header = json.dumps({"format": FORMAT, "sections": contents}, allow_nan=False)
    data = _canonical(save_arrays(arrays, metadata={KEY: header, DIGEST: NO_DIGEST}))
    with atomic_write(path) as temporary:
        temporary.write_bytes(_with_digest(data, NO_DIGEST, hashlib.sha256(data).hexdigest()))


def read(path: str | PathLike[str], known: Collection[str]) -> ModelFile:
    """Read and check a file whose required sections are all among the ``known`` ones.

    Sections may be numbered: "stage" stands for "stage_0" and all that follow.
    """
    with reading(path, ModelFileError, "crisptree model file"):
        data = read_file(path)
        if data[:1] == b"{":  # the length of a header is a multiple of eight, and this letter is none
            from crisptree.persistence.document import read_text

            sections = read_text(data, path)
            _check_known(sections, known, path)
            return ModelFile(path, sections)
        _check_header(int.from_bytes(data[:8], "little"), len(data) - 8)
        return _read(path, data, known)


def _read(path: str | PathLike[str], data: bytes, known: Collection[str]) -> ModelFile:
    try:
        metadata = _metadata(data)
        header, digest = json.loads(metadata[KEY]), metadata[DIGEST]
        form = header["format"]
        sections = {name: Section(content, {}, content["required"]) for name, content in header["sections"].items()}
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a crisptree model file, or its header is damaged.") from error
    if form != FORMAT:
        raise ModelFileError(f"{path} has format {form!r}; this version of crisptree reads format {FORMAT}. Update it.")
    if not _is_digest(digest) or _checksum(data, digest) != digest:
        raise ModelFileError(f"{path} is damaged: its checksum does not agree with its content.")
    _check_known(sections, known, path)
    try:
        arrays = load_arrays(data)
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{path} holds arrays that cannot be read: {error}.") from error
    for name, array in arrays.items():
        section, _, own = name.partition("/")
        if section in sections:
            sections[section].arrays[own] = array
    return ModelFile(path, sections)


def check_labels(labels: Sequence[str]) -> None:
    """Reject labels of very different lengths: an array of strings takes as much for every label as for the longest."""
    if len(labels) * max(map(len, labels)) > LABEL_CHARACTERS + 16 * sum(map(len, labels)):
        raise ModelFileError("the class labels of a model file must not differ so much in length.")


def check_channels(channels: object, path: str | PathLike[str]) -> None:
    """Reject a number of image channels that is neither None nor a positive integer."""
    if channels is not None and not (isinstance(channels, int) and 0 < channels <= MAX_CHANNELS):
        raise ModelFileError(f"{path} must say how many channels its images have; it says {channels!r}.")


def _check_header(length: int, size: int) -> None:
    if not 0 <= length <= size:
        raise ModelFileError("this is not a crisptree model file: it is shorter than its header says.")
    limits.current().check("line_bytes", length, f"has a header of {length:,} bytes")


def _check_known(sections: Sections, known: Collection[str], path: str | PathLike[str]) -> None:
    required = {name for name, section in sections.items() if section.required}
    unknown = sorted(name for name in required if name not in known and re.sub(r"_\d+", "", name) not in known)
    if unknown:
        raise ModelFileError(f"{path} needs {', '.join(unknown)}, unknown to this version of crisptree. Update it.")


def _canonical(data: bytes) -> bytes:
    """Sort the entries of the header, whose order the library leaves to chance."""
    length = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8 : 8 + length])
    header = json.dumps(entries, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * (-len(header) % 8)  # arrays begin at a multiple of eight
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


def _metadata(data: bytes) -> dict[str, str]:
    length = int.from_bytes(data[:8], "little")
    return dict(json.loads(data[8 : 8 + length])["__metadata__"])


def _checksum(data: bytes, digest: str) -> str:
    return hashlib.sha256(_with_digest(data, digest, NO_DIGEST)).hexdigest()


def _with_digest(data: bytes, old: str, new: str) -> bytes:
    """Replace the checksum entry; inside any other text its quotation marks would be escaped."""
    entry = f'"{DIGEST}":"{{}}"'
    return data.replace(entry.format(old).encode(), entry.format(new).encode(), 1)


def _is_digest(digest: Any) -> bool:
    return isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None
