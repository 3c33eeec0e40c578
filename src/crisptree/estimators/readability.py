"""The cost of readability: scores of a readable tree beside those of the unrestricted one, on held-out folds."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import _safe_indexing

from crisptree.estimators.base import RowEstimator
from crisptree.parameters.estimators import READABLE

Doubles = npt.NDArray[np.float64]

MIN_PROBABILITY = 1e-15
"""Log losses are those of probabilities that are at least this, as scikit-learn's."""


VERBOSE_FOLDS = 3
"""Folds on which a fit with ``verbose`` measures the cost."""


@dataclass(frozen=True, eq=False)
class ReadabilityCost:
    """Scores of a readable tree and of the unrestricted one on the same held-out folds; ``print`` shows their means.

    Parameters
    ----------
    scores, unrestricted_scores : ndarray of shape (n_folds,)
        Accuracy, or R², on every fold.
    log_losses, unrestricted_log_losses : ndarray of shape (n_folds,)
        Log loss on every fold; empty for regression.
    leaves, unrestricted_leaves : ndarray of shape (n_folds,)
        Number of leaves of the tree of every fold.
    """

    scores: Doubles
    unrestricted_scores: Doubles
    log_losses: Doubles
    unrestricted_log_losses: Doubles
    leaves: Doubles
    unrestricted_leaves: Doubles

    @property
    def cost(self) -> float:
        """Accuracy, or R², that the readable tree loses in the mean of the folds."""
        return float(self.unrestricted_scores.mean() - self.scores.mean())

    def __str__(self) -> str:
        scores = (self.scores, self.log_losses, self.leaves)
        others = (self.unrestricted_scores, self.unrestricted_log_losses, self.unrestricted_leaves)
        names = ("accuracy", "log_loss", "leaves") if len(self.log_losses) else ("r2", "", "leaves")
        own, other = (
            describe_held_out({name: float(values.mean()) for name, values in zip(names, some, strict=True) if name})
            for some in (scores, others)
        )
        return f"readable tree: {own}\nunrestricted tree: {other}\n(means of {len(self.scores)} held-out folds)"


def describe_held_out(values: Mapping[str, float]) -> str:
    """Describe the scores of a tree.

    Examples
    --------
    >>> describe_held_out({"accuracy": 0.8612, "log_loss": 0.351, "leaves": 8})
    'accuracy 86.1%, log loss 0.351, 8 leaves'
    >>> describe_held_out({"r2": 0.75, "leaves": 1})
    'R² 0.750, 1 leaf'
    """
    size = f"{values['leaves']:.3g} {'leaf' if values['leaves'] == 1 else 'leaves'}"
    if "r2" in values:
        return f"R² {values['r2']:.3f}, {size}"
    return f"accuracy {values['accuracy']:.1%}, log loss {values['log_loss']:.3f}, {size}"


def compute_readability_cost(model: Any, X: Any, y: Any, sample_weight: Any, n_folds: int) -> ReadabilityCost:
    """Fit the estimator, and one with the default limits, to all folds but one each and score them on that one."""
    defaults = {name: type(model)().flat_parameters()[name] for name in READABLE}
    quiet = model.flat_parameters() | {"verbose": 0, "callbacks": None, "warm_start": False}
    models = [type(model).from_flat(**quiet), type(model).from_flat(**quiet | defaults)]
    folds = StratifiedKFold if is_classifier(model) else KFold
    labels = np.asarray(y)
    weights = np.ones(len(labels)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    results = []
    for train, test in folds(n_folds, shuffle=True, random_state=0).split(np.zeros(len(labels)), labels):
        rows = _safe_indexing(X, train), _safe_indexing(y, train), None if sample_weight is None else weights[train]
        held_out = _safe_indexing(X, test), labels[test], weights[test]
        results.append([score_tree(one.fit(*rows), *held_out) for one in models])
    score = "accuracy" if is_classifier(model) else "r2"
    values = [
        np.array([pair[which][name] for pair in results if name in pair[which]])
        for name in (score, "log_loss", "leaves")
        for which in (0, 1)
    ]
    return ReadabilityCost(*values)


def score_tree(model: Any, X: Any, y: npt.NDArray[Any], weight: Doubles | None = None) -> dict[str, float]:
    """Score a fitted tree: accuracy and log loss, or R², and the number of leaves."""
    score, size = float(model.score(X, y, weight)), {"leaves": float(model.get_n_leaves())}
    if not is_classifier(model):
        return {"r2": score} | size
    columns = {label: column for column, label in enumerate(model.classes_.tolist())}
    padded = np.column_stack([model.predict_proba(X), np.zeros(len(y))])  # a class that training rows did not have
    own = padded[np.arange(len(y)), [columns.get(label, -1) for label in y.tolist()]]
    loss = np.average(-np.log(np.maximum(own, MIN_PROBABILITY)), weights=weight)
    return {"accuracy": score, "log_loss": float(loss)} | size


class ReadableEstimator(RowEstimator):
    """Base of the estimators whose trees may be limited to what people can read."""

    @classmethod
    def readable(cls, **changes: Any) -> Self:
        """Make an estimator of trees that people can read: 8 leaves, 3 terms per split, round numbers.

        The default tree is trained and distilled into one of splits on one column or sums of at most three. A leaf may
        have a sum of at most three columns too: a regression, or the log odds of its most frequent class. Weights and
        thresholds are rounded in raw units before the leaves are counted, so that the tree that is shown is the tree
        that predicts. ``changes`` are other parameters, or other values of ``max_leaf_nodes``,
        ``max_features_per_split``, ``leaf_model`` and ``round_splits``; ``max_depth`` is that of the tree that is
        distilled. docs/guide/explanations.md shows what to do with such a tree, and ``readability_cost`` what it costs.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier, export
        >>> model = CrispTreeClassifier.readable(max_leaf_nodes=3, random_state=0)
        >>> model = model.fit(*load_iris(return_X_y=True, as_frame=True))
        >>> model.get_n_leaves()
        3
        """
        limits = dict(READABLE)
        if changes.get("monotonic_cst") is not None:
            limits["leaf_model"] = "constant"  # the values of leaves are ordered
        return cls.from_flat(**{**limits, **changes})

    def readability_cost(self, X: Any, y: Any, sample_weight: Any = None, *, n_folds: int = 5) -> ReadabilityCost:
        """Measure what the limits of a readable tree cost: its scores beside those of the unrestricted tree.

        Both are fitted to all folds but one and scored on that one, ``n_folds`` times each. A fit with ``verbose`` of
        a tree with ``round_splits`` prints this for three folds, which takes the time of six fits.

        Parameters
        ----------
        X, y, sample_weight : array-like
            Rows in memory, as in ``fit``: an array or a DataFrame.
        n_folds : int, default=5
            Number of folds, at least 2.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> cost = CrispTreeClassifier.readable(random_state=0).readability_cost(X, y, n_folds=3)
        >>> len(cost.scores), bool(abs(cost.cost) < 0.05)
        (3, True)
        """
        return compute_readability_cost(self, X, y, sample_weight, n_folds)

    def _show_cost_of_limits(self, X: Any, y: Any, sample_weight: Any) -> None:
        if self.flat_parameters()["round_splits"]:
            sys.stderr.write(f"{self.readability_cost(X, y, sample_weight, n_folds=VERBOSE_FOLDS)}\n")
