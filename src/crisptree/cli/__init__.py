"""The ``crisptree`` command; ``main`` is its entry point."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper

from crisptree.cli.interrupts import handle_interrupts


def main() -> None:
    """Run the command line; exit codes are 0 (done), 1 (failed), 2 (wrong use) and 130 (interrupted)."""
    handle_interrupts()
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Pipes of Windows and old terminals cannot encode arrows; a question mark is better than a failure.
            stream.reconfigure(errors="replace")
    try:
        from crisptree.cli.app import app
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] == "crisptree":
            raise
        print(f"the command line needs {error.name}; install it with: pip install 'crisptree[cli]'", file=sys.stderr)
        raise SystemExit(1) from None
    try:
        app()
    except SystemExit as exit_:
        if isinstance(exit_.code, int) and exit_.code:
            _exit_now(exit_.code)
        raise


def _open_closed_streams() -> None:
    """Replace streams that the shell closed (``>&-``), which Python gives as None.

    Reading stdin and writing stdout fail with "Bad file descriptor", as in other programs, and output to stderr is
    discarded. The descriptors are taken, so that no file opened later becomes stdout for libraries that print.
    """
    for name, flags, mode in (
        ("stdin", os.O_WRONLY, "r"),
        ("stdout", os.O_RDONLY, "w"),
        ("stderr", os.O_WRONLY, "w"),
    ):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode, encoding="utf-8", closefd=False))


def _exit_now(code: int) -> None:
    """Exit without Python's shutdown: a reader thread that is still running then would abort the process."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
