"""Rules for what methods are given, beside those of the parameters."""

from __future__ import annotations

from typing import Any

from crisptree.estimators.parameters import ClassifierParameters
from crisptree.estimators.rules import Rule, number, one_of, true_or_false, whole, word_or

ARGUMENTS: dict[str, Rule | None] = {
    **{name: declared.rule for name, declared in ClassifierParameters.PARAMETERS.items()},
    "alpha": number(0.0),
    "depth": whole(0),
    "coverage": Rule(
        lambda value: number(0.0, strict=True).holds(value) and value < 1, "a number between 0 and 1, neither of them"
    ),
    "max_terms": whole(1, none=True),
    "tolerance": number(0.0, high=1.0, none=True),
    "copies": word_or("auto", whole(0)),
    "memory": number(0.0),
    "resume": true_or_false(),
    "noise": number(0.0),
    "labels": one_of("hard", "sample", "soft"),
    "trust": Rule(
        lambda value: value is None or (number(0.0).holds(value) and value <= 1), "a number from 0 to 1 or None"
    ),
}
"""Rules for what methods are given, which may be called like a parameter."""


def check_argument(name: str, value: Any) -> None:
    """Hold an argument of a method to its rule."""
    rule = ARGUMENTS[name]
    assert rule is not None
    rule.check(name, value)
