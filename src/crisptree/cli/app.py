"""The subcommands under one roof."""

from __future__ import annotations

from typing import Annotated

import typer

import crisptree
from crisptree.cli.data import app as data
from crisptree.cli.demo import demo

app = typer.Typer(
    name="crisptree",
    help="Decision trees that are soft while they train and crisp when they predict.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.command()(demo)
app.add_typer(data)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"crisptree {crisptree.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Decision trees that are soft while they train and crisp when they predict."""
