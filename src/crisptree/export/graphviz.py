"""A tree as Graphviz source."""

from __future__ import annotations

from typing import Any

from crisptree.export.rules import rules_of
from crisptree.inspection import Names

THINNEST, THICKEST = 0.5, 6.0


def dot(
    model: Any, feature_names: Names = None, *, terms: int | None = 3, max_depth: int | None = None, decimals: int = 3
) -> str:
    r"""The tree as Graphviz source, to be drawn by ``dot -Tsvg``.

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
    >>> print(export.dot(model).splitlines()[-3])
        n2 [label="leaf 1, 2 rows\nlow (100.0%)", style="rounded"];
    """
    lines = ["digraph tree {", '    graph [ordering="out"];', '    node [shape="box", fontname="sans-serif"];']
    for rule in rules_of(model, "export.dot", feature_names, terms, max_depth, decimals):
        style = "" if rule.asks else ', style="rounded"'
        label = quoted(rule.title + "\n" + rule.says)
        lines.append(f"    n{rule.node} [label={label}{style}];")
        if rule.turn:
            width = THINNEST + (THICKEST - THINNEST) * rule.share
            lines.append(f'    n{rule.parent} -> n{rule.node} [label="{rule.turn}", penwidth="{width:.2f}"];')
    return "\n".join([*lines, "}"]) + "\n"


def quoted(text: str) -> str:
    r"""A string of the dot language that is drawn as it stands: Graphviz reads \" and, in labels, \\ and \n.

    Examples
    --------
    >>> print(quoted('say "no"\\N'))
    "say \"no\"\\N"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
