"""Diagnostics on rows: the splits that cause errors, and how many rows lie near a decision boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length, column_or_1d

from crisptree.inference import CrispTree
from crisptree.inference.flat_tree import Rows, group_by_leaf, visit_splits
from crisptree.inspection.decision_path import margin_scales
from crisptree.inspection.display import Printable
from crisptree.inspection.model_view import view_model
from crisptree.targets.base import class_numbers
from crisptree.threads import row_blocks

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

DEFAULT_LIMITS = (0.1, 0.25, 0.5, 1.0)
NO_SPLIT = -1

PREDICTIONS_AT_ONCE = 2**22
"""Predictions of nodes for rows that are compared at a time."""


@dataclass(frozen=True, eq=False)
class MarginReport(Printable):
    """Shares of rows near boundaries; ``print`` shows them as text.

    Parameters
    ----------
    limits : tuple of float
        Upper limits of |margin|, in standard deviations of the training scores at each split.
    overall : ndarray of shape (n_limits,)
        The share of rows whose smallest |margin| on their path lies below each limit.
    by_split : ndarray of shape (n_splits, n_limits)
        The same for the margin at each split, among the rows that visit it; 0 where no row does.
    visits : ndarray of shape (n_splits,)
        Number of rows that visit each split.
    smallest : ndarray of shape (n_samples,)
        Smallest |margin| on the path of every row; infinite in a tree of one leaf.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> fixed = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 1.0, "random_state": 0}
    >>> model = CrispTreeClassifier(**fixed, max_depth=2).fit(X, y)
    >>> report = explain.margin_report(model, X)
    >>> report.overall.shape == (len(report.limits),)
    True
    """

    limits: tuple[float, ...]
    overall: Doubles
    by_split: Doubles
    visits: npt.NDArray[np.int64]
    smallest: Doubles

    def __str__(self) -> str:
        limits = " ".join(f"{limit:>8g}" for limit in self.limits)
        head = f"{'rows nearer than':>16} {limits}  standard deviations"
        lines = [head, f"{'all boundaries':>16} " + _shares(self.overall) + f"  of {len(self.smallest)}"]
        for split in np.argsort(-self.by_split[:, 0] * self.visits, kind="stable"):
            lines.append(f"{f'split {split}':>16} " + _shares(self.by_split[split]) + f"  of {self.visits[split]}")
        return "\n".join(lines)


def _shares(values: Doubles) -> str:
    return " ".join(f"{share:>8.1%}" for share in values)


def margin_report(model: Any, X: Any, *, limits: Sequence[float] = DEFAULT_LIMITS) -> MarginReport:
    """Report how many rows lie near a boundary, at every split and on their whole paths.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one; its splits may be of any kind.
    X : array-like of shape (n_samples, n_features)
        Rows, for example those of the training.
    limits : sequence of float, default=(0.1, 0.25, 0.5, 1.0)
        Upper limits of |margin|, in standard deviations of the training scores at each split.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0).fit(X, [0, 0, 1, 1])
    >>> explain.margin_report(model, X, limits=[0.1, 2.0]).overall.tolist()
    [0.0, 1.0]
    """
    view = view_model(model, "explain.margin_report")
    tree, rows = view.tree, view.prepare_rows(X)
    bounds = np.asarray(limits)
    if bounds.ndim != 1 or bounds.dtype.kind not in "iuf" or not len(bounds) or not (bounds > 0).all():
        raise ValueError(f"`limits` must be numbers above 0, e.g. {list(DEFAULT_LIMITS)}; got {limits!r}.")
    bounds = bounds.astype(np.float64)
    units, n_splits = margin_scales(tree), tree.structure.n_splits
    smallest = np.full(len(rows), np.inf)
    near, visited = np.zeros((n_splits, len(bounds))), np.zeros(n_splits, dtype=np.int64)
    for block in row_blocks(len(rows)):
        least = smallest[block]  # a view
        for split, visitors, scores in visit_splits(tree, rows[block]):
            margins = np.abs(scores.astype(np.float64)) / units[split]
            least[visitors] = np.minimum(least[visitors], margins)
            near[split] += (margins[:, None] < bounds).sum(axis=0)
            visited[split] += len(visitors)
    overall, by_split = (smallest[:, None] < bounds).mean(axis=0), near / np.maximum(visited, 1)[:, None]
    return MarginReport(tuple(bounds.tolist()), overall, by_split, visited, smallest)


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
    view.check_is_classification("explain.attribute_errors", "plots.plot_residuals shows its errors.")
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
