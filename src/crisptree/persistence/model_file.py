"""The model file: safetensors arrays, a JSON header and a checksum. Nothing in it can run code.

The header names sections; arrays are called ``section/name``. A reader rejects an unknown section that is required and
ignores an optional one, so files can gain sections without a new format number.

The same sections can be written as a JSON document, without a checksum; docs/guide/export/json.md describes them:

    {"format": "crisptree", "version": 1, "sections": {NAME: SECTION, …}}
    SECTION: {"required": bool, "content": {…}, "arrays": {NAME: ARRAY, …}}
    ARRAY: {"type": "float32", "shape": [3, 2], "values": [[…], […], […]]}

Numbers are written so that reading them as doubles restores every bit; null is NaN.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from crisptree.files import atomic_write, reading
from crisptree.limits import MAX_CHANNELS, MAX_DIMENSIONS, MAX_LABEL_CHARACTERS

FORMAT = 1
KEY, DIGEST = "crisptree", "sha256"
NO_DIGEST = "0" * 64
"""Placeholder of the checksum while that of the whole file is computed."""

DOCUMENT_VERSION = 1
ARRAY_TYPES = {name: np.dtype(name) for name in ("float32", "float64", "int32", "int64", "uint8")}
"""Types of arrays in a JSON document."""

Arrays = dict[str, npt.NDArray[Any]]


class ModelFileError(ValueError):
    """A file that is not a complete and valid model; the message has the reason.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import crisptree
    >>> path = Path(tempfile.mkdtemp()) / "model.crisp"
    >>> _ = path.write_bytes(b"not a model")
    >>> try:
    ...     crisptree.load(path)
    ... except crisptree.ModelFileError:
    ...     print("model.crisp is not a model")
    model.crisp is not a model
    """


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
    data = _sort_header(save_arrays(arrays, metadata={KEY: header, DIGEST: NO_DIGEST}))
    with atomic_write(path) as temporary:
        temporary.write_bytes(_with_digest(data, NO_DIGEST, hashlib.sha256(data).hexdigest()))


def read(path: str | PathLike[str], known: Collection[str] | None = None) -> ModelFile:
    """Read and check a file whose required sections are all among the ``known`` ones; None leaves that to the caller.

    Sections may be numbered: "stage" stands for "stage_0" and all that follow.
    """
    with reading(path, ModelFileError, "crisptree model file"):
        data = Path(path).read_bytes()
        if data[:1] == b"{":  # the length of a header is a multiple of eight, and this letter is none
            sections = _read_document(data, path)
            check_known(sections, known, path)
            return ModelFile(path, sections)
        length = int.from_bytes(data[:8], "little")
        if length > len(data) - 8:
            raise ModelFileError("this is not a crisptree model file, or only a part of one.")
        return _read(path, data, known)


def _read(path: str | PathLike[str], data: bytes, known: Collection[str] | None) -> ModelFile:
    try:
        metadata = _metadata(data)
        header, digest = json.loads(metadata[KEY]), metadata[DIGEST]
        form = header["format"]
        sections = {name: Section(content, {}, content["required"]) for name, content in header["sections"].items()}
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a crisptree model file, or its header is damaged.") from error
    if form != FORMAT:
        raise ModelFileError(f"{path} has format {form!r}; this version of crisptree reads format {FORMAT}. Update it.")
    if not isinstance(digest, str) or _checksum(data, digest) != digest:
        raise ModelFileError(f"{path} is damaged: its checksum does not agree with its content.")
    check_known(sections, known, path)
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
    if len(labels) * max(map(len, labels)) > MAX_LABEL_CHARACTERS + 16 * sum(map(len, labels)):
        raise ModelFileError("the class labels of a model file must not differ so much in length.")


def check_channels(channels: object, path: str | PathLike[str]) -> None:
    """Reject a number of image channels that is neither None nor a positive integer."""
    if channels is not None and not (isinstance(channels, int) and 0 < channels <= MAX_CHANNELS):
        raise ModelFileError(f"{path} must store the number of channels; it stores {channels!r}.")


def check_known(sections: Sections, known: Collection[str] | None, path: str | PathLike[str]) -> None:
    """Refuse required sections that are not among the ``known`` ones; None accepts all."""
    if known is None:
        return
    required = {name for name, section in sections.items() if section.required}
    unknown = sorted(name for name in required if name not in known and re.sub(r"_\d+", "", name) not in known)
    if unknown:
        raise ModelFileError(f"{path} needs {', '.join(unknown)}, unknown to this version of crisptree. Update it.")


def _sort_header(data: bytes) -> bytes:
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


def document_of(sections: Sections) -> dict[str, Any]:
    """Convert the sections of a model file to JSON values.

    Examples
    --------
    >>> array = np.array([[1.5, np.nan]], dtype=np.float32)
    >>> document_of({"a": Section({"b": 1}, {"c": array})})["sections"]["a"]["arrays"]["c"]
    {'type': 'float32', 'shape': [1, 2], 'values': [[1.5, None]]}
    """
    return {
        "format": KEY,
        "version": DOCUMENT_VERSION,
        "sections": {
            name: {
                "required": section.required,
                "content": section.content,
                "arrays": {own: _describe(array) for own, array in section.arrays.items()},
            }
            for name, section in sections.items()
        },
    }


def text_of(document: dict[str, Any]) -> str:
    """Format a document as text with one line for each row of an array."""
    return "".join(_lines(document, "")) + "\n"


def sections_of(document: Any) -> Sections:
    """Invert ``document_of`` and validate the schema; errors name the location in the document."""
    top = _object(document, "$", ("format", "version", "sections"))
    if top["format"] != KEY:
        raise _make_error("$.format", f"must be {KEY!r}", top["format"])
    if isinstance(top["version"], bool) or top["version"] != DOCUMENT_VERSION:
        raise ModelFileError(f"$.version must be {DOCUMENT_VERSION}; got {_shorten(top['version'])}. Update crisptree.")
    sections: Sections = {}
    for name, value in _object(top["sections"], "$.sections").items():
        location = f"$.sections.{name}"
        section = _object(value, location, ("required", "content", "arrays"))
        if not isinstance(section["required"], bool):
            raise _make_error(f"{location}.required", "must be true or false", section["required"])
        content = _object(section["content"], f"{location}.content")
        arrays = _object(section["arrays"], f"{location}.arrays")
        read = {own: _array(array, f"{location}.arrays.{own}") for own, array in arrays.items()}
        sections[name] = Section(dict(content), read, section["required"])
    return sections


def _read_document(data: bytes, path: str | PathLike[str]) -> Sections:
    """Read the sections of a JSON document."""
    try:
        document = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a JSON document: {error or 'it is nested too deeply'}.") from error
    return sections_of(document)


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON; write null")


def _describe(array: npt.NDArray[Any]) -> dict[str, Any]:
    kind = str(array.dtype)
    if kind not in ARRAY_TYPES:
        raise TypeError(f"an array of {kind} has no place in a document.")
    values = array.astype(np.float64).tolist() if array.dtype.kind == "f" else array.tolist()
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        if np.isinf(array).any():
            raise ValueError("an array with infinite values has no place in a document.")
        values = _with_null(values)
    return {"type": kind, "shape": list(array.shape), "values": values}


def _with_null(values: Any) -> Any:
    if isinstance(values, list):
        return [_with_null(value) for value in values]
    return None if math.isnan(values) else values


def _array(value: Any, location: str) -> npt.NDArray[Any]:
    array = _object(value, location, ("type", "shape", "values"))
    if not isinstance(array["type"], str) or array["type"] not in ARRAY_TYPES:
        raise _make_error(f"{location}.type", f"must be one of {', '.join(ARRAY_TYPES)}", array["type"])
    shape = array["shape"]
    if (
        not isinstance(shape, list)
        or not 0 < len(shape) <= MAX_DIMENSIONS
        or not all(type(side) is int and 0 <= side < 2**31 for side in shape)
    ):
        raise _make_error(f"{location}.shape", f"must be a list of 1 to {MAX_DIMENSIONS} whole numbers", shape)
    dtype = ARRAY_TYPES[array["type"]]
    values = np.array(array["values"], dtype=object)
    if values.shape != tuple(shape) and math.prod(shape) + values.size > 0:
        raise ModelFileError(f"{location}.values must be nested lists of the shape {shape}; they are not.")
    is_float, numbers = dtype.kind == "f", np.empty(math.prod(shape), dtype)
    kinds = (int, float) if is_float else (int,)  # the type of true and false is neither
    bounds: Any = np.finfo(dtype) if is_float else np.iinfo(dtype)
    low, high = (float(bounds.min), float(bounds.max)) if is_float else (bounds.min, bounds.max)
    for number, (index, value) in enumerate(np.ndenumerate(values)):
        if is_float and value is None:
            numbers[number] = np.nan
        elif type(value) in kinds and low <= value <= high:
            numbers[number] = value
        else:
            entry = "".join(f"[{place}]" for place in index)
            must = f"number that {dtype} can hold, or null" if is_float else f"whole number from {low} to {high}"
            raise _make_error(f"{location}.values{entry}", f"must be a {must}", value)
    return numbers.reshape(shape)


def _object(value: Any, location: str, keys: tuple[str, ...] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _make_error(location, "must be an object", value)
    for key in keys or ():
        if key not in value:
            raise ModelFileError(f"{location} must have the entry {key!r}; it has {_list_names(value)}.")
    for key in value if keys else ():
        if key not in (keys or ()):
            raise ModelFileError(
                f"{location} must have no other entries than {_list_names(keys or ())}; it has {key!r} too."
            )
    return value


def _make_error(location: str, must: str, got: Any) -> ModelFileError:
    return ModelFileError(f"{location} {must}; got {_shorten(got)}.")


def _shorten(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 60 else text[:57] + "…"


def _list_names(names: Any) -> str:
    return ", ".join(repr(name) for name in list(names)[:8]) or "none"


def _lines(value: Any, indent: str) -> Iterator[str]:
    """Format JSON with two spaces per level, and lists of scalars on one line."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        for index, (key, part) in enumerate(value.items()):
            yield ("{\n" if not index else ",\n") + inner + json.dumps(key) + ": "
            yield from _lines(part, inner)
        yield "\n" + indent + "}"
    elif isinstance(value, list) and any(isinstance(part, list | dict) for part in value):
        for index, part in enumerate(value):
            yield ("[\n" if not index else ",\n") + inner
            yield from _lines(part, inner)
        yield "\n" + indent + "]"
    else:
        yield json.dumps(value, allow_nan=False)
