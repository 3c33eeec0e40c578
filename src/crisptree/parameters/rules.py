"""Rules of parameters: a predicate, and the sentence of its error."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np


class Rule(NamedTuple):
    """A predicate, its text in errors ("`name` must be ``sentence``"), and the allowed words, if any."""

    holds: Callable[[Any], bool]
    sentence: str
    words: tuple[str | None, ...] = ()

    def check(self, name: str, value: Any) -> None:
        """Raise an error unless the predicate holds."""
        if not self.holds(value):
            raise ValueError(f"`{name}` must be {self.sentence}; got {value!r}.")


def is_whole(value: Any) -> bool:
    """Return True for an integer that is no bool."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def whole(low: int, *, high: int | None = None, none: bool = False, remark: str = "") -> Rule:
    """Make the rule of an integer within bounds."""

    def holds(value: Any) -> bool:
        if value is None:
            return none
        return is_whole(value) and bool(value >= low) and (high is None or bool(value <= high))

    bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
    return Rule(holds, f"a whole number {bounds}" + (" or None" if none else "") + remark)


def number(low: float, *, strict: bool = False, high: float = 1e30, none: bool = False) -> Rule:
    """Make the rule of a finite number within bounds."""

    def holds(value: Any) -> bool:
        if value is None:
            return none
        if not isinstance(value, Real) or not math.isfinite(value):
            return False
        real = float(value)
        return (real > low if strict else real >= low) and real < high

    return Rule(holds, f"a number {'above' if strict else 'at least'} {low:g} and below {high:g}" + none * " or None")


def rows_or_fraction(low: int, *, below_one: bool = False) -> Rule:
    """Make the rule of a number or a fraction of rows, as in scikit-learn's trees."""
    counts = whole(low)

    def holds(value: Any) -> bool:
        if is_whole(value) or isinstance(value, bool | np.bool_) or not isinstance(value, Real):
            return counts.holds(value)
        return 0.0 < float(value) < 1.0 or (float(value) == 1.0 and not below_one)

    top = "below 1.0" if below_one else "at most 1.0"
    return Rule(holds, f"{counts.sentence}, or a fraction of the rows above 0.0 and {top}")


def one_of(*names: str | None) -> Rule:
    """Make the rule of one of some words."""

    def holds(value: Any) -> bool:
        return (value is None or isinstance(value, str)) and value in names

    return Rule(holds, "one of " + ", ".join(map(repr, names)), names)


def word_or(word: str, rule: Rule) -> Rule:
    """Make the rule of a word or of another rule."""
    return Rule(
        lambda value: (isinstance(value, str) and value == word) or rule.holds(value), f"{word!r} or {rule.sentence}"
    )


def true_or_false() -> Rule:
    """Make the rule of a bool."""
    return Rule(lambda value: isinstance(value, bool | np.bool_), "True or False")


def whole_numbers(n_values: tuple[int, ...] | None = None, *, different: bool = False) -> Callable[[Any], bool]:
    """Make the predicate of a tuple or list of positive integers, of one of the lengths."""

    def holds(value: Any) -> bool:
        return (
            isinstance(value, tuple | list)
            and (len(value) in n_values if n_values else len(value) > 0)
            and all(is_whole(item) and item > 0 for item in value)
            and (not different or len(set(value)) == len(value))
        )

    return holds


def split_rule(*names: str) -> Rule:
    """Make the rule of ``split``: one of some kinds, or a function that builds modules."""
    return Rule(
        lambda value: callable(value) or (isinstance(value, str) and value in names),
        ", ".join(map(repr, names)) + " or a function split(input_shape) that returns a torch.nn.Module",
        names,
    )


def columns_or_encoder() -> Rule:
    """Make the rule of ``categorical_features``."""

    def holds(value: Any) -> bool:
        if value is None or hasattr(value, "encoded"):
            return True
        if isinstance(value, str):
            return value == "auto"
        return isinstance(value, list | tuple) and all(isinstance(name, str) or is_whole(name) for name in value)

    return Rule(holds, "'auto', None, a list of columns or a TableEncoder")


def _is_column(value: Any) -> bool:
    return isinstance(value, str) or (is_whole(value) and value >= 0)


def _are_columns(value: Any) -> bool:
    return isinstance(value, tuple | list) and len(value) > 0 and all(map(_is_column, value))


SIGN_CST = Rule(
    lambda value: (
        value is None
        or (
            isinstance(value, dict)
            and all(map(_is_column, value))
            and all(is_whole(sign) and sign in (-1, 1) for sign in value.values())
        )
    ),
    'None or a dict of columns, by name or number, with 1 or -1 for each, such as {"age": 1, 3: -1}',
)

INTERACTION_CST = Rule(
    lambda value: (
        value is None or (isinstance(value, tuple | list) and len(value) > 1 and all(map(_are_columns, value)))
    ),
    'None or a list of two or more groups of columns, by name or number, such as [["age", "height"], [3, 4]]',
)
