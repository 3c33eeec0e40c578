"""Axis-aligned splits by information gain (CART): scikit-learn's tree finds them.

A threshold ``x_a <= t`` (left) becomes the hyperplane x_a − t: with t rounded down to single precision, the difference
has the right sign for every row in single precision, and zero goes left here as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from crisptree.baselines.search import HyperplaneArrays, LeafLimits, NodeRows, SearchContext, round_down
from crisptree.learning.options import GrowthLimits
from crisptree.learning.samples import Groups, Samples
from crisptree.splits import ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.tree import Tree

TREES: dict[str, Callable[..., Any]] = {
    "classes": partial(DecisionTreeClassifier, criterion="entropy"),
    "gaussians": DecisionTreeRegressor,
}
"""scikit-learn's tree, by target: information gain, or reduction of variance."""

IMPURITY_UNITS = {"classes": 1 / math.log(2)}
"""scikit-learn's unit of impurity in ours, by target: its entropy is in bits."""


def axis_aligned_splits(context: SearchContext, groups: Groups) -> ObliqueSplits:
    """Find the best threshold on one feature for every group of rows.

    scikit-learn finds one stump per leaf, so that all stopping rules, weights and warm starts are the library's own.
    """
    return context.splits(axis_aligned_hyperplanes(context, groups))


def axis_aligned_hyperplanes(context: SearchContext, groups: Groups) -> HyperplaneArrays:
    """Find the same as arrays, each hyperplane with one weight, which is 1."""
    seed = context.seed()
    hyperplanes = HyperplaneArrays.idle(len(groups.sizes), context.samples.n_features)
    for number, node in enumerate(context.nodes(groups)):
        stump = best_stump(node, context.leaf_limits, seed, context.samples.target.name)
        if stump is not None:
            feature, threshold = stump
            hyperplanes.weight[number, feature] = 1.0
            hyperplanes.bias[number] = -threshold
    return hyperplanes


def best_stump(
    node: NodeRows, leaf_limits: LeafLimits, seed: int = 0, target: str = "classes"
) -> tuple[int, np.float32] | None:
    """Find the feature and the threshold with the highest gain; None if no threshold is allowed.

    ``seed`` decides among features of equal gain; ``target`` is a key of ``TREES``.
    """
    share = (1 - 1e-9) * leaf_limits.weight / node.weight.sum()  # the minimum itself is enough, despite rounding
    if share > 0.5:  # two sides cannot both keep so much
        return None
    tree = TREES[target](
        max_depth=1,
        min_samples_leaf=leaf_limits.rows,
        min_weight_fraction_leaf=share,
        random_state=seed,
    )
    fitted = tree.fit(node.x, node.y, sample_weight=node.weight).tree_
    if fitted.node_count == 1:
        return None
    return int(fitted.feature[0]), round_down(fitted.threshold[0])


def fit_cart(samples: Samples, limits: GrowthLimits, max_features: int | None, seed: int) -> Tree:
    """Fit a whole tree at once, with scikit-learn's stopping rules: for forests, which need many and deep ones.

    With ``max_features``, each split is the best of so many features, drawn for it.
    """
    everything = torch.arange(len(samples), device=samples.device)
    parts = (samples.batch(everything), samples.y, samples.weight.double())
    x, y, weight = (part.cpu().numpy() for part in parts)
    target = samples.target
    fitted = TREES[target.name](
        max_depth=limits.max_depth,
        max_leaf_nodes=limits.max_leaf_nodes,
        min_samples_split=limits.min_samples_split,
        min_samples_leaf=limits.min_samples_leaf,
        min_weight_fraction_leaf=limits.min_weight_fraction_leaf,
        min_impurity_decrease=limits.min_impurity_decrease * IMPURITY_UNITS.get(target.name, 1.0),
        max_features=max_features,
        random_state=seed % 2**32,
    ).fit(x, y, sample_weight=weight)
    nodes = fitted.tree_
    structure, splits, leaf_number = _structure(nodes)
    weights = np.zeros((len(splits), samples.n_features), dtype=np.float32)
    weights[np.arange(len(splits)), nodes.feature[splits]] = 1.0
    bias = np.array([-round_down(threshold) for threshold in nodes.threshold[splits]], dtype=np.float32)
    counts = target.tally(y, weight, leaf_number[fitted.apply(x)], structure.n_leaves)
    like = samples.weight
    statistics, before = (torch.from_numpy(part).to(like) for part in (counts, target.tables(counts)))
    hyperplanes = (torch.from_numpy(part).to(like) for part in (weights, bias))
    return Tree(structure, ObliqueSplits(*hyperplanes), target.update(statistics, before, 0.0), target.name)


def _structure(nodes: Any) -> tuple[TreeStructure, np.ndarray, np.ndarray]:
    """Convert scikit-learn's tree; return its structure, its split nodes, and the index of each node as a leaf."""
    is_split = nodes.children_left >= 0
    splits = np.flatnonzero(is_split)  # parents come before their children, as in ours
    number = np.where(is_split, np.cumsum(is_split) - 1, ~(np.cumsum(~is_split) - 1)).astype(np.int32)
    children = (number[side[splits]] for side in (nodes.children_left, nodes.children_right))
    return TreeStructure(*children), splits, np.cumsum(~is_split) - 1
