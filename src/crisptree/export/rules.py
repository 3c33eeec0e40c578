"""Rules of a tree for people: indented text, Graphviz source, and HTML without script or style sheet for notebooks."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator
from html import escape
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.inference import FlatTree
from crisptree.inspection import ModelView, Names, view_model
from crisptree.inspection.linear_splits import make_split_rule
from crisptree.inspection.sentences import describe_leaves, describe_split
from crisptree.inspection.validation import check_integer, check_optional_integer

THINNEST, THICKEST = 0.5, 6.0
"""Width of Graphviz edges, by the share of training rows."""

WIDTH, HEIGHT, GAP, LEVEL = 172, 58, 12, 92
"""Pixels: of a node, between two nodes, and from one level to the next."""

MAX_LETTERS = 27
"""Letters that fit into a line of a node; a hover shows the whole text."""

COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")
"""matplotlib's tab10, which ``crisptree.plots`` uses; HTML needs no matplotlib."""


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
            model = view.describe_linear_leaf(node, terms, decimals)
            text = f"{view.describe_node(node)}, {model}" if model else view.describe_node(node)
        yield NodeRule(node, depth, parent, branch, float(shares[node]), title, expanded, text)
        if expanded:
            waiting += [int(structure.right_nodes[node]), int(structure.left_nodes[node])]


def html(model: Any, feature_names: Names = None, *, terms: int = 2, max_depth: int = 3) -> str:
    """Draw the upper levels of a fitted tree as HTML, as notebooks show a fitted estimator.

    Rows that satisfy the rule of a split go right. The strip below a node shows the classes of its training rows.

    Parameters
    ----------
    model : CrispTreeClassifier, CrispSegmenter or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one.
    feature_names : sequence of str, default=None
        Words in place of the model's own names.
    terms : int, default=2
        How many terms of each split to write out; a hover shows more of them.
    max_depth : int, default=3
        How many levels of splits to draw.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, export
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0)
    >>> model = model.fit(*load_iris(return_X_y=True))
    >>> export.html(model).startswith("<div")
    True
    """
    view = view_model(model, "export.html", feature_names=feature_names)
    terms, deepest = check_integer("terms", terms, 1), check_integer("max_depth", max_depth, 0)
    structure, positions = view.tree.structure, _positions(view, deepest)
    width = max((x for x, _ in positions.values()), default=0) + WIDTH / 2 + GAP
    height = max(y for _, y in positions.values()) + HEIGHT + 26
    parts = []
    for node, (x, y) in positions.items():
        parent = int(structure.parents[node])
        if parent in positions:
            (start, above), middle = positions[parent], y - (LEVEL - HEIGHT) / 2
            curve = f"M{start} {above + HEIGHT + 8}C{start} {middle} {x} {middle} {x} {y}"
            thick = 1 + 6 * view.node_weights[node] / max(view.node_weights[0], np.finfo(float).tiny)
            parts.append(f'<path d="{curve}" fill="none" stroke="#9aa7b5" stroke-width="{thick:.1f}"/>')
    for node, (x, y) in positions.items():
        parts.append(_node(view, node, x, y, terms, structure.node_depths[node] >= deepest))
    facts = f"{structure.n_leaves:,} leaves, depth {structure.depth}, {view.tree.n_features:,} features"
    shown = "" if deepest >= structure.depth else f"; the first {deepest} levels of splits"
    return (
        f'<div><p style="margin:0 0 4px">{escape(type(view.estimator).__name__)}: {facts}{shown}</p>'
        f'<div style="overflow-x:auto"><svg width="{width:.0f}" height="{height:.0f}" role="img" '
        f'font-family="sans-serif" font-size="11.5" style="background:white">{"".join(parts)}</svg></div></div>'
    )


def _positions(view: ModelView, deepest: int) -> dict[int, tuple[float, float]]:
    """Horizontal center and upper edge of every node that is drawn."""
    structure, positions, n_ends = view.tree.structure, {}, 0
    waiting = [(0, False)]
    while waiting:
        node, done = waiting.pop()
        depth = int(structure.node_depths[node])
        if node >= structure.n_splits or depth >= deepest:
            positions[node] = (GAP + WIDTH / 2 + n_ends * (WIDTH + GAP), float(depth * LEVEL + 4))
            n_ends += 1
        elif done:
            left, right = (positions[int(child[node])][0] for child in (structure.left_nodes, structure.right_nodes))
            positions[node] = ((left + right) / 2, float(depth * LEVEL + 4))
        else:
            children = int(structure.left_nodes[node]), int(structure.right_nodes[node])
            waiting += [(node, True), (children[1], False), (children[0], False)]
    return positions


def _node(view: ModelView, node: int, x: float, y: float, terms: int, is_end: bool) -> str:
    """Draw a split as its rule or weight image, a leaf as its prediction, with the strip of classes below."""
    is_split, name, rows = node < view.tree.structure.n_splits, view.name_node(node), view.count_rows(node)
    hint, picture = f"{name}, {rows}: {view.describe_node(node)}", ""
    if not is_split or is_end:
        more = " …" if is_split else ""
        if view.is_regression:
            lines = [view.describe_node(node), f"{rows}{more}"]
        else:
            label, share = view.rank_classes(node)[0]
            lines = [label, f"{share:.1%} of {rows}{more}"]
    elif view.has_weight_images:
        picture, lines = _weight_image(view, node, x, y), []
    elif isinstance(view.tree, FlatTree):
        lines = make_split_rule(view.tree, node, terms).format_lines(view.feature_names, 3)
        hint += f"; right where {describe_split(view, node, 12, 4)}"
    else:
        lines = [view.split_name, name]
    step = HEIGHT / (len(lines) + 0.6) if lines else 0.0
    shortened = (line if len(line) <= MAX_LETTERS else line[: MAX_LETTERS - 1] + "…" for line in lines)
    style = 'text-anchor="middle" fill="#222"'
    written = "".join(
        f'<text x="{x:.1f}" y="{y + (index + 0.95) * step:.1f}" {style}>{escape(line)}</text>'
        for index, line in enumerate(shortened)
    )
    corner = 2 if is_split else 10
    box = (
        f'<rect x="{x - WIDTH / 2:.1f}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="{corner}" fill="#fafaf8" '
        'stroke="#c9c9c2"/>'
    )
    return f"<g><title>{escape(hint)}</title>{box}{picture}{written}{_strip(view, node, x, y)}</g>"


def _strip(view: ModelView, node: int, x: float, y: float) -> str:
    """Draw the share of every class; for regression the first target between the lowest and the highest."""
    if view.is_regression:
        at, height = x - WIDTH / 2 + WIDTH * float(view.bar_heights[node][0]), y + HEIGHT + 2
        return (
            f'<rect x="{x - WIDTH / 2:.1f}" y="{height}" width="{WIDTH}" height="6" fill="#e5e9ee"/>'
            f'<rect x="{max(at - 3, x - WIDTH / 2):.1f}" y="{height}" width="6" height="6" fill="{COLORS[0]}">'
            f"<title>{escape(view.describe_node(node))}</title></rect>"
        )
    parts, left = [], x - WIDTH / 2
    for index, share in enumerate(view.node_values[node]):
        wide = WIDTH * float(share)
        if wide >= 0.5:
            color = COLORS[index % len(COLORS)]
            parts.append(
                f'<rect x="{left:.1f}" y="{y + HEIGHT + 2}" width="{wide:.1f}" height="6" fill="{color}">'
                f"<title>{escape(view.class_names[index])}: {share:.1%}</title></rect>"
            )
        left += wide
    return "".join(parts)


def _weight_image(view: ModelView, node: int, x: float, y: float) -> str:
    height, width, channels = view.image_shape or (1, 1, 1)
    weights = view.scaled_weights(node).reshape(height, width, channels).mean(axis=2)
    low, span = weights.min(), float(np.ptp(weights)) or 1.0
    grey = np.round((weights - low) / span * 255).astype(np.uint8)
    side = HEIGHT - 6
    return (
        f'<image x="{x - side / 2:.1f}" y="{y + 3}" width="{side}" height="{side}" style="image-rendering:pixelated" '
        f'href="data:image/png;base64,{base64.b64encode(encode_png(grey)).decode()}"/>'
    )


def encode_png(grey: npt.NDArray[np.uint8]) -> bytes:
    """Encode a grey image as PNG.  (height, width)"""
    height, width = grey.shape
    lines = np.concatenate([np.zeros((height, 1), np.uint8), grey], axis=1).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    packed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)
