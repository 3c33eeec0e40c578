"""What the splits of a tree look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.explain.rows import linear_tree

Doubles = npt.NDArray[np.float64]


def feature_importances(tree: Any) -> Doubles:
    """How much of the information gain each feature brings: non-negative, sum 1.  (n_features,)

    The gain of a split, times its share of the training rows, is shared out by |w_j| · spread_j: how far a feature
    moves the score when it moves by its own spread. Correlated features share what either could bring alone;
    ``sklearn.inspection.permutation_importance(model, X, y)`` asks the other question, what is lost without a feature.

    Parameters
    ----------
    tree : CrispTreeClassifier or FlatTree
        A fitted estimator with linear splits, or its tree. Without any gain all importances are zero.

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
    flat = linear_tree(tree, "feature_importances", or_tree=True)
    statistics, n_splits = flat.statistics, flat.structure.n_splits
    influence = np.abs(flat.weight.astype(np.float64)) * statistics.scaling.spread
    influence /= np.maximum(influence.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    passing = statistics.node_counts[:n_splits].sum(axis=1)
    importances = (passing * statistics.gain) @ influence
    total = importances.sum()
    return importances / total if total > 0 else importances


def sparsity(tree: Any) -> float:
    """The share of weights that are exactly zero; 0 for a tree of one leaf, which has none.

    Parameters
    ----------
    tree : CrispTreeClassifier or FlatTree
        A fitted estimator with linear splits, or its tree.
    """
    weight = linear_tree(tree, "sparsity", or_tree=True).weight
    return float(np.mean(weight == 0)) if weight.size else 0.0
