"""How rows are divided where the publisher does not say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.datasets.dataset import Dataset
from crisptree.holdout import RowNumbers, hold_out

HELD_OUT = 0.2
"""The share of rows that a split puts aside: for testing, and of the rest for validation."""


def _parted(y: npt.NDArray[Any], seed: int) -> tuple[RowNumbers, RowNumbers]:
    """The rows that stay and the 20 % that are held out, which is rounded up: published splits have that size."""
    return hold_out(y, math.ceil(HELD_OUT * len(y)), seed)


def with_validation(
    X: npt.NDArray[Any],
    y: npt.NDArray[Any],
    X_test: npt.NDArray[Any],
    y_test: npt.NDArray[Any],
    *,
    seed: int,
    class_names: tuple[str, ...],
    image_shape: tuple[int, ...] | None = None,
) -> Dataset:
    """A data set whose test part is given; 20 % of the other rows are for validation."""
    train, valid = _parted(y, seed)
    return Dataset(
        X_train=X[train].astype(np.float32),
        y_train=y[train].astype(np.int64),
        X_valid=X[valid].astype(np.float32),
        y_valid=y[valid].astype(np.int64),
        X_test=X_test.astype(np.float32),
        y_test=y_test.astype(np.int64),
        class_names=class_names,
        image_shape=image_shape,
    )


def with_test_and_validation(
    X: npt.NDArray[Any],
    y: npt.NDArray[Any],
    *,
    seed: int,
    class_names: tuple[str, ...],
    image_shape: tuple[int, ...] | None = None,
) -> Dataset:
    """A data set without any given split: 64 % for training, 16 % for validation, 20 % for testing."""
    rest, test = _parted(y, seed)
    return with_validation(
        X[rest], y[rest], X[test], y[test], seed=seed, class_names=class_names, image_shape=image_shape
    )
