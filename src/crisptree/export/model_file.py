"""The model file: safetensors arrays, a JSON header and a checksum. Nothing in it can run code.

The header names sections; arrays are called ``section/name``. A reader refuses an unknown section that is required and
passes over an optional one, so files can gain sections without a new format number.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

FORMAT = 1
KEY, DIGEST = "crisptree", "sha256"
NO_DIGEST = "0" * 64
"""Stands in the place of the checksum while the checksum of the whole file is taken."""

Arrays = dict[str, npt.NDArray[Any]]


class ModelFileError(ValueError):
    """A file that is not a whole and sound model; the message says what is wrong with it."""


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a file holds: a JSON object for every section, and arrays named ``section/name``."""

    sections: dict[str, dict[str, Any]]
    arrays: Arrays

    def section(self, name: str) -> dict[str, Any]:
        """The JSON object of a section."""
        content = self.sections.get(name)
        if not isinstance(content, dict):
            raise ModelFileError(f"the section {name!r} is missing.")
        return content

    def arrays_of(self, section: str) -> Arrays:
        """The arrays of a section, by their own names."""
        start = section + "/"
        return {name.removeprefix(start): array for name, array in self.arrays.items() if name.startswith(start)}


def write(path: str | PathLike[str], model: ModelFile, optional: Collection[str] = ()) -> None:
    """Write atomically: a crash half-way leaves an earlier file as it was."""
    sections = {name: {"required": name not in optional, **content} for name, content in model.sections.items()}
    header = json.dumps({"format": FORMAT, "sections": sections}, allow_nan=False)
    arrays = {name: np.ascontiguousarray(array) for name, array in model.arrays.items()}
    data = save_arrays(arrays, metadata={KEY: header, DIGEST: NO_DIGEST})
    data = _with_digest(data, NO_DIGEST, hashlib.sha256(data).hexdigest())
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read(path: str | PathLike[str], known: Collection[str]) -> ModelFile:
    """Read a whole, unchanged file whose required sections are all among the ``known`` ones."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        metadata = _metadata(data)
        header, digest = json.loads(metadata[KEY]), metadata[DIGEST]
        form, sections = header["format"], header["sections"]
        required = [name for name, content in sections.items() if content["required"]]
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a crisptree model file, or its header is damaged.") from error
    if form != FORMAT:
        raise ModelFileError(f"{path} has format {form!r}; this version of crisptree reads format {FORMAT}. Update it.")
    if not _is_digest(digest) or _checksum(data, digest) != digest:
        raise ModelFileError(f"{path} is damaged: its checksum does not agree with its content.")
    unknown = sorted(set(required) - set(known))
    if unknown:
        raise ModelFileError(f"{path} needs {', '.join(unknown)}, unknown to this version of crisptree. Update it.")
    try:
        return ModelFile(sections, load_arrays(data))
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise ModelFileError(f"{path} holds arrays that cannot be read: {error}.") from error


def _metadata(data: bytes) -> dict[str, str]:
    length = int.from_bytes(data[:8], "little")
    if length > len(data) - 8:
        raise ValueError("the file is shorter than its header says")
    return dict(json.loads(data[8 : 8 + length])["__metadata__"])


def _checksum(data: bytes, digest: str) -> str:
    return hashlib.sha256(_with_digest(data, digest, NO_DIGEST)).hexdigest()


def _with_digest(data: bytes, old: str, new: str) -> bytes:
    """The entry of the checksum replaced; inside any other text its quotation marks would be escaped."""
    entry = f'"{DIGEST}":"{{}}"'
    return data.replace(entry.format(old).encode(), entry.format(new).encode(), 1)


def _is_digest(digest: Any) -> bool:
    return isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None
