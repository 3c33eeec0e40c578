"""How rows are divided where the publisher does not say."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.datasets.dataset import Dataset

HELD_OUT = 0.2
"""The share of rows that a split puts aside: for testing, and of the rest for validation."""


def hold_out(y: npt.NDArray[Any], seed: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The numbers of the rows that stay and of the 20 % that are held out, each class in its share."""
    from sklearn.model_selection import (
        train_test_split,
    )  # the catalog must be there at once, scikit-learn takes a second

    rest, held_out = train_test_split(np.arange(len(y)), test_size=HELD_OUT, random_state=seed, stratify=y)
    return rest, held_out


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
    train, valid = hold_out(y, seed)
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
    rest, test = hold_out(y, seed)
    return with_validation(
        X[rest], y[rest], X[test], y[test], seed=seed, class_names=class_names, image_shape=image_shape
    )
