"""The parameters of forests, beside those of their trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crisptree.estimators.parameters import (
    ClassifierParameters,
    Declared,
    RegressorParameters,
    declare_parameters,
    parameter,
)
from crisptree.estimators.rules import Rule, number, split_rule, true_or_false, whole, word_or

MOST_TREES = 10_000

SHARE = Rule(
    lambda value: value is None or whole(1).holds(value) or (number(0.0, strict=True).holds(value) and value <= 1.0),
    "None, a whole number of at least 1 or a share above 0 and up to 1",
)


@declare_parameters
class BaggingParameters(Declared):
    """What makes a forest of trees; ``CrispForestClassifier`` says what each of them does."""

    n_estimators: int | str = parameter(
        default=25,
        rule=word_or("auto", whole(1, high=MOST_TREES)),
        flag="--trees",
        help="Trees; auto adds some until rows that they have not seen gain no more.",
    )
    max_samples: int | float | None = parameter(
        default=None, rule=SHARE, flag="--max-samples", help="Rows drawn for each tree, or their share."
    )
    max_features: int | float | str | None = parameter(
        default="auto",
        rule=word_or("auto", word_or("sqrt", SHARE)),
        flag="--max-features",
        help="Features that a split may have, drawn for each: a number, a share or sqrt.",
    )

    max_depth: Any = parameter(
        default="auto",
        rule=word_or(
            "auto",
            whole(0, none=True, remark=" (0 gives a single leaf, None grows until leaves are pure)"),
        ),
        flag="--depth",
        help="Most splits on a path.",
    )
    shrinkage: Any = parameter(
        default=0.0, rule=number(0.0), flag="--shrinkage", help="How strongly leaf tables are drawn to those above."
    )


@declare_parameters
class ForestParameters(BaggingParameters, ClassifierParameters):
    """Those of ``CrispForestClassifier``: the trees' own, and what makes a forest of them."""

    bootstrap: bool | str = parameter(default="auto", rule=word_or("auto", word_or("balanced", true_or_false())))


@declare_parameters
class NumberForestParameters(BaggingParameters, RegressorParameters):
    """Those of ``CrispForestRegressor``."""

    split: str | Callable[[tuple[int, ...]], Any] = parameter(
        default="auto",
        rule=split_rule("auto", "oblique", "axis", "mixed", "conv"),
        flag="--split",
        help="What a split asks.",
    )
    bootstrap: bool | str = parameter(default="auto", rule=word_or("auto", true_or_false()))
