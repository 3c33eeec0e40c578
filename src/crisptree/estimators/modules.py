"""Split modules in model files: named where they are built in, arrays always. Imported only for such trees."""

from __future__ import annotations

import math
from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from crisptree.export.model_file import Arrays, ModelFileError
from crisptree.export.trees import ModuleReader
from crisptree.inference.flat import CrispTree, Statistics
from crisptree.splits import MODULES, ModuleSplits
from crisptree.structure import TreeStructure
from crisptree.tree import ModuleTree


def describe(tree: CrispTree, split: Any) -> tuple[dict[str, Any], Arrays]:
    """What a file says of the modules, and their stacked parameters."""
    if not isinstance(tree, ModuleTree):
        raise TypeError(f"a {type(tree).__name__} cannot be saved to a model file.")
    arrays = {name: value.detach().cpu().numpy() for name, value in tree.splits.parameters.items()}
    name = split if isinstance(split, str) else None
    return {"name": name, "input_shape": list(tree.splits.input_shape)}, arrays


def reader(module: Any, split: Callable[[tuple[int, ...]], Any] | None, path: str | PathLike[str]) -> ModuleReader:
    """Builds the trees of a file whose header says ``module``."""
    try:
        name, input_shape = module["name"], tuple(int(side) for side in module["input_shape"])
        factory = MODULES.get(name) if split is None else split
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{path} must say what its split modules are; it does not.") from error
    if factory is None:
        raise ModelFileError(
            f"{path} holds split modules of its author's own; the function that builds them is needed: "
            "crisptree.load(path, split=function)."
        )
    if len(input_shape) not in (1, 3) or min(input_shape) < 1:
        raise ModelFileError(f"{path} says that its modules take inputs of shape {input_shape}, which cannot be.")
    build = factory

    def read_modules(
        structure: TreeStructure, leaves: npt.NDArray[np.float64], statistics: Statistics, parameters: Arrays
    ) -> CrispTree:
        tensors = {key: torch.from_numpy(np.array(value)) for key, value in parameters.items()}
        wrong = {
            key: value.shape for key, value in tensors.items() if value.dim() == 0 or len(value) != structure.n_splits
        }
        if wrong:
            raise ModelFileError(f"{path} must hold one module for each of {structure.n_splits} splits; got {wrong}.")
        if math.prod(input_shape) != len(statistics.scaling.center):
            raise ModelFileError(f"{path} says that its modules take inputs of shape {input_shape}, which cannot be.")
        try:
            splits = ModuleSplits.from_arrays(build, tensors, input_shape)
        except (ValueError, TypeError, RuntimeError) as error:
            raise ModelFileError(f"{path}: {error}") from error
        return ModuleTree(structure, leaves, statistics, splits=splits)

    return read_modules
