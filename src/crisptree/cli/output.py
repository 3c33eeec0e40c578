"""What a command prints: results on stdout, notes and progress on stderr; with --json one document on stdout."""

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

from crisptree.estimators.progress import ProgressDisplay
from crisptree.sanitization import sanitize, sanitize_json

PLAIN: dict[str, Any] = {"markup": False, "highlight": False, "soft_wrap": True}
"""How a sentence is printed: as it is."""

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
REMEDY = re.compile(rf"`(\w+)=(True|\d+|{_QUOTED}|\[(?:{_QUOTED})(?:, (?:{_QUOTED}))*\])`")
"""A parameter and its value, as messages of the library write what a user may do: `drop=['id']`."""


class Output:
    """Prints for a person, or keeps what is to be printed for one JSON document."""

    def __init__(self, as_json: bool, *, silent: bool = False) -> None:
        self.as_json = as_json and not silent
        self.notes: list[str] = []
        self.stdout, self.stderr = Console(quiet=silent), Console(stderr=True, quiet=silent)

    def note(self, text: str) -> None:
        """Something that the user should know, once, on stderr; JSON holds it as well."""
        text = with_flags(text)
        if text in self.notes:
            return
        self.notes.append(text)
        self.stderr.print(f"note: {sanitize(text)}", **PLAIN)

    def note_all(self, texts: Iterable[str]) -> None:
        """Several notes."""
        for text in texts:
            self.note(text)

    def progress(self) -> ProgressDisplay:
        """How far the work is, on stderr."""
        return ProgressDisplay(self.stderr)

    def show(self, result: RenderableType) -> None:
        """A part of the result for a person."""
        if not self.as_json:
            if isinstance(result, str):
                self.stdout.print(sanitize(result), **PLAIN)
            else:
                self.stdout.print(result, highlight=False)

    def finish(self, document: dict[str, Any]) -> None:
        """The whole result for a machine."""
        if self.as_json:
            escaped = not (sys.stdout.encoding or "").lower().startswith("utf")
            whole = {**document, "notes": self.notes}
            print(sanitize_json(json.dumps(whole, indent=2, ensure_ascii=escaped, default=_plain)))

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Warnings of the library become notes."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            finally:
                self.note_all(dict.fromkeys(str(warning.message) for warning in caught))


def table_of(columns: Sequence[str], rows: Iterable[Sequence[str]], *, left: Collection[str] = ()) -> Table:
    """A table of texts as they are; numbers to the right, the first column and those in ``left`` to the left."""
    table = Table()
    for place, column in enumerate(columns):
        table.add_column(shown(column), justify="left" if not place or column in left else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(shown, row))
    return table


def shown(text: str, style: str = "") -> Text:
    """A text of a table, with nothing in it that a terminal would obey."""
    return Text(sanitize(text), style=style)


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def with_flags(text: str) -> str:
    """A message of the library, its remedies written as one types them in a shell.

    Examples
    --------
    >>> with_flags("leave it out with `drop=['the id']`.")
    "leave it out with --drop 'the id'."
    """

    def flag(remedy: re.Match[str]) -> str:
        name, value = f"--{remedy[1].replace('_', '-')}", ast.literal_eval(remedy[2])
        if value is True:
            return name
        words = value if isinstance(value, list) else [str(value)]
        if len(words) > 1 and not any("," in word for word in words):
            words = [",".join(words)]
        return " ".join(f"{name} {_typed(word)}" for word in words)

    return REMEDY.sub(flag, text)


def _typed(word: str) -> str:
    """A word as one types it in a shell; a mark alone in quotation marks, so that it is no part of the sentence."""
    word = word.replace("\t", "\\t")
    return quote(word) if re.search(r"\w", word) or "'" in word else f"'{word}'"
