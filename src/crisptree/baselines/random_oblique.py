"""The best of many random directions, each with its best threshold, by information gain."""

from __future__ import annotations

import numpy as np

from crisptree.baselines.task import Hyperplanes, Task, as_array
from crisptree.baselines.thresholds import best_thresholds
from crisptree.learning.samples import Groups
from crisptree.splits import ObliqueSplits, random_directions

N_DIRECTIONS = 100
"""How many directions compete at a leaf."""


def random_splits(task: Task, groups: Groups, n_directions: int = N_DIRECTIONS) -> ObliqueSplits:
    """The best of ``n_directions`` directions from the unit sphere, fresh ones for every group of rows."""
    n_features = task.samples.n_features
    found = Hyperplanes.idle(len(groups.sizes), n_features)
    for number, node in enumerate(task.nodes(groups)):
        directions = as_array(random_directions(n_directions, n_features, task.generator))
        best = best_thresholds(directions @ node.x.T, node.y, node.weight, task.n_classes, task.least)
        winner = best.winner()
        if winner is not None:
            found.weight[number], found.bias[number] = directions[winner], -best.place[winner]
    return task.splits(Hyperplanes(*map(np.asarray, found)))
