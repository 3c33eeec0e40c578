"""Capabilities: one table of the combinations of parameters, row sources and ensembles, and its checker.

docs/capabilities.md has the table; ``describe_capabilities`` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from crisptree.parameters.declaration import Parameter
from crisptree.parameters.rules import Rule, is_whole
from crisptree.selection.parameters import MIXED

MAX_BALANCED_DEPTH = 16


def values(*allowed: Any) -> Rule:
    """Make the rule that allows some values only."""
    *others, last = map(repr, allowed)
    text = f"{', '.join(others)} or {last}" if others else last
    return Rule(lambda value: not callable(value) and value in allowed, text)


HYPERPLANES = values("auto", "oblique")
LINEAR = values("auto", "oblique", "axis")
STEPS = values("em", "alternating", "likelihood")
CONSTANT = values("auto", "constant")
MINI_BATCHES = values("auto", "adam")
ONE_START = values("auto", 1)
GRADIENT_GROWTH = values("greedy", "balanced")
NONE, ZERO, FALSE = values(None), values(0), values(False)
EMPTY = Rule(lambda value: not value, "None")
ZERO_OR_AUTO = values("auto", 0)
ALL_FEATURES = Rule(
    lambda value: value in ("auto", None) or (isinstance(value, float) and value == 1.0), "'auto', None or 1.0"
)
FIXED_ALPHA = Rule(lambda value: value != "auto", "a number or None")

Values = Mapping[str, Any]

CONSTRAINTS = ("sign_cst", "max_features_per_split", "interaction_cst")


def are_constrained(parameters: Values) -> bool:
    """Return True if the weights of splits are constrained."""
    return any(parameters.get(name) for name in CONSTRAINTS)


class Capability(NamedTuple):
    """Requirements on parameters in one situation."""

    situation: str  # in the documentation
    phrase: str  # in errors, with the values of parameters in braces
    applies: Callable[[Values], bool]  # of parameters and the arguments of ``violations``
    requires: Mapping[str, Rule]
    reason: str  # and what to do instead


CAPABILITIES = (
    Capability(
        "split modules (`split='conv'` or a callable)",
        "split modules",
        lambda v: not LINEAR.holds(v["split"]) and v["split"] != MIXED,
        {"l1": ZERO_OR_AUTO, "input_noise": ZERO_OR_AUTO},
        "Their penalty is l2.",
    ),
    Capability(
        "splits that are no hyperplanes",
        "split={split!r}",
        lambda v: not HYPERPLANES.holds(v["split"]),
        {"spatial_penalty": ZERO},
        "Only hyperplanes have a weight image to smooth. Take split='oblique'.",
    ),
    Capability(
        "`grow='axis_aligned'`",
        "grow={grow!r}",
        lambda v: v["grow"] == "axis_aligned",
        {"split": LINEAR, "max_shift": ZERO},
        "It finds thresholds on rows as they are, and makes hyperplanes of them.",
    ),
    Capability(
        "`grow='random'`, `'oc1'` or `'co2'`",
        "grow={grow!r}",
        lambda v: v["grow"] in ("random", "oc1", "co2"),
        {"split": HYPERPLANES, "max_shift": ZERO},
        "It works on hyperplanes, and takes rows as they are.",
    ),
    Capability(
        "`algorithm='non_greedy'`",
        "algorithm={algorithm!r}",
        lambda v: v["algorithm"] == "non_greedy",
        {"split": HYPERPLANES, "max_shift": ZERO},
        "It bounds the hard loss of hyperplanes on rows as they are, without a steepness.",
    ),
    Capability(
        "`optimizer='lbfgs'`",
        "optimizer='lbfgs'",
        lambda v: v["optimizer"] == "lbfgs",
        {
            "split": HYPERPLANES,
            "algorithm": values("likelihood"),
            "spatial_penalty": ZERO,
            "max_shift": ZERO,
            "sign_cst": EMPTY,
            "early_stopping": FALSE,
            "device": values("auto", "cpu"),
        },
        "It minimises the likelihood of hyperplanes over full batches, on the CPU. Take optimizer='adam'.",
    ),
    Capability(
        "constraints (`sign_cst`, `max_features_per_split`, `interaction_cst`)",
        "`sign_cst`, `max_features_per_split` and `interaction_cst`",
        are_constrained,
        {"split": HYPERPLANES, "grow": GRADIENT_GROWTH, "algorithm": STEPS},
        "Constraints hold the weights of hyperplanes after every step.",
    ),
    Capability(
        "`grow='balanced'`",
        "grow='balanced'",
        lambda v: v["grow"] == "balanced",
        {
            "max_depth": Rule(
                lambda value: value == "auto" or (is_whole(value) and value <= MAX_BALANCED_DEPTH),
                f"'auto' or a number of at most {MAX_BALANCED_DEPTH}",
            ),
            "max_leaf_nodes": NONE,
            "warm_start": FALSE,
        },
        "It builds a complete tree of 2^max_depth leaves, which does not grow further.",
    ),
    Capability(
        "random shifts (`max_shift` above 0)",
        "max_shift={max_shift!r}",
        lambda v: bool(v.get("max_shift")),
        {"scale": values("auto", "global", None)},
        "A shifted pixel takes the place of one with another spread.",
    ),
    Capability(
        "linear leaves (`leaf_model='linear'`)",
        "leaf_model='linear'",
        lambda v: v.get("leaf_model") == "linear",
        {"split": LINEAR, "algorithm": STEPS, "max_shift": ZERO},
        "Their models are of the features that hyperplanes see, pixels in their places. Take leaf_model='constant' for "
        "anything else.",
    ),
    Capability(
        "pruning of linear leaves",
        "leaf_model='linear'",
        lambda v: v.get("leaf_model") == "linear",
        {"ccp_alpha": NONE},
        "What a leaf saves is counted for constant ones. Limit max_depth or max_leaf_nodes, raise leaf_l2, or "
        "truncate(depth) the fitted tree.",
    ),
    Capability(
        "rows that are no images",
        "rows that are no images",
        lambda v: v["is_image"] is False,
        {"spatial_penalty": ZERO, "max_shift": ZERO},
        "Say with `image_shape` how a row is an image, e.g. image_shape=(28, 28), or give X as (n, height, width).",
    ),
    Capability(
        "sparse rows",
        "sparse rows",
        lambda v: v["rows"] == "sparse",
        {
            "split": HYPERPLANES,
            "grow": GRADIENT_GROWTH,
            "algorithm": STEPS,
            "leaf_model": CONSTANT,
            "image_shape": NONE,
            "device": values("auto", "cpu"),
            "optimizer": MINI_BATCHES,
            "categorical_features": values("auto", None),
        },
        "Give X.toarray() where that fits into memory, or fewer features, such as those of a TruncatedSVD.",
    ),
    Capability(
        "rows in batches",
        "a fit on batches",
        lambda v: v["rows"] == "batches",
        {
            "split": HYPERPLANES,
            "grow": values("greedy"),
            "algorithm": values("likelihood"),
            "max_leaf_nodes": NONE,
            "optimizer": MINI_BATCHES,
            "n_init": ONE_START,
            "leaf_model": CONSTANT,
            "max_shift": ZERO,
            "image_shape": NONE,
            "warm_start": FALSE,
            **dict.fromkeys(CONSTRAINTS, EMPTY),
        },
        "Its rows are never all in memory at once.",
    ),
    Capability(
        "rows in batches without `eval_set`",
        "a fit on batches without `eval_set`",
        lambda v: v["rows"] == "batches" and not v["has_validation"],
        {"early_stopping": FALSE, "ccp_alpha": FIXED_ALPHA},
        "No rows are held out of batches. Give fit eval_set=(X, y), arrays in memory.",
    ),
    Capability(
        "process groups",
        "a fit by several processes",
        lambda v: v["rows"] == "process group",
        {
            "split": HYPERPLANES,
            "grow": values("greedy"),
            "algorithm": values("likelihood", "em", "alternating"),
            "optimizer": MINI_BATCHES,
            "n_init": ONE_START,
            "leaf_model": CONSTANT,
            "max_shift": ZERO,
            "warm_start": FALSE,
        },
        "No process has all rows, by which thresholds, baselines and the models of leaves are found.",
    ),
    Capability(
        "forests without `eval_set`",
        "a forest without `eval_set`",
        lambda v: v["is_forest"] and not v["has_validation"],
        {"early_stopping": FALSE},
        "Rows that a tree has not drawn score the forest. Give fit an eval_set.",
    ),
    Capability(
        "forests with `algorithm='non_greedy'`",
        "algorithm='non_greedy' in a forest",
        lambda v: v["is_forest"] and v["algorithm"] == "non_greedy",
        {"nu": Rule(lambda value: value is not None, "a number")},
        "No rows are held out to select it.",
    ),
    Capability(
        "forests whose splits are not found one by one: split modules, growth other than `'greedy'` and "
        "`'axis_aligned'`, `algorithm='non_greedy'`",
        "split={split!r}, grow={grow!r} and algorithm={algorithm!r}",
        lambda v: v["is_forest"] and not _draws_features(v),
        {"max_features": ALL_FEATURES},
        "Features are drawn for splits that are found one by one.",
    ),
)
"""In the order in which they are checked."""


def _draws_features(v: Values) -> bool:
    is_linear = LINEAR.holds(v["split"]) or v["split"] == MIXED
    return is_linear and v["grow"] in ("greedy", "axis_aligned") and STEPS.holds(v["algorithm"])


def check_parameters(declared: Mapping[str, Parameter], parameters: Values, **fit: Any) -> None:
    """Check every parameter by its rule, and all of them by the table; ``fit`` are arguments of ``violations``."""
    for name, declaration in declared.items():
        if declaration.rule is not None:
            declaration.rule.check(name, parameters[name])
    check_capabilities(parameters, **fit)


def check_capabilities(parameters: Values, **fit: Any) -> None:
    """Refuse unsupported combinations of parameters; ``fit`` are arguments of ``violations``."""
    for message in violations(parameters, **fit):
        raise ValueError(message)


def violations(
    parameters: Values,
    *,
    rows: str = "array",
    is_image: bool | None = None,
    is_forest: bool = False,
    has_validation: bool = True,
) -> Iterator[str]:
    """Describe the unsupported combinations of parameters.

    ``rows`` is "array", "sparse", "batches" or "process group"; ``is_image`` is None before X is read.
    """
    values = {
        **parameters,
        **{"rows": rows, "is_image": is_image, "is_forest": is_forest, "has_validation": has_validation},
    }
    for capability in CAPABILITIES:
        if capability.applies(values):
            for name, rule in capability.requires.items():
                if name in parameters and not rule.holds(parameters[name]):
                    yield (
                        f"`{name}` must be {rule.sentence} for {capability.phrase.format(**values)}; got "
                        f"{parameters[name]!r}. {capability.reason}"
                    )


def describe_capabilities() -> str:
    """Write the table as Markdown."""
    lines = ["| with | must be | because |", "|---|---|---|"]
    for capability in CAPABILITIES:
        needs = "; ".join(f"`{name}`: {rule.sentence}" for name, rule in capability.requires.items())
        lines.append(f"| {capability.situation} | {needs} | {capability.reason} |")
    return "\n".join(lines) + "\n"
