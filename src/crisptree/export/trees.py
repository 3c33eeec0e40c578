"""Trees as the arrays of a model file, and back, held to their shapes, types and ranges on the way in."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crisptree.export.model_file import Arrays, ModelFile, ModelFileError
from crisptree.inference.flat import CrispTree, FlatTree, Statistics
from crisptree.scaling import Scaling
from crisptree.structure import TreeStructure

STATISTICS = {
    "node_counts": ("nodes", "classes"),
    "gain": ("splits",),
    "score_mean": ("splits",),
    "score_spread": ("splits",),
    "center": ("features",),
    "factor": ("features",),
    "mean": ("features",),
    "spread": ("features",),
    "soft_leaves": ("leaves", "classes"),
    "steepness": ("one",),
}
MODULE = "module/"


class ModuleReader(Protocol):
    """Builds a tree with split modules; it needs torch, so it is handed in where such a tree may come."""

    def __call__(
        self, structure: TreeStructure, leaves: npt.NDArray[np.float64], statistics: Statistics, parameters: Arrays
    ) -> CrispTree: ...


def tree_arrays(tree: CrispTree, section: str, parameters: Arrays | None = None) -> Arrays:
    """A tree as arrays of a section; ``parameters`` are those of its split modules, where it has some."""
    statistics = tree.statistics
    arrays: Arrays = {
        "left": tree.structure.left,
        "right": tree.structure.right,
        "leaves": tree.leaves,
        "statistics/node_counts": statistics.node_counts,
        "statistics/gain": statistics.gain,
        "statistics/score_mean": statistics.score_mean,
        "statistics/score_spread": statistics.score_spread,
        "statistics/center": statistics.scaling.center,
        "statistics/factor": statistics.scaling.factor,
        "statistics/mean": statistics.scaling.mean,
        "statistics/spread": statistics.scaling.spread,
        "statistics/soft_leaves": statistics.soft_leaves,
        "statistics/steepness": np.array([statistics.steepness]),
    }
    if isinstance(tree, FlatTree):
        arrays |= {"weight": tree.weight, "bias": tree.bias}
    arrays |= {MODULE + name: value for name, value in (parameters or {}).items()}
    return {_place(section, name): array for name, array in arrays.items()}


def _place(section: str, name: str) -> str:
    """Statistics of "tree" stand in "statistics", those of any other section in "other_statistics"."""
    if not name.startswith("statistics/"):
        return f"{section}/{name}"
    return statistics_section(section) + name.removeprefix("statistics")


def statistics_section(section: str) -> str:
    """Where the statistics of a tree's section stand."""
    return "statistics" if section == "tree" else f"{section}_statistics"


def read_tree(file: ModelFile, section: str, n_classes: int, modules: ModuleReader | None = None) -> CrispTree:
    """The tree of a section, checked: nothing that it holds can make prediction fail."""
    arrays, numbers = file.arrays_of(section), file.arrays_of(statistics_section(section))
    left, right = (_array(arrays, section, name, np.int32, 1) for name in ("left", "right"))
    try:
        structure = TreeStructure(left, right)
    except ValueError as error:
        raise ModelFileError(f"the section {section!r} holds no tree: {error}") from error
    center = _array(numbers, section, "center", np.float64, 1)
    sizes = {
        "splits": structure.n_splits,
        "leaves": structure.n_leaves,
        "nodes": structure.n_nodes,
        "classes": n_classes,
        "features": len(center),
        "one": 1,
    }
    if not len(center):
        raise ModelFileError(f"the section {section!r} holds a tree of no features.")
    values = {name: _sized(numbers, section, name, np.float64, shape, sizes) for name, shape in STATISTICS.items()}
    leaves = _sized(arrays, section, "leaves", np.float64, ("leaves", "classes"), sizes)
    for name, table in (("leaves", leaves), ("soft_leaves", values["soft_leaves"])):
        if (table < 0).any() or not np.allclose(table.sum(axis=1), 1, atol=1e-4):
            raise ModelFileError(f"the section {section!r} holds {name} that are not probabilities.")
    statistics = Statistics(
        node_counts=values["node_counts"],
        gain=values["gain"],
        score_mean=values["score_mean"],
        score_spread=values["score_spread"],
        scaling=Scaling(values["center"], values["factor"], values["mean"], values["spread"]),
        soft_leaves=values["soft_leaves"],
        steepness=float(values["steepness"][0]),
    )
    parameters = {name.removeprefix(MODULE): value for name, value in arrays.items() if name.startswith(MODULE)}
    if parameters and modules is not None:
        for name in parameters:
            _array(arrays, section, MODULE + name, np.float32, arrays[MODULE + name].ndim)
        return modules(structure, leaves, statistics, parameters)
    weight = _sized(arrays, section, "weight", np.float32, ("splits", "features"), sizes)
    bias = _sized(arrays, section, "bias", np.float32, ("splits",), sizes)
    return FlatTree(structure, leaves, statistics, weight=weight, bias=bias)


def _array(arrays: Arrays, section: str, name: str, dtype: Any, dimensions: int) -> npt.NDArray[Any]:
    array = arrays.get(name)
    if array is None:
        raise ModelFileError(f"the section {section!r} lacks the array {name!r}.")
    if array.dtype != dtype or array.ndim != dimensions:
        raise ModelFileError(
            f"{name!r} of the section {section!r} must have type {np.dtype(dtype)} and {dimensions} dimensions; "
            f"it has {array.dtype} and {array.ndim}."
        )
    return _finite(array, section, name)


def _sized(
    arrays: Arrays, section: str, name: str, dtype: Any, shape: tuple[str, ...], sizes: dict[str, int]
) -> npt.NDArray[Any]:
    array = _array(arrays, section, name, dtype, len(shape))
    expected = tuple(sizes[side] for side in shape)
    if array.shape != expected:
        raise ModelFileError(f"{name!r} of the section {section!r} must have shape {expected}; it has {array.shape}.")
    return array


def _finite(array: npt.NDArray[Any], section: str, name: str) -> npt.NDArray[Any]:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ModelFileError(f"{name!r} of the section {section!r} holds values that are not finite.")
    return array
