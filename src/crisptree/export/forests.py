"""Forests among models: their trees, and one tree as a model of its own, which knows names, columns and classes."""

from __future__ import annotations

import copy
from typing import Any

from crisptree.inference import CrispTree
from crisptree.inspection import ModelView, view_model


def as_one_tree(model: Any) -> Any:
    """The model, or, of a forest, alone or at the end of a Pipeline, the same with its first tree in its place."""
    if hasattr(model, "best_estimator_"):
        return as_one_tree(model.best_estimator_)
    if hasattr(model, "named_steps"):
        *earlier, (name, last) = model.steps
        one = as_one_tree(last)
        if one is last:
            return model
        twin = copy.copy(model)
        twin.steps = [*earlier, (name, one)]
        return twin
    return model.tree(0) if "forest_" in getattr(model, "__dict__", {}) else model


def last_step(model: Any) -> Any:
    """The estimator itself, alone, at the end of a Pipeline or the best of a search."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "named_steps"):
            model = model.steps[-1][1]
        else:
            return model


def first_view(model: Any, purpose: str) -> ModelView:
    """The view of the model, of a forest that of its first tree."""
    return view_model(as_one_tree(model), purpose)


def n_targets_of(model: Any) -> int | None:
    """How many numbers a regression predicts; None for classes."""
    found: int | None = getattr(last_step(model), "__dict__", {}).get("n_outputs_")
    return found


def trees_of(model: Any) -> tuple[CrispTree, ...]:
    """All trees of a fitted model."""
    forest = getattr(last_step(model), "__dict__", {}).get("forest_")
    return (first_view(model, "an export").tree,) if forest is None else tuple(forest.trees)
