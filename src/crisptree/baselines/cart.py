"""A whole tree of thresholds at once, as scikit-learn finds it: for forests, which need many and deep ones.

``grow="axis_aligned"`` asks scikit-learn for one stump at every leaf, so that all stopping rules are the library's own;
this asks once for all of them, with scikit-learn's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from crisptree.baselines.axis_aligned import STUMPS
from crisptree.baselines.thresholds import rounded_down
from crisptree.learning.options import Limits
from crisptree.learning.samples import Samples
from crisptree.splits import ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.tree import Tree

UNITS = {"classes": 1 / math.log(2)}
"""What one of our units of impurity is in scikit-learn's, by what a leaf predicts: its entropy is in bits."""


def cart(samples: Samples, limits: Limits, n_drawn: int | None, seed: int) -> Tree:
    """CART's tree; where ``n_drawn`` is a number, each split has the best of so many features, drawn for it."""
    everything = torch.arange(len(samples), device=samples.device)
    parts = (samples.batch(everything), samples.y, samples.weight.double())
    x, y, weight = (part.cpu().numpy() for part in parts)
    target = samples.target
    found = STUMPS[target.name](
        max_depth=limits.max_depth,
        max_leaf_nodes=limits.max_leaf_nodes,
        min_samples_split=limits.min_samples_split,
        min_samples_leaf=limits.min_samples_leaf,
        min_weight_fraction_leaf=limits.min_weight_fraction_leaf,
        min_impurity_decrease=limits.min_impurity_decrease * UNITS.get(target.name, 1.0),
        max_features=n_drawn,
        random_state=seed % 2**32,
    ).fit(x, y, sample_weight=weight)
    nodes = found.tree_
    structure, splits, leaf_number = _structure(nodes)
    weights = np.zeros((len(splits), samples.n_features), dtype=np.float32)
    weights[np.arange(len(splits)), nodes.feature[splits]] = 1.0
    bias = np.array([-rounded_down(threshold) for threshold in nodes.threshold[splits]], dtype=np.float32)
    counts = target.tally(y, weight, leaf_number[found.apply(x)], structure.n_leaves)
    like = samples.weight
    statistics, before = (torch.from_numpy(part).to(like) for part in (counts, target.tables(counts)))
    hyperplanes = (torch.from_numpy(part).to(like) for part in (weights, bias))
    return Tree(structure, ObliqueSplits(*hyperplanes), target.update(statistics, before, 0.0), target.name)


def _structure(nodes: Any) -> tuple[TreeStructure, np.ndarray, np.ndarray]:
    """The shape of scikit-learn's tree, which of its nodes are splits, and the number of each as a leaf."""
    is_split = nodes.children_left >= 0
    splits = np.flatnonzero(is_split)  # parents come before their children, as in ours
    number = np.where(is_split, np.cumsum(is_split) - 1, ~(np.cumsum(~is_split) - 1)).astype(np.int32)
    children = (number[side[splits]] for side in (nodes.children_left, nodes.children_right))
    return TreeStructure(*children), splits, np.cumsum(~is_split) - 1
