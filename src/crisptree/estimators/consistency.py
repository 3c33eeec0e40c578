"""Parameters that depend on each other: what one of them must be because of what another is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crisptree.estimators.constraints import check_constraints
from crisptree.estimators.parameters import RIVALS, Parameter
from crisptree.selection.parameters import MIXED

MODULE_FREE = ("auto", "oblique", "axis")

DEEPEST_BALANCED = 16


def check_parameters(declared: Mapping[str, Parameter], values: Mapping[str, Any]) -> None:
    """Hold every parameter to its rule, and those that depend on each other too."""
    for name, declaration in declared.items():
        if declaration.rule is not None:
            declaration.rule.check(name, values[name])
    _check_split(values)
    check_constraints(values)
    if values["grow"] == "balanced":
        _check_balanced(values)
    if values.get("shifts"):
        _check_shifts(values)
    if values.get("leaves") == "linear":
        _check_linear_leaves(values)


def _check_split(values: Mapping[str, Any]) -> None:
    split = values["split"]
    if split not in ("auto", "oblique") and values["roughness"] != 0:
        raise ValueError(
            "`roughness` must be 0 unless split='oblique': only hyperplanes have a weight image to smooth; "
            f"got roughness={values['roughness']!r}."
        )
    for name in ("l1", "input_noise"):
        if split not in (*MODULE_FREE, MIXED) and values[name] != "auto" and values[name] > 0:
            raise ValueError(f"`{name}` must be 0 for split modules; got {values[name]!r}. Use l2 instead.")
    if split == "axis" and values["grow"] == "axis_aligned" and values["algorithm"] != "non_greedy":
        return
    for name in ("grow", "algorithm"):
        if split not in ("auto", "oblique") and values[name] in (*RIVALS, "non_greedy"):
            raise ValueError(
                f"`split` must be 'oblique' for {name}={values[name]!r}, which works on hyperplanes; got {split!r}."
            )


LINEAR_LEAVES: dict[str, tuple[tuple[Any, ...], str]] = {
    "split": (
        MODULE_FREE,
        "Their models are of the features that hyperplanes see. Train modules with leaves='constant'.",
    ),
    "algorithm": (("em", "likelihood", "alternating"), "It bounds a loss of constant leaves. Take one of these."),
    "shifts": ((0,), "Their models are of pixels in their places. Set shifts=0, or leaves='constant'."),
    "prune": (
        (None,),
        "What a leaf saves is counted for constant ones. Limit max_depth or max_leaf_nodes, or raise leaf_penalty, "
        "which draws leaves to the nodes above; a fitted tree is made smaller by its cut(depth).",
    ),
}
"""What goes with linear leaves; why nothing else does, and what to do instead."""


def _check_linear_leaves(values: Mapping[str, Any]) -> None:
    for name, (possible, reason) in LINEAR_LEAVES.items():
        value = values[name]
        if callable(value) or value not in possible:
            words = " or ".join(map(repr, possible))
            raise ValueError(f"`{name}` must be {words} for leaves='linear'; got {value!r}. {reason}")


def _check_shifts(values: Mapping[str, Any]) -> None:
    if values["scale"] == "feature":
        raise ValueError(
            f"`scale` must be 'auto', 'global' or None for shifts={values['shifts']}, because a shifted pixel takes "
            "the place of one with another spread; got 'feature'."
        )
    for name in ("grow", "algorithm"):
        if values[name] in (*RIVALS, "non_greedy"):
            raise ValueError(
                f"`shifts` must be 0 for {name}={values[name]!r}, which takes rows as they are; got {values['shifts']}."
            )


def _check_balanced(values: Mapping[str, Any]) -> None:
    if values["max_depth"] is None or values["max_depth"] > DEEPEST_BALANCED:
        raise ValueError(
            f"`max_depth` must be a number of at most {DEEPEST_BALANCED} for grow='balanced', which builds "
            f"2^max_depth leaves; got {values['max_depth']!r}."
        )
    if values["max_leaf_nodes"] is not None:
        raise ValueError(
            "`max_leaf_nodes` must be None for grow='balanced', which builds all 2^max_depth leaves; "
            f"got {values['max_leaf_nodes']!r}."
        )
    if values.get("warm_start"):
        raise ValueError("`warm_start` must be False for grow='balanced': a complete tree does not grow on.")
