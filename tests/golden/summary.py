"""What the golden records keep of a fitted estimator; the only place here that reads internal attributes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from crisptree.inference import FlatTree


def digest(arrays: Iterable[Any]) -> str:
    """A checksum of arrays with their types and shapes."""
    total = hashlib.sha256()
    for array in map(np.ascontiguousarray, arrays):
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(str(array.tolist()).encode() if array.dtype.kind in "OU" else array.tobytes())
    return total.hexdigest()[:16]


def trees_of(model: Any) -> list[Any]:
    """All deterministic trees: those of a forest, or the final tree, the greedy tree and those of earlier stages."""
    if hasattr(model, "forest_"):
        return list(model.forest_.trees)
    return [model.tree_, model.greedy_tree_, *model.__dict__.get("earlier_trees_", [])]


def has_linear_leaves(model: Any) -> bool:
    return any(tree.is_linear for tree in trees_of(model))


def splits_of(tree: Any) -> list[np.ndarray]:
    if isinstance(tree, FlatTree):
        return [tree.weight, tree.bias]
    return [value.detach().numpy() for _, value in sorted(tree.splits.parameters.items())]


def leaves_of(tree: Any) -> list[np.ndarray]:
    models = (getattr(tree, f"linear_{part}", None) for part in ("weight", "bias", "variance"))
    return [tree.leaves, *(array for array in models if array is not None)]


def statistics_of(tree: Any) -> list[np.ndarray]:
    counts = tree.statistics
    return [counts.node_counts, counts.gain, counts.soft_leaves, counts.score_spread]


def bits(model: Any) -> dict[str, str]:
    """Checksums of everything that was trained, part by part, so that a failure tells what has changed."""
    trees = trees_of(model)
    parts = {
        "structure": [side for tree in trees for side in (tree.structure.left, tree.structure.right)],
        "splits": [array for tree in trees for array in splits_of(tree)],
        "leaves": [array for tree in trees for array in leaves_of(tree)],
        "statistics": [array for tree in trees for array in statistics_of(tree)],
        "loss": [np.array([record.loss for record in model.history_])],
    }
    return {name: digest(arrays) for name, arrays in parts.items()}


def selected(model: Any) -> dict[str, str]:
    """The values that model selection has chosen."""
    return {name: repr(value) for name, value in sorted(model.__dict__.get("best_params_", {}).items())}


def found(model: Any) -> dict[str, Any]:
    """What is recorded of a fit without its data: bits, and what a user sees."""
    return {
        "bits": bits(model),
        "selected": selected(model),
        "epochs": len(model.history_),
        "leaves": [tree.structure.n_leaves for tree in trees_of(model)],
    }


def summarize(model: Any, X: Any, y: Any) -> dict[str, Any]:
    """What is recorded of a golden fit: ``score`` is accuracy or R² on the rows that it is given."""
    return {**found(model), "score": round(float(model.score(X, y)), 6)}


def assert_close(now: Any, before: Any, rtol: float, path: str = "") -> None:
    """Compare plain values of JSON: floats up to a relative tolerance, all else exactly."""
    if isinstance(before, dict):
        assert isinstance(now, dict), path
        assert list(now) == list(before), path
        for key, value in before.items():
            assert_close(now[key], value, rtol, f"{path}.{key}")
    elif isinstance(before, list):
        assert isinstance(now, list), path
        assert len(now) == len(before), path
        for place, value in enumerate(before):
            assert_close(now[place], value, rtol, f"{path}[{place}]")
    elif isinstance(before, float):
        assert now == pytest.approx(before, rel=rtol, abs=1e-12), path
    else:
        assert now == before, path
