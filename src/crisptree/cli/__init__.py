"""The ``crisptree`` command; ``main`` is its entry point."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper


def main() -> None:
    """Run the command line; exit codes are 0 (done), 1 (failed), 2 (wrong use) and 130 (interrupted)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Pipes of Windows and old terminals cannot encode arrows; a question mark is better than a failure.
            stream.reconfigure(errors="replace")
    try:
        from crisptree.cli.app import app

        app()
    except KeyboardInterrupt:  # before a command has begun, which handles it itself
        _exit_now(130)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] == "crisptree":
            raise
        print(f"the command line needs {error.name}; install it with: pip install 'crisptree[cli]'", file=sys.stderr)
        raise SystemExit(1) from None
    except SystemExit as exit_:
        if isinstance(exit_.code, int) and exit_.code:
            _exit_now(exit_.code)
        raise


def _exit_now(code: int) -> None:
    """Exit without Python's shutdown: a reader thread that is still running then would abort the process."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
