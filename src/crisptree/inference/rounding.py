"""Splits in round numbers: weights of few digits, thresholds as round as the training rows allow."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from crisptree.inference.flat_tree import FlatTree

Doubles = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MAX_REROUTED = 0.002
"""Share of the rows of a split, by weight, that rounding may send to the other side."""

MAX_DIGITS = 4
"""Significant digits up to which weights are tried; splits that need more keep their weights."""

MAX_TERMS_TO_DROP_FROM = 4
"""Splits of at most so many terms are tried with each subset of them."""

MARGIN = 0.1
"""Share of the gap between two rows that a round threshold keeps from each of them."""


def round_splits(
    tree: FlatTree, X: npt.NDArray[np.float32], weight: Doubles, max_rerouted: float = MAX_REROUTED
) -> FlatTree:
    """Round weights and thresholds of all splits in raw units, from the root down.  (n, n_features), (n,)

    Of a split one weight becomes 1, terms that hardly matter go, the others get the fewest significant digits, and the
    threshold is the roundest number, by which at most ``max_rerouted`` of its rows change sides. Two indicators that
    add up to one on all rows, as those of a category of two levels, become one term. Leaf statistics are those of the
    splits before.
    """
    structure = tree.structure
    weights, biases = tree.weight.copy(), tree.bias.copy()
    rows_of = {0: np.arange(len(X))}
    for split in range(structure.n_splits):
        rows = rows_of.pop(split)
        used = np.flatnonzero(weights[split])
        if len(rows) and len(used):
            x = np.asarray(X[np.ix_(rows, used)], dtype=np.float64)
            before = weights[split, used].astype(np.float64), float(biases[split])
            goes_right = tree.scores(X[rows], split) > 0
            weights[split, used], biases[split] = round_split(x, *before, goes_right, weight[rows], max_rerouted)
        rounded = replace(tree, weight=weights, bias=biases)
        goes_right = rounded.scores(X[rows], split) > 0
        rows_of[int(structure.left_nodes[split])] = rows[~goes_right]
        rows_of[int(structure.right_nodes[split])] = rows[goes_right]
    return replace(tree, weight=weights, bias=biases)


def round_split(
    x: Doubles,
    weights: Doubles,
    bias: float,
    goes_right: Flags,
    row_weight: Doubles,
    max_rerouted: float = MAX_REROUTED,
) -> tuple[Doubles, float]:
    """Round a split of some features; return it as it is where no rounding keeps its rows.  (n, p), (p,), (n,), (n,)

    Examples
    --------
    >>> x = np.array([[1.0, 3.0], [2.0, 2.0], [6.0, 13.0], [9.0, 2.0], [2.0, 1.0]])
    >>> round_split(x, np.array([0.201, -0.1]), -0.27, np.array([False, False, False, True, True]), np.ones(5))
    (array([ 2., -1.]), -2.0)
    """
    merged, offset = _merge_complements(x, weights)
    used = np.flatnonzero(merged)
    if not len(used):
        return weights, bias
    sizes = range(1, len(used) + 1) if len(used) <= MAX_TERMS_TO_DROP_FROM else [len(used)]
    for size in sizes:
        for digits in range(1, MAX_DIGITS + 1):
            found = []
            for terms in combinations(used.tolist(), size):
                for rounded in _round_ratios(merged[list(terms)], digits):
                    threshold = find_round_threshold(x[:, terms] @ rounded, goes_right, row_weight, max_rerouted)
                    if threshold is not None:
                        found.append((_count_characters([*rounded, threshold]), terms, rounded, threshold))
            if found:
                _, terms, rounded, threshold = min(found, key=lambda one: one[0])
                result = np.zeros_like(weights)
                result[list(terms)] = rounded
                return result, -threshold + 0.0
            if size == 1:  # its weight is 1 with any number of digits
                break
    return merged, bias + offset


def _round_ratios(weights: Doubles, digits: int) -> list[Doubles]:
    """Round weights to so many digits where one of them, each in its turn, is 1."""
    return [np.array([float(f"{w / unit:.{digits}g}") for w in weights]) for unit in set(np.abs(weights).tolist())]


def _count_characters(numbers: list[float]) -> int:
    return sum(len(f"{abs(number):.6g}") for number in numbers)


def _merge_complements(x: Doubles, weights: Doubles) -> tuple[Doubles, float]:
    """Merge pairs of indicators a + b = 1 into one of them; return the weights and the change of the bias."""
    merged, offset = weights.copy(), 0.0
    is_indicator = ((x == 0) | (x == 1)).all(axis=0)
    for first in np.flatnonzero(is_indicator):
        for second in np.flatnonzero(is_indicator[first + 1 :]) + first + 1:
            if merged[first] and merged[second] and (x[:, first] + x[:, second] == 1).all():
                kept, gone = second, first
                if merged[first] * merged[second] > 0 and abs(merged[first]) > abs(merged[second]):
                    kept, gone = first, second  # no weight changes its sign, which monotonic constraints may fix
                offset += merged[gone]
                merged[kept] -= merged[gone]
                merged[gone] = 0.0
    return merged, offset


def find_round_threshold(
    scores: Doubles, goes_right: Flags, row_weight: Doubles, max_rerouted: float = MAX_REROUTED
) -> float | None:
    """Find the roundest threshold that keeps nearly all rows on their side; None where there is none.  (n,), (n,), (n,)

    Examples
    --------
    >>> find_round_threshold(np.array([17.0, 34_700.0, 35_190.0]), np.array([False, False, True]), np.ones(3))
    35000.0
    """
    order = np.argsort(scores, kind="stable")
    ordered, right, weight = scores[order], goes_right[order], row_weight[order]
    cuts = 1 + np.flatnonzero(np.diff(ordered) > 0)
    if not len(cuts):
        return None
    total = weight.sum()
    rerouted = np.cumsum(weight * right)[cuts - 1] + (weight * ~right).sum() - np.cumsum(weight * ~right)[cuts - 1]
    allowed = max(max_rerouted, 1e-9) * total
    best = int(rerouted.argmin())
    if rerouted[best] > allowed:
        return None
    first = last = best
    while first > 0 and rerouted[first - 1] <= allowed:
        first -= 1
    while last + 1 < len(cuts) and rerouted[last + 1] <= allowed:
        last += 1
    low, high = float(ordered[cuts[first] - 1]), float(ordered[cuts[last]])
    if (ordered == np.rint(ordered)).all() and high > 1:
        return round_within(low, high - 1)
    gap = high - low
    return round_within(low + MARGIN * gap, high - MARGIN * gap)


def round_within(low: float, high: float, near: float | None = None) -> float:
    """Return the number with the fewest digits between two bounds; of several the nearest to ``near``, or the middle.

    Examples
    --------
    >>> round_within(34_712.0, 35_190.0), round_within(0.12, 0.38), round_within(6.0, 6.0)
    (35000.0, 0.2, 6.0)
    >>> round_within(35_104.0, 35_500.0, near=35_104.0)
    35200.0
    """
    if high <= low:
        return low
    aim = (low + high) / 2 if near is None else near
    exponent = math.floor(math.log10(max(abs(low), abs(high), high - low)))
    while exponent > -300:
        step = 10.0**exponent if exponent >= 0 else 1 / 10.0**-exponent
        number = round(aim / step) * step
        candidates = [one for one in (number, number - step, number + step) if low <= one <= high]
        if candidates:
            best = min(candidates, key=lambda one: (abs(one - aim), one))
            return float(f"{best:.12g}")
        exponent -= 1
    return aim
