"""Records of epochs for callbacks, and the checkpoint store of the running fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crisptree.persistence.checkpoints import CheckpointStore


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of one phase.

    Parameters
    ----------
    phase : {"grow", "finetune"}
        What was trained: stumps, or the whole tree.
    level : int
        Depth of the deepest stump in training, or of the whole tree.
    n_levels : int or None
        How many levels the phase has; None where only purity ends the growth.
    n_splits : int
        How many splits were trained.
    epoch, n_epochs : int
        Counted from 1.
    steepness : float
        γ of the epoch.
    loss : float
        Mean negative log-likelihood of the training rows during the epoch.
    validation_score : float or None
        Accuracy of the deterministic tree on the validation rows after the epoch.
    """

    phase: str
    level: int
    n_levels: int | None
    n_splits: int
    epoch: int
    n_epochs: int
    steepness: float
    loss: float
    validation_score: float | None = None


class StopTraining(Exception):
    """Raise it in a callback to end a fit there and keep the tree as it stands.

    While a tree grows, the levels that are complete are kept and nothing is finetuned; while it is finetuned, the tree
    as it is after the epoch. The stages of a segmenter that would have come after it are left out, and so is a later
    one without a first split.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, StopTraining, TrainingOptions
    >>> def stop_early(record):
    ...     if record.phase == "finetune" and record.epoch == 2:
    ...         raise StopTraining
    >>> fixed = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 0.0, "max_depth": 2}
    >>> model = CrispTreeClassifier(**fixed, training=TrainingOptions(callbacks=[stop_early]), random_state=0)
    >>> model = model.fit(*load_iris(return_X_y=True))
    >>> model.history_[-1].epoch
    2
    """


EpochCallback = Callable[[EpochRecord], None]


def get_iteration(record: EpochRecord | None, history: Sequence[EpochRecord]) -> int:
    """The number of a record among those of finetuning in a history, counted from 1; 0 for none."""
    tuned = [one for one in history if one.phase == "finetune"]
    return 0 if record is None else 1 + next(number for number, one in enumerate(tuned) if one is record)


class StoppableCallback:
    """Keeps records, passes them on to a callback and remembers that it asked to stop, which makes it true."""

    def __init__(self, callback: EpochCallback | None) -> None:
        self.callback, self.is_stopped = callback, False
        self.history: list[EpochRecord] = []

    def __call__(self, record: EpochRecord) -> None:
        self.history.append(record)
        try:
            if self.callback is not None:
                self.callback(record)
        except StopTraining:
            self.is_stopped = True
            raise StopTraining(record) from None

    def __bool__(self) -> bool:
        return self.is_stopped


_store: ContextVar[CheckpointStore | None] = ContextVar("crisptree_checkpoints", default=None)


def current_store() -> CheckpointStore | None:
    """Return the checkpoint store of the running fit, if it keeps checkpoints."""
    return _store.get()


@contextmanager
def use_store(store: CheckpointStore) -> Iterator[None]:
    """Keep trainings inside the block in a store; all of them are written if the block ends without an error."""
    before = _store.set(store)
    try:
        yield
        store.write()
    finally:
        _store.reset(before)
