"""How the command ends: 0 done, 1 failed, 2 wrong use, 130 interrupted; a sentence on stderr, never a traceback."""

from __future__ import annotations

import errno
import sys
from typing import Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from crisptree.cli.interrupts import STOPPED, interruptible, is_silent
from crisptree.cli.output import PLAIN, with_flags
from crisptree.distributed import ProcessGroupError
from crisptree.sanitization import sanitize

EXPECTED = (ValueError, OSError, ModuleNotFoundError, MemoryError, ProcessGroupError)
"""What bad data, bad files and small machines raise; anything else is a fault of the program and is shown whole."""


class CommandGroup(TyperGroup):
    """The commands; one that fails says why in a sentence."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the arguments and run the command, until what it printed has been written."""
        try:
            try:
                return super().main(*args, **kwargs)
            finally:
                sys.stdout.flush()
        except EXPECTED as error:
            if isinstance(error, ModuleNotFoundError) and (error.name or "crisptree").split(".")[0] == "crisptree":
                raise
            if not isinstance(error, BrokenPipeError):  # whoever read our output has enough
                _print(f"error: {_sentence(error)}")
            sys.exit(1)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Ctrl-C ends it after its temporary files are removed."""
        try:
            with interruptible():
                return super().invoke(ctx)
        except KeyboardInterrupt:
            _print(STOPPED)
            raise typer.Exit(130) from None


def _print(text: str) -> None:
    if is_silent():
        return
    Console(stderr=True).print(sanitize(text), style="red", **PLAIN)


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        # The placeholder of a closed stdout is the only stream without a name that cannot be written at all.
        name = "stdout" if error.filename is None and error.errno == errno.EBADF else error.filename
        return f"{name}: {error.strerror}." if name else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return "there is not enough memory for this" + (f" ({error})." if str(error) else ".")
    if isinstance(error, ModuleNotFoundError) and "install" not in str(error):
        return f"this needs {error.name}; install it with: pip install 'crisptree[all]'"
    return with_flags(str(error))
