"""Ctrl-C: one line on stderr and exit code 130, at any moment.

Imports few modules, all of them light, so that the handler is installed before the heavy imports of the commands.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

STOPPED = "stopped; nothing half-written was left behind."

TORCHRUN_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Environment variables of every process of a group that torchrun has started."""


def is_silent() -> bool:
    """True if this rank must not print: in a process group rank 0 does."""
    return all(name in os.environ for name in TORCHRUN_VARIABLES) and os.environ["RANK"] != "0"


def exit_interrupted(*_: Any) -> NoReturn:
    """Print one line and end the process with code 130; also a signal handler.

    Not through an exception: imports and ``atexit`` callbacks print those, swallow them or raise others instead.
    """
    if not is_silent():
        with suppress(OSError):
            os.write(2, f"{STOPPED}\n".encode())
    os._exit(130)


def handle_interrupts() -> None:
    """End the process at once on Ctrl-C; ``interruptible`` marks code that has something to clean up."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return  # a job in the background ignores Ctrl-C, and a caller may have a handler of its own
    with suppress(ValueError):  # Python refuses handlers in any thread but the main one
        signal.signal(signal.SIGINT, exit_interrupted)
        # Registered first, so run last: afterwards Python restores the system's handler, which ends without a line.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt inside on Ctrl-C, so that temporary files are removed.

    An exception that follows it, such as the ImportError of an extension module whose import it broke, is replaced by
    it. Where Python swallows it, as in the callbacks of weak references by which imports end, it is raised again.
    """
    if signal.getsignal(signal.SIGINT) is not exit_interrupted:
        yield
        return
    is_interrupted, unraisablehook = False, sys.unraisablehook

    def unwind(*_: Any) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        raise KeyboardInterrupt

    def raise_later(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            unraisablehook(unraisable)
            return
        from threading import Timer

        Timer(0.01, signal.raise_signal, [signal.SIGINT]).start()

    signal.signal(signal.SIGINT, unwind)
    sys.unraisablehook = raise_later
    try:
        yield
    except Exception:
        if is_interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, exit_interrupted)
        sys.unraisablehook = unraisablehook
