"""A tree as indented rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crisptree.export.wording import Wording

STEP = "    "


def text(
    model: Any,
    feature_names: Sequence[object] | None = None,
    *,
    terms: int = 3,
    max_depth: int | None = None,
    decimals: int = 3,
) -> str:
    """The tree as indented rules, one line per node.

    A split compares a sum of weighted features, in raw units, with a threshold: "no" is its left side, "yes" its
    right side. Only the most influential terms (by weight times spread in training) are written out, and the number of
    those left out is said; the comparison holds for the whole sum. Counts are training rows by their weights.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one: the rules are about the features that reach the tree.
        Modules are named, not spelled out.
    feature_names : sequence of str, default=None
        Words in place of the model's own names.
    terms : int, default=3
        How many terms of each split to write out.
    max_depth : int, default=None
        How many levels of splits to show.
    decimals : int, default=3
        Significant digits of weights and thresholds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, export
    >>> iris = load_iris()
    >>> species = iris.target_names[iris.target]
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(iris.data, species)
    >>> print(export.text(model, iris.feature_names))  # doctest: +ELLIPSIS
    split 0, 150 rows: -... * petal length (cm) > -...?
        no:  leaf 0, 100 rows: versicolor (50.0%)
        yes: leaf 1, 50 rows: setosa (100.0%)
    """
    words = Wording.of(model, "export.text", feature_names, terms, max_depth, decimals)
    lines = []
    for shown in words.nodes():
        turn = "" if shown.parent < 0 else ("yes: " if shown.goes_right else "no:  ")
        title = f"{words.title(shown)}, {words.count(shown.node)}"
        lines.append(f"{STEP * shown.depth}{turn}{title}: {words.says(shown)}")
    return "\n".join(lines)
