"""Forests among models: their trees, and one tree as a model of its own, which knows names, columns and classes."""

from __future__ import annotations

import copy
from typing import Any

from crisptree.inference import CrispTree
from crisptree.view import view_of


def as_one_tree(model: Any) -> Any:
    """The model, or, of a forest, alone or at the end of a Pipeline, the same with its first tree in its place."""
    if hasattr(model, "named_steps"):
        *earlier, (name, last) = model.steps
        one = as_one_tree(last)
        if one is last:
            return model
        twin = copy.copy(model)
        twin.steps = [*earlier, (name, one)]
        return twin
    return model.tree(0) if "forest_" in getattr(model, "__dict__", {}) else model


def trees_of(model: Any) -> tuple[CrispTree, ...]:
    """All trees of a fitted model."""
    last = model
    while hasattr(last, "named_steps"):
        last = last.steps[-1][1]
    forest = getattr(last, "__dict__", {}).get("forest_")
    return (view_of(model, "an export").tree,) if forest is None else tuple(forest.trees)
