"""Splits and leaves as text: conditions on one column, weighted sums, and one sentence for every leaf.

The condition of a split is about a column of the table wherever it can be: a range of numbers ("months ≤ 6"), levels of
a category ("plan in {basic, pro}") or, for a weighted sum of several columns, the comparison with its threshold. The
conditions along a path on one column, or on one sum, are merged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from crisptree.inference import FlatTree
from crisptree.inspection.display import format_number, format_short, sanitize_names
from crisptree.inspection.linear_splits import SplitRule, compute_effects, make_split_rule
from crisptree.inspection.model_view import InputColumn, ModelView, require_linear_splits

FALSE, TRUE, KNOWN, MISSING = "false", "true", "known", "missing"

MAX_TERMS_ON_PATH = 12
"""Terms of all sums in a sentence that are not shown whole."""


class Condition:
    """What a row must satisfy; ``lines`` end with the comparison, and ``str`` joins them."""

    name: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.lines)


@dataclass(frozen=True)
class RangeCondition(Condition):
    """low < x ≤ high; ``has_low`` and not ``has_high`` turn the bounds around.

    Examples
    --------
    >>> print(RangeCondition("age", low=3.0).merge(RangeCondition("age", low=5.5)))
    age > 5.5
    >>> print(RangeCondition("age", low=5.0, is_whole=True).merge(RangeCondition("age", high=12.0, is_whole=True)))
    age between 6 and 12
    >>> print(RangeCondition("income", high=87999.0, is_whole=True))
    income < 88000
    """

    name: str
    low: float = -math.inf
    high: float = math.inf
    has_low: bool = False
    has_high: bool = True
    is_whole: bool = False
    decimals: int = 4

    def merge(self, other: Self) -> Self:
        """Return the values that satisfy both."""
        low, has_low = max((self.low, not self.has_low), (other.low, not other.has_low))
        high, has_high = min((self.high, self.has_high), (other.high, other.has_high))
        return replace(self, low=low, has_low=not has_low, high=high, has_high=has_high)

    @property
    def lines(self) -> tuple[str, ...]:  # type: ignore[override]
        """The name, and what must hold."""
        low, high = (self._format(bound) for bound in (self.low, self.high))
        if math.isinf(self.low):
            if self.is_whole and _is_rounder(self.high + 1, self.high):
                return self.name, f"< {self._format(self.high + 1)}"
            return self.name, f"{'≤' if self.has_high else '<'} {high}"
        if math.isinf(self.high):
            if self.is_whole and _is_rounder(self.low + 1, self.low):
                return self.name, f"≥ {self._format(self.low + 1)}"
            return self.name, f"{'≥' if self.has_low else '>'} {low}"
        if self.is_whole:
            low = self._format(self.low + 1)
        return self.name, f"= {high}" if self.is_whole and low == high else f"between {low} and {high}"

    def _format(self, bound: float) -> str:
        return f"{bound:.0f}".replace("-", "−") if self.is_whole else format_short(bound, self.decimals)


def _is_rounder(whole: float, other: float) -> bool:
    """Return True if a whole number has at least two significant digits fewer than another."""
    digits, other_digits = (len(f"{abs(value):.0f}".rstrip("0")) for value in (whole, other))
    return digits + 2 <= other_digits


@dataclass(frozen=True)
class LevelCondition(Condition):
    """One of some levels of a column.

    Examples
    --------
    >>> plans = ("basic", "plus", "pro", "gold")
    >>> print(LevelCondition("plan", plans, ("basic", "pro")))
    plan in {basic, pro}
    >>> print(LevelCondition("plan", plans, ("basic", "plus", "pro")))
    plan is not gold
    >>> print(LevelCondition("plan", (*plans, "none"), ("basic", "plus", "none")))
    plan not in {pro, gold}
    """

    name: str
    levels: tuple[str, ...]
    allowed: tuple[str, ...]
    relation: str = "is"

    def merge(self, other: Self) -> Self:
        """Return the levels that satisfy both."""
        return replace(self, allowed=tuple(level for level in self.allowed if level in other.allowed))

    @property
    def lines(self) -> tuple[str, ...]:  # type: ignore[override]
        """The name, and what must hold."""
        if len(self.allowed) == 1:
            return self.name, f"{self.relation} {self.allowed[0]}"
        refused = [level for level in self.levels if level not in self.allowed]
        if len(refused) == 1:
            return self.name, f"{self.relation} not {refused[0]}"
        if 1 < len(refused) < len(self.allowed):
            return self.name, f"not in {{{', '.join(refused)}}}"
        return self.name, f"in {{{', '.join(self.allowed)}}}"


@dataclass(frozen=True)
class SumCondition(RangeCondition):
    """The range of a weighted sum of several columns, whose ``terms`` have these ``features``; ``more`` counts others.

    Examples
    --------
    >>> age = SumCondition("2 × age + fee", low=3.0, terms=("2 × age", "+ fee"))
    >>> print(age.merge(SumCondition("2 × age + fee", high=7.0, terms=("2 × age", "+ fee"))))
    2 × age + fee between 3 and 7
    """

    terms: tuple[str, ...] = ()
    features: tuple[int, ...] = ()
    more: str = ""

    @classmethod
    def of(cls, rule: SplitRule, names: list[str], digits: int) -> SumCondition:
        """Make the condition of the rows that satisfy a rule."""
        terms, more = rule.format_terms(names, digits)
        is_above, features = rule.sign in (">", "≥"), tuple(feature for _, feature in rule.terms)
        return cls(
            " ".join(terms),
            rule.threshold if is_above else -math.inf,
            math.inf if is_above else rule.threshold,
            has_low=rule.sign == "≥",
            has_high=rule.sign != "<",
            decimals=max(digits, 4),
            terms=terms,
            features=features,
            more=more,
        )

    @property
    def lines(self) -> tuple[str, ...]:  # type: ignore[override]
        """One line for each term, and one for the range."""
        return *self.terms, f"{self.more}{super().lines[1]}"


def describe_split(view: ModelView, split: int, terms: int | None = 3, decimals: int = 3) -> str:
    """Describe the rows that a linear split sends right."""
    return str(make_condition(view, split, goes_right=True, terms=terms, decimals=decimals))


def split_lines(
    view: ModelView, split: int, terms: int | None = 3, decimals: int = 3
) -> tuple[list[tuple[str, float]], str]:
    """Return the terms of a linear split with their effects, and the comparison by which rows go right.

    The only term of a condition on one column is its name, with the effect 0.
    """
    tree, condition = (
        require_linear_splits(view.tree, "a rule"),
        make_condition(view, split, goes_right=True, terms=terms, decimals=decimals),
    )
    *texts, comparison = condition.lines
    effects = [0.0] * len(texts)
    if isinstance(condition, SumCondition):
        effects = compute_effects(tree, split)[list(condition.features)].tolist()
        if not tree.weight[split].any():
            comparison = "no weights: all rows go one way"
    return list(zip(texts, effects, strict=True)), comparison


def make_condition(
    view: ModelView, split: int, *, goes_right: bool, terms: int | None = 3, decimals: int = 3
) -> Condition:
    """Make the condition of one side of a linear split, with the most influential ``terms`` of a sum."""
    tree = require_linear_splits(view.tree, "a sentence")
    used = np.flatnonzero(tree.weight[split])
    if terms != 0 and len(used):
        columns = [column for column in _readable_columns(view) if set(column.all_features) & set(used.tolist())]
        if len(columns) == 1:
            condition = _make_level_condition(view, tree, split, columns[0], goes_right)
            if condition is not None:
                return condition
        if len(used) == 1:
            return _make_range(view, tree, split, int(used[0]), goes_right, decimals)
    rule = make_split_rule(tree, split, terms)
    if rule.terms and rule.terms[0][0] < 0:
        rule = rule.negate()
    return SumCondition.of(rule if goes_right else rule.complement(), view.feature_names, decimals)


def uses_one_column(view: ModelView, split: int) -> bool:
    """Return True if the condition of a split is about one column, not about a sum of features."""
    tree = view.tree
    if not isinstance(tree, FlatTree) or not tree.weight[split].any():
        return False
    return not isinstance(make_condition(view, split, goes_right=True), SumCondition)


def _readable_columns(view: ModelView) -> tuple[InputColumn, ...]:
    """Return the columns of the table; the features alone where a caller has named these."""
    stored = view.preprocessing
    if stored is None:
        return view.columns
    if sanitize_names(stored.feature_names) == view.feature_names:
        return view.columns
    return tuple(InputColumn(name, "number", feature) for feature, name in enumerate(view.feature_names))


def _make_range(
    view: ModelView, tree: FlatTree, split: int, feature: int, goes_right: bool, decimals: int
) -> RangeCondition:
    """Make the condition of a threshold on one number; of whole numbers the bounds are whole too."""
    weight, bias = float(tree.weight[split, feature]), float(tree.bias[split])
    threshold, statistics = -bias / weight + 0.0, tree.statistics
    is_whole = statistics.whole is not None and bool(statistics.whole[feature])
    is_above, name = (weight > 0) == goes_right, view.feature_names[feature]
    is_strict = goes_right
    if is_whole:
        bound = math.floor(threshold) if is_strict == is_above else math.ceil(threshold) - 1
        low, high = (float(bound), math.inf) if is_above else (-math.inf, float(bound))
        return RangeCondition(name, low, high, is_whole=True)
    if is_above:
        return RangeCondition(name, low=threshold, has_low=not is_strict, decimals=max(decimals, 4))
    return RangeCondition(name, high=threshold, has_high=not is_strict, decimals=max(decimals, 4))


def _make_level_condition(
    view: ModelView, tree: FlatTree, split: int, column: InputColumn, goes_right: bool
) -> LevelCondition | None:
    """Make the condition of a split on one column of levels; None for one of numbers.

    A missing value is a level. Levels that training did not have, whose indicators are all 0, are not mentioned.
    """
    statistics, weight = tree.statistics, tree.weight[split].astype(np.float64)
    features, states, relation = column.all_features, np.eye(len(column.all_features)), "is"
    lowest, highest, whole = statistics.lowest, statistics.highest, statistics.whole
    if column.kind == "category":
        levels = [*sanitize_names(column.categories), *([MISSING] if column.missing else [])]
    elif column.missing and not weight[column.feature]:
        levels, states = [KNOWN, MISSING], np.array([[0.0, 0.0], [0.0, 1.0]])
    elif column.missing:
        return None
    elif column.kind == "boolean":
        levels, states = [FALSE, TRUE], np.array([[0.0], [1.0]])
    elif lowest is not None and highest is not None and whole is not None:
        if not (whole[column.feature] and (lowest[column.feature], highest[column.feature]) == (0, 1)):
            return None
        levels, states, relation = ["0", "1"], np.array([[0.0], [1.0]]), "="
    else:
        return None
    above = states @ weight[features] + float(tree.bias[split]) > 0
    if above.all() or not above.any():
        return None
    allowed = tuple(level for level, right in zip(levels, above, strict=True) if right == goes_right)
    return LevelCondition(column.name, tuple(levels), allowed, relation)


def _is_partial(condition: Condition) -> bool:
    return isinstance(condition, SumCondition) and bool(condition.more)


def describe_path(view: ModelView, leaf: int, terms: int | None = 3, decimals: int = 3) -> str:
    """Describe the rows that reach a leaf; conditions on one column or sum are merged. Empty for a tree of one leaf.

    The more sums there are that have further terms, the fewer terms of these are shown.
    """

    def conditions(shown: int | None) -> list[tuple[int, Condition]]:
        return [
            (split, make_condition(view, split, goes_right=goes_right, terms=shown, decimals=decimals))
            for split, goes_right in view.tree.structure.path(leaf)
        ]

    path = conditions(terms)
    n_partial = sum(_is_partial(condition) for _, condition in path)
    if terms and n_partial * terms > MAX_TERMS_ON_PATH:
        shorter = conditions(max(1, MAX_TERMS_ON_PATH // n_partial))
        path = [short if _is_partial(whole[1]) else whole for whole, short in zip(path, shorter, strict=True)]
    merged: dict[Any, Any] = {}
    for split, condition in path:
        key = split if _is_partial(condition) else (type(condition), condition.name)
        merged[key] = merged[key].merge(condition) if key in merged else condition
    return " and ".join(map(str, merged.values()))


def describe_leaf(view: ModelView, leaf: int, terms: int | None = 3, decimals: int = 3) -> str:
    """Describe a leaf in one sentence: the rows that reach it, its prediction and the number of training rows."""
    node = view.tree.structure.n_splits + leaf
    conditions, rows = describe_path(view, leaf, terms, decimals), view.count_rows(node)
    models = view.linear_leaf_terms(node, terms, decimals)
    if view.is_regression and models:
        sums = [" ".join(parts) for _, parts in models]
        if len(sums) > 1:
            sums = [f"{name} = {text}" for (name, _), text in zip(models, sums, strict=True)]
        predicted = f"{'; '.join(sums)} {_describe_residuals(view, node)}"
    elif view.is_regression:
        predicted = view.describe_node(node)
    else:
        label, share = view.rank_classes(node)[0]
        predicted = "; ".join([f"{label} with {share:.0%}", *(f"{name} = {' '.join(parts)}" for name, parts in models)])
    return f"{f'if {conditions}' if conditions else 'always'}: {predicted} ({rows})"


def _describe_residuals(view: ModelView, node: int) -> str:
    """Describe the standard deviation of the residuals of a linear leaf, in the units of y."""
    assert isinstance(view.tree, FlatTree)
    assert view.tree.linear_variance is not None
    unit = view.tree.statistics.y_unit
    scaled = np.sqrt(view.tree.linear_variance[node])
    spreads = np.where(scaled > 1e-9, scaled, 0.0) * (1.0 if unit is None else unit)
    return f"± {', '.join(format_number(float(spread), 2) for spread in spreads)}"


def describe_leaves(view: ModelView, terms: int | None = 3, decimals: int = 3) -> list[str]:
    """Describe every leaf in one sentence, from left to right."""
    leaves = view.tree.structure.leaves_left_to_right.tolist()
    return [describe_leaf(view, leaf, terms, decimals) for leaf in leaves]


def is_readable(view: ModelView, max_terms: int = 3, max_leaves: int = 16) -> bool:
    """Return True if sentences about the leaves are short enough to read: few leaves, few columns at every split."""
    tree = view.tree
    if not isinstance(tree, FlatTree) or tree.structure.n_leaves > max_leaves or view.image_shape is not None:
        return False
    columns = np.zeros(tree.n_features, dtype=np.intp)
    for number, column in enumerate(view.columns):
        columns[column.all_features] = number
    return all(len(set(columns[np.flatnonzero(weight)].tolist())) <= max_terms for weight in tree.weight)
