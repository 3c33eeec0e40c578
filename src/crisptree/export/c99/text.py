"""Pieces of C: arrays of constants, the smallest types that hold them, and what may be a prefix of names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export import escaping
from crisptree.export.portable import ExportError

WIDTH = 110
LONGEST_STRING = 4095
"""Bytes of a string that every compiler of C99 must take."""


@dataclass(frozen=True, eq=False)
class Array:
    """A constant array of a C file."""

    name: str
    type: str
    values: tuple[str, ...]
    n_bytes: int

    def __str__(self) -> str:
        values = self.values or ("0",)  # an array of C has at least one element
        return f"static const {self.type} {self.name}[{len(values)}] = {{\n{wrapped(values)}\n}};\n"


def integers(name: str, values: npt.ArrayLike, kind: str | None = None) -> Array:
    """Whole numbers in the type given, or the smallest one that holds them all."""
    given = np.asarray(values).reshape(-1)
    kind = kind or smallest_type(given)
    size = int(kind.removeprefix("u").removeprefix("int").removesuffix("_t")) // 8
    return Array(name, kind, tuple(map(_integer, given.tolist())), size * max(len(given), 1))


def _integer(value: int) -> str:
    # −2147483648 is no literal of C but the negative of one that int cannot hold.
    return "(-2147483647 - 1)" if value == -(2**31) else str(value)


def singles(name: str, values: npt.NDArray[np.float32]) -> Array:
    """Single-precision numbers, each with as many digits as bring back its bits."""
    flat = values.reshape(-1)
    return Array(name, "float", tuple(str(value) + "f" for value in flat), 4 * max(len(flat), 1))


def rounded(name: str, values: Iterable[float]) -> Array:
    """Numbers rounded to single precision."""
    with np.errstate(over="ignore", under="ignore"):
        return singles(name, np.array(list(values), dtype=np.float32))


def doubles(name: str, values: npt.NDArray[np.float64]) -> Array:
    """Double-precision numbers, each with as many digits as bring back its bits."""
    flat = values.reshape(-1).tolist()
    return Array(name, "double", tuple(map(repr, flat)), 8 * max(len(flat), 1))


def strings(texts: Iterable[str]) -> list[str]:
    """Strings of C; names longer than every compiler takes are refused."""
    found = list(texts)
    for text in found:
        if "\0" in text:
            raise ExportError(f"names must have no null in them, which ends a string of C; got {text!r}. Rename it.")
        if len(text.encode("utf-8", "surrogatepass")) > LONGEST_STRING:
            raise ExportError(
                f"names must have at most {LONGEST_STRING} bytes to be strings of C99; got one that begins with "
                f"{text[:40]!r}. Shorten it."
            )
    return [escaping.c(text) for text in found]


def smallest_type(values: npt.NDArray[Any]) -> str:
    """The smallest integer type of C that holds all values.

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


def wrapped(items: Iterable[str], indent: str = "    ") -> str:
    """Items with commas between them, on lines of readable length."""
    lines, line = [], indent
    for item in items:
        if len(line) + len(item) > WIDTH:
            lines.append(line.rstrip())
            line = indent
        line += f"{item}, "
    lines.append(line.rstrip(", "))
    return "\n".join(lines)


def comment(lines: Iterable[str]) -> str:
    """A block comment; the lines must have been made harmless."""
    return "/* " + "\n".join(f" * {line}".rstrip() for line in lines)[3:] + "\n */\n"


def checked_name(name: str) -> str:
    """A prefix for names of C, or an error."""
    if not name.isascii() or not name.isidentifier() or name.startswith("_"):
        raise ExportError(
            f"`name` must be ASCII letters, digits and underscores, and must begin with a letter; got {name!r}."
        )
    return name
