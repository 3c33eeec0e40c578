"""Split modules in model files: by name if built in, with their parameters as arrays. Imported only for such trees."""

from __future__ import annotations

import math
from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
import torch

from crisptree.inference.flat_tree import CrispTree
from crisptree.one_thread import one_thread
from crisptree.persistence.model_file import Arrays, ModelFileError
from crisptree.splits import MODULES, Factory, ModuleSplits
from crisptree.tree import ModuleTree


def describe(tree: CrispTree, split: str | Factory | None) -> tuple[dict[str, Any], Arrays]:
    """Describe the modules of a tree, and return their stacked parameters."""
    if not isinstance(tree, ModuleTree):
        raise TypeError(f"a {type(tree).__name__} cannot be saved to a model file.")
    name = split if isinstance(split, str) else None
    return {"name": name, "input_shape": list(tree.splits.input_shape)}, tree.parameter_arrays()


@one_thread()
def read_splits(
    parameters: Arrays, sizes: Mapping[str, int], module: Any, split: Factory | None, path: str | PathLike[str]
) -> ModuleSplits:
    """Build the split modules of a tree of the given sizes from the file's description ``module``."""
    factory, input_shape = _described(module, split, path)
    wrong = {name: array.shape for name, array in parameters.items() if array.shape[:1] != (sizes["splits"],)}
    if wrong:
        raise ModelFileError(f"{path} must hold one module for each of {sizes['splits']} splits; got {wrong}.")
    if math.prod(input_shape) != sizes["features"]:
        raise ModelFileError(f"{path} says that its modules take inputs of shape {input_shape}, which cannot be.")
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in parameters.items()}
    try:
        return ModuleSplits.from_arrays(factory, tensors, input_shape)
    except Exception as error:  # the function that builds modules may be the user's own, and raise anything
        raise ModelFileError(f"{path} holds split modules that cannot be built: {error}") from error


def _described(module: Any, split: Factory | None, path: str | PathLike[str]) -> tuple[Factory, tuple[int, ...]]:
    """Factory of the modules, and their input shape."""
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
    return factory, input_shape
