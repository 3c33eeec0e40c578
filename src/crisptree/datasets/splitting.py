"""How rows are divided where the publisher does not say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.datasets.dataset import Dataset
from crisptree.holdout import hold_out

HELD_OUT = 0.2
"""The share of rows that a split puts aside: for testing, and of the rest for validation."""

Rows = tuple[npt.NDArray[Any], npt.NDArray[Any]]
"""Features and labels."""


def in_parts(
    rows: Rows,
    test: Rows | None = None,
    *,
    seed: int,
    class_names: tuple[str, ...],
    image_shape: tuple[int, ...] | None = None,
) -> Dataset:
    """20 % of the rows for validation; before that, where no test part is given, 20 % of all for testing."""
    if test is None:
        rows, test = _divided(rows, seed)
    train, valid = _divided(rows, seed)
    train, valid, test = ((X.astype(np.float32), y.astype(np.int64)) for X, y in (train, valid, test))
    return Dataset(*train, *valid, *test, class_names=class_names, image_shape=image_shape)


def _divided(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    X, y = rows
    # Rounded up, as it was when results were published.
    kept, held = hold_out(y, math.ceil(HELD_OUT * len(y)), seed)
    return (X[kept], y[kept]), (X[held], y[held])
