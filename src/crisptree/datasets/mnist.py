"""MNIST and Fashion-MNIST: two data sets in one form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt

from crisptree.datasets.checking import check_features, check_labels
from crisptree.datasets.compact import read_compact
from crisptree.datasets.dataset import Dataset
from crisptree.datasets.idx import read_idx
from crisptree.datasets.places import StrPath, locate
from crisptree.datasets.splitting import in_parts

DIGITS = tuple(map(str, range(10)))
CLOTHES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")

SHAPE = (28, 28)


def load_mnist(data_home: StrPath | None = None, *, seed: int = 0) -> Dataset:
    """Handwritten digits: 60,000 images for training and validation and the official 10,000 for testing.

    Parameters
    ----------
    data_home : path, optional
        The folder of data; by default $CRISPTREE_DATA, then the user's cache.
    seed : int
        Draws the 20 % of the training images that are for validation.

    Returns
    -------
    Dataset
        Rows of 784 grey values from 0 to 255.

    Examples
    --------
    >>> load_mnist().X_train.shape  # doctest: +SKIP
    (48000, 784)
    """
    return _load("mnist", data_home, seed, DIGITS)


def load_fashion_mnist(data_home: StrPath | None = None, *, seed: int = 0) -> Dataset:
    """Pictures of clothes: 60,000 images for training and validation and the official 10,000 for testing.

    Parameters
    ----------
    data_home : path, optional
        The folder of data; by default $CRISPTREE_DATA, then the user's cache.
    seed : int
        Draws the 20 % of the training images that are for validation.

    Returns
    -------
    Dataset
        Rows of 784 grey values from 0 to 255.

    Examples
    --------
    >>> load_fashion_mnist().class_names[:2]  # doctest: +SKIP
    ('T-shirt', 'trouser')
    """
    return _load("fashion_mnist", data_home, seed, CLOTHES)


def _load(name: str, data_home: StrPath | None, seed: int, class_names: tuple[str, ...]) -> Dataset:
    found = locate(name, data_home)
    X, y, X_test, y_test = READERS[found.form](found.paths)
    for part, images, labels in (("train", X, y), ("test", X_test, y_test)):
        check_labels(name, part, labels, len(class_names))
        check_features(name, part, images, labels, SHAPE)
    rows, test = (X.reshape(len(X), -1), y), (X_test.reshape(len(X_test), -1), y_test)
    return in_parts(rows, test, seed=seed, class_names=class_names, image_shape=SHAPE)


def _from_npz(paths: tuple[Path, ...]) -> list[npt.NDArray[Any]]:
    return read_compact(paths[0], "X_train", "y_train", "X_test", "y_test")


def _from_idx(paths: tuple[Path, ...]) -> list[npt.NDArray[Any]]:
    return [read_idx(path) for path in paths]


READERS = {"npz": _from_npz, "idx": _from_idx}
