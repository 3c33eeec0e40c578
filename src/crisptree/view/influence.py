"""What a feature counts at a split: the one definition, for importances, rules, drawings and reports.

The effect of feature j is w_j · spread_j, on raw weights and with the feature's standard deviation in training: how far
the score moves when the feature alone moves by its own spread. In the scaled space of training the same number is
β_j · factor_j · spread_j. For ``scale="feature"`` the factor is 1 / spread and the effect is β_j itself; where many
features share one factor, β_j still has the feature's unit in it, and only the effect can be compared between features.
Influence is the size of the effect.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import FlatTree

Doubles = npt.NDArray[np.float64]


def effects(tree: FlatTree, split: Any = slice(None)) -> Doubles:
    """w_j · spread_j of every feature: above zero, larger values go right.  (n_splits, n_features), or (n_features,)

    ``split`` is one split, some of them, or all.
    """
    return tree.weight[split].astype(np.float64) * tree.statistics.scaling.spread


def influence(tree: FlatTree, split: Any = slice(None)) -> Doubles:
    """|w_j| · spread_j of every feature.  (n_splits, n_features), or (n_features,)"""
    return np.abs(effects(tree, split))


def most_influential(effect: Doubles, most: int) -> npt.NDArray[np.intp]:
    """The features with the largest effects at one split, the largest first; those without any are left out.

    Examples
    --------
    >>> most_influential(np.array([0.0, -3.0, 1.0, 2.0]), 2).tolist()
    [1, 3]
    """
    order = np.argsort(-np.abs(effect), kind="stable")[:most]
    return order[effect[order] != 0]
