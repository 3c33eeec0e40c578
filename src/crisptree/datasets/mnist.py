"""MNIST and Fashion-MNIST: two data sets in one form."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.datasets.dataset import Dataset, in_parts
from crisptree.datasets.errors import DataFormatError
from crisptree.datasets.places import StrPath, locate
from crisptree.datasets.reading import read_bytes, read_compact

DIGITS = tuple(map(str, range(10)))
CLOTHES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")

SHAPE = (28, 28)
UNSIGNED_BYTE = 0x08


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
    return in_parts(name, {"train": (X, y), "test": (X_test, y_test)}, class_names, SHAPE, seed)


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """The array of unsigned bytes in the file, plain or .gz.

    An idx file is two zeros, the type, the number of axes, their lengths, then the bytes.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels-idx1-ubyte"
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> read_idx(path)
    array([7, 2, 1], dtype=uint8)
    """
    data = read_bytes(path)
    if len(data) < 4 or data[:3] != bytes([0, 0, UNSIGNED_BYTE]):
        raise DataFormatError(f"{path} must begin with 00 00 08, as idx files of bytes do; got {data[:3].hex(' ')}.")
    begin = 4 + 4 * data[3]
    shape = tuple(int.from_bytes(data[at : at + 4], "big") for at in range(4, begin, 4))
    if len(data) != begin + math.prod(shape):
        raise DataFormatError(
            f"{path} must hold {begin + math.prod(shape):,} bytes for an array of shape {shape}; it holds "
            f"{len(data):,}. Download it again."
        )
    return np.frombuffer(data, dtype=np.uint8, offset=begin).reshape(shape)


READERS: dict[str, Callable[[tuple[Path, ...]], list[npt.NDArray[Any]]]] = {
    "npz": lambda paths: read_compact(paths[0], "X_train", "y_train", "X_test", "y_test"),
    "idx": lambda paths: [read_idx(path) for path in paths],
}
