"""ISBI 2012: where the membranes are in electron microscopy of a fly's nerve cord."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crisptree.datasets.catalog import CATALOG
from crisptree.datasets.dataset import Dataset
from crisptree.datasets.errors import DataFormatError
from crisptree.datasets.image_files import numbered_files, read_stack
from crisptree.datasets.places import StrPath, locate
from crisptree.datasets.reading import read_bytes, read_compact

CLASS_NAMES = ("membrane", "cell")
SHAPE = (512, 512)
MEMBRANE, CELL = 0, 255
"""The grey values of the labels."""

TRAIN, VALID, TEST = slice(0, 20), slice(20, 25), slice(25, 30)
"""Neighbouring slices resemble each other, so the parts are whole runs of slices."""

Stack = npt.NDArray[np.uint8]


def load_isbi(data_home: StrPath | None = None) -> Dataset:
    """30 labelled slices of 512 × 512 pixels: 0–19 for training, 20–24 for validation, 25–29 for testing.

    Parameters
    ----------
    data_home : path, optional
        The folder of data; by default $CRISPTREE_DATA, then the user's cache.

    Returns
    -------
    Dataset
        Images of shape (slices, 512, 512) with grey values from 0 to 255, and a class for every pixel.

    Examples
    --------
    >>> load_isbi().y_test.shape  # doctest: +SKIP
    (5, 512, 512)
    """
    found = locate("isbi", data_home)
    images, labels = READERS[found.form](found.paths)
    shape = (CATALOG["isbi"].rows["all"], *SHAPE)
    for what, stack in (("images", images), ("labels", labels)):
        if stack.shape != shape:
            raise DataFormatError(f"the {what} of isbi must be of shape {shape}; {found.paths[0]} gave {stack.shape}.")
    if not np.isin(labels, (MEMBRANE, CELL)).all():
        raise DataFormatError("the labels of isbi must be 0 (membrane) or 255 (cell); these files hold other values.")
    X, y = images.astype(np.float32), (labels == CELL).astype(np.int64)
    return Dataset(X[TRAIN], y[TRAIN], X[VALID], y[VALID], X[TEST], y[TEST], class_names=CLASS_NAMES, image_shape=SHAPE)


def _from_zip(path: Path) -> list[Stack]:
    members = ("train-volume.tif", "train-labels.tif")
    return [read_stack([BytesIO(read_bytes(path, name))], f"{name} in {path}") for name in members]


READERS: dict[str, Callable[[tuple[Path, ...]], list[Stack]]] = {
    "npz": lambda paths: read_compact(paths[0], "X_train", "y_train"),
    "tif": lambda paths: [read_stack([path], str(path)) for path in paths],
    "png": lambda paths: [read_stack(numbered_files(path), str(path)) for path in paths],
    "zip": lambda paths: _from_zip(paths[0]),
}
