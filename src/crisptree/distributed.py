"""Process groups of torch: whether a fit is distributed, and its errors.

Inside an initialised process group, ``fit`` of a single tree takes the rows of its process, and all processes return
the same tree; see docs/guide/large-data.md. Free of torch: a single process does not import it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["ProcessGroupError", "is_distributed", "single_process"]

MAX_SHARDS = 4096
"""The sum of so many integers of at most 50 bits fits into 63 bits."""


class ProcessGroupError(RuntimeError):
    """A process of the group has died, does not respond, or has other arguments than the others.

    Examples
    --------
    The rows of the other processes are lost with it, so nothing can be trained further. Started again by ``torchrun``,
    the processes continue from the last checkpoint.

    >>> from crisptree.distributed import ProcessGroupError
    >>> issubclass(ProcessGroupError, RuntimeError)
    True
    """


_single_process: ContextVar[bool] = ContextVar("crisptree_single_process", default=False)


@contextmanager
def single_process() -> Iterator[None]:
    """Fit in this process only, on its own rows, as if there were no process group.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier
    >>> from crisptree.distributed import single_process
    >>> with single_process():
    ...     model = CrispTreeClassifier(max_depth=1, random_state=0).fit(*load_iris(return_X_y=True))
    >>> model.get_n_leaves()
    2
    """
    before = _single_process.set(True)
    try:
        yield
    finally:
        _single_process.reset(before)


def is_distributed() -> bool:
    """Return True in an initialised process group, outside ``single_process``.

    Examples
    --------
    >>> from crisptree.distributed import is_distributed
    >>> is_distributed()
    False
    """
    torch_distributed = sys.modules.get("torch.distributed")
    if torch_distributed is None or _single_process.get():
        return False
    return bool(torch_distributed.is_available() and torch_distributed.is_initialized())


def check_single_process(what: str) -> None:
    """Refuse in a process group what is not distributed: every process would silently do it by itself."""
    if is_distributed():
        raise ValueError(
            f"{what} is not distributed, only fit of a single tree is (CrispTreeClassifier, CrispTreeRegressor), on "
            "arrays; but this process is in a process group. Do it inside `crisptree.distributed.single_process()`."
        )
