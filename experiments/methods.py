"""The algorithms of the figure: what they are called and which estimator each one is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from crisptree import CrispTreeClassifier

ALGORITHMS = ("em", "alternating")
STAGES = ("greedy", "finetuned")
RIVALS = ("axis_aligned", "random", "oc1", "co2", "non_greedy")
PLAIN: dict[str, Any] = {"split": "oblique", "l1": 0.0, "input_noise": 0.0, "scale": "feature", "shrinkage": 0.0}
"""Nothing is left to a rival's fit to choose."""

RIVAL_STEPS: dict[str, Any] = {**PLAIN, "learning_rate_decay": "none", "upper_levels": None}
RATE = 0.02
SOFT = "soft"

SEARCHES = {
    "oc1": "every coefficient until none helps, up to 2000 tries a round",
    "co2": "nu by validation",
    "non_greedy": "nu and rate by validation, from the CO2 tree by gain",
}
"""How a rival is set up beyond its estimator's parameters; a cell of another set-up is run again."""


@dataclass(frozen=True)
class Method:
    """A line of the figure and a row of the tables."""

    name: str
    short: str
    family: str

    @property
    def label(self) -> str:
        """As page and figure call it: a rival is what we made of its description, not its authors' program."""
        return f"{self.short} (re-implemented)" if self.family == "rivals" else self.short


METHODS = {
    method.name: method
    for method in (
        Method("greedy_em", "Greedy (EM)", "ours"),
        Method("finetuned_em", "Finetuned (EM)", "ours"),
        Method("greedy_alternating", "Greedy (alternating)", "ours"),
        Method("finetuned_alternating", "Finetuned (alternating)", "ours"),
        Method("axis_aligned", "Axis-aligned", "rivals"),
        Method("random", "Random", "rivals"),
        Method("oc1", "OC1", "rivals"),
        Method("co2", "CO2", "rivals"),
        Method("non_greedy", "Non-greedy", "rivals"),
        Method(SOFT, "Soft tree (visits all leaves)", "soft"),
    )
}

NO_MATTER = ("device", "n_jobs", "verbose", "callbacks", "warm_start", "random_state")
"""Parameters that do not say what is trained; the seed stands beside them in a cell."""

SINCE_THEN: dict[str, Any] = {
    "learning_rate_decay": "none",
    "input_noise": 0.0,
    "ccp_alpha": None,
    "shrinkage": 0.0,
    "penalty_share": "rows",
    "finetune_steepness": "restart",
    "max_shift": 0,
    "sign_cst": None,
    "max_features_per_split": None,
    "interaction_cst": None,
    "categorical_features": "auto",
    "leaf_model": "constant",
    "leaf_l2": "auto",
    "upper_levels": None,
    "n_iter_no_change": 10,
    "optimizer": "adam",
}
"""Parameters that came after the first cells: with these values they train what was trained without them."""


def ours(stage: str, algorithm: str, depth: int, epochs: int, seed: int) -> CrispTreeClassifier:
    """The paper's protocol. The epochs that validation chose count for the growth and for the finetuning."""
    finetune_epochs = 0 if stage == "greedy" else epochs
    return CrispTreeClassifier.paper(
        algorithm=algorithm,
        max_depth=depth,
        epochs=epochs,
        finetune_epochs=finetune_epochs,
        random_state=seed,
        n_jobs=-1,
    )


class Bounded(NamedTuple):
    """What the rivals that lower a bound are set to: ν and the step, as a share of the ball's radius.

    Without a ν, CO2 tries 10, 100 and 1000 at every leaf, and the information gain on its training rows chooses.
    """

    nu: float | None = None
    rate: float = RATE

    def __str__(self) -> str:
        nu = "by gain" if self.nu is None else f"{self.nu:g}"
        return nu if self.rate == RATE else f"{nu}, rate {self.rate:g}"


NOTHING = Bounded()


def rival(name: str, depth: int, epochs: int, seed: int, bounded: Bounded = NOTHING) -> CrispTreeClassifier:
    """A rival with settings of its own; non-greedy training starts from the CO2 tree of its depth."""
    is_whole = name == "non_greedy"
    return CrispTreeClassifier.from_flat(
        grow="co2" if is_whole else name,
        algorithm="non_greedy" if is_whole else "em",
        nu=bounded.nu,
        learning_rate=bounded.rate,
        max_depth=depth,
        epochs=epochs,
        finetune_epochs=epochs if is_whole else 0,
        **RIVAL_STEPS,
        random_state=seed,
        n_jobs=-1,
    )


def soft(depth: int, epochs: int, seed: int) -> CrispTreeClassifier:
    """A complete tree trained by the likelihood alone, every split by every row."""
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
    """What a cell's configuration says about its estimator."""
    return told({name: value for name, value in model.flat_parameters().items() if name not in NO_MATTER})


def told(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters as a cell says them, the first ones too."""
    return {name: value for name, value in parameters.items() if name not in SINCE_THEN or value != SINCE_THEN[name]}
