"""The methods of the figure: names and estimators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from crisptree import CrispTreeClassifier
from experiments.searches.growth import NonGreedyTraining, SearchGrowth

ALGORITHMS = ("em", "alternating")
STAGES = ("greedy", "finetuned", "continued")
"""Grown; finetuned with γ from 1 again, as ours; finetuned with γ from where growth ended, as the authors' code."""

BASELINES = ("axis_aligned", "random", "oc1", "co2", "non_greedy")
PLAIN: dict[str, Any] = {"split": "oblique", "l1": 0.0, "input_noise": 0.0, "scale": "feature", "shrinkage": 0.0}
"""Nothing is left to a baseline's fit to choose."""

UNUSED: dict[str, Any] = {"optimizer": "adam", "n_init": 1, "leaf_model": "constant", "steepness_step": 0.1}
"""Growth of baselines uses none of these. Cells of some versions hold "auto", which selects nothing for them."""

BASELINE_OPTIONS: dict[str, Any] = {**PLAIN, **UNUSED, "learning_rate_decay": "none", "upper_levels": None}
RATE = 0.02
SOFT = "soft"

SEARCHES = {
    "oc1": "every coefficient until none helps, up to 2000 tries a round",
    "co2": "nu by validation",
    "non_greedy": "nu and rate by validation, from the CO2 tree by gain",
}
"""How a baseline is set up beyond its estimator's parameters; a cell of another set-up is run again."""


@dataclass(frozen=True)
class Method:
    """A line of the figure and a row of the tables."""

    name: str
    short: str
    family: str

    @property
    def label(self) -> str:
        """Name on page and in figure, which marks baselines as re-implementations."""
        return f"{self.short} (re-implemented)" if self.family == "baselines" else self.short


METHODS = {
    method.name: method
    for method in (
        Method("greedy_em", "Greedy (EM)", "ours"),
        Method("finetuned_em", "Finetuned (EM)", "ours"),
        Method("continued_em", "Finetuned, γ continues (EM)", "ours"),
        Method("greedy_alternating", "Greedy (alternating)", "ours"),
        Method("finetuned_alternating", "Finetuned (alternating)", "ours"),
        Method("continued_alternating", "Finetuned, γ continues (alternating)", "ours"),
        Method("axis_aligned", "Axis-aligned", "baselines"),
        Method("random", "Random", "baselines"),
        Method("oc1", "OC1", "baselines"),
        Method("co2", "CO2", "baselines"),
        Method("non_greedy", "Non-greedy", "baselines"),
        Method(SOFT, "Soft tree (visits all leaves)", "soft"),
    )
}

IGNORED_PARAMETERS = ("device", "n_jobs", "verbose", "callbacks", "warm_start", "random_state")
"""Parameters that do not say what is trained; the seed stands beside them in a cell."""

PENALTIES = ("spatial_penalty", "l1", "l2")

EARLIER_DEFAULTS: dict[str, Any] = {
    "learning_rate_decay": "none",
    "input_noise": 0.0,
    "ccp_alpha": None,
    "shrinkage": 0.0,
    "penalty_share": "rows",
    "finetune_steepness": "restart",
    "max_shift": 0,
    "monotonic_cst": None,
    "max_features_per_split": None,
    "interaction_cst": None,
    "categorical_features": "auto",
    "leaf_model": "constant",
    "leaf_l2": "auto",
    "upper_levels": None,
    "effort": "default",
    "max_candidates": None,
    "round_splits": False,
    "scoring": None,
    "time_budget": None,
    "n_iter_no_change": 10,
    "optimizer": "adam",
    "n_init": 1,
}
"""Parameters that came after the first cells: with these values they train what was trained without them."""


def stage_of(method: str) -> str | None:
    """Return which of our own lines a method is, a value of ``STAGES``; None for other methods."""
    stage = method.partition("_")[0]
    return stage if stage in STAGES else None


def ours(method: str, depth: int, epochs: int, finetune_epochs: int, seed: int) -> CrispTreeClassifier:
    """Make a tree with the paper's protocol; without epochs of finetuning it is a greedy one."""
    stage, _, algorithm = method.partition("_")
    return CrispTreeClassifier.paper(
        algorithm=algorithm,
        max_depth=depth,
        epochs=epochs,
        finetune_epochs=finetune_epochs,
        finetune_steepness="continue" if stage == "continued" else "restart",
        random_state=seed,
        n_jobs=-1,
    )


class Bounded(NamedTuple):
    """What the baselines that lower a bound are set to: ν and the step, as a share of the ball's radius.

    Without a ν, CO2 tries 10, 100 and 1000 at every leaf, and the information gain on its training rows chooses.
    """

    nu: float | None = None
    rate: float = RATE

    def __str__(self) -> str:
        nu = "by gain" if self.nu is None else f"{self.nu:g}"
        return nu if self.rate == RATE else f"{nu}, rate {self.rate:g}"


DEFAULT_BOUND = Bounded()


def baseline(name: str, depth: int, epochs: int, seed: int, bounded: Bounded = DEFAULT_BOUND) -> CrispTreeClassifier:
    """Make a baseline with its own options; non-greedy training starts from the CO2 tree of its depth."""
    grow = NonGreedyTraining(bounded.nu) if name == "non_greedy" else SearchGrowth(name, bounded.nu)
    return CrispTreeClassifier.from_flat(
        grow=grow,
        algorithm="em",
        learning_rate=bounded.rate,
        max_depth=depth,
        epochs=epochs,
        finetune_epochs=0,
        **BASELINE_OPTIONS,
        random_state=seed,
        n_jobs=-1,
    )


def soft(depth: int, epochs: int, seed: int) -> CrispTreeClassifier:
    """Make a complete tree trained by the likelihood alone, every split on every row."""
    return CrispTreeClassifier.paper(
        grow="balanced",
        algorithm="likelihood",
        max_depth=depth,
        finetune_epochs=epochs,
        mass_threshold=0.0,
        random_state=seed,
        n_jobs=-1,
    )


def parameters(model: CrispTreeClassifier) -> dict[str, Any]:
    """Return the estimator's part of a cell's configuration, in the words of the first cells."""
    values = {name: value for name, value in model.flat_parameters().items() if name not in IGNORED_PARAMETERS}
    grow = values["grow"]
    if isinstance(grow, NonGreedyTraining):
        values |= {"grow": "co2", "algorithm": "non_greedy", "finetune_epochs": values["epochs"]}
    elif isinstance(grow, SearchGrowth):
        values["grow"] = grow.name
    values["nu"] = getattr(grow, "nu", None)
    if not any(values[penalty] for penalty in PENALTIES):
        del values["penalty_share"]  # which has nothing to share out
    return changed_values(values)


def effective_parameters(model: Any) -> dict[str, Any]:
    """Return all parameters of an estimator that say what is trained, for a record; functions by their name."""
    values = {name: value for name, value in model.flat_parameters().items() if name not in IGNORED_PARAMETERS}
    return {name: getattr(value, "__name__", value) for name, value in values.items()}


def comparable(record: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of a cell or selection, with the values that a baseline's "auto" stands for."""
    config = record["config"]
    method = METHODS.get(record["method"])
    if method is None or method.family != "baselines":
        return config
    values = {
        name: UNUSED[name] if value == "auto" and name in UNUSED else value
        for name, value in config["parameters"].items()
    }
    return config | {"parameters": changed_values(values)}


def changed_values(parameters: dict[str, Any]) -> dict[str, Any]:
    """Drop parameters that have the values of the first cells."""
    return {
        name: value
        for name, value in parameters.items()
        if name not in EARLIER_DEFAULTS or value != EARLIER_DEFAULTS[name]
    }
