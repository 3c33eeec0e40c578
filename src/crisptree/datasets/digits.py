"""The 8 × 8 digits that come with scikit-learn: no file, no network."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits as bundled_digits
from sklearn.model_selection import train_test_split

from crisptree.datasets.dataset import Dataset


def load_digits(seed: int = 0) -> Dataset:
    """1,797 images in 10 classes: 64 % for training, 16 % for validation, 20 % for testing, drawn with ``seed``.

    Examples
    --------
    >>> load_digits().X_train.shape
    (1149, 64)
    """
    X, y = bundled_digits(return_X_y=True)
    rest, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed, stratify=y)
    train, valid = train_test_split(rest, test_size=0.2, random_state=seed, stratify=y[rest])
    X = X.astype(np.float32)
    return Dataset(
        X_train=X[train],
        y_train=y[train],
        X_valid=X[valid],
        y_valid=y[valid],
        X_test=X[test],
        y_test=y[test],
        class_names=tuple(map(str, range(10))),
        image_shape=(8, 8),
    )
