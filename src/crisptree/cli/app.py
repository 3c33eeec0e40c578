"""The ``crisptree`` command: its subcommands, its exit codes and its error messages."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import crisptree
from crisptree.sanitization import sanitize

EXPECTED_ERRORS = (ValueError, OSError, ModuleNotFoundError, MemoryError)
"""Raised for wrong data or files and for lack of memory; any other error is a bug and shows its traceback."""

COMMANDS = {
    "fit": ("fit", "Train a tree on a table and write it, with its preprocessing, to a model file."),
    "predict": ("predict", "Predict every row of a table with the preprocessing of training."),
    "evaluate": ("evaluation", "Score predictions and probabilities on a table with known target."),
    "inspect": (
        "inspection",
        "Show the content of a model file: tree or forest, target, feature importances, preprocessing.",
    ),
    "plot": ("inspection", "Draw a model."),
    "report": (
        "inspection",
        "Write an HTML page that shows the tree, its scores on a table, and the decision paths of single rows.",
    ),
    "export": ("export", "Write a model as code or data for other programs."),
    "demo": ("datasets", "Train a tree on 8 × 8 digits, print its accuracy, save it and draw it."),
    "segment": (
        "segment",
        "Train on images with a class or a value per pixel, and predict those of other images.",
    ),
    "data": ("datasets", "List data sets and download them."),
}
"""Commands and groups of commands: the module of each, which is imported where it is called, and its summary."""


class CommandGroup(TyperGroup):
    """The subcommands. Exit codes: 0 done, 1 failed, 2 wrong use, 130 interrupted; expected errors are one message."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands.update({name: TyperCommand(name, help=summary) for name, (_, summary) in COMMANDS.items()})

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import the command that the first argument names: numbers take longer to import than help to print."""
        name = args[0]
        if name in COMMANDS:
            self.commands[name] = load_command(name)
        return super().resolve_command(ctx, args)

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


def load_command(name: str) -> Any:
    """Import a command, or a group of commands."""
    module = import_module(f"crisptree.cli.{COMMANDS[name][0]}")
    group: Any = getattr(module, "app", None)
    if group is not None and group.info.name == name:
        return typer.main.get_group(group)
    single = typer.Typer(pretty_exceptions_show_locals=False, add_completion=False)
    single.command(name)(getattr(module, name))
    return typer.main.get_command(single)


def _print_error(text: str) -> None:
    from rich.console import Console

    from crisptree.cli.output import PLAIN

    Console(stderr=True).print(sanitize(text), style="red", **PLAIN)


def _error_message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return "there is not enough memory for this" + (f" ({error})." if str(error) else ".")
    if isinstance(error, ModuleNotFoundError) and "install" not in str(error):
        return f"this needs {error.name}; install it with: pip install 'crisptree[all]'"
    from crisptree.cli.output import with_flags

    return with_flags(str(error))


app = typer.Typer(
    name="crisptree",
    help="Train, evaluate, explain and export decision trees.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    cls=CommandGroup,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


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
    """Train, evaluate, explain and export decision trees."""
    import joblib

    # A command has the machine to itself: unless --jobs says otherwise, n_jobs=None is all available cores here.
    context.with_resource(joblib.parallel_config(backend="threading", n_jobs=-1))
