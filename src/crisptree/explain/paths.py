"""The way of one row through a tree."""

from __future__ import annotations

from typing import Any

from crisptree.view import view_of
from crisptree.view.checks import whole_number
from crisptree.view.paths import Path, walk


def path(model: Any, x: Any, *, top: int = 5) -> Path:
    """The way of one row through a fitted tree.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one; its splits may be of any kind.
    x : array-like of shape (n_features,), (1, n_features) or the model's image shape
        One row. It goes through the earlier steps of a Pipeline; what is said is about the features that leave them.
    top : int, default=5
        How many features to name at each split.

    Returns
    -------
    Path
        Its steps, its leaf and the class predicted there.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = np.array([[0.0, 5.0], [1.0, 5.0], [8.0, 5.0], [9.0, 5.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    >>> way = explain.path(model, [8.5, 5.0])
    >>> str(way.predicted), len(way.steps), [push.name for push in way.steps[0].pushes]
    ('high', 1, ['x0'])
    >>> way.steps[0].before.tolist(), way.steps[0].after.tolist()  # of "high" and "low"
    ([0.5, 0.5], [1.0, 0.0])
    """
    view = view_of(model, "explain.path")
    return walk(view, view.row(x), whole_number("top", top, 0))
