"""The trees of a model, whether it is one or a forest, alone or at the end of a Pipeline."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import CrispTree
from crisptree.view import ModelView, view_of


def forest_of(model: Any) -> Any:
    """The trees that answer together (``inference.forest.CrispForest``), or None of a single one."""
    while hasattr(model, "named_steps"):
        model = model.steps[-1][1]
    return getattr(model, "forest_", None) if model is not None else None


def single(model: Any) -> Any:
    """The model itself, or with the first tree in place of a forest, which then is asked for names and columns."""
    if forest_of(model) is None:
        return model
    if hasattr(model, "named_steps"):
        twin = copy.copy(model)
        name, last = model.steps[-1]
        twin.steps = [*model.steps[:-1], (name, single(last))]
        return twin
    return model.tree(0)


def view_of_one(model: Any, purpose: str) -> ModelView:
    """A tree, or the first of a forest, as others see it."""
    return view_of(single(model), purpose)


def answers_of(tree: CrispTree) -> npt.NDArray[np.float64]:
    """What every leaf predicts with: class probabilities, or the means of numbers.  (n_leaves, n_outputs)"""
    answers = np.asarray(tree.labels())
    if answers.dtype.kind == "f":
        return answers.reshape(len(answers), -1)
    return tree.leaf_values()


def answers_of_forest(forest: Any, X: Any, n_jobs: int | None) -> npt.NDArray[np.float64]:
    """The mean over the trees of what their leaves predict with.  (n, n_features) → (n, n_outputs)"""
    values = np.asarray(forest.values(X, n_jobs))
    return np.asarray(forest.meaning.answers(values)) if is_regression(forest.trees[0]) else values


def is_regression(tree: CrispTree) -> bool:
    """Whether leaves hold numbers instead of classes."""
    return np.asarray(tree.labels()).dtype.kind == "f"
