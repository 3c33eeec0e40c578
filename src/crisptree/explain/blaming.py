"""The split behind an error: "when a sample was misclassified it is straightforward to find the split node that is
responsible" (section 4.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length, column_or_1d

from crisptree.inference import CrispTree
from crisptree.targets.labels import class_numbers
from crisptree.view import html, view_of

Integers = npt.NDArray[np.int64]

NOBODY = -1


@dataclass(frozen=True, eq=False)
class Blame:
    """The misclassified rows and the split responsible for each.

    Parameters
    ----------
    rows : ndarray of shape (n_errors,)
        Which rows were misclassified.
    split : ndarray of shape (n_errors,)
        The split to blame for each, −1 for nobody.
    """

    rows: Integers
    split: Integers

    def table(self) -> list[tuple[int, int, float]]:
        """(split, errors, share of all errors), the most errors first; errors without a culprit come last, as −1."""
        splits, errors = np.unique(self.split, return_counts=True)
        order = np.lexsort((splits, -errors, splits == NOBODY))
        return [(int(splits[i]), int(errors[i]), float(errors[i] / len(self.rows))) for i in order]

    def __str__(self) -> str:
        lines = [f"{len(self.rows)} errors"]
        for split, errors, share in self.table():
            name = "no split" if split == NOBODY else f"split {split}"
            lines.append(f"    {name}: {errors} ({share:.1%})")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = [
            ("no split" if split == NOBODY else f"split {split}", errors, f"{share:.1%}", html.bar(share, "#b3261e"))
            for split, errors, share in self.table()
        ]
        return html.table(("to blame", "errors", "of all", ""), rows, f"{len(self.rows)} errors")


def blame(model: Any, X: Any, y: Any) -> Blame:
    """For every misclassified row the split where it went wrong.

    That is the deepest split on its path where most training rows of its true class go to the other side and where a
    leaf of that class still waits there. Below it the row had no chance; at it, it left the others. An error that
    no split explains so (its class has no leaf, or the row went with most of its class) is nobody's.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one; its splits may be of any kind.
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Their true classes; a label unknown to the model is an error that is nobody's.

    Returns
    -------
    Blame
        The rows and their splits; ``table`` counts them.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0).fit(X, ["low", "low", "high", "high"])
    >>> explain.blame(model, X, ["low", "low", "low", "high"]).table()
    [(0, 1, 1.0)]
    """
    view = view_of(model, "explain.blame")
    view.check_has_classes(
        "explain.blame", "There is no class to miss; plots.plot_residuals shows where it is far off."
    )
    view.check_has_constant_leaves("explain.blame")
    view.check_takes_rows("explain.blame")
    leaf, labels = view.leaves(view.rows(X)), column_or_1d(y)
    check_consistent_length(leaf, labels)
    return blame_leaves(view.tree, leaf, class_numbers(labels, view.classes))


def blame_leaves(tree: CrispTree, leaf: Integers, true: Integers) -> Blame:
    """The same from the leaves that rows have reached and their true class numbers, −1 where unknown."""
    structure, counts = tree.structure, tree.statistics.node_counts
    waiting = structure.sums_below(np.eye(counts.shape[1])[tree.labels()]) > 0
    # The split to blame for each leaf and true class; the last column is that of unknown ones.
    to_blame = np.full((structure.n_leaves, counts.shape[1] + 1), NOBODY, dtype=np.int64)
    for end in range(structure.n_leaves):
        for split, goes_right in structure.path(end):
            sides = structure.right_nodes[split], structure.left_nodes[split]
            taken, other = sides if goes_right else sides[::-1]
            fits = waiting[other] & (counts[other] > counts[taken])
            to_blame[end, :-1][fits] = split  # a deeper one takes the place of those above
    wrong = np.flatnonzero(tree.labels(leaf) != true)
    return Blame(wrong, to_blame[leaf[wrong], true[wrong]])
