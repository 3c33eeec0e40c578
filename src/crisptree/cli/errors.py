"""How the command ends: 0 done, 1 failed, 2 wrong use, 130 interrupted; a sentence on stderr, never a traceback."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from crisptree.cli.output import PLAIN, with_flags
from crisptree.cli.processes import is_silent
from crisptree.distributed import ProcessGroupError
from crisptree.visible import visible

EXPECTED = (ValueError, OSError, ModuleNotFoundError, MemoryError, ProcessGroupError)
"""What bad data, bad files and small machines raise; anything else is a fault of the program and is shown whole."""


class CommandGroup(TyperGroup):
    """The commands; one that fails says why in a sentence."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _print("stopped; nothing half-written was left behind.")
            raise typer.Exit(130) from None
        except EXPECTED as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                # Whoever read our output has enough. Nothing more may be written when Python ends.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(1) from None
            if isinstance(error, ModuleNotFoundError) and (error.name or "crisptree").split(".")[0] == "crisptree":
                raise
            _print(f"error: {_sentence(error)}")
            raise typer.Exit(1) from None


def _print(text: str) -> None:
    if is_silent():
        return
    Console(stderr=True).print(visible(text), style="red", **PLAIN)


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    if isinstance(error, MemoryError):
        return "there is not enough memory for this" + (f" ({error})." if str(error) else ".")
    if isinstance(error, ModuleNotFoundError) and "install" not in str(error):
        return f"this needs {error.name}; install it with: pip install 'crisptree[all]'"
    return with_flags(str(error))
