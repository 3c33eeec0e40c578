"""What the splits of a tree look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import CrispTree, FlatTree
from crisptree.view.influence import influence
from crisptree.view.model import linear, view_of

Doubles = npt.NDArray[np.float64]


def feature_importances(model: Any) -> Doubles:
    """How much of the information gain each feature brings: non-negative, sum 1.  (n_features_in_,)

    The gain of a split, times its share of the training rows, is shared out by influence, |w_j| · spread_j: how far a
    feature moves the score when it moves by its own spread. Correlated features share what either could bring alone;
    ``sklearn.inspection.permutation_importance(model, X, y)`` asks the other question, what is lost without a feature.

    Parameters
    ----------
    model : CrispTreeClassifier, Pipeline or FlatTree
        A fitted estimator with linear splits, a fitted Pipeline that ends in one, or its tree; of a Pipeline the
        features that reach the tree. Of an estimator that encodes a table by itself, the columns of the table: the
        features of one category, and that of a missing value, count together. Without any gain all are zero.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.inspection import permutation_importance
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> round(float(explain.feature_importances(model).sum()), 9)
    1.0
    >>> by_shuffling = permutation_importance(model, X, y, n_repeats=5, random_state=0).importances_mean
    >>> bool(by_shuffling[2:].min() > by_shuffling[:2].max())  # the petals
    True
    """
    tree = _hyperplanes(model, "explain.feature_importances")
    encoder = getattr(model, "__dict__", {}).get("encoder_")
    if encoder is not None:
        return np.asarray(encoder.preprocessing_.by_input(feature_importances(tree)))
    shares = influence(tree)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    passing = tree.meaning.weight(tree.statistics.node_counts[: tree.structure.n_splits])
    importances = (passing * tree.statistics.gain) @ shares
    total = importances.sum()
    return importances / total if total > 0 else importances


def sparsity(model: Any) -> float:
    """The share of weights that are exactly zero; 0 for a tree of one leaf, which has none.

    Parameters
    ----------
    model : CrispTreeClassifier, Pipeline or FlatTree
        A fitted estimator with linear splits, a fitted Pipeline that ends in one, or its tree.
    """
    weight = _hyperplanes(model, "explain.sparsity").weight
    return float(np.mean(weight == 0)) if weight.size else 0.0


def _hyperplanes(model: Any, purpose: str) -> FlatTree:
    """The tree of a model, or the tree that is given itself."""
    return linear(model if isinstance(model, CrispTree) else view_of(model, purpose).tree, purpose)
