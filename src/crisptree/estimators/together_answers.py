"""What y is to several processes together: classes that any of them has, or numbers on a common scale.

Imported only when they train.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.estimators.numbers import SAME, NumberScale
from crisptree.estimators.surveys import class_weights
from crisptree.estimators.weights import check_total_weight, sum_weights
from crisptree.labels import class_numbers, label_type
from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.distributed.rows import Shards
from crisptree.learning.task import Part
from crisptree.targets import Classes, Gaussians, Target


class Given(NamedTuple):
    """What one process is given: rows, labels and weights, with names of columns and the image that a row is."""

    X: npt.NDArray[np.float32]
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]
    names: npt.NDArray[Any] | None
    image_shape: tuple[int, ...] | None


@dataclass(frozen=True, eq=False)
class Agreed:
    """The shards of this process with y as training has it, and what all processes know of it.

    ``labels`` are the classes, or how many numbers a row has; ``scale`` is that of numbers.
    """

    shards: Shards
    target: Target
    labels: Any
    no_labels: npt.NDArray[Any]
    scale: NumberScale | None = None


def agreed_classes(group: ProcessGroup, given: Given, n_shards: int, parameters: Mapping[str, Any]) -> Agreed:
    """The classes of all processes, by their weights; one without any is none, and its rows are left out."""
    there = [labels for labels in group.gather(np.unique(given.y)) if len(labels)]
    if len({labels.dtype.kind in "biuf" for labels in there}) > 1:
        raise ValueError("labels must be numbers in all processes, or text in all; got both.")
    labels = np.unique(np.concatenate(there))
    group.agreed(lambda: label_type(labels))
    numbers = class_numbers(given.y, labels) if len(given.y) else np.zeros(0)
    shards = Shards.of(Part(given.X, numbers.astype(np.int64), given.weight), group, n_shards)
    weights = [np.bincount(part.y, part.weight, len(labels)) for part in shards.parts]
    by_class = group.total(weights, (len(labels),))
    factors = class_weights(parameters["class_weight"], labels, by_class)
    with np.errstate(over="ignore", under="ignore"):
        check_total_weight(sum_weights(by_class * factors))
    number = np.cumsum(factors > 0) - 1
    parts = []
    for part in shards.parts:
        weight = part.weight * factors[part.y]
        kept = slice(None) if (weight > 0).all() else weight > 0
        parts.append(Part(part.X[kept], number[part.y[kept]], weight[kept]))
    if not group.total([float(len(part.y)) for part in parts]):
        raise ValueError("the weights must leave at least one row with a positive weight; got only zeros.")
    classes = labels[factors > 0]
    kept_shards = Shards(parts, shards.first, shards.n_shards)
    return Agreed(kept_shards, Classes(len(classes)), classes, np.zeros(0, np.int64))


def agreed_numbers(group: ProcessGroup, given: Given, n_shards: int, parameters: Mapping[str, Any]) -> Agreed:
    """Numbers in units of the mean and spread of all processes' rows."""
    n_outputs = given.y.shape[1] if given.y.ndim == 2 else 1
    found = {n for n, rows in group.gather((n_outputs, len(given.y))) if rows}
    if len(found) > 1:
        raise ValueError(f"y must have as many columns in all processes; got {', '.join(map(str, sorted(found)))}.")
    (n_outputs,) = found
    own = np.asarray(given.y, dtype=np.float64).reshape(len(given.y), n_outputs)
    shards = Shards.of(Part(given.X, own, given.weight), group, n_shards)
    parts = [part for part in shards.parts if len(part.y)]
    ends = np.full((2, n_outputs), -np.inf)
    for part in parts:
        ends = np.maximum(ends, np.stack([-part.y.min(axis=0), part.y.max(axis=0)]))
    low, high = group.maximum(ends) * [[-1.0], [1.0]]
    shape = (1 + n_outputs,)
    sums = group.total([np.append(part.weight.sum(), _summed(part, part.y)) for part in parts], shape)
    check_total_weight(float(sums[0]))
    center = np.where(low == high, low, sums[1:] / sums[0])
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
        squares = group.total([_summed(part, (part.y - center) ** 2) for part in parts], (n_outputs,))
        spread = np.sqrt(squares / sums[0])
    is_constant = spread <= SAME * np.abs(center)
    scale = NumberScale(center, np.where(is_constant, 1.0, spread), is_constant)
    scaled = [Part(part.X, scale.scaled(part.y), part.weight) for part in shards.parts]
    kept = Shards(scaled, shards.first, shards.n_shards)
    return Agreed(kept, Gaussians(2 * n_outputs), n_outputs, np.zeros((0, n_outputs)), scale)


def _summed(part: Part, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Σ w v; without a product of matrices, whose threads would change bits."""
    return np.asarray((values * part.weight[:, None]).sum(axis=0))
