"""Rules of a tree for people: sentences, indented text and Graphviz source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from crisptree.inference import FlatTree
from crisptree.inspection import Names, view_model
from crisptree.inspection.sentences import describe_leaves, describe_split
from crisptree.inspection.validation import check_integer, check_optional_integer

THINNEST, THICKEST = 0.5, 6.0
"""Width of Graphviz edges, by the share of training rows."""

WIDTH, HEIGHT, GAP, LEVEL = 172, 58, 12, 92
"""Pixels: of a node, between two nodes, and from one level to the next."""


class NodeRule(NamedTuple):
    """Text of a node."""

    node: int
    depth: int
    parent: int  # −1 above the root
    branch: str  # "no" if it is the left child, "yes" if the right
    share: float  # of the training rows
    title: str
    is_split: bool  # whether it is a split whose children are shown too
    text: str


def text(
    model: Any, feature_names: Names = None, *, terms: int | None = 3, max_depth: int | None = None, decimals: int = 3
) -> str:
    """Export a tree as indented rules, one line per node.

    A split compares one feature, or a weighted sum of several, in raw units, with a threshold: "no" is its left side,
    "yes" its right side. Only the most influential terms (by weight times spread in training) are written out, with the
    number of those left out; the comparison holds for the whole sum. Counts are training rows by their weights. A
    linear leaf also shows its model, for classification that of its most frequent class.

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
    split 0, 150 rows: petal length (cm) < 2...?
        no:  leaf 0, 100 rows: versicolor (50.0%)
        yes: leaf 1, 50 rows: setosa (100.0%)
    """
    lines = []
    for rule in iterate_rules(model, "export.text", feature_names, terms, max_depth, decimals):
        branch = f"{rule.branch}:".ljust(5) if rule.branch else ""
        lines.append(f"{'    ' * rule.depth}{branch}{rule.title}: {rule.text}")
    return "\n".join(lines)


def sentences(model: Any, feature_names: Names = None, *, terms: int | None = 3, decimals: int = 3) -> str:
    r"""Export a tree as one sentence per leaf: which rows reach it, what it predicts, how many training rows it has.

    Conditions on one column are merged ("months between 7 and 12"), and categories are sets of levels. For a linear
    leaf the sentence also has its model.

    Parameters
    ----------
    model, feature_names, terms, decimals
        As in ``export.text``; splits must be linear.

    Examples
    --------
    >>> import pandas as pd
    >>> from crisptree import CrispTreeClassifier, export
    >>> table = pd.DataFrame({"months": [1, 2, 3, 9, 12, 20], "plan": ["basic", "pro"] * 3})
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", shrinkage=0.0, random_state=0)
    >>> model = model.fit(table, ["leaves", "leaves", "leaves", "stays", "stays", "stays"])
    >>> print("\n".join(sorted(export.sentences(model).splitlines())))
    if months > 6: stays with 100% (3 rows)
    if months ≤ 6: leaves with 100% (3 rows)
    """
    view = view_model(model, "export.sentences", feature_names=feature_names)
    terms, decimals = check_optional_integer("terms", terms, 0), check_integer("decimals", decimals, 1)
    return "\n".join(describe_leaves(view, terms, decimals))


def dot(
    model: Any, feature_names: Names = None, *, terms: int | None = 3, max_depth: int | None = None, decimals: int = 3
) -> str:
    r"""Export a tree as Graphviz source, to be drawn by ``dot -Tsvg``.

    Splits are boxes with their question, leaves are rounded boxes with their most frequent class. The left arrow is
    "no", the right one "yes"; arrows are as thick as the training samples that follow them.

    Parameters
    ----------
    model, feature_names, terms, max_depth, decimals
        As in ``export.text``.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    >>> print(export.dot(model).splitlines()[0])
    digraph tree {
    """
    lines = ["digraph tree {", '    graph [ordering="out"];', '    node [shape="box", fontname="sans-serif"];']
    for rule in iterate_rules(model, "export.dot", feature_names, terms, max_depth, decimals):
        style = "" if rule.is_split else ', style="rounded"'
        label = quote_dot(rule.title + "\n" + rule.text)
        lines.append(f"    n{rule.node} [label={label}{style}];")
        if rule.branch:
            width = THINNEST + (THICKEST - THINNEST) * rule.share
            lines.append(f'    n{rule.parent} -> n{rule.node} [label="{rule.branch}", penwidth="{width:.2f}"];')
    return "\n".join([*lines, "}"]) + "\n"


def quote_dot(text: str) -> str:
    r"""Quote a label of the dot language: Graphviz reads \" and, in labels, \\ and \n.

    Examples
    --------
    >>> print(quote_dot('say "no"\\N'))
    "say \"no\"\\N"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def iterate_rules(
    model: Any, purpose: str, feature_names: Names, terms: int | None, max_depth: int | None, decimals: int
) -> Iterator[NodeRule]:
    """Iterate over the nodes that are shown in preorder; errors name the ``purpose``."""
    view = view_model(model, purpose, feature_names=feature_names)
    terms, decimals = check_optional_integer("terms", terms, 0), check_integer("decimals", decimals, 1)
    deepest = check_optional_integer("max_depth", max_depth, 0)
    structure, waiting = view.tree.structure, [0]
    shares = view.node_weights / max(view.node_weights[0], np.finfo(float).tiny)
    while waiting:
        node = waiting.pop()
        depth, parent = int(structure.node_depths[node]), int(structure.parents[node])
        is_split = node < structure.n_splits
        branch = "" if parent < 0 else "yes" if structure.right_nodes[parent] == node else "no"
        expanded = is_split and (deepest is None or depth < deepest)
        below = " and below" if is_split and not expanded else ""
        title = f"{view.name_node(node)}{below}, {view.count_rows(node, '.6g')}"
        if expanded:
            text = f"module {node} > 0?"
            if isinstance(view.tree, FlatTree):
                text = f"{describe_split(view, node, terms, decimals)}?"
        else:
            models = (f"{name} = {' '.join(parts)}" for name, parts in view.linear_leaf_terms(node, terms, decimals))
            text = "; ".join([view.describe_node(node), *models])
        yield NodeRule(node, depth, parent, branch, float(shares[node]), title, expanded, text)
        if expanded:
            waiting += [int(structure.right_nodes[node]), int(structure.left_nodes[node])]
