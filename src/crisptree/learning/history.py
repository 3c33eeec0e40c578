"""Records of epochs, which callbacks receive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


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
