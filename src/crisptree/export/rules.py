"""A tree as rules in words: what each node asks or answers, and the whole of it as indented text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from crisptree.inference import CrispTree, FlatTree
from crisptree.inspection import Names, view_model
from crisptree.inspection.importances import compute_effects, rank_features
from crisptree.inspection.validation import check_integer, check_optional_integer


class Rule(NamedTuple):
    """A node in words."""

    node: int
    depth: int
    parent: int  # −1 above the root
    turn: str  # "no" on the left side of its parent, "yes" on the right
    share: float  # of the training rows
    title: str
    asks: bool  # whether it is a split whose children are shown too; otherwise it answers
    says: str


def text(
    model: Any, feature_names: Names = None, *, terms: int | None = 3, max_depth: int | None = None, decimals: int = 3
) -> str:
    """The tree as indented rules, one line per node.

    A split compares a sum of weighted features, in raw units, with a threshold: "no" is its left side, "yes" its
    right side. Only the most influential terms (by weight times spread in training) are written out, and the number of
    those left out is said; the comparison holds for the whole sum. Counts are training rows by their weights. A linear
    leaf also says its model, of classes that of its most frequent one.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one: the rules are about the features that reach the tree.
        Modules are named, not spelled out.
    feature_names : sequence of str, default=None
        Words in place of the model's own names.
    terms : int or None, default=3
        How many terms of each split to write out; None for all.
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
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", input_noise=0.0, l1=0.0, shrinkage=0.0, random_state=0)
    >>> model = model.fit(iris.data, species)
    >>> print(export.text(model, iris.feature_names))  # doctest: +ELLIPSIS
    split 0, 150 rows: -... * petal length (cm) > -...?
        no:  leaf 0, 100 rows: versicolor (50.0%)
        yes: leaf 1, 50 rows: setosa (100.0%)
    """
    lines = []
    for rule in rules_of(model, "export.text", feature_names, terms, max_depth, decimals):
        turn = f"{rule.turn}:".ljust(5) if rule.turn else ""
        lines.append(f"{'    ' * rule.depth}{turn}{rule.title}: {rule.says}")
    return "\n".join(lines)


def rules_of(
    model: Any, purpose: str, feature_names: Names, terms: int | None, max_depth: int | None, decimals: int
) -> Iterator[Rule]:
    """Every node that is shown, before its left side, and that before its right side; errors name the ``purpose``."""
    view = view_model(model, purpose, feature_names=feature_names)
    terms, decimals = check_optional_integer("terms", terms, 0), check_integer("decimals", decimals, 1)
    deepest = check_optional_integer("max_depth", max_depth, 0)
    structure, waiting = view.tree.structure, [0]
    shares = view.node_weights / max(view.node_weights[0], np.finfo(float).tiny)
    while waiting:
        node = waiting.pop()
        depth, parent = int(structure.node_depths[node]), int(structure.parents[node])
        is_split = node < structure.n_splits
        turn = "" if parent < 0 else "yes" if structure.right_nodes[parent] == node else "no"
        asks = is_split and (deepest is None or depth < deepest)
        name = f"split {node}" if is_split else f"leaf {node - structure.n_splits}"
        below, rows = " and below" if is_split and not asks else "", f"{view.node_weights[node]:.6g}"
        title = f"{name}{below}, {rows} row{'' if rows == '1' else 's'}"
        if asks:
            says = question(view.tree, node, view.feature_names, terms, decimals)
        else:
            model = view.describe_linear_leaf(node, terms, decimals)
            says = f"{view.describe_node(node)}, {model}" if model else view.describe_node(node)
        yield Rule(node, depth, parent, turn, float(shares[node]), title, asks, says)
        if asks:
            waiting += [int(structure.right_nodes[node]), int(structure.left_nodes[node])]


def question(tree: CrispTree, split: int, names: list[str], terms: int | None, decimals: int) -> str:
    """The split in raw units, its most influential terms first; what it says is true for the whole sum."""
    if not isinstance(tree, FlatTree):
        return f"module {split} > 0?"
    weight = tree.weight[split].astype(np.float64)
    effect = compute_effects(tree, split)
    largest = rank_features(effect, len(effect) if terms is None else terms)
    if terms is None:  # features that did not vary in training have no influence, and may have a weight
        largest = np.concatenate([largest, np.flatnonzero((weight != 0) & (effect == 0))])
    parts = [f"{'-' if weight[j] < 0 else '+'} {abs(weight[j]):.{decimals}g} * {names[j]}" for j in largest]
    left_out = np.count_nonzero(weight) - len(largest)
    if left_out:
        parts.append(f"+ ({left_out} more term{'s' if left_out > 1 else ''})")
    total = " ".join(parts) or "+ 0"
    signed = total[2:] if total.startswith("+") else "-" + total[2:]
    return f"{signed} > {-float(tree.bias[split]) + 0.0:.{decimals}g}?"
