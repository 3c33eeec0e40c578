"""The model file: safetensors arrays and a JSON header. Nothing in it can run code.

The header names sections. A reader refuses an unknown section that is required and passes over an optional one.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from crisptree.inference.flat import FlatTree, Statistics
from crisptree.scaling import Scaling
from crisptree.structure import TreeStructure

FORMAT = 1
KEY = "crisptree"

Arrays = dict[str, npt.NDArray[Any]]


class ModelFileError(ValueError):
    """A file that is not a whole and sound model; the message says what is wrong with it."""


@dataclass(frozen=True, eq=False)
class ModelFile:
    """What a file holds: JSON for every section, and arrays named ``section/name``."""

    sections: dict[str, Any]
    arrays: Arrays


def write(path: str | PathLike[str], model: ModelFile) -> None:
    """Write atomically: a crash half-way leaves an earlier file as it was."""
    header = {"format": FORMAT, "required": sorted(model.sections), "sections": model.sections}
    arrays = {name: np.ascontiguousarray(array) for name, array in model.arrays.items()}
    data = save_arrays(arrays, metadata={KEY: json.dumps(header)})
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read(path: str | PathLike[str], known: set[str]) -> ModelFile:
    """Read a file whose required sections are all among the ``known`` ones."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        arrays = load_arrays(data)
        header = json.loads(_metadata(data)[KEY])
        form, required, sections = header["format"], header["required"], header["sections"]
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise ModelFileError(f"{path} is not a crisptree model file, or is damaged: {error}.") from error
    if form != FORMAT:
        raise ModelFileError(f"{path} has format {form!r}; this version of crisptree reads format {FORMAT}.")
    unknown = sorted(set(required) - known)
    if unknown:
        raise ModelFileError(f"{path} needs {', '.join(unknown)}, unknown to this version of crisptree; update it.")
    return ModelFile(sections, arrays)


def _metadata(data: bytes) -> dict[str, str]:
    length = int.from_bytes(data[:8], "little")
    return dict(json.loads(data[8 : 8 + length]).get("__metadata__", {}))


def tree_arrays(tree: FlatTree, section: str) -> Arrays:
    """A tree as arrays under a section's name."""
    statistics = tree.statistics
    arrays: Arrays = {
        "left": tree.left,
        "right": tree.right,
        "weight": tree.weight,
        "bias": tree.bias,
        "leaves": tree.leaves,
        "node_counts": statistics.node_counts,
        "gain": statistics.gain,
        "score_mean": statistics.score_mean,
        "score_spread": statistics.score_spread,
        "center": statistics.scaling.center,
        "factor": statistics.scaling.factor,
        "soft_leaves": statistics.soft_leaves,
        "steepness": np.array([statistics.steepness]),
    }
    return {f"{section}/{name}": array for name, array in arrays.items()}


def tree_from_arrays(arrays: Arrays, section: str) -> FlatTree:
    """The tree that ``tree_arrays`` wrote."""
    try:
        part = {name.split("/", 1)[1]: array for name, array in arrays.items() if name.startswith(section + "/")}
        statistics = Statistics(
            node_counts=part["node_counts"],
            gain=part["gain"],
            score_mean=part["score_mean"],
            score_spread=part["score_spread"],
            scaling=Scaling(part["center"], part["factor"]),
            soft_leaves=part["soft_leaves"],
            steepness=float(part["steepness"][0]),
        )
        structure = TreeStructure(part["left"], part["right"])
        return FlatTree(structure, part["leaves"], statistics, weight=part["weight"], bias=part["bias"])
    except KeyError as error:
        raise ModelFileError(f"the section {section!r} lacks the array {error}.") from error
    except ValueError as error:
        raise ModelFileError(f"the section {section!r} holds no sound tree: {error}") from error
