"""Initialisation search of regression stumps: directions and thresholds that separate the y of their rows best.

From a random hyperplane a stump follows the gradient of its likelihood, which is close to zero where y does not rise or
fall along it, as for the residuals of a linear model. Stumps of classification trees need no search, because random
tables of two leaves differ in every class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from crisptree.learning.engines.base import Groups, group_rows
from crisptree.learning.samples import Samples
from crisptree.splits import AbstractSplits, ObliqueSplits
from crisptree.targets import Gaussians
from crisptree.tree import Tree

ROWS_PER_NODE = 256
"""Rows of a node that are looked at."""

N_SINGLE_FEATURES, N_RANDOM_DIRECTIONS = 16, 8
"""Single features and random directions that are tried, beside the random hyperplane that there is."""

QUANTILES = (0.2, 0.35, 0.5, 0.65, 0.8)
"""Candidate offsets of a hyperplane along a direction, as quantiles of the rows."""

MIN_ROWS_TO_SEARCH = 32
"""Fewer rows of a node, out of a sample of all, say nothing about where to begin."""

QUANTILE_OFFSET = 0.37
"""Rows are picked at no round share of all weights, where rounding would tell one row from its copy."""

MAX_SEARCH_VALUES = 2**21


class Start(NamedTuple):
    """Hyperplanes, and what the rows on both sides of each add up to.  (2, n_nodes, n_statistics)"""

    splits: ObliqueSplits
    statistics: Tensor


def find_initial_splits(splits: ObliqueSplits, samples: Samples, groups: Groups, generator: torch.Generator) -> Start:
    """Search the rotation and offset of hyperplanes that separate the y of their rows best; their norm stays."""
    assert isinstance(samples.target, Gaussians)
    weight = splits.parameters["weight"].detach()
    n_nodes, n_features = weight.shape
    axes = torch.randperm(n_features, generator=generator)[:N_SINGLE_FEATURES]
    drawn = torch.randn(N_RANDOM_DIRECTIONS, n_features, generator=generator)
    along = torch.nn.functional.one_hot(axes, n_features)
    tried = torch.cat([along, drawn / drawn.norm(dim=1, keepdim=True)]).to(weight)
    length = weight.norm(dim=1)
    at_once = max(1, MAX_SEARCH_VALUES // (ROWS_PER_NODE * max(n_features, len(QUANTILES) * (len(tried) + 1))))
    found = []
    for nodes in torch.arange(n_nodes, device=weight.device).split(at_once):
        own = (weight[nodes] / length[nodes, None].clamp_min(1e-30))[:, None]
        directions = torch.cat([own, tried.expand(len(nodes), -1, -1)], dim=1)
        found.append(_best_of(directions, samples, _some_rows(groups, nodes, samples)))
    direction, threshold = (torch.cat([one[part] for one in found]) for part in (0, 1))
    parameters = {"weight": direction * length[:, None], "bias": -threshold * length}
    return Start(splits.replace_parameters(parameters), torch.cat([one[2] for one in found], dim=1))


def search_initial_splits(
    splits: AbstractSplits, tables: Tensor, tree: Tree, leaves: list[int], sample: Samples, generator: torch.Generator
) -> tuple[AbstractSplits, Tensor]:
    """Start the stumps at some leaves of a regression tree at the best hyperplanes for a sample of all rows.

    Where the sample has too few rows of a leaf, its stump begins as it is. Tables are (2, n_nodes · n_values).
    """
    if not isinstance(splits, ObliqueSplits) or not len(sample):
        return splits, tables
    leaf = sample.all_leaves(tree)
    here = torch.bincount(leaf, minlength=tree.structure.n_leaves)[leaves]
    known = torch.nonzero(here >= MIN_ROWS_TO_SEARCH)[:, 0]
    if not len(known):
        return splits, tables
    groups = group_rows(leaf, [leaves[number] for number in known.tolist()])
    chosen = splits.select(known)
    assert isinstance(chosen, ObliqueSplits)
    start = find_initial_splits(chosen, sample, groups, generator)
    parameters = {name: value.detach().clone() for name, value in splits.parameters.items()}
    for name, value in start.splits.parameters.items():
        parameters[name][known] = value
    wide = tables.reshape(2, len(leaves), -1).clone()
    before, sums = (part.reshape(2 * len(known), -1) for part in (wide[:, known], start.statistics))
    wide[:, known] = sample.target.update(sums, before, 0.0).reshape(2, len(known), -1)
    return splits.replace_parameters(parameters), wide.reshape(2, -1)


def _some_rows(groups: Groups, nodes: Tensor, samples: Samples) -> Tensor:
    """Sample rows of some nodes systematically by weight, heavy ones several times.  (n_nodes, ROWS_PER_NODE)"""
    ends = groups.sizes.cumsum(0)
    heights = torch.cat([samples.weight.new_zeros(1).double(), samples.weight[groups.rows].double().cumsum(0)])
    low, high = heights[(ends - groups.sizes)[nodes]], heights[ends[nodes]]
    steps = (torch.arange(ROWS_PER_NODE, device=nodes.device) + QUANTILE_OFFSET) / ROWS_PER_NODE
    positions = torch.searchsorted(heights, low[:, None] + steps * (high - low)[:, None]) - 1
    return groups.rows[positions.clamp(max=len(groups.rows) - 1)]


def _quantiles(scores: Tensor) -> Tensor:
    """Compute weighted quantiles along every direction.  (m, n, k) → (q, m, k)"""
    shares = torch.tensor(QUANTILES).to(scores)
    if scores.device.type != "cpu":
        return scores.quantile(shares, dim=1)
    # The same numbers: NumPy sorts without the positions, several times quicker.
    ordered = torch.from_numpy(np.sort(scores.transpose(1, 2).numpy(), axis=2))
    ranks = shares * (scores.shape[1] - 1)
    below, above = (ordered[..., end.long()] for end in (ranks.floor(), ranks.ceil()))
    return below.lerp(above, ranks - ranks.floor()).permute(2, 0, 1)


def _best_of(directions: Tensor, samples: Samples, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Direction, threshold and sums of both sides of the hyperplane that takes most off the variance.

    (m, k, n_features), (m, n) → (m, n_features), (m,), (2, m, n_statistics)
    """
    m, n = rows.shape
    x = samples.batch(rows.reshape(-1)).reshape(m, n, -1)
    y = samples.y[rows].to(x)
    scores = x @ directions.transpose(1, 2)
    limits = _quantiles(scores)  # (q, m, k)
    right = (scores > limits[:, :, None]).to(x)  # (q, m, n, k)
    each = torch.cat([torch.ones_like(y[..., :1]), y, y * y], dim=2)
    on_right = right.transpose(2, 3) @ each  # (q, m, k, n_statistics)
    overall = each.sum(dim=1)[None, :, None]
    k = y.shape[2]
    gains = torch.zeros_like(on_right[..., 0])
    for side in (on_right, overall - on_right):
        gains += (side[..., 1 : k + 1] ** 2).sum(-1) / side[..., 0].clamp_min(1e-30)
    best = gains.permute(1, 0, 2).reshape(m, -1).argmax(dim=1)
    quantile, number, node = best // directions.shape[1], best % directions.shape[1], torch.arange(m, device=x.device)
    there = on_right[quantile, node, number]
    return directions[node, number], limits[quantile, node, number], torch.stack([overall[0, :, 0] - there, there])
