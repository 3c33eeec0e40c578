"""Learnable split functions f(x).

``AbstractSplits`` is the interface. All splits of a tree are one object whose parameters are stacked along their
first dimension, so a level of stumps or a whole tree trains as one batch.
"""

import torch

from crisptree.splits.base import (
    AbstractSplits,
    AxisCandidates,
    AxisSplits,
    ObliqueSplits,
    SplitKind,
    random_directions,
)
from crisptree.splits.conv import ConvNet
from crisptree.splits.module import Factory, ModuleSplits

KINDS = {
    "oblique": SplitKind(ObliqueSplits.initial, ObliqueSplits.initial),
    "axis": SplitKind(AxisSplits.initial, AxisCandidates.initial, compete_by_feature=True),
}
LINEAR: dict[str, type[ObliqueSplits] | type[AxisSplits]] = {"oblique": ObliqueSplits, "axis": AxisSplits}

MODULES: dict[str, Factory] = {"conv": ConvNet}
"""Split modules by their names in estimators and model files."""


def kind_of(split: str | Factory, input_shape: tuple[int, ...]) -> SplitKind:
    """Resolve the parameter ``split``: a name of ``KINDS`` or ``MODULES``, or a factory of modules."""
    if isinstance(split, str) and split in KINDS:
        return KINDS[split]
    factory = MODULES[split] if isinstance(split, str) else split
    modules = ModuleSplits.initialiser(factory, input_shape)
    return SplitKind(modules, modules, draws=modules(torch.zeros(0), torch.Generator()).draws)


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
    "kind_of",
    "random_directions",
]
