"""What becomes of a trained tree at the end of a fit: splits that do not pay go, tables are shrunk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from crisptree.inference.pruning import chosen_alpha, pruned_at
from crisptree.inference.shrinking import chosen_strength, shrunk
from crisptree.inference.statistics import SomeTree

if TYPE_CHECKING:
    from crisptree.learning.task import Part


def is_judged(parameters: Mapping[str, Any]) -> bool:
    """Whether rows that did not train the tree are to say how it is finished."""
    return "auto" in (parameters["prune"], parameters["shrinkage"])


def unfinished(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a fit that leaves the tree as it was trained, and that nobody hears of."""
    return {**parameters, "prune": None, "shrinkage": 0.0, "callbacks": None, "verbose": False}


def finished(tree: SomeTree, parameters: Mapping[str, Any]) -> SomeTree:
    """The tree pruned and its tables shrunk, where the parameters say how much."""
    prior = parameters["leaf_prior"]
    if parameters["prune"] is not None:
        tree = pruned_at(tree, parameters["prune"], prior)
    return shrunk(tree, parameters["shrinkage"], prior)


def judged(tree: SomeTree, parameters: Mapping[str, Any], held: Part | None, unit: float) -> dict[str, Any]:
    """The parameters with numbers in the place of "auto": the price of a leaf first, then the strength of shrinkage.

    ``held`` are rows that did not train the tree; ``unit`` is what a training row weighs in the mean.
    """
    numbers = dict(parameters)
    if not is_judged(parameters):
        return numbers
    assert held is not None
    rows = (held.X, held.y, held.weight)
    if numbers["prune"] == "auto":
        numbers["prune"] = chosen_alpha(tree, *rows, n_jobs=parameters["n_jobs"])
    if numbers["shrinkage"] == "auto":
        smaller = finished(tree, {**numbers, "shrinkage": 0.0})
        numbers["shrinkage"] = chosen_strength(
            smaller, *rows, leaf_prior=parameters["leaf_prior"], unit=unit, n_jobs=parameters["n_jobs"]
        )
    return numbers
