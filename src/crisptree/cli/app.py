"""The command with its subcommands."""

from __future__ import annotations

from typing import Annotated

import joblib
import typer

import crisptree
from crisptree.cli.compare import compare
from crisptree.cli.data import app as data
from crisptree.cli.demo import demo
from crisptree.cli.errors import CommandGroup
from crisptree.cli.evaluate import evaluate
from crisptree.cli.export import export
from crisptree.cli.fit import fit
from crisptree.cli.inspect import inspect
from crisptree.cli.plot import plot
from crisptree.cli.predict import predict
from crisptree.cli.report import report
from crisptree.cli.segment import app as segment

app = typer.Typer(
    name="crisptree",
    help="Decision trees that are soft while they train and crisp when they predict.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    cls=CommandGroup,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for command in (fit, predict, evaluate, compare, inspect, plot, report, export, demo):
    app.command()(command)
app.add_typer(segment)
app.add_typer(data)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"crisptree {crisptree.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Decision trees that are soft while they train and crisp when they predict."""
    # A command has the machine to itself: unless --jobs says otherwise, n_jobs=None is all available cores here.
    context.with_resource(joblib.parallel_config(backend="threading", n_jobs=-1))
