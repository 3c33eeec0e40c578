"""Quantization of trees: integer weights, integer inputs, and sums that provably fit 32 bits.

A split needs only the sign of its score, so every split has a scale of its own. A feature x becomes the integer
q = round((x − offset) · factor); the offset goes into the bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from crisptree.export.c99.source import SparseTerms
from crisptree.export.portable import ExportError, FeatureRanges, Portable, StackedTrees

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MAX_INT32 = 2**31 - 1

MAX_SUM = 2**30 - 1
"""Of |weight| · |input|. A bias beyond that decides alone and is clipped to one more, so that 31 bits hold the sum."""

MARGIN = 1 / 16
"""The range of inputs is wider than in training by this share on either side; values beyond it are clipped."""

MIN_STEP = 1e-30
"""Features that vary less count as constant; single precision could not hold their factor."""

STRETCHES = (1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0)
"""Scales to try, relative to the one at which the largest weight just fits: clipping a few weights may be better."""

PLAIN_TOLERANCE = 2.0
"""Unscaled inputs are preferred if their noise is at most this multiple: a caller need not convert them."""


@dataclass(frozen=True)
class Precision:
    """Largest weight, and the integer that stands for the probability 1."""

    weight: int
    table: int


INPUTS = ("auto", "plain", "scaled")
INPUT_BITS = {"int8_t": 8, "int16_t": 16}
PRECISIONS = {"int8": Precision(127, 255), "int16": Precision(32767, 65535)}


@dataclass(frozen=True, eq=False)
class InputQuantization:
    """Quantization of features: q = round((x − offset) · factor), clipped to ``low`` and ``high``."""

    type: str
    low: int
    high: int
    offset: Doubles
    factor: Doubles

    @property
    def max_size(self) -> int:
        """Largest absolute value of an input in the range."""
        return max(-self.low, self.high)

    @property
    def max_of_type(self) -> int:
        """Largest absolute value that the type can hold."""
        return 255 if self.type == "uint8_t" else 2 ** (INPUT_BITS[self.type] - 1)

    @property
    def is_plain(self) -> bool:
        """True if features are used unscaled."""
        return bool((self.offset == 0).all() and (self.factor == 1).all())

    def __call__(self, X: npt.NDArray[np.float32]) -> Integers:
        """Quantize rows in single precision, as the C function ``quantize`` does.  (n, d)"""
        exact = (X - self.offset.astype(np.float32)) * self.factor.astype(np.float32)
        return np.clip(np.floor(exact + np.float32(0.5)), self.low, self.high).astype(np.int64)


@dataclass(frozen=True, eq=False)
class QuantizedTrees:
    """Quantized trees of a model; ``quantize`` makes them."""

    trees: StackedTrees  # the original trees
    precision: str  # "int8" or "int16"
    inputs: InputQuantization
    weight: Integers  # each split at its own scale  (n_splits, n_features)
    bias: Integers  # (n_splits,)
    tables: Integers  # probabilities as integers  (n_leaves, n_outputs)
    noise: float  # standard deviation of the rounding error of a score, in those of the score; mean over all splits

    @cached_property
    def terms(self) -> SparseTerms:
        return SparseTerms.of(self.weight)

    @property
    def is_sparse(self) -> bool:
        """True if sparse terms take fewer bytes than all weights."""
        size = 1 if self.precision == "int8" else 2
        start = 2 if len(self.terms.gap) < 2**16 else 4
        return len(self.terms.gap) * (size + 1) + start * len(self.weight) < self.weight.size * size

    @cached_property
    def costs(self) -> Integers:
        """Multiply-adds of every split.  (n_splits,)"""
        return self.terms.costs() if self.is_sparse else np.full(len(self.weight), self.weight.shape[1])

    def _max_sum(self, size: int) -> int:
        """Largest absolute value of any partial sum for inputs of at most this size."""
        sums = np.abs(self.weight).sum(axis=1) * size + np.abs(self.bias)
        return int(sums.max(initial=0))

    @cached_property
    def clips(self) -> bool:
        """True if the code must clip inputs to their range: other values of their type could overflow a sum."""
        return self._max_sum(self.inputs.max_of_type) > MAX_INT32

    @cached_property
    def max_sum(self) -> int:
        """Largest absolute value of any partial sum, for all values of the inputs' type."""
        return self._max_sum(self.inputs.max_size if self.clips else self.inputs.max_of_type)

    def route(self, X: npt.NDArray[np.float32]) -> Integers:
        """Leaf of rows in every tree, in exact arithmetic, as the C code computes it.  (n_trees, n)"""
        rows = self.inputs(X)
        return self.trees.route(lambda split, at: rows[at] @ self.weight[split] + self.bias[split] > 0, len(X))

    def classes(self, leaves: Integers) -> Integers:
        """Predicted class of every row.  (n_trees, n) → (n,)"""
        if len(leaves) == 1:
            return self.trees.leaf_classes[leaves[0]]
        return self.tables[leaves].sum(axis=0).argmax(axis=1)


def quantize(model: Portable, precision: str, inputs: str = "auto") -> QuantizedTrees:
    """Quantize a model; ``precision`` is "int8" or "int16".

    With "auto", inputs stay unscaled if all features are integers that fit a byte, and if that is hardly noisier than
    scaling all features to one range; "plain" and "scaled" force one of them.
    """
    if inputs not in INPUTS:
        raise ExportError(f"`inputs` must be one of {', '.join(INPUTS)}; got {inputs!r}.")
    if precision not in PRECISIONS:
        raise ExportError(f"`integer` must be one of {', '.join(PRECISIONS)}; got {precision!r}.")
    if "linear" in model.uses:
        raise ExportError(
            "`integer` supports constant leaves only; those of leaf_model='linear' need floating point. "
            "Export without `integer`, or train with leaf_model='constant'."
        )
    if model.ranges is None:
        raise ExportError(
            "`integer` needs the range of every feature in training, which this model does not have: it was trained by "
            "an earlier version. Train it again, or export to C with floating point."
        )
    trees = model.stacked
    plain = None if inputs == "scaled" else _unscaled(model.ranges)
    unscaled = None if plain is None else _quantize_splits(model, trees, precision, plain)
    if inputs == "plain":
        if unscaled is None:
            raise ExportError(
                "inputs='plain' needs features that were whole numbers from 0 to 255, or -128 to 127, in training; "
                "those of this model were not. Leave it at 'auto'."
            )
        return unscaled
    candidates = [_quantize_splits(model, trees, precision, scaling) for scaling in _scalings(model.ranges, precision)]
    scaled = min(candidates, key=lambda candidate: candidate.noise)
    if unscaled is not None and unscaled.noise <= PLAIN_TOLERANCE * scaled.noise:
        return unscaled
    return scaled


def _unscaled(ranges: FeatureRanges) -> InputQuantization | None:
    """Unscaled inputs, if one byte holds them all."""
    low, high = ranges.lowest.min(), ranges.highest.max()
    zeros, ones = np.zeros_like(ranges.lowest), np.ones_like(ranges.lowest)
    if ranges.whole.all() and low >= 0 and high <= 255:
        return InputQuantization("uint8_t", 0, 255, zeros, ones)
    if ranges.whole.all() and low >= -128 and high <= 127:
        return InputQuantization("int8_t", -128, 127, zeros, ones)
    return None


def _scalings(ranges: FeatureRanges, precision: str) -> list[InputQuantization]:
    """Return all features scaled to one symmetric range; for int16 several ranges to select from."""
    sizes = [127] if precision == "int8" else [2**bits - 1 for bits in range(9, 16)]
    result = []
    for size in sizes:
        low, high = ranges.lowest, ranges.highest
        margin = np.where(ranges.whole, 0.0, MARGIN * (high - low))
        half = (high - low) / 2 + margin
        factor = np.divide(size, half, out=np.ones_like(half), where=half > size * MIN_STEP)
        # Multiples of whole numbers are whole: such a feature loses nothing.
        exact = ranges.whole & (factor >= 1)
        factor = np.where(exact, np.floor(factor), factor)
        middle = low / 2 + high / 2
        offset = np.where(exact, np.floor(middle), middle)
        factor = np.where(exact, np.maximum(np.floor(size / np.maximum(np.ceil(half), 1.0)), 1.0), factor)
        singles = [part.astype(np.float32).astype(np.float64) for part in (offset, factor)]
        result.append(InputQuantization("int8_t" if precision == "int8" else "int16_t", -size, size, *singles))
    return result


def _quantize_splits(model: Portable, trees: StackedTrees, precision: str, inputs: InputQuantization) -> QuantizedTrees:
    """Quantize every split at the scale with the smallest rounding error of its score."""
    assert model.ranges is not None
    ranges = model.ranges
    weight = trees.weight.astype(np.float64) / inputs.factor
    bias = trees.bias.astype(np.float64) + trees.weight.astype(np.float64) @ inputs.offset
    mean, spread = (ranges.mean - inputs.offset) * inputs.factor, ranges.spread * inputs.factor
    rounded = np.where(ranges.whole & (inputs.factor == np.floor(inputs.factor)), 0.0, 1 / 12)
    whole, offsets, noises = np.zeros(weight.shape, dtype=np.int64), np.zeros(len(weight), dtype=np.int64), []
    for split, line in enumerate(weight):
        scale, whole[split] = _best_scale(line, spread, PRECISIONS[precision].weight, inputs.max_size)
        # The bias compensates the rounding error of the mean row.
        exact = scale * bias[split] + (scale * line - whole[split]) @ mean
        reached = int(np.abs(whole[split]).sum()) * inputs.max_size
        offsets[split] = int(np.clip(np.rint(exact), -reached - 1, reached + 1)) if reached else int(np.sign(exact))
        error = np.sqrt((((line - whole[split] / scale) * spread) ** 2 + line**2 * rounded).sum())
        noises.append(error / max(np.sqrt(((line * spread) ** 2).sum()), np.finfo(float).tiny))
    tables = trees.tables
    if model.classes:
        tables = np.rint(tables * PRECISIONS[precision].table)
    result = QuantizedTrees(
        trees, precision, inputs, whole, offsets, tables.astype(np.int64), float(np.mean(noises)) if noises else 0.0
    )
    assert result.max_sum <= MAX_INT32, "a sum could overflow"
    return result


def _best_scale(weight: Doubles, spread: Doubles, largest: int, max_input: int) -> tuple[float, Integers]:
    """Scale and integer weights with the smallest error of the score, among those whose sums fit 31 bits."""
    size, total = float(np.abs(weight).max(initial=0.0)), float(np.abs(weight).sum())
    if size == 0:
        return 1.0, np.zeros(len(weight), dtype=np.int64)
    max_total = MAX_SUM // max_input
    best: tuple[float, float, Integers] | None = None
    for stretch in STRETCHES:
        scale = min(stretch * largest / size, max_total / total)
        whole = np.clip(np.rint(scale * weight), -largest, largest).astype(np.int64)
        if np.abs(whole).sum() > max_total:  # by what rounding added
            whole = np.clip(np.trunc(scale * weight), -largest, largest).astype(np.int64)
        error = float((((weight - whole / scale) * spread) ** 2).sum())
        if best is None or error < best[0]:
            best = (error, scale, whole)
    assert best is not None
    return best[1], best[2]
