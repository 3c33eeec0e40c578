"""Estimators that go on learning from new rows; the work is done in ``updating``."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crisptree.distributed import check_alone
from crisptree.estimators import validation as checks
from crisptree.estimators.arguments import check_argument
from crisptree.estimators.base import Checkpoints
from crisptree.estimators.rules import true_or_false
from crisptree.targets.classification import ClassEncoding
from crisptree.targets.labels import label_type
from crisptree.typing import ArrayLike, MatrixLike


class Updating:
    """An estimator that takes its rows in parts, whatever it predicts."""

    def _check_updating(self, memory: float, grow: bool) -> bool:
        """Whether there is a tree to go on with."""
        check_alone("partial_fit")
        check_argument("memory", memory)
        true_or_false().check("grow", grow)
        known: Any = self
        if known.leaves == "linear":
            raise ValueError(
                "`leaves` must be 'constant' for partial_fit, because models in the leaves keep no counts that new "
                "rows could be added to; got 'linear'. Use fit with all rows."
            )
        return "tree_" in self.__dict__

    def _update(self, twin: Any, data: checks.TrainingData, memory: float, grow: bool) -> None:
        """Let a twin that is being fitted go on with new rows."""
        from crisptree.estimators.updating import updated

        known: Any = self
        tree, history = updated(known, data, memory, grow)
        twin.tree_ = twin.greedy_tree_ = data.encoding.restore_units(tree)
        twin.history_ = [*known.history_, *history]


class NumberUpdatingMixin(Updating):
    """An estimator of numbers that takes its rows in parts."""

    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        memory: float = 1.0,
        grow: bool = False,
    ) -> Self:
        """Learn from new rows, with what the tree has learned from earlier ones.

        The first call is a fit, and sets the scale of y and of the features for all later ones. Each of these keeps the
        structure: all splits and leaves are finetuned on the new rows, leaves beside what they have counted before.
        What that forgets is on docs/endurance.md.

        Parameters
        ----------
        X, y : array-like
            New rows and their numbers, as ``fit`` takes them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the new rows.
        memory : float, default=1.0
            What an old row counts beside a new one: 1 lets all rows count alike, 0 forgets the old ones' counts.
        grow : bool, default=False
            Split leaves in which the new rows differ, within ``max_depth`` and the other limits.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from crisptree import CrispTreeRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> given = {"split": "oblique", "input_noise": 0.7, "l1": 0.0, "steepness_step": 0.1, "shrinkage": 0.0}
        >>> model = CrispTreeRegressor(max_depth=2, random_state=0, **given).partial_fit(X[::2], y[::2])
        >>> model = model.partial_fit(X[1::2], y[1::2])
        >>> int(model.tree_.statistics.node_counts[0, 0]), bool(model.score(X, y) > 0.3)
        (442, True)
        """
        known: Any = self
        if not self._check_updating(memory, grow):
            found: Self = known._fit_rows(X, y, sample_weight, None, Checkpoints())
            return found
        with known._fitting() as twin:
            data = known._more_rows(X, y, sample_weight)
            self._update(twin, data, memory, grow)
        return self


class UpdatingMixin(Updating):
    """An estimator of classes that takes its rows in parts."""

    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        memory: float = 1.0,
        grow: bool = False,
    ) -> Self:
        """Learn from new rows, with what the tree has learned from earlier ones.

        The first call is a fit. Each further one keeps the structure: all splits and leaves are finetuned on the new
        rows, leaves beside what they have counted before. What that forgets is on docs/endurance.md.

        Parameters
        ----------
        X, y : array-like
            New rows and their classes, as ``fit`` takes them, but for probabilities.
        classes : array-like of shape (n_classes,), default=None
            All classes that may ever come; the first call must name them. A fitted estimator knows them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the new rows.
        memory : float, default=1.0
            What an old row counts beside a new one: 1 lets all rows count alike, 0 forgets the old ones' counts. With
            0.5 in every call, rows that are ten calls old count a thousandth.
        grow : bool, default=False
            Split leaves that the new rows show to be mixed, within ``max_depth`` and the other limits.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CrispTreeClassifier(split="oblique", max_depth=2, random_state=0)
        >>> model = model.partial_fit(X[::2], y[::2], classes=[0, 1, 2]).partial_fit(X[1::2], y[1::2])
        >>> int(model.tree_.statistics.node_counts[0].sum()), bool(model.score(X, y) > 0.9)
        (150, True)
        """
        known: Any = self
        if not self._check_updating(memory, grow):
            if classes is None:
                raise ValueError(
                    "`classes` must name all classes in the first call of partial_fit, because a part of the rows may "
                    "not have all of them; got None."
                )
            found: Self = known._fit_rows(X, y, sample_weight, None, Checkpoints(), ClassEncoding(_unique(classes)))
            return found
        if classes is not None and not np.array_equal(_unique(classes), known.classes_):
            raise ValueError(
                f"`classes` must be those of the first call, {known.classes_.tolist()}; got "
                f"{_unique(classes).tolist()}. Leave it out, or use a new estimator."
            )
        data = known._more_rows(X, y, sample_weight)
        with known._fitting() as twin:
            self._update(twin, data, memory, grow)
        return self


def _unique(classes: ArrayLike) -> npt.NDArray[Any]:
    """Classes in their order, each once."""
    found: npt.NDArray[Any] = np.unique(np.asarray(classes))
    label_type(found)
    return found
