"""Axis-aligned splits by information gain (CART): scikit-learn's tree finds them.

Growth is the library's own, so that all stopping rules, weights and warm starts hold; scikit-learn is asked for one
stump at every leaf. A stump ``x_a <= t`` (left) becomes the hyperplane x_a − t: with t rounded down to single
precision, the difference has the right sign for every row in single precision, and zero goes left here as well.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from crisptree.baselines.task import Hyperplanes, Node, Task
from crisptree.baselines.thresholds import Least, rounded_down
from crisptree.learning.samples import Groups
from crisptree.splits import ObliqueSplits

STUMPS: dict[str, Callable[..., Any]] = {
    "classes": partial(DecisionTreeClassifier, criterion="entropy"),
    "gaussians": DecisionTreeRegressor,
}
"""What finds thresholds, by what a leaf predicts: by information gain, and by reduction of variance."""


def axis_aligned_splits(task: Task, groups: Groups) -> ObliqueSplits:
    """The best threshold on one feature for every group of rows."""
    return task.splits(axis_aligned_hyperplanes(task, groups))


def axis_aligned_hyperplanes(task: Task, groups: Groups) -> Hyperplanes:
    """The same as arrays, each with one weight, which is 1."""
    seed = task.seed()
    found = Hyperplanes.idle(len(groups.sizes), task.samples.n_features)
    for number, node in enumerate(task.nodes(groups)):
        stump = best_stump(node, task.least, seed, task.samples.target.name)
        if stump is not None:
            feature, threshold = stump
            found.weight[number, feature] = 1.0
            found.bias[number] = -threshold
    return found


def best_stump(node: Node, least: Least, seed: int = 0, target: str = "classes") -> tuple[int, np.float32] | None:
    """The feature and the threshold with the highest information gain; None where no threshold is allowed.

    Parameters
    ----------
    node : Node
        Rows, class numbers and weights.
    least : Least
        What each side must keep.
    seed : int
        Chooses among features of equal gain.
    target : str
        What y is, a key of ``STUMPS``.
    """
    share = (1 - 1e-9) * least.weight / node.weight.sum()  # the least itself is enough, whatever rounding does to it
    if share > 0.5:  # no two sides can keep so much
        return None
    tree = STUMPS[target](
        max_depth=1,
        min_samples_leaf=least.rows,
        min_weight_fraction_leaf=share,
        random_state=seed,
    )
    fitted = tree.fit(node.x, node.y, sample_weight=node.weight).tree_
    if fitted.node_count == 1:
        return None
    return int(fitted.feature[0]), rounded_down(fitted.threshold[0])
