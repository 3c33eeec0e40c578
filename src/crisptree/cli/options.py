"""Arguments that several commands share, in one wording."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from crisptree.encoding.errors import TableError
from crisptree.estimators.parameters import TreeParameters

FORMATS = ".csv, .tsv, .parquet, .npz or LIBSVM (.libsvm, .svm, .txt); text also as .gz, .bz2, .xz"

TABLE, TREE, TRAINING, OUTPUT = "The table", "The tree", "Training", "Output"


def option(*names: str, help: str, panel: str | None = None, show_default: bool = False, **more: Any) -> Any:
    """An option whose default is mostly not worth showing."""
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=show_default, **more)


def output_option(help: str, **more: Any) -> Any:
    """Where to write the result."""
    return option("--output", "-o", help=help, panel=OUTPUT, **more)


def check_jobs(jobs: int | None) -> int | None:
    """Hold a number of threads to the rule of the estimators."""
    rule = TreeParameters.PARAMETERS["n_jobs"].rule
    assert rule is not None
    if not rule.holds(jobs):
        raise typer.BadParameter(f"must be {rule.sentence}; got {jobs}.")
    return jobs


def column_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """For the shell: the columns of the first table that is already named on the line."""
    from crisptree.encoding.table_files import open_table

    for word in (ctx.params.get("data"), *ctx.args):
        try:
            names = open_table(Path(word or "")).names
        except (TableError, OSError):
            continue  # a model, an option, half a word
        return [name for name in names if name.startswith(incomplete)]
    return []


def column_option(*names: str, help: str) -> Any:
    """The name of a column, which the shell completes."""
    return option(*names, help=help, panel=TABLE, autocompletion=column_names)


Model = Annotated[Path, typer.Argument(help="A model file (.crisp).", show_default=False)]
Data = Annotated[Path, typer.Argument(help=f"The table: {FORMATS}; - is stdin.", show_default=False)]
Target = Annotated[
    str | None,
    column_option(
        "--target", "-t", help="The column of classes. .npz and LIBSVM files have one of their own, called y."
    ),
]
KnownTarget = Annotated[
    str | None,
    column_option("--target", "-t", help="The column of classes; by default the one that the model was trained on."),
]
Missing = Annotated[
    list[str],
    option(
        "--missing",
        help="A text that means a missing value, beside an empty field and nan. May be repeated.",
        panel=TABLE,
    ),
]
Drop = Annotated[list[str], column_option("--drop", help="Columns to leave out: a,b. May be repeated.")]
Categorical = Annotated[
    list[str],
    column_option("--categorical", help="Columns of numbers that are names of categories: a,b. May be repeated."),
]
Id = Annotated[
    str | None,
    column_option("--id", help="A column that names the rows: no feature, but shown beside them."),
]
Task = Annotated[
    Literal["auto", "classification", "regression"],
    typer.Option("--task", help="Predict classes or numbers; auto goes by the target.", rich_help_panel=TABLE),
]
Force = Annotated[bool, option("--force", help="Replace files that are there.", panel=OUTPUT)]
Jobs = Annotated[int | None, option("--jobs", "-j", callback=check_jobs, help=TreeParameters.PARAMETERS["n_jobs"].help)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]


def check_output(path: Path, endings: Sequence[str]) -> Path:
    """Refuse a place that cannot be written to before any work is done; what is there, ``check_free`` asks later."""
    if path.suffix.lower() not in endings:
        raise typer.BadParameter(f"-o must end in {' or '.join(endings)}; got {str(path)!r}.")
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise TableError(f"there is no folder {path.parent} for {path.name}. Make it first.")
    if not os.access(path.parent, os.W_OK):
        raise TableError(f"the folder {path.parent} cannot be written to.")
    return path


def check_share(holdout: float | None) -> None:
    """What --holdout may be."""
    if holdout is not None and not 0 <= holdout < 1:
        raise typer.BadParameter(f"--holdout must be 0, for none, or lie between 0 and 1; got {holdout}.")


def check_free(paths: Iterable[Path], force: bool) -> None:
    """Refuse to replace what is there, unless the user says so."""
    there = [] if force else [path for path in paths if path.exists()]
    if there:
        more = f" (and {len(there) - 1} more)" if len(there) > 1 else ""
        raise TableError(f"{there[0]}{more} is there already, and is kept. Say --force to replace it.")
