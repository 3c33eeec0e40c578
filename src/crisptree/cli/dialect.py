"""How a table of text is written: options that every command with a table has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter as Argument
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from crisptree.cli.options import TABLE, option
from crisptree.cli.signatures import in_the_place_of
from crisptree.tables.errors import TableError
from crisptree.tables.number_texts import PLAIN, THOUSANDS, NumberTexts
from crisptree.tables.reading import open_table
from crisptree.tables.source import Source
from crisptree.tables.transcoding import text_encoding


@dataclass(frozen=True)
class Dialect:
    """What the user says of it."""

    delimiter: str | None = None
    encoding: str | None = None
    written: NumberTexts = PLAIN

    def open(self, path: Path, n_features: int | None = None) -> Source:
        """A table, ready to be read."""
        how: dict[str, Any] = {"delimiter": self.delimiter, "encoding": self.encoding, "written": self.written}
        return open_table(path, **how, n_features=n_features)


def _made(
    delimiter: Annotated[str | None, option(help="What separates the columns of a .csv, if not a comma.", panel=TABLE)],
    encoding: Annotated[str | None, option(help="How text is encoded, if not as UTF-8: cp1252, say.", panel=TABLE)],
    decimal: Annotated[str, option(help="What begins the fraction of a number: . or ,", panel=TABLE, metavar="MARK")],
    thousands: Annotated[
        str | None,
        option(help=f"What parts thousands: one of {' '.join(map(repr, THOUSANDS))}", panel=TABLE, metavar="MARK"),
    ],
    unit: Annotated[
        list[str], option(help="A sign to take away from numbers, such as € or %. May be repeated.", panel=TABLE)
    ],
) -> Dialect:
    delimiter = "\t" if delimiter == "\\t" else delimiter
    if delimiter is not None and len(delimiter.encode()) != 1:
        raise typer.BadParameter(f"--delimiter must be one character; got {delimiter!r}.")
    try:
        found = None if encoding is None else text_encoding(encoding)
        return Dialect(delimiter, None if found == "utf-8" else found, NumberTexts(decimal, thousands, tuple(unit)))
    except TableError as error:
        said = str(error)
        for name in ("encoding", "decimal", "thousands", "unit"):
            said = said.replace(f"`{name}`", f"--{name}")
        raise typer.BadParameter(said) from None


_DEFAULTS: dict[str, Any] = {"delimiter": None, "encoding": None, "decimal": ".", "thousands": None, "unit": []}


def with_dialect(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options about the text of its tables; it gets them as its argument ``dialect``."""
    hints = get_type_hints(_made, include_extras=True)
    options = [
        Argument(name, Argument.KEYWORD_ONLY, default=_DEFAULTS[name], annotation=hints[name])
        for name in signature(_made).parameters
    ]

    @wraps(command)
    def run(**given: Any) -> None:
        said = {name: given.pop(name) for name in _DEFAULTS}
        command(**given, dialect=_made(**said))

    in_the_place_of("dialect", options, command, run)
    return run
