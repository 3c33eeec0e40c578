"""Pages in Markdown: tables, tables of parameters, prose wrapped at 100 columns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

COLUMNS = 100
HELD = "\0"
"""Stands for a space where no line may break: in code, and before %, which begins a comment in MyST."""

KEPT = ("|", "#", "![", "    ")
"""Beginnings of lines that are no prose: tables, headings, pictures, code."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def parameter_table(values: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """List every parameter of the rows of a page: those that differ in a table, the others in a line."""
    if not values:
        return []
    names = sorted({name for one in values.values() for name in one})
    shown = {name: [repr(one[name]) if name in one else "–" for one in values.values()] for name in names}
    differ = [[f"`{name}`", *row] for name, row in shown.items() if len(set(row)) > 1]
    same = [f"`{name}={row[0]}`" for name, row in shown.items() if len(set(row)) == 1]
    words = f"In all rows: {', '.join(same)}. A parameter without a value in a row came after its records."
    return ["## Every parameter", "", table(["", *values], differ), words, ""]


def wrap(page: str) -> str:
    """Wrap the prose of a page: paragraphs and list items, whose later lines are indented.

    Examples
    --------
    >>> print(wrap("* " + "word " * 25))
    * word word word word word word word word word word word word word word word word word word word
      word word word word word word
    """
    lines: list[str] = []
    for is_prose, group in groupby(page.split("\n"), lambda line: bool(line) and not line.startswith(KEPT)):
        lines += (_items if is_prose else list)(group)
    return "\n".join(lines)


def _items(lines: Iterable[str]) -> list[str]:
    items: list[str] = []
    for line in lines:
        if line.startswith("* ") or not items:
            items.append(line)
        else:
            items[-1] += f" {line.strip()}"
    wrapped = []
    for item in items:
        indent = "  " if item.startswith("* ") else ""
        whole = re.sub("`[^`]*`| %", lambda code: code[0].replace(" ", HELD), item)
        options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
        wrapped += textwrap.wrap(whole, COLUMNS, subsequent_indent=indent, **options)
    return [line.replace(HELD, " ") for line in wrapped]
