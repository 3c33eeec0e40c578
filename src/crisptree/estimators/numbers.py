"""Numbers to be predicted: their checks, and how they are scaled for training."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array, check_consistent_length

from crisptree.encoding.containers import materialize
from crisptree.estimators.answers import check_holds_numbers
from crisptree.estimators.validation import TrainingData, check_fit_rows, check_rows, validation_pair
from crisptree.estimators.weights import check_sample_weight, check_some_weight
from crisptree.inference import CrispTree
from crisptree.inference.statistics import SomeTree
from crisptree.streams import refuse_batches
from crisptree.tensors import detach

Doubles = npt.NDArray[np.float64]

SAME = 1e-12
"""A spread below this share of the mean is rounding."""

LARGEST = 1e150
"""Numbers beyond have no square in double precision."""

MAX_SCALED = 1e15
"""Standard deviations from the mean; further away, sums of squares overflow in single precision."""


@dataclass(frozen=True, eq=False)
class NumberScale:
    """Mean and spread of every output over the training rows.

    A constant output trains in the unit 1 and is answered in the unit 0: its mean exactly, and no spread, where the
    smallest variance of a leaf would be a share of a variance that is not there.
    """

    center: Doubles
    unit: Doubles
    is_constant: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        if not (np.isfinite(self.center).all() and np.isfinite(self.unit).all()):
            raise ValueError(
                "y and the weights of its rows must have a finite sum of weighted squares; it overflows. Divide y by a "
                "unit, or the weights by the largest."
            )

    @classmethod
    def learn(cls, y: Doubles, weight: Doubles) -> NumberScale:
        """Those of weighted rows.

        Examples
        --------
        >>> scale = NumberScale.learn(np.array([[1.0], [3.0]]), np.ones(2))
        >>> scale.center.tolist(), scale.unit.tolist()
        ([2.0], [1.0])
        """
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            center = np.average(y, axis=0, weights=weight)
            spread = np.sqrt(np.average((y - center) ** 2, axis=0, weights=weight))
        is_constant = spread <= SAME * np.abs(center)
        center = np.where(is_constant & (y == y[:1]).all(axis=0), y[0], center)  # exactly, not a rounded mean
        return cls(center, np.where(is_constant, 1.0, spread), is_constant)

    @classmethod
    def of(cls, tree: CrispTree) -> NumberScale:
        """That of a fitted tree, in which a constant output may have learned to differ."""
        center, unit = tree.statistics.y_center, tree.statistics.y_unit
        assert center is not None
        assert unit is not None
        is_constant = unit == 0
        return cls(center, np.where(is_constant, 1.0, unit), is_constant)

    def beside(self, y: Doubles) -> NumberScale:
        """The same for further numbers, of which a constant output may be no longer one."""
        same = (np.abs(y - self.center) <= SAME * np.abs(self.center)).all(axis=0)
        return replace(self, is_constant=self.is_constant & same)

    def scaled(self, y: Doubles) -> Doubles:
        """y in standard deviations from the mean.  (n, n_outputs) → the same"""
        away = y - self.center
        is_rounding = self.is_constant & (np.abs(away) <= SAME * np.abs(self.center))
        found = np.where(is_rounding, 0.0, away) / self.unit
        if np.abs(found).max(initial=0.0) > MAX_SCALED:
            raise ValueError(
                f"y must lie within {MAX_SCALED:g} standard deviations of the weighted mean of the training rows "
                f"(deviations from it, where all of them were equal); got one {np.abs(found).max():g} away. Leave out "
                "such rows, or those of nearly no weight."
            )
        return found

    def on(self, tree: SomeTree) -> SomeTree:
        """The tree that answers in the units of y."""
        unit = np.where(self.is_constant, 0.0, self.unit)
        return replace(tree, statistics=replace(tree.statistics, y_center=self.center, y_unit=unit))


def check_numbers(y: Any, name: str = "y") -> Doubles:
    """Finite numbers, one or several for every row.  → (n, n_outputs)"""
    y = detach(y)
    check_holds_numbers(y, name)
    found = check_array(y, dtype=np.float64, ensure_2d=False, allow_nd=False, input_name=name, ensure_all_finite=True)
    found = found.reshape(len(found), -1)
    if found.shape[1] == 0:
        raise ValueError(f"{name} must have at least one column; got shape {np.shape(y)}.")
    if np.abs(found).max(initial=0.0) > LARGEST:
        raise ValueError(
            f"{name} must hold numbers of at most {LARGEST:g}, whose squares can be summed; got "
            f"{np.abs(found).max():g}. Divide y by a unit."
        )
    return found


def check_unscaled_numbers(estimator: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool = True) -> TrainingData:
    """Rows, numbers and weights of a fit, the numbers as they are."""
    refuse_batches(X, type(estimator).__name__)
    X, y, sample_weight = map(detach, (X, y, sample_weight))
    if y is None:
        raise ValueError("y must hold a number for every row; requires y to be passed, but the target y is None.")
    y = materialize(y, "y")
    check_holds_numbers(y)
    rows = check_fit_rows(estimator, X, y, sample_weight, reset=reset, multi_output=True)
    numbers = check_numbers(rows.y)
    weight = check_sample_weight(sample_weight, rows.X)
    kept = check_some_weight(weight)
    X = rows.X
    if not kept.all():
        X, numbers, weight = X[kept], numbers[kept], weight[kept]
    return TrainingData(X, numbers, weight, None, rows.image_shape, holes=rows.holes)


def check_training_numbers(
    estimator: Any, X: Any, y: Any, sample_weight: Any, scale: NumberScale | None = None
) -> TrainingData:
    """The same with the numbers scaled: as those of an earlier fit, where there is one."""
    data = check_unscaled_numbers(estimator, X, y, sample_weight, reset=scale is None)
    numbers, weight = data.y, data.weight
    scale = NumberScale.learn(numbers, weight) if scale is None else scale.beside(numbers)
    if len(scale.center) != numbers.shape[1]:
        raise ValueError(
            f"a warm start or partial_fit must go on with as many outputs; the tree has {len(scale.center)} and y has "
            f"{numbers.shape[1]}. Use a new estimator for other data."
        )
    return replace(data, y=scale.scaled(numbers), y_scale=scale)


def check_validation_numbers(estimator: Any, validation: Any, scale: NumberScale) -> TrainingData:
    """The explicit validation rows and their numbers, scaled as those of the training, all of one weight."""
    X, y = validation_pair(validation)
    X, y = check_rows(estimator, X), check_numbers(y, "validation numbers")
    check_consistent_length(X, y)
    if y.shape[1] != len(scale.center):
        raise ValueError(
            f"validation numbers must have {len(scale.center)} columns as y has in training; got {y.shape[1]}."
        )
    return TrainingData(X, scale.scaled(y), np.ones(len(y)), None, estimator.image_shape_, y_scale=scale)


def check_among(
    estimator: Any, trees: Iterable[CrispTree], quantiles: Any, among: Any
) -> tuple[Doubles, npt.NDArray[np.int64], Doubles, Doubles]:
    """Quantiles from 0 to 1, and rows with known y: the leaves that they reach, y and weights."""
    if any(tree.is_linear for tree in trees):
        raise TypeError(
            "predict_quantiles must have constant leaves; those of leaves='linear' have no one y. Take "
            "predict_interval, or train with leaves='constant'."
        )
    wanted = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    if wanted.ndim != 1 or not ((wanted >= 0) & (wanted <= 1)).all():
        raise ValueError(f"`quantiles` must be numbers from 0 to 1; got {quantiles!r}.")
    if not isinstance(among, tuple | list) or len(among) not in (2, 3):
        raise ValueError("`among` must be (X, y) or (X, y, sample_weight), rows with known y.")
    known, weight = check_numbers(among[1]), among[2] if len(among) == 3 else None
    there = estimator.apply(among[0])
    check_consistent_length(there, known)
    if known.shape[1] != estimator.n_outputs_:
        raise ValueError(f"y of `among` must have {estimator.n_outputs_} columns as in training; got {known.shape[1]}.")
    return wanted, there, known, check_sample_weight(weight, there.reshape(len(there), -1))
