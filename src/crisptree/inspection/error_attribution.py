"""Attribute errors to splits: "when a sample was misclassified it is straightforward to find the split node that is
responsible" (section 4.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length, column_or_1d

from crisptree.inference import CrispTree
from crisptree.inspection import view_model
from crisptree.inspection.notebook_html import render_bar, render_table
from crisptree.targets.labels import class_numbers

Integers = npt.NDArray[np.int64]

NO_SPLIT = -1


@dataclass(frozen=True, eq=False)
class ErrorAttribution:
    """Misclassified rows and the split responsible for each.

    Parameters
    ----------
    rows : ndarray of shape (n_errors,)
        Indices of the misclassified rows.
    split : ndarray of shape (n_errors,)
        The responsible split, −1 where there is none.
    """

    rows: Integers
    split: Integers

    def table(self) -> list[tuple[int, int, float]]:
        """Return (split, errors, share of all errors), most errors first; errors without a split come last, as −1."""
        splits, errors = np.unique(self.split, return_counts=True)
        order = np.lexsort((splits, -errors, splits == NO_SPLIT))
        return [(int(splits[i]), int(errors[i]), float(errors[i] / len(self.rows))) for i in order]

    def __str__(self) -> str:
        lines = [f"{len(self.rows)} errors"]
        for split, errors, share in self.table():
            lines.append(f"    {_name(split)}: {errors} ({share:.1%})")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks."""
        rows = [(_name(split), n, f"{share:.1%}", render_bar(share, "#b3261e")) for split, n, share in self.table()]
        return render_table(("split", "errors", "share", ""), rows, f"{len(self.rows)} errors")


def _name(split: int) -> str:
    return "no split" if split == NO_SPLIT else f"split {split}"


def attribute_errors(model: Any, X: Any, y: Any) -> ErrorAttribution:
    """Attribute every misclassified row to the split where it went wrong.

    That is the deepest split on its path where most training rows of its true class go to the other child and where a
    leaf below that child predicts this class. Some errors have no such split: the class has no leaf, or the row went
    with most rows of its class everywhere. These are attributed to −1.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one; its splits may be of any kind.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Their true classes; a label unknown to the model is an error without a split.

    Returns
    -------
    ErrorAttribution
        The rows and their splits; ``table`` counts errors by split.

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
    view.check_has_constant_leaves("explain.attribute_errors")
    view.check_takes_rows("explain.attribute_errors")
    leaf, labels = view.apply(view.prepare_rows(X)), column_or_1d(y)
    check_consistent_length(leaf, labels)
    return attribute_leaf_errors(view.tree, leaf, class_numbers(labels, view.classes))


def attribute_leaf_errors(tree: CrispTree, leaf: Integers, true: Integers) -> ErrorAttribution:
    """Attribute errors from the leaves of rows and their true class indices, −1 where unknown."""
    structure, counts = tree.structure, tree.statistics.node_counts
    has_leaf = structure.sums_below(np.eye(counts.shape[1])[tree.labels()]) > 0
    # The responsible split of each leaf and true class; the last column is that of unknown classes.
    responsible = np.full((structure.n_leaves, counts.shape[1] + 1), NO_SPLIT, dtype=np.int64)
    for end in range(structure.n_leaves):
        for split, goes_right in structure.path(end):
            sides = structure.right_nodes[split], structure.left_nodes[split]
            taken, other = sides if goes_right else sides[::-1]
            is_wrong_turn = has_leaf[other] & (counts[other] > counts[taken])
            responsible[end, :-1][is_wrong_turn] = split  # a deeper split replaces those above
    wrong = np.flatnonzero(tree.labels(leaf) != true)
    return ErrorAttribution(wrong, responsible[leaf[wrong], true[wrong]])
