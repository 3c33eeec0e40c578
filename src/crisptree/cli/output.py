"""Output of the commands: results on stdout, notes and progress on stderr; with --json one document on stdout."""

from __future__ import annotations

import ast
import json
import re
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import Any

import numpy as np
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from crisptree.pipeline.monitoring import ProgressDisplay
from crisptree.sanitization import sanitize, sanitize_json

PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}
"""Arguments of ``Console.print`` for text without markup."""

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
RECOMMENDATION = re.compile(rf"`(\w+)=(True|\d+|{_QUOTED}|\[(?:{_QUOTED})(?:, (?:{_QUOTED}))*\])`")
"""A parameter and its value, as the library's messages recommend it: `drop=['id']`."""


class Output:
    """Print for people, or collect one JSON document."""

    def __init__(self, as_json: bool) -> None:
        self.as_json = as_json
        self.notes: list[str] = []
        self.stdout, self.stderr = Console(), Console(stderr=True)

    def note(self, text: str) -> None:
        """Print a note to stderr, once; the JSON document lists it too."""
        text = with_flags(text)
        if text in self.notes:
            return
        self.notes.append(text)
        self.stderr.print(f"note: {sanitize(text)}", **PLAIN)

    def note_all(self, texts: Iterable[str]) -> None:
        """Print several notes."""
        for text in texts:
            self.note(text)

    def progress(self) -> ProgressDisplay:
        """Create a progress display on stderr."""
        return ProgressDisplay(self.stderr)

    def show(self, result: RenderableType) -> None:
        """Print a part of the result, unless JSON is wanted."""
        if not self.as_json:
            if isinstance(result, str):
                self.stdout.print(sanitize(result), **PLAIN)
            else:
                self.stdout.print(result, highlight=False)

    def finish(self, document: dict[str, Any]) -> None:
        """Print the JSON document, if it is wanted."""
        if self.as_json:
            escaped = not (sys.stdout.encoding or "").lower().startswith("utf")
            whole = {**document, "notes": self.notes}
            print(sanitize_json(json.dumps(whole, indent=2, ensure_ascii=escaped, default=_to_json)))

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Turn warnings of the library into notes."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            finally:
                self.note_all(dict.fromkeys(str(warning.message) for warning in caught))


def make_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: Collection[str] = ()) -> Table:
    """Make a table of literal texts; columns are right-aligned except the first and those in ``left``."""
    table = Table()
    for index, column in enumerate(columns):
        table.add_column(make_text(column), justify="left" if not index or column in left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(make_text, row))
    return table


def make_text(text: str, style: str = "") -> Text:
    """Make a text without control sequences."""
    return Text(sanitize(text), style=style)


def make_grid(lines: dict[str, str]) -> Table:
    """Make a borderless table of names and texts."""
    table = Table.grid(padding=(0, 2))
    for name, text in lines.items():
        table.add_row(make_text(name, "bold"), make_text(text))
    return table


def _to_json(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def with_flags(text: str) -> str:
    """Rewrite the parameters that a message of the library recommends as flags of the shell.

    Examples
    --------
    >>> with_flags("leave it out with `drop=['the id']`.")
    "leave it out with --drop 'the id'."
    """

    def flag(match: re.Match[str]) -> str:
        name, value = f"--{match[1].replace('_', '-')}", ast.literal_eval(match[2])
        if value is True:
            return name
        words = value if isinstance(value, list) else [str(value)]
        if len(words) > 1 and not any("," in word for word in words):
            words = [",".join(words)]
        return " ".join(f"{name} {_quote(word)}" for word in words)

    return RECOMMENDATION.sub(flag, text)


def _quote(word: str) -> str:
    """Quote a word for the shell; punctuation always, so that it does not look like part of the sentence."""
    word = word.replace("\t", "\\t")
    return quote(word) if re.search(r"\w", word) or "'" in word else f"'{word}'"
