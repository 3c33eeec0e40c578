"""The model file: safetensors arrays, a JSON header and a checksum. Nothing in it can run code.

The same sections may come as a JSON document (``document``), which has no checksum.

The header names sections; arrays are called ``section/name``. A reader refuses an unknown section that is required and
passes over an optional one, so files can gain sections without a new format number.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from crisptree.files import read_file, reading
from crisptree.persistence.arrays import Arrays
from crisptree.persistence.errors import ModelFileError
from crisptree.persistence.limits import check_header
from crisptree.persistence.writing import written_whole

FORMAT = 1
KEY, DIGEST = "crisptree", "sha256"
NO_DIGEST = "0" * 64
"""Stands in the place of the checksum while the checksum of the whole file is taken."""


@dataclass(frozen=True, eq=False)
class Section:
    """A JSON object and named arrays; a reader that does not know a section passes over it unless it is required."""

    content: dict[str, Any]
    arrays: Arrays = field(default_factory=dict)
    required: bool = True


Sections = dict[str, Section]


@dataclass(frozen=True, eq=False)
class ModelFile:
    """The sections of a file, and where it was read."""

    path: str | PathLike[str]
    sections: Sections

    def section(self, name: str) -> Section:
        """A section that must be there."""
        if name not in self.sections:
            raise ModelFileError(f"the section {name!r} is missing in {self.path}.")
        return self.sections[name]


def write(path: str | PathLike[str], sections: Sections) -> None:
    """Write a file whole: a crash half-way leaves an earlier one as it was."""
    contents = {name: {"required": section.required, **section.content} for name, section in sections.items()}
    arrays = {
        f"{name}/{own}": np.ascontiguousarray(array)
        for name, section in sections.items()
        for own, array in section.arrays.items()
    }
    header = json.dumps({"format": FORMAT, "sections": contents}, allow_nan=False)
    data = _canonical(save_arrays(arrays, metadata={KEY: header, DIGEST: NO_DIGEST}))
    with written_whole(path) as temporary:
        temporary.write_bytes(_with_digest(data, NO_DIGEST, hashlib.sha256(data).hexdigest()))


def read(path: str | PathLike[str], known: Collection[str]) -> ModelFile:
    """Read a whole, unchanged file whose required sections are all among the ``known`` ones.

    Sections may be numbered: who knows "stage" knows "stage_0" and all that follow.
    """
    with reading(path, ModelFileError, "crisptree model file"):
        data = read_file(path)
        if data[:1] == b"{":  # the length of a header is a multiple of eight, and this letter is none
            from crisptree.persistence.document import read_text

            sections = read_text(data, path)
            _check_known(sections, known, path)
            return ModelFile(path, sections)
        check_header(int.from_bytes(data[:8], "little"), len(data) - 8)
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


def _check_known(sections: Sections, known: Collection[str], path: str | PathLike[str]) -> None:
    required = {name for name, section in sections.items() if section.required}
    unknown = sorted(name for name in required if name not in known and re.sub(r"_\d+", "", name) not in known)
    if unknown:
        raise ModelFileError(f"{path} needs {', '.join(unknown)}, unknown to this version of crisptree. Update it.")


def _canonical(data: bytes) -> bytes:
    """The same arrays under a header in one order: the library keeps its entries as chance has it."""
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
    """The entry of the checksum replaced; inside any other text its quotation marks would be escaped."""
    entry = f'"{DIGEST}":"{{}}"'
    return data.replace(entry.format(old).encode(), entry.format(new).encode(), 1)


def _is_digest(digest: Any) -> bool:
    return isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None
