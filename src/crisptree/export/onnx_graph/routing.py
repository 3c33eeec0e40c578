"""From scores to leaves, three ways; every one gives the leaf of each tree, numbered over all trees.  (N, n_trees)"""

from __future__ import annotations

import numpy as np

from crisptree.export.onnx_graph.building import Graph
from crisptree.export.portable import ExportError, Portable
from crisptree.export.stacked import Stacked

MOST_ENTRIES = 2**24
"""Of the matrix of paths: 64 MiB."""


def by_matrix(graph: Graph, model: Portable, trees: Stacked, scores: str) -> str:
    """All splits at once: which turns agree with the path of a leaf is counted by a product of matrices.

    With t = 1 for right and 0 for left, and a matrix that has 1 where the path of a leaf goes right and −1 where it
    goes left, t · matrix − (number of right turns) is 0 for the leaf reached and below 0 for all others.
    """
    n_trees = trees.n_trees
    n_splits = max(max(tree.structure.n_splits for tree in model.trees), 1)
    n_leaves = max(tree.n_leaves for tree in model.trees)
    if n_trees * n_splits * n_leaves > MOST_ENTRIES:
        raise ExportError(
            f"the matrix of paths must have at most {MOST_ENTRIES:,} entries; this model's would have "
            f"{n_trees * n_splits * n_leaves:,}. Take form='ensemble' or form='paths'."
        )
    paths = np.zeros((n_trees, n_splits, n_leaves), dtype=np.float32)
    rights = np.full((n_trees, 1, n_leaves), -2.0 * n_splits, dtype=np.float32)  # leaves that only fill up never win
    for number, tree in enumerate(model.trees):
        for leaf in range(tree.n_leaves):
            path = tree.structure.path(leaf)
            rights[number, 0, leaf] = -sum(right for _, right in path)
            for split, right in path:
                paths[number, split, leaf] = 1.0 if right else -1.0
    turns = graph.cast(graph.add("Greater", scores, graph.constant(0.0, "float", "zero")), "float")
    if n_trees == 1:
        counted = graph.add(
            "Gemm", turns, graph.constant(paths[0], "float", "paths"), graph.constant(rights[0], "float", "rights")
        )
        return graph.add("ArgMax", counted, axis=1, keepdims=1)
    # Trees of one size, side by side: the scores of every tree are put where it expects them.
    order = np.zeros((n_trees, n_splits), dtype=np.int64)
    starts = np.cumsum([0, *(tree.structure.n_splits for tree in model.trees)])
    for number, tree in enumerate(model.trees):
        order[number, : tree.structure.n_splits] = starts[number] + np.arange(tree.structure.n_splits)
    placed = graph.add("Gather", turns, graph.constant(order, "int64", "order"), axis=1)  # (N, trees, splits)
    by_tree = graph.add("Transpose", placed, perm=[1, 0, 2])
    counted = graph.add("MatMul", by_tree, graph.constant(paths, "float", "paths"))
    lowered = graph.add("Add", counted, graph.constant(rights, "float", "rights"))
    own = graph.add("Transpose", graph.add("ArgMax", lowered, axis=2, keepdims=0), perm=[1, 0])
    return graph.add("Add", own, graph.constant(trees.first_leaf[None], "int64", "first_leaf"))


def by_ensemble(graph: Graph, model: Portable, trees: Stacked, scores: str) -> str:
    """The scores as features of an ensemble of thresholds at zero; what a tree says is the number of its leaf."""
    nodes: dict[str, list[object]] = {name: [] for name in NODE_PARTS}
    targets: dict[str, list[object]] = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
    start = 0
    for number, tree in enumerate(model.trees):
        structure = tree.structure
        for node in range(structure.n_nodes):
            is_split = node < structure.n_splits
            left, right = (int(side[node]) if is_split else 0 for side in (structure.left_nodes, structure.right_nodes))
            values = (
                number,
                node,
                start + node if is_split else 0,
                "BRANCH_LEQ" if is_split else "LEAF",
                0.0,
                left,
                right,
            )
            for name, value in zip(NODE_PARTS, values, strict=True):
                nodes[name].append(value)
            if not is_split:
                leaf = float(trees.first_leaf[number] + node - structure.n_splits)
                for name, value in zip(targets, (number, node, number, leaf), strict=True):
                    targets[name].append(value)
        start += structure.n_splits
    found = graph.add(
        "TreeEnsembleRegressor",
        scores,
        domain="ai.onnx.ml",
        n_targets=trees.n_trees,
        post_transform="NONE",
        **{f"nodes_{name}": values for name, values in nodes.items()},
        **{f"target_{name}": values for name, values in targets.items()},
    )
    return graph.cast(found, "int64")


NODE_PARTS = ("treeids", "nodeids", "featureids", "modes", "values", "truenodeids", "falsenodeids")
"""Attributes of the ensemble's nodes; "true" is at most zero, our left."""


def by_paths(graph: Graph, model: Portable, trees: Stacked, rows: str) -> str:
    """Level by level: every row computes the score of the one split where it stands.

    Nodes are numbered over all trees, splits before leaves; a leaf is its own child and asks split 0 for nothing.
    """
    n_splits = trees.n_splits
    children = np.repeat(np.arange(n_splits + trees.n_leaves), 2).reshape(-1, 2)
    for side, own in enumerate((trees.left, trees.right)):
        children[:n_splits, side] = np.where(own >= 0, own, n_splits + ~own)
    roots = np.where(trees.root >= 0, trees.root, n_splits + ~trees.root)
    asks = np.where(np.arange(n_splits + trees.n_leaves) < n_splits, np.arange(n_splits + trees.n_leaves), 0)
    weight, bias = (
        graph.constant(part, "float", name) for part, name in ((trees.weight, "weight"), (trees.bias, "bias"))
    )
    asked, below = graph.constant(asks, "int64", "split"), graph.constant(children.reshape(-1), "int64", "children")
    two, zero = graph.constant(2, "int64", "two"), graph.constant(0.0, "float", "zero")
    last = graph.constant([2], "int64", "axis")
    beside = graph.add("Unsqueeze", rows, graph.constant([1], "int64", "axis"))  # (N, 1, features)
    n_rows = graph.add("Slice", graph.add("Shape", rows), graph.constant([0], "int64"), graph.constant([1], "int64"))
    shape = graph.add("Concat", n_rows, graph.constant([trees.n_trees], "int64"), axis=0)
    node = graph.add("Expand", graph.constant(roots, "int64", "roots"), shape)
    for _ in range(max(tree.structure.depth for tree in model.trees)):
        split = graph.add("Gather", asked, node)
        terms = graph.add("Mul", graph.add("Gather", weight, split), beside)
        score = graph.add("Add", graph.add("ReduceSum", terms, last, keepdims=0), graph.add("Gather", bias, split))
        right = graph.cast(graph.add("Greater", score, zero), "int64")
        node = graph.add("Gather", below, graph.add("Add", graph.add("Mul", node, two), right))
    return graph.add("Sub", node, graph.constant(n_splits, "int64", "n_splits"))


def linear_scores(graph: Graph, trees: Stacked, rows: str) -> str:
    """Scores of all splits of all trees.  (N, n_splits)"""
    weight, bias = trees.weight, trees.bias
    if not trees.n_splits:  # matrices of a graph have at least one line
        weight, bias = np.zeros((1, weight.shape[1]), np.float32), np.zeros(1, np.float32)
    return graph.add(
        "Gemm", rows, graph.constant(weight, "float", "weight"), graph.constant(bias, "float", "bias"), transB=1
    )
