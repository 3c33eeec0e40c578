"""Arguments that several commands share, in one wording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FORMATS = ".csv, .tsv, .parquet, .npz or LIBSVM (.libsvm, .svm, .txt); text also as .gz, .bz2, .xz"

TABLE, TREE, TRAINING, OUTPUT = "The table", "The tree", "Training", "Output"


def column_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """For the shell: the columns of the first table that is already named on the line."""
    from crisptree.tables.errors import TableError
    from crisptree.tables.reading import open_table

    for word in (ctx.params.get("data"), *ctx.args):
        try:
            names = open_table(Path(word or "")).names
        except (TableError, OSError):
            continue  # a model, an option, half a word
        return [name for name in names if name.startswith(incomplete)]
    return []


Model = Annotated[Path, typer.Argument(help="A model file (.crisp).", show_default=False)]
Data = Annotated[Path, typer.Argument(help=f"The table: {FORMATS}.", show_default=False)]
Target = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="The column of classes. .npz and LIBSVM files have one of their own, called y.",
        show_default=False,
        autocompletion=column_names,
        rich_help_panel=TABLE,
    ),
]
KnownTarget = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        help="The column of classes; by default the one that the model was trained on.",
        show_default=False,
        autocompletion=column_names,
        rich_help_panel=TABLE,
    ),
]
Missing = Annotated[
    list[str],
    typer.Option(
        "--missing",
        help="A text that means a missing value, beside an empty field and nan. May be repeated.",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
Drop = Annotated[
    list[str],
    typer.Option(
        "--drop",
        help="A column to leave out. May be repeated.",
        show_default=False,
        autocompletion=column_names,
        rich_help_panel=TABLE,
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="What separates the columns of a .csv, if not a comma.", show_default=False, rich_help_panel=TABLE
    ),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Threads; by default all cores.", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]


def check_delimiter(delimiter: str | None) -> str | None:
    """One character, or a tab written out."""
    if delimiter == "\\t":
        return "\t"
    if delimiter is not None and len(delimiter.encode()) != 1:
        raise typer.BadParameter(f"--delimiter must be one character; got {delimiter!r}.")
    return delimiter
