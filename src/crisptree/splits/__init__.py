"""Learnable split functions f(x).

``AbstractSplits`` is the interface. All splits of a tree are one object whose parameters are stacked along their
first dimension, so a level of stumps or a whole tree trains as one batch.
"""

from crisptree.splits.base import (
    KINDS,
    LINEAR,
    AbstractSplits,
    AxisCandidates,
    AxisSplits,
    Factory,
    ObliqueSplits,
    SplitKind,
    random_directions,
    resolve_kind,
)
from crisptree.splits.conv import ConvNet
from crisptree.splits.module import MODULES, ModuleSplits

__all__ = [
    "KINDS",
    "LINEAR",
    "MODULES",
    "AbstractSplits",
    "AxisCandidates",
    "AxisSplits",
    "ConvNet",
    "Factory",
    "ModuleSplits",
    "ObliqueSplits",
    "SplitKind",
    "random_directions",
    "resolve_kind",
]
