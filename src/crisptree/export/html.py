"""Drawing of the upper levels of a tree for notebooks: HTML without script or style sheet."""

from __future__ import annotations

import base64
import struct
import zlib
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import FlatTree
from crisptree.inspection import ModelView, Names, view_model
from crisptree.inspection.rules import format_number, make_split_rule
from crisptree.inspection.validation import check_integer

WIDTH, HEIGHT, GAP, LEVEL = 172, 58, 12, 92
"""Pixels: of a node, between two nodes, and from one level to the next."""

MAX_LETTERS = 27
"""Letters that fit into a line of a node; a hover shows the whole text."""

COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")


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
    >>> model = CrispTreeClassifier(grow="axis_aligned", max_depth=2, finetune_epochs=0, random_state=0)
    >>> model = model.fit(*load_iris(return_X_y=True))
    >>> export.html(model).startswith("<div")
    True
    """
    view = view_model(model, "export.html", feature_names=feature_names)
    terms, deepest = check_integer("terms", terms, 1), check_integer("max_depth", max_depth, 0)
    structure, places = view.tree.structure, _positions(view, deepest)
    width = max((x for x, _ in places.values()), default=0) + WIDTH / 2 + GAP
    height = max(y for _, y in places.values()) + HEIGHT + 26
    parts = []
    for node, (x, y) in places.items():
        parent = int(structure.parents[node])
        if parent in places:
            (start, above), middle = places[parent], y - (LEVEL - HEIGHT) / 2
            way = f"M{start} {above + HEIGHT + 8}C{start} {middle} {x} {middle} {x} {y}"
            thick = 1 + 6 * view.node_weights[node] / max(view.node_weights[0], np.finfo(float).tiny)
            parts.append(f'<path d="{way}" fill="none" stroke="#9aa7b5" stroke-width="{thick:.1f}"/>')
    parts += [_node(view, node, x, y, terms, structure.node_depths[node] >= deepest) for node, (x, y) in places.items()]
    facts = f"{structure.n_leaves:,} leaves, depth {structure.depth}, {view.tree.n_features:,} features"
    shown = "" if deepest >= structure.depth else f"; the first {deepest} levels of splits"
    return (
        f'<div><p style="margin:0 0 4px">{escape(type(view.estimator).__name__)}: {facts}{shown}</p>'
        f'<div style="overflow-x:auto"><svg width="{width:.0f}" height="{height:.0f}" role="img" '
        f'font-family="sans-serif" font-size="11.5" style="background:white">{"".join(parts)}</svg></div></div>'
    )


def _positions(view: ModelView, deepest: int) -> dict[int, tuple[float, float]]:
    """Horizontal centre and upper edge of every node that is drawn."""
    structure, places, ends = view.tree.structure, {}, [0]
    waiting = [(0, False)]
    while waiting:
        node, done = waiting.pop()
        depth = int(structure.node_depths[node])
        if node >= structure.n_splits or depth >= deepest:
            places[node] = (GAP + WIDTH / 2 + ends[0] * (WIDTH + GAP), float(depth * LEVEL + 4))
            ends[0] += 1
        elif done:
            left, right = (places[int(child[node])][0] for child in (structure.left_nodes, structure.right_nodes))
            places[node] = ((left + right) / 2, float(depth * LEVEL + 4))
        else:
            children = int(structure.left_nodes[node]), int(structure.right_nodes[node])
            waiting += [(node, True), (children[1], False), (children[0], False)]
    return places


def _node(view: ModelView, node: int, x: float, y: float, terms: int, is_end: bool) -> str:
    """Draw a split as its rule or weight image, a leaf as its prediction, with the strip of classes below."""
    n_splits = view.tree.structure.n_splits
    is_split, number_of = node < n_splits, f"{view.node_weights[node]:,.6g}"
    rows = f"{number_of} row{'' if number_of == '1' else 's'}"
    name = f"split {node}" if is_split else f"leaf {node - n_splits}"
    hint, picture = f"{name}, {rows}: {view.describe_node(node)}", ""
    if not is_split or is_end:
        more = " …" if is_split else ""
        if view.is_regression:
            lines = [view.describe_node(node), f"{rows}{more}"]
        else:
            answer, share = view.rank_classes(node)[0]
            lines = [answer, f"{share:.1%} of {rows}{more}"]
    elif view.has_weight_images:
        picture, lines = _weight_image(view, node, x, y), []
    elif isinstance(view.tree, FlatTree):
        rule = make_split_rule(view.tree, node, terms)
        more = f"+ {rule.left_out} more " if rule.left_out else ""
        lines = [*rule.format_terms(view.feature_names, 3), f"{more}{rule.sign} {format_number(rule.threshold)}"]
        hint += f"; right where {make_split_rule(view.tree, node, 12).format(view.feature_names)}"
    else:
        lines = [view.split_name, name]
    step = HEIGHT / (len(lines) + 0.6) if lines else 0.0
    style = 'text-anchor="middle" fill="#222"'
    written = "".join(
        f'<text x="{x:.1f}" y="{y + (place + 0.95) * step:.1f}" {style}>{escape(_shorten(line))}</text>'
        for place, line in enumerate(lines)
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
    for place, share in enumerate(view.node_values[node]):
        wide = WIDTH * float(share)
        if wide >= 0.5:
            color = COLORS[place % len(COLORS)]
            parts.append(
                f'<rect x="{left:.1f}" y="{y + HEIGHT + 2}" width="{wide:.1f}" height="6" fill="{color}">'
                f"<title>{escape(view.class_names[place])}: {share:.1%}</title></rect>"
            )
        left += wide
    return "".join(parts)


def _weight_image(view: ModelView, node: int, x: float, y: float) -> str:
    height, width, channels = view.image_shape or (1, 1, 1)
    weights = view.scaled_weights(node).reshape(height, width, channels).mean(axis=2)
    low, reach = weights.min(), float(np.ptp(weights)) or 1.0
    grey = np.round((weights - low) / reach * 255).astype(np.uint8)
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


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_LETTERS else text[: MAX_LETTERS - 1] + "…"
