"""Diagnostics on rows: the splits that cause errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length, column_or_1d

from crisptree.inference import CrispTree
from crisptree.inference.flat_tree import Rows, group_by_leaf
from crisptree.inspection.display import Printable
from crisptree.inspection.model_view import view_model
from crisptree.targets.base import class_numbers
from crisptree.threads import row_blocks

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

NO_SPLIT = -1

PREDICTIONS_AT_ONCE = 2**22
"""Predictions of nodes for rows that are compared at a time."""


@dataclass(frozen=True, eq=False)
class ErrorAttribution(Printable):
    """Misclassified rows and the split responsible for each.

    Parameters
    ----------
    rows : ndarray of shape (n_errors,)
        Indices of the misclassified rows.
    split : ndarray of shape (n_errors,)
        The responsible split, −1 where there is none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> fixed = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 1.0, "random_state": 0}
    >>> model = CrispTreeClassifier(**fixed, max_depth=2).fit(X, y)
    >>> attribution = explain.attribute_errors(model, X, y)
    >>> bool(len(attribution.rows) == (model.predict(X) != y).sum())
    True
    """

    rows: Integers
    split: Integers

    def table(self) -> list[tuple[int, int, float]]:
        """Return (split, errors, share of all errors), most errors first; errors without a split come last, as −1.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from crisptree import CrispTreeClassifier, explain
        >>> X, y = load_digits(return_X_y=True)
        >>> model = CrispTreeClassifier(split="oblique", max_depth=4, image_shape=(8, 8), random_state=0).fit(X, y)
        >>> split, errors, share = explain.attribute_errors(model, X, y).table()[0]
        >>> errors > 0, 0 < share <= 1
        (True, True)
        """
        splits, errors = np.unique(self.split, return_counts=True)
        order = np.lexsort((splits, -errors, splits == NO_SPLIT))
        return [(int(splits[i]), int(errors[i]), float(errors[i] / len(self.rows))) for i in order]

    def __str__(self) -> str:
        lines = [f"{len(self.rows)} errors"]
        for split, errors, share in self.table():
            lines.append(f"    {_name(split)}: {errors} ({share:.1%})")
        return "\n".join(lines)


def _name(split: int) -> str:
    return "no split" if split == NO_SPLIT else f"split {split}"


def attribute_errors(model: Any, X: Any, y: Any) -> ErrorAttribution:
    """Attribute every misclassified row to the split where it went wrong.

    That is the deepest split on its path where most training rows of its true class go to the other child and where a
    leaf below that child predicts this class; a leaf with a linear model, for this row. Some errors have no such split:
    the class has no leaf, or the row went with most rows of its class everywhere, so that the model of its leaf is
    wrong. These are attributed to −1.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one; its splits may be of any kind.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Their true classes; a label unknown to the model is an error without a split.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0).fit(X, ["low", "low", "high", "high"])
    >>> explain.attribute_errors(model, X, ["low", "low", "low", "high"]).table()
    [(0, 1, 1.0)]
    """
    view = view_model(model, "explain.attribute_errors")
    view.check_is_classification("explain.attribute_errors", "PredictionErrorDisplay of scikit-learn shows its errors.")
    view.check_takes_rows("explain.attribute_errors")
    rows, labels = view.prepare_rows(X), column_or_1d(y)
    leaf = view.apply(rows)
    check_consistent_length(leaf, labels)
    return attribute_leaf_errors(view.tree, rows, leaf, class_numbers(labels, view.classes))


def attribute_leaf_errors(tree: CrispTree, X: Rows, leaf: Integers, true: Integers) -> ErrorAttribution:
    """Attribute errors from rows, their leaves and their true class indices, −1 where unknown."""
    wrong = np.flatnonzero(tree.predictions(leaf, X) != true)
    split = np.full(len(wrong), NO_SPLIT, dtype=np.int64)
    for block in row_blocks(len(wrong), max(1, PREDICTIONS_AT_ONCE // tree.structure.n_nodes)):
        split[block] = _find_wrong_turns(tree, X[wrong[block]], leaf[wrong[block]], true[wrong[block]])
    return ErrorAttribution(wrong, split)


def _find_wrong_turns(tree: CrispTree, X: Rows, leaf: Integers, true: Integers) -> Integers:
    """Find the deepest split with most rows of a row's class, and a leaf that predicts it, on the other side."""
    structure, counts = tree.structure, tree.statistics.node_counts
    is_right = [tree.predictions(np.full(len(true), end), X) == true for end in range(structure.n_leaves)]
    has_leaf = structure.sums_below(np.array(is_right, dtype=np.float64)) > 0
    found = np.full(len(true), NO_SPLIT, dtype=np.int64)
    for rows in group_by_leaf(leaf):
        for split, goes_right in structure.path(int(leaf[rows[0]])):
            sides = structure.right_nodes[split], structure.left_nodes[split]
            taken, other = sides if goes_right else sides[::-1]
            is_wrong_turn = has_leaf[other, rows] & (counts[other, true[rows]] > counts[taken, true[rows]])
            found[rows[is_wrong_turn]] = split  # a deeper split replaces those above
    return found
