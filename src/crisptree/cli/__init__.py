"""The ``crisptree`` command, one file per subcommand."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import TextIOWrapper


def main() -> None:
    """Run the command line; exit codes are 0 (done), 1 (failed), 2 (wrong use) and 130 (interrupted)."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Windows' pipes and old terminals have no arrow or minus; a question mark there is no reason to fail.
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
    except SystemExit as ending:
        if isinstance(ending.code, int) and ending.code:
            _leave(ending.code)
        raise


def _leave(code: int) -> None:
    """End at once: a reader's thread that is still at work when Python is taken down would abort the process."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
