"""The ``crisptree`` command: its subcommands, its exit codes and its error messages."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import joblib
import typer
from rich.console import Console
from typer.core import TyperGroup

import crisptree
from crisptree.cli import datasets, segment
from crisptree.cli.evaluation import evaluate
from crisptree.cli.export import export
from crisptree.cli.fit import fit
from crisptree.cli.inspection import inspect, plot, report
from crisptree.cli.output import PLAIN, is_silent, with_flags
from crisptree.cli.predict import predict
from crisptree.distributed import ProcessGroupError
from crisptree.sanitization import sanitize

EXPECTED_ERRORS = (ValueError, OSError, ModuleNotFoundError, MemoryError, ProcessGroupError)
"""Raised for wrong data or files and for lack of memory; any other error is a bug and shows its traceback."""


class CommandGroup(TyperGroup):
    """The subcommands. Exit codes: 0 done, 1 failed, 2 wrong use, 130 interrupted; expected errors are one message."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the arguments, run the command and flush its output."""
        try:
            try:
                return super().main(*args, **kwargs)
            finally:
                sys.stdout.flush()
        except EXPECTED_ERRORS as error:
            if isinstance(error, ModuleNotFoundError) and (error.name or "crisptree").split(".")[0] == "crisptree":
                raise
            if not isinstance(error, BrokenPipeError):  # the reader of our output has closed it
                _print_error(f"error: {_error_message(error)}")
            sys.exit(1)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Ctrl-C ends it after its temporary files are removed."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _print_error("stopped; nothing half-written was left behind.")
            raise typer.Exit(130) from None


def _print_error(text: str) -> None:
    if not is_silent():
        Console(stderr=True).print(sanitize(text), style="red", **PLAIN)


def _error_message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return "there is not enough memory for this" + (f" ({error})." if str(error) else ".")
    if isinstance(error, ModuleNotFoundError) and "install" not in str(error):
        return f"this needs {error.name}; install it with: pip install 'crisptree[all]'"
    return with_flags(str(error))


app = typer.Typer(
    name="crisptree",
    help="Decision trees that are soft while they train and crisp when they predict.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    cls=CommandGroup,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
for command in (fit, predict, evaluate, inspect, plot, report, export, datasets.demo):
    app.command()(command)
app.add_typer(segment.app)
app.add_typer(datasets.app)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"crisptree {crisptree.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Decision trees that are soft while they train and crisp when they predict."""
    # A command has the machine to itself: unless --jobs says otherwise, n_jobs=None is all available cores here.
    context.with_resource(joblib.parallel_config(backend="threading", n_jobs=-1))
