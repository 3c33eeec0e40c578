"""Parameters that may be "auto": which are unresolved, and the selected values or fallbacks in their place."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

from crisptree.inference.finalization import (
    SomeTree,
    constrain_monotonic,
    prune,
    select_alpha,
    select_strength,
    shrink,
)
from crisptree.inference.flat_tree import has_linear_leaves

if TYPE_CHECKING:
    from crisptree.learning.samples import RowSet, TrainingTask

FALLBACKS: dict[str, Any] = {
    "split": "oblique",
    "input_noise": 0.3,
    "l1": 0.0,
    "leaf_model": "constant",
    "shrinkage": 0.0,
}
"""Values in place of "auto" where nothing is selected, such as on too few rows."""

OBLIQUE_DEPTH = {"classes": 14, "soft_classes": 14, "gaussians": 8}
"""max_depth="auto" of forests for hyperplanes, by target; CART's thresholds then have no limit."""

TREE_DEPTH = 8
"""max_depth="auto" of single trees where nothing is selected."""

MIXED = "mixed"
"""split of regression forests whose trees have hyperplanes and thresholds in turn."""

TRIAL_SHRINKAGE = 3.0
"""Shrinkage of the leaf tables of trials, in rows of mean weight: probabilities and means of small leaves are compared
as a fit would leave them."""

SELECTED = ("split", "input_noise", "l1", "shrinkage")
"""Parameters whose "auto" starts a selection; max_depth, leaf_model and scale are resolved along with them."""


def is_auto(parameters: Mapping[str, Any], name: str) -> bool:
    """Return True if a parameter is "auto"."""
    return isinstance(parameters.get(name), str) and parameters[name] == "auto"


def is_unresolved(parameters: Mapping[str, Any]) -> bool:
    """Return True if a parameter is to be selected on held-out rows."""
    return any(is_auto(parameters, name) for name in SELECTED) or is_leaf_penalty_unresolved(parameters)


def is_leaf_penalty_unresolved(parameters: Mapping[str, Any]) -> bool:
    """Return True if the penalty of linear leaves is to be selected."""
    return has_linear_leaves(parameters) and is_auto(parameters, "leaf_l2")


def has_candidates(parameters: Mapping[str, Any]) -> bool:
    """Return True if there are candidates for this kind of tree: greedy growth of hyperplanes or thresholds."""
    if parameters["grow"] != "greedy" or callable(parameters["split"]):
        return False
    return bool(parameters["split"] != "conv" and parameters["max_depth"] != 0)


def resolve_scale(
    parameters: Mapping[str, Any], image_shape: tuple[int, ...] | None, *, is_sparse: bool = False
) -> str | None:
    """Return the scale that training starts with: for "auto" one per column of a table.

    The pixels of an image share a unit, and so do the counts or indicators of sparse rows: scaled by its own spread, a
    feature that few rows have would be the largest of all.
    """
    scale: str | None = parameters["scale"]
    return scale if scale != "auto" else "feature" if image_shape is None and not is_sparse else "global"


def resolve_depth(parameters: Mapping[str, Any], target: str) -> dict[str, Any]:
    """Replace max_depth="auto" by the depth of hyperplanes for a target of that name."""
    if not is_auto(parameters, "max_depth"):
        return dict(parameters)
    return dict(parameters) | {"max_depth": OBLIQUE_DEPTH[target] if "n_estimators" in parameters else TREE_DEPTH}


def retain_selected(selected: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the selected values that still hold when a tree is grown further: not its depth, nor what is set now."""
    names = {name for name in selected if is_auto(parameters, name)}
    if is_auto(parameters, "split") or is_auto(parameters, "leaf_model") or parameters["split"] == "axis":
        names |= {"finetune_epochs", "min_samples_leaf"}
    return {name: value for name, value in selected.items() if name in names}


def apply_selected(
    parameters: Mapping[str, Any],
    selected: Mapping[str, Any],
    image_shape: tuple[int, ...] | None,
    *,
    is_sparse: bool = False,
) -> dict[str, Any]:
    """Replace "auto" by the selected values, or by fallbacks where nothing is selected."""
    values = dict(parameters)
    fallbacks = dict(FALLBACKS)
    has_closed_form_noise = parameters["split"] in ("auto", "oblique", "axis")
    is_annealed = parameters["grow"] in ("greedy", "balanced")
    if not (has_closed_form_noise and is_annealed):
        fallbacks["input_noise"] = 0.0
    values["scale"] = resolve_scale(parameters, image_shape, is_sparse=is_sparse)
    for name, value in (fallbacks | dict(selected)).items():
        if is_auto(parameters, name) or (name in selected and name == "max_depth"):
            values[name] = value
    if "finetune_epochs" in selected:
        values["finetune_epochs"] = selected["finetune_epochs"]
    # Candidates of thresholds are grown by CART and not finetuned; without candidates, split="axis" is trained jointly.
    is_cart = parameters["split"] == "auto" or "finetune_epochs" in selected
    if is_cart and values["split"] == "axis" and values["max_depth"] != 0:
        values["grow"] = "cart"
        if isinstance(values["min_samples_leaf"], Integral):
            values["min_samples_leaf"] = max(values["min_samples_leaf"], selected.get("min_samples_leaf", 1))
    return values


def list_changes(
    parameters: Mapping[str, Any], selected: Mapping[str, Any], target: str, image_shape: tuple[int, ...] | None
) -> dict[str, Any]:
    """Return the values to set so that a fit selects nothing and trains what was selected.

    The inverse of ``apply_selected``: an estimator that is given them has its parameters.
    """
    limited = resolve_depth(parameters, target)
    resolved = apply_selected(limited, selected, image_shape)
    changes = {name: value for name, value in resolved.items() if value is not limited[name] and value != limited[name]}
    # "auto" depends on the kind of rows.
    changes = {name: changes[name] for name in changes if name in selected or name != "scale"}
    if is_auto(parameters, "shrinkage") and "shrinkage" not in selected:
        changes["shrinkage"] = 0.0 if has_linear_leaves(resolved) else TRIAL_SHRINKAGE
    return changes


def is_postprocessing_unresolved(parameters: Mapping[str, Any]) -> bool:
    """Return True if pruning or shrinkage is to be resolved on rows that did not train the tree."""
    return "auto" in (parameters["ccp_alpha"], parameters["shrinkage"])


def disable_postprocessing(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a silent fit without pruning and shrinkage."""
    return {**parameters, "ccp_alpha": None, "shrinkage": 0.0, "callbacks": None, "verbose": False}


def postprocess(tree: SomeTree, parameters: Mapping[str, Any]) -> SomeTree:
    """Order the leaf tables of a trained tree, prune it and shrink its leaf tables by resolved parameters."""
    prior = parameters["leaf_prior"]
    tree = order(tree, parameters)
    if parameters["ccp_alpha"] is not None:
        tree = prune(tree, parameters["ccp_alpha"], prior)
    return shrink(tree, parameters["shrinkage"], prior)


def order(tree: SomeTree, parameters: Mapping[str, Any]) -> SomeTree:
    """Order the leaf tables of a tree where there are monotonic constraints."""
    features = parameters.get("monotonic_cst")
    return constrain_monotonic(tree, features) if features else tree


def resolve_postprocessing(
    tree: SomeTree, parameters: Mapping[str, Any], problem: TrainingTask, held_out: RowSet | None, mean_weight: float
) -> dict[str, Any]:
    """Resolve "auto" of pruning, then of shrinkage, on held-out rows; in a process group one process does it for all.

    ``mean_weight`` is that of the training rows, the unit of the shrinkage strengths that are compared.
    """
    n_jobs, prior = parameters["n_jobs"], parameters["leaf_prior"]

    def select() -> dict[str, Any]:
        assert held_out is not None
        rows = (held_out.X, held_out.y, held_out.weight)
        selected = {name: parameters[name] for name in ("ccp_alpha", "shrinkage")}
        if selected["ccp_alpha"] == "auto":
            selected["ccp_alpha"] = select_alpha(tree, *rows, n_jobs=n_jobs)
        if selected["shrinkage"] == "auto":
            pruned = postprocess(tree, {**parameters, **selected, "shrinkage": 0.0})
            strength = select_strength([(pruned, rows)], prior, mean_weight, n_jobs)
            selected["shrinkage"] = strength
        return selected

    return {**parameters, **(problem.compute_once(select) if is_postprocessing_unresolved(parameters) else {})}
