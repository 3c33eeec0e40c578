"""Fits that several processes do together: whether there are some, and what goes wrong between them.

Inside an initialised process group of torch, ``fit`` of a single tree takes the rows that its process holds, and all
processes come to one tree; see docs/many-processes.md. Free of torch: where nobody has started a group, nobody pays.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["ProcessGroupError", "alone", "is_together"]

MOST_SHARDS = 4096
"""So many sums of whole units of at most 50 bits fit into 63."""


class ProcessGroupError(RuntimeError):
    """A process of the group has died, does not answer, or was given something else than the others."""


_alone: ContextVar[bool] = ContextVar("crisptree_alone", default=False)


@contextmanager
def alone() -> Iterator[None]:
    """Inside, a process fits by itself, on its own rows, as if there were no process group.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier
    >>> from crisptree.distributed import alone
    >>> with alone():
    ...     model = CrispTreeClassifier(max_depth=1, random_state=0).fit(*load_iris(return_X_y=True))
    >>> model.get_n_leaves()
    2
    """
    before = _alone.set(True)
    try:
        yield
    finally:
        _alone.reset(before)


def is_together() -> bool:
    """Whether this process is one of an initialised process group, and not to fit alone."""
    torch_distributed = sys.modules.get("torch.distributed")
    if torch_distributed is None or _alone.get():
        return False
    return bool(torch_distributed.is_available() and torch_distributed.is_initialized())


def check_alone(what: str) -> None:
    """Refuse what several processes cannot do together: each would do it by itself, and nobody would notice."""
    if is_together():
        raise ValueError(
            f"{what} cannot be done by several processes together, only fit of a single tree can (CrispTreeClassifier, "
            "CrispTreeRegressor), on arrays; but this process is in a group. Do it inside "
            "`crisptree.distributed.alone()`, each by itself."
        )
