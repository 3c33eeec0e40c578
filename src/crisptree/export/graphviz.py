"""A tree as Graphviz source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from crisptree.export.wording import Wording

THINNEST, THICKEST = 0.5, 6.0


def dot(
    model: Any,
    feature_names: Sequence[object] | None = None,
    *,
    terms: int = 3,
    max_depth: int | None = None,
    decimals: int = 3,
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
    words = Wording.of(model, "export.dot", feature_names, terms, max_depth, decimals)
    lines = ["digraph tree {", '    graph [ordering="out"];', '    node [shape="box", fontname="sans-serif"];']
    rows = words.view.node_rows
    shares = rows / max(rows[0], np.finfo(float).tiny)
    for shown in words.nodes():
        label = f"{words.title(shown)}, {words.count(shown.node)}\n{words.says(shown)}"
        style = "" if words.is_question(shown) else ', style="rounded"'
        lines.append(f"    n{shown.node} [label={quoted(label)}{style}];")
        if shown.parent >= 0:
            width = THINNEST + (THICKEST - THINNEST) * shares[shown.node]
            turn = "yes" if shown.goes_right else "no"
            lines.append(f'    n{shown.parent} -> n{shown.node} [label="{turn}", penwidth="{width:.2f}"];')
    return "\n".join([*lines, "}"]) + "\n"


def quoted(text: str) -> str:
    r"""A string of the dot language that is drawn as it stands: Graphviz reads \" and, in labels, \\ and \n.

    Examples
    --------
    >>> print(quoted('say "no"\\N'))
    "say \"no\"\\N"
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\0", "")
    return f'"{escaped}"'
