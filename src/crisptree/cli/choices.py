"""What the columns of a training table are: options that the commands share that train."""

from __future__ import annotations

from typing import Annotated

import typer

from crisptree.cli import options
from crisptree.cli.options import TABLE, column_option
from crisptree.cli.signatures import made_of
from crisptree.encoding.column_profile import MAX_CATEGORIES, ColumnOptions

Numeric = Annotated[
    list[str],
    column_option("--numeric", help="Columns of digits that are numbers, though some begin with 0: a,b."),
]
MaxCategories = Annotated[int, typer.Option(min=2, help="Most values of a category.", rich_help_panel=TABLE)]


def _made(
    drop: options.Drop,
    categorical: options.Categorical,
    numeric: Numeric,
    missing: options.Missing,
    max_categories: MaxCategories,
) -> ColumnOptions:
    return ColumnOptions(drop, categorical, numeric, missing, max_categories)


with_choices = made_of(
    "choices", _made, {"drop": [], "categorical": [], "numeric": [], "missing": [], "max_categories": MAX_CATEGORIES}
)
"""Give a command the options about the columns of its table; it gets them as its argument ``choices``."""
