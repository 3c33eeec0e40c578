"""How a table of text is written: options that every command with a table has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from crisptree.cli.options import TABLE, option
from crisptree.cli.signatures import made_of
from crisptree.encoding.errors import TableError
from crisptree.encoding.number_format import DEFAULT_FORMAT, THOUSANDS, NumberFormat
from crisptree.encoding.table_files import TableFile, open_table, resolve_encoding


@dataclass(frozen=True)
class Dialect:
    """What the user says of it; None, and no units, where nothing is said."""

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    units: tuple[str, ...] = ()

    def open(self, path: Path, n_features: int | None = None, like: NumberFormat = DEFAULT_FORMAT) -> TableFile:
        """A table, ready to be read; what the user does not say of its numbers is ``like`` that of another."""
        how: dict[str, Any] = {
            "delimiter": self.delimiter,
            "encoding": self.encoding,
            "number_format": self.written(like),
        }
        return open_table(path, **how, n_features=n_features)

    def written(self, like: NumberFormat = DEFAULT_FORMAT) -> NumberFormat:
        """How its numbers are written."""
        decimal = self.decimal or like.decimal
        # A mark of thousands that now begins fractions cannot be meant any more.
        thousands = self.thousands or (like.thousands if like.thousands != decimal else None)
        try:
            return NumberFormat(decimal, thousands, self.units or like.units)
        except TableError as error:
            raise _naming_flags(error) from None


def _naming_flags(error: TableError) -> typer.BadParameter:
    said = str(error)
    for name in ("encoding", "decimal", "thousands", "unit"):
        said = said.replace(f"`{name}`", f"--{name}")
    return typer.BadParameter(said)


def _made(
    delimiter: Annotated[str | None, option(help="What separates the columns of a .csv, if not a comma.", panel=TABLE)],
    encoding: Annotated[str | None, option(help="How text is encoded, if not as UTF-8: cp1252, say.", panel=TABLE)],
    decimal: Annotated[
        str | None,
        option(
            help="What begins the fraction of a number: . (or as the model has it) or ,", panel=TABLE, metavar="MARK"
        ),
    ],
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
        found = None if encoding is None else resolve_encoding(encoding)
    except TableError as error:
        raise _naming_flags(error) from None
    dialect = Dialect(delimiter, None if found == "utf-8" else found, decimal, thousands, tuple(unit))
    dialect.written(NumberFormat(",") if thousands == "." else DEFAULT_FORMAT)  # what no table could be written like
    return dialect


with_dialect = made_of(
    "dialect", _made, {"delimiter": None, "encoding": None, "decimal": None, "thousands": None, "unit": []}
)
"""Give a command the options about the text of its tables; it gets them as its argument ``dialect``."""
