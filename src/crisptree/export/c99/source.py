"""C source text: templates, arrays in the smallest types that hold them, sparse weights, strings and comments."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.escaping import quote_c
from crisptree.export.portable import ExportError

LINE_WIDTH = 110
MAX_STRING = 4095
"""Bytes of a string that every compiler of C99 must accept."""

MAX_GAP = 255
"""A gap between two terms is one byte; a wider one is bridged by terms of weight zero."""

PREDICTIONS = {
    ("classes", True): ("LEAF_CLASS", "COPY_TABLE"),
    ("classes", False): ("MEAN_CLASSES",),
    ("value", True): ("LEAF_VALUE",),
    ("value", False): ("MEAN_VALUE",),
    ("values", True): ("COPY_TABLE",),
    ("values", False): ("MEAN_VALUES",),
}
"""Templates of prediction functions, by output and whether a single tree of constants gives it."""

SUM_COMMENTS = {
    "TABLE": "What all trees say, added up in their order.",
    "LINEAR": "What the models of the leaves say, added up over the trees in their order.",
    "SOFTMAX": "The softmax of what the models of the leaves say, added up over the trees in their order.",
}


@cache
def read_templates() -> dict[str, str]:
    """Read the templates by their names."""
    text = files("crisptree.export.c99").joinpath("templates.c").read_text(encoding="ascii")
    _, *parts = re.split(r"^//// (\w+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def fill(*names: str, **words: object) -> str:
    """Substitute the prefix, ``name``, and other words in templates."""
    template = Template("".join(read_templates()[name] for name in names))
    return template.substitute(NAME=str(words["name"]).upper(), **words)


@dataclass(frozen=True, eq=False)
class CArray:
    """A constant array of a C file."""

    name: str
    type: str
    values: tuple[str, ...]
    n_bytes: int

    def __str__(self) -> str:
        values = self.values or ("0",)  # an array of C has at least one element
        return f"static const {self.type} {self.name}[{len(values)}] = {{\n{wrap(values)}\n}};\n"


@dataclass(frozen=True, eq=False)
class SparseTerms:
    """Nonzero weights of splits: the gap to the next feature, and its weight.

    Examples
    --------
    >>> terms = SparseTerms.of(np.array([[0, 5, 0, 7], [3, 0, 0, 0]]))
    >>> terms.start.tolist(), terms.gap.tolist(), terms.value.tolist()
    ([0, 2, 3], [1, 2, 0], [5, 7, 3])
    """

    start: npt.NDArray[np.int64]  # index of the first term of every split, and the end  (n_splits + 1,)
    gap: npt.NDArray[np.uint8]  # distance from the previous feature, or from feature 0  (n_terms,)
    value: npt.NDArray[Any]  # weights; zero only to bridge a wide gap  (n_terms,)

    @classmethod
    def of(cls, weight: npt.NDArray[Any]) -> SparseTerms:
        """Terms of every row of a matrix."""
        starts, gaps, values = [0], [], []
        for line in weight:
            at = 0
            for feature in np.flatnonzero(line).tolist():
                while feature - at > MAX_GAP:
                    at += MAX_GAP
                    gaps.append(MAX_GAP)
                    values.append(0)
                gaps.append(feature - at)
                values.append(line[feature])
                at = feature
            starts.append(len(gaps))
        return cls(np.array(starts), np.array(gaps, dtype=np.uint8), np.array(values, dtype=weight.dtype))

    def costs(self) -> npt.NDArray[np.int64]:
        """Multiply-adds of every split."""
        return np.diff(self.start)


def make_array(name: str, values: npt.ArrayLike, kind: str | None = None) -> CArray:
    """Make an array of float or double with digits that round-trip, or of integers in their smallest common type."""
    flat = np.asarray(values).reshape(-1)
    size = max(len(flat), 1)
    if flat.dtype == np.float32:
        return CArray(name, "float", tuple(str(value) + "f" for value in flat), 4 * size)
    if flat.dtype == np.float64:
        return CArray(name, "double", tuple(map(repr, flat.tolist())), 8 * size)
    kind = kind or smallest_type(flat)
    n_bytes = int(kind.removeprefix("u").removeprefix("int").removesuffix("_t")) // 8
    # −2147483648 is no literal of C but the negative of one that int cannot hold.
    texts = ("(-2147483647 - 1)" if value == -(2**31) else str(value) for value in flat.tolist())
    return CArray(name, kind, tuple(texts), n_bytes * size)


def make_float_array(name: str, values: Iterable[float]) -> CArray:
    """Make an array of numbers rounded to float."""
    with np.errstate(over="ignore", under="ignore"):
        return make_array(name, np.array(list(values), dtype=np.float32))


def strings(texts: Iterable[str]) -> list[str]:
    """Quote strings; names longer than every compiler accepts are rejected."""
    names = list(texts)
    for text in names:
        if "\0" in text:
            raise ExportError(f"names must have no null in them, which ends a string of C; got {text!r}. Rename it.")
        if len(text.encode("utf-8", "surrogatepass")) > MAX_STRING:
            raise ExportError(
                f"names must have at most {MAX_STRING} bytes to be strings of C99; got one that begins with "
                f"{text[:40]!r}. Shorten it."
            )
    return [quote_c(text) for text in names]


def smallest_type(values: npt.NDArray[Any]) -> str:
    """Smallest integer type of C that holds all values.

    Examples
    --------
    >>> smallest_type(np.array([0, 200])), smallest_type(np.array([-1, 200])), smallest_type(np.array([70000]))
    ('uint8_t', 'int16_t', 'uint32_t')
    """
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    for bits in (8, 16, 32):
        if low >= 0 and high < 2**bits:
            return f"uint{bits}_t"
        if -(2 ** (bits - 1)) <= low and high < 2 ** (bits - 1):
            return f"int{bits}_t"
    raise ExportError(f"a table must hold numbers of 32 bits; got {low} to {high}. The model is too large for C.")


def wrap(items: Iterable[str], indent: str = "    ") -> str:
    """Join items with commas, in lines of readable length."""
    lines, line = [], indent
    for item in items:
        if len(line) + len(item) > LINE_WIDTH:
            lines.append(line.rstrip())
            line = indent
        line += f"{item}, "
    lines.append(line.rstrip(", "))
    return "\n".join(lines)


def comment(lines: Iterable[str]) -> str:
    """Write a block comment of escaped lines."""
    return "/* " + "\n".join(f" * {line}".rstrip() for line in lines)[3:] + "\n */\n"


def check_name(name: str) -> str:
    """Return a valid prefix for names of C, or raise."""
    if not name.isascii() or not name.isidentifier() or name.startswith("_"):
        raise ExportError(
            f"`name` must be ASCII letters, digits and underscores, and must begin with a letter; got {name!r}."
        )
    return name
