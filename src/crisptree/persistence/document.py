"""The model file as a JSON document: the same sections and the same arrays, every number of them exact, and back.

    {"format": "crisptree", "version": 1, "sections": {NAME: SECTION, …}}
    SECTION: {"required": bool, "content": {…}, "arrays": {NAME: ARRAY, …}}
    ARRAY: {"type": "float32", "shape": [3, 2], "values": [[…], […], […]]}

``docs/export/json.md`` says what the sections hold. Numbers are written so that reading them as doubles gives the very
bits; null is the one value that is not a number.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.persistence.model_file import ModelFileError, Section, Sections

FORMAT, VERSION = "crisptree", 1

TYPES = {
    "float32": np.float32,
    "float64": np.float64,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
}
"""What arrays may hold."""

MAX_DIMENSIONS = 8


def document_of(sections: Sections) -> dict[str, Any]:
    """The sections of a model file as values that JSON can hold.

    Examples
    --------
    >>> array = np.array([[1.5, np.nan]], dtype=np.float32)
    >>> document_of({"a": Section({"b": 1}, {"c": array})})["sections"]["a"]["arrays"]["c"]
    {'type': 'float32', 'shape': [1, 2], 'values': [[1.5, None]]}
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        "sections": {
            name: {
                "required": section.required,
                "content": section.content,
                "arrays": {own: _described(array) for own, array in section.arrays.items()},
            }
            for name, section in sections.items()
        },
    }


def text_of(document: dict[str, Any]) -> str:
    """The document as text: a line for each row of an array, so that people and version control can read it."""
    return "".join(_lines(document, "")) + "\n"


def sections_of(document: Any) -> Sections:
    """What ``document_of`` was given, held to the schema; an error names the place in the document."""
    top = _object(document, "$", ("format", "version", "sections"))
    if top["format"] != FORMAT:
        raise _wrong("$.format", f"must be {FORMAT!r}", top["format"])
    if isinstance(top["version"], bool) or top["version"] != VERSION:
        raise ModelFileError(f"$.version must be {VERSION}; got {_shown(top['version'])}. Update crisptree.")
    sections: Sections = {}
    for name, given in _object(top["sections"], "$.sections").items():
        place = f"$.sections.{name}"
        section = _object(given, place, ("required", "content", "arrays"))
        if not isinstance(section["required"], bool):
            raise _wrong(f"{place}.required", "must be true or false", section["required"])
        content = _object(section["content"], f"{place}.content")
        arrays = _object(section["arrays"], f"{place}.arrays")
        read = {own: _array(array, f"{place}.arrays.{own}") for own, array in arrays.items()}
        sections[name] = Section(dict(content), read, section["required"])
    return sections


def read_text(data: bytes, path: str | PathLike[str]) -> Sections:
    """The sections of a document in a file."""
    try:
        document = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a JSON document: {error or 'it is nested too deeply'}.") from error
    return sections_of(document)


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON; write null")


def _described(array: npt.NDArray[Any]) -> dict[str, Any]:
    kind = str(array.dtype)
    if kind not in TYPES:
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


def _array(given: Any, place: str) -> npt.NDArray[Any]:
    array = _object(given, place, ("type", "shape", "values"))
    if not isinstance(array["type"], str) or array["type"] not in TYPES:
        raise _wrong(f"{place}.type", f"must be one of {', '.join(TYPES)}", array["type"])
    shape = array["shape"]
    if not isinstance(shape, list) or not 0 < len(shape) <= MAX_DIMENSIONS or not all(map(_is_length, shape)):
        raise _wrong(f"{place}.shape", f"must be a list of 1 to {MAX_DIMENSIONS} whole numbers", shape)
    dtype = np.dtype(TYPES[array["type"]])
    flat = list(_numbers(array["values"], tuple(shape), dtype, f"{place}.values"))
    return np.array(flat, dtype=dtype).reshape(shape)


def _numbers(values: Any, shape: tuple[int, ...], dtype: np.dtype[Any], place: str) -> Iterator[float]:
    """The numbers of nested lists of a shape, each of them one that the type can hold."""
    if not shape:
        yield _number(values, dtype, place)
        return
    if not isinstance(values, list) or len(values) != shape[0]:
        got = f"a list of {len(values)}" if isinstance(values, list) else _shown(values)
        raise ModelFileError(f"{place} must be a list of {shape[0]} entries; got {got}.")
    for number, value in enumerate(values):
        yield from _numbers(value, shape[1:], dtype, f"{place}[{number}]")


def _number(value: Any, dtype: np.dtype[Any], place: str) -> float:
    if dtype.kind == "f":
        if value is None:
            return math.nan
        if isinstance(value, int | float) and not isinstance(value, bool):
            largest = float(np.finfo(dtype).max)
            if -largest <= value <= largest:
                return float(value)
        raise _wrong(place, f"must be a number that {dtype} can hold, or null", value)
    limits = np.iinfo(dtype)
    if isinstance(value, int) and not isinstance(value, bool) and limits.min <= value <= limits.max:
        return value
    raise _wrong(place, f"must be a whole number from {limits.min} to {limits.max}", value)


def _object(value: Any, place: str, keys: tuple[str, ...] | None = None) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(place, "must be an object", value)
    for key in keys or ():
        if key not in value:
            raise ModelFileError(f"{place} must have the entry {key!r}; it has {_listed(value)}.")
    for key in value if keys else ():
        if key not in (keys or ()):
            raise ModelFileError(f"{place} must have no other entries than {_listed(keys or ())}; it has {key!r} too.")
    return value


def _is_length(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _wrong(place: str, must: str, got: Any) -> ModelFileError:
    return ModelFileError(f"{place} {must}; got {_shown(got)}.")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 60 else text[:57] + "…"


def _listed(names: Any) -> str:
    return ", ".join(repr(name) for name in list(names)[:8]) or "none"


def _lines(value: Any, indent: str) -> Iterator[str]:
    """JSON with two spaces for every level, and lists of numbers on one line."""
    inner = indent + "  "
    if isinstance(value, dict) and value:
        for place, (key, part) in enumerate(value.items()):
            yield ("{\n" if not place else ",\n") + inner + json.dumps(key) + ": "
            yield from _lines(part, inner)
        yield "\n" + indent + "}"
    elif isinstance(value, list) and any(isinstance(part, list | dict) for part in value):
        for place, part in enumerate(value):
            yield ("[\n" if not place else ",\n") + inner
            yield from _lines(part, inner)
        yield "\n" + indent + "]"
    else:
        yield json.dumps(value, allow_nan=False)
