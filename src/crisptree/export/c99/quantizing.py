"""Trees without floating point: whole weights, whole inputs, and sums that 32 bits are proven to hold.

A split asks only for the sign of its score, so every split has a scale of its own. A feature x comes in as the whole
number q = round((x − offset) · factor); the offset goes into the bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crisptree.export.portable import ExportError, Portable, Ranges
from crisptree.export.stacked import Stacked, Terms

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LARGEST_SUM = 2**30 - 1
"""Of |weight| · |input|. A bias beyond that decides alone and is cut to one more, so that 31 bits hold all of it."""

MARGIN = 1 / 16
"""So much wider than in training, on either side, is the range of inputs; values beyond it are cut off."""

SMALLEST_STEP = 1e-30
"""Features that vary less count as constant; single precision could not hold their factor."""

STRETCHES = (1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0)
"""Scales to try beside the one at which the largest weight just fits: cutting off a few large weights may be better."""

PREFERRED = 2.0
"""Inputs as they are may be so much noisier than scaled ones: a caller need not do anything to them."""


@dataclass(frozen=True)
class Precision:
    """What weights and tables are made of: the largest weight, and what stands for the probability 1."""

    weight: int
    table: int


INPUTS = ("auto", "plain", "scaled")
PRECISIONS = {"int8": Precision(127, 255), "int16": Precision(32767, 65535)}


@dataclass(frozen=True, eq=False)
class Inputs:
    """How features become whole numbers: q = round((x − offset) · factor), cut off at ``low`` and ``high``."""

    type: str
    low: int
    high: int
    offset: Doubles
    factor: Doubles

    @property
    def reach(self) -> int:
        """The largest size of an input."""
        return max(-self.low, self.high)

    @property
    def is_plain(self) -> bool:
        """Whether a row comes in as it is."""
        return bool((self.offset == 0).all() and (self.factor == 1).all())

    def __call__(self, X: npt.NDArray[np.float32]) -> Integers:
        """The inputs that rows become, as the C function ``quantize`` computes them, in single precision.  (n, d)"""
        exact = (X - self.offset.astype(np.float32)) * self.factor.astype(np.float32)
        return np.clip(np.floor(exact + np.float32(0.5)), self.low, self.high).astype(np.int64)


@dataclass(frozen=True, eq=False)
class IntegerTrees:
    """The trees of a model in whole numbers; ``integer_trees`` makes them.

    Parameters
    ----------
    trees : Stacked
        The trees that they stand for.
    precision : str
        "int8" or "int16".
    inputs : Inputs
        How features become whole numbers.
    weight : ndarray of shape (n_splits, n_features)
        Whole weights, each split at its own scale.
    bias : ndarray of shape (n_splits,)
        Whole offsets.
    tables : ndarray of shape (n_leaves, n_outputs)
        Probabilities as whole numbers.
    noise : float
        Standard deviation of what rounding does to a score, in standard deviations of the score; mean over all splits.
    """

    trees: Stacked
    precision: str
    inputs: Inputs
    weight: Integers
    bias: Integers
    tables: Integers
    noise: float

    @cached_property
    def terms(self) -> Terms:
        return Terms.of(self.weight)

    @property
    def is_sparse(self) -> bool:
        """Whether gaps and weights take fewer bytes than all weights."""
        size = 1 if self.precision == "int8" else 2
        start = 2 if len(self.terms.gap) < 2**16 else 4
        return len(self.terms.gap) * (size + 1) + start * len(self.weight) < self.weight.size * size

    @cached_property
    def costs(self) -> Integers:
        """Multiply-adds of every split.  (n_splits,)"""
        return self.terms.costs() if self.is_sparse else np.full(len(self.weight), self.weight.shape[1])

    def largest_sum(self) -> int:
        """The largest size that any sum can have, at any point, for any inputs within their range."""
        sums = np.abs(self.weight).sum(axis=1) * self.inputs.reach + np.abs(self.bias)
        return int(sums.max(initial=0))

    def arrivals(self, X: npt.NDArray[np.float32]) -> Integers:
        """Where rows arrive in every tree, in exact arithmetic: what the C code does.  (n_trees, n)"""
        rows = self.inputs(X)
        return self.trees.arrivals(lambda split, at: rows[at] @ self.weight[split] + self.bias[split] > 0, len(X))

    def table_sums(self, arrivals: Integers) -> Integers:
        """What all trees say, added up.  (n_trees, n) → (n, n_outputs)"""
        return self.tables[arrivals].sum(axis=0)

    def classes(self, arrivals: Integers) -> Integers:
        """The class of every row.  (n_trees, n) → (n,)"""
        return self.trees.answers[arrivals[0]] if len(arrivals) == 1 else self.table_sums(arrivals).argmax(axis=1)


def integer_trees(model: Portable, precision: str, inputs: str = "auto") -> IntegerTrees:
    """The model in whole numbers; ``precision`` is "int8" or "int16".

    With "auto", inputs stay as they are where all features are whole numbers that fit a byte, and where that is hardly
    noisier than to bring all features to one range; "plain" and "scaled" insist on one of them.
    """
    if inputs not in INPUTS:
        raise ExportError(f"`inputs` must be one of {', '.join(INPUTS)}; got {inputs!r}.")
    if precision not in PRECISIONS:
        raise ExportError(f"`integer` must be one of {', '.join(PRECISIONS)}; got {precision!r}.")
    if "linear" in model.uses:
        raise ExportError(
            "whole numbers are for leaves that say one table each; the models of leaves='linear' need floating point. "
            "Export without `integer`, or train with leaves='constant'."
        )
    if model.ranges is None:
        raise ExportError(
            "whole numbers need the range of every feature in training, and this model does not know them: it was "
            "trained by an earlier version. Train it again, or export to C with floating point."
        )
    trees = Stacked.of(model)
    plain = None if inputs == "scaled" else _plain(model.ranges)
    as_they_are = None if plain is None else _with_inputs(model, trees, precision, plain)
    if inputs == "plain":
        if as_they_are is None:
            raise ExportError(
                "inputs='plain' needs features that were whole numbers from 0 to 255, or -128 to 127, in training; "
                "those of this model were not. Leave it at 'auto'."
            )
        return as_they_are
    ways = [_with_inputs(model, trees, precision, way) for way in _scaled(model.ranges, precision)]
    scaled = min(ways, key=lambda way: way.noise)
    if as_they_are is not None and as_they_are.noise <= PREFERRED * scaled.noise:
        return as_they_are
    return scaled


def _plain(ranges: Ranges) -> Inputs | None:
    """Inputs as they are, where one byte holds them all."""
    low, high = ranges.lowest.min(), ranges.highest.max()
    zeros, ones = np.zeros_like(ranges.lowest), np.ones_like(ranges.lowest)
    if ranges.whole.all() and low >= 0 and high <= 255:
        return Inputs("uint8_t", 0, 255, zeros, ones)
    if ranges.whole.all() and low >= -128 and high <= 127:
        return Inputs("int8_t", -128, 127, zeros, ones)
    return None


def _scaled(ranges: Ranges, precision: str) -> list[Inputs]:
    """All features brought to one range, symmetric around zero: for int16, several ranges to choose from."""
    reaches = [127] if precision == "int8" else [2**bits - 1 for bits in range(9, 16)]
    found = []
    for reach in reaches:
        low, high = ranges.lowest, ranges.highest
        margin = np.where(ranges.whole, 0.0, MARGIN * (high - low))
        half = (high - low) / 2 + margin
        factor = np.divide(reach, half, out=np.ones_like(half), where=half > reach * SMALLEST_STEP)
        # Multiples of whole numbers are whole: such a feature loses nothing.
        exact = ranges.whole & (factor >= 1)
        factor = np.where(exact, np.floor(factor), factor)
        middle = low / 2 + high / 2
        offset = np.where(exact, np.floor(middle), middle)
        factor = np.where(exact, np.maximum(np.floor(reach / np.maximum(np.ceil(half), 1.0)), 1.0), factor)
        singles = [part.astype(np.float32).astype(np.float64) for part in (offset, factor)]
        found.append(Inputs("int8_t" if precision == "int8" else "int16_t", -reach, reach, *singles))
    return found


def _with_inputs(model: Portable, trees: Stacked, precision: str, inputs: Inputs) -> IntegerTrees:
    """Every split at the scale at which rounding its weights disturbs its score least."""
    assert model.ranges is not None
    ranges = model.ranges
    weight = trees.weight.astype(np.float64) / inputs.factor
    bias = trees.bias.astype(np.float64) + trees.weight.astype(np.float64) @ inputs.offset
    mean, spread = (ranges.mean - inputs.offset) * inputs.factor, ranges.spread * inputs.factor
    rounded = np.where(ranges.whole & (inputs.factor == np.floor(inputs.factor)), 0.0, 1 / 12)
    whole, offsets, noises = np.zeros(weight.shape, dtype=np.int64), np.zeros(len(weight), dtype=np.int64), []
    for split, line in enumerate(weight):
        scale, whole[split] = _best_scale(line, spread, PRECISIONS[precision].weight, inputs.reach)
        # What rounding adds to the score of the mean row, the bias takes back.
        exact = scale * bias[split] + (scale * line - whole[split]) @ mean
        reached = int(np.abs(whole[split]).sum()) * inputs.reach
        offsets[split] = int(np.clip(np.rint(exact), -reached - 1, reached + 1)) if reached else int(np.sign(exact))
        error = np.sqrt((((line - whole[split] / scale) * spread) ** 2 + line**2 * rounded).sum())
        noises.append(error / max(np.sqrt(((line * spread) ** 2).sum()), np.finfo(float).tiny))
    tables = trees.tables
    if model.task == "classification":
        tables = np.rint(tables * PRECISIONS[precision].table)
    found = IntegerTrees(
        trees, precision, inputs, whole, offsets, tables.astype(np.int64), float(np.mean(noises)) if noises else 0.0
    )
    assert found.largest_sum() <= 2**31 - 1, "a sum could overflow"
    return found


def _best_scale(weight: Doubles, spread: Doubles, largest: int, reach: int) -> tuple[float, Integers]:
    """The scale and the whole weights that disturb the score least, among those whose sums 31 bits hold."""
    size, total = float(np.abs(weight).max(initial=0.0)), float(np.abs(weight).sum())
    if size == 0:
        return 1.0, np.zeros(len(weight), dtype=np.int64)
    most = LARGEST_SUM // reach
    best: tuple[float, float, Integers] | None = None
    for stretch in STRETCHES:
        scale = min(stretch * largest / size, most / total)
        whole = np.clip(np.rint(scale * weight), -largest, largest).astype(np.int64)
        if np.abs(whole).sum() > most:  # by what rounding added
            whole = np.clip(np.trunc(scale * weight), -largest, largest).astype(np.int64)
        error = float((((weight - whole / scale) * spread) ** 2).sum())
        if best is None or error < best[0]:
            best = (error, scale, whole)
    assert best is not None
    return best[1], best[2]
