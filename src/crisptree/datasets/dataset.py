"""The result of every loader, checked against the catalog: nothing else is loaded under a published name."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.datasets.catalog import CATALOG, DataFormatError
from crisptree.targets.base import hold_out

HOLDOUT_FRACTION = 0.2
"""Fraction of the rows for testing, and of the rest for validation."""

Rows = tuple[npt.NDArray[Any], npt.NDArray[Any]]
"""Features and labels."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and labels in three parts.

    Attributes
    ----------
    X_train, X_valid, X_test : float32 array
        Rows of features, or images of shape (n, height, width) where every pixel has a label of its own.
    y_train, y_valid, y_test : int64 array
        The number of the class, an index into ``class_names``; one per row, or one per pixel.
    class_names : tuple of str
        What the numbers mean.
    image_shape : tuple of int, or None
        Height and width of an image; None where rows are not images.
    """

    X_train: npt.NDArray[Any]
    y_train: npt.NDArray[Any]
    X_valid: npt.NDArray[Any]
    y_valid: npt.NDArray[Any]
    X_test: npt.NDArray[Any]
    y_test: npt.NDArray[Any]
    class_names: tuple[str, ...]
    image_shape: tuple[int, ...] | None = None

    def all_but_test(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the rows of training and validation together: what a final model is trained on.

        Examples
        --------
        >>> from crisptree.datasets import load_digits
        >>> X, y = load_digits().all_but_test()
        >>> X.shape, y.shape
        ((1437, 64), (1437,))
        """
        return np.concatenate([self.X_train, self.X_valid]), np.concatenate([self.y_train, self.y_valid])


def split_parts(
    name: str, published: dict[str, Rows], class_names: tuple[str, ...], row_shape: tuple[int, ...], seed: int = 0
) -> Dataset:
    """Check the published parts, and split off 20 % where there is no test part, then no validation part."""
    for part, rows in published.items():
        _check_part(name, part, *rows, len(class_names), row_shape)
    parts = dict(published)
    if "all" in parts:
        parts["train"], parts["test"] = _split(parts["all"], seed)
    if "valid" not in parts:
        parts["train"], parts["valid"] = _split(parts["train"], seed)
    train, valid, test = (
        (X.reshape(len(X), -1).astype(np.float32, copy=False), y.astype(np.int64, copy=False))
        for X, y in (parts["train"], parts["valid"], parts["test"])
    )
    image_shape = row_shape if len(row_shape) > 1 else None
    return Dataset(*train, *valid, *test, class_names=class_names, image_shape=image_shape)


def check_content(name: str, data: bytes, path: Path) -> None:
    """Raise unless the content of an archive has the published checksum, where one is known."""
    for content in (file.content for file in CATALOG[name].files if file.content):
        actual = hashlib.new(content.checksum.algorithm, data).hexdigest()
        if actual != content.checksum.digest:
            raise DataFormatError(
                f"{content.member} in {path} must have {content.checksum}; it has {actual}. Download it again."
            )


def _split(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    X, y = rows
    # Rounded up, as it was when results were published.
    kept, held = hold_out(y, math.ceil(HOLDOUT_FRACTION * len(y)), seed)
    return (X[kept], y[kept]), (X[held], y[held])


def _check_part(name: str, part: str, X: Any, y: Any, n_classes: int, row_shape: tuple[int, ...]) -> None:
    """Raise unless labels and rows are as many as were published, and of each class as many where that is known."""
    publication = CATALOG[name]
    if y.ndim != 1 or not np.isin(y, np.arange(n_classes)).all():
        raise DataFormatError(
            f"{name} must have one of {n_classes} classes per row; the {part} part has the labels "
            f"{_shorten(np.unique(y))} in an array of shape {y.shape}."
        )
    rows = publication.rows[part]
    if len(y) != rows:
        raise DataFormatError(
            f"the {part} part of {name} has {rows:,} rows; these files have {len(y):,}. They are cut short or are "
            f"other data: see {publication.page}."
        )
    expected = publication.class_counts.get(part)
    counts = tuple(np.bincount(y.astype(np.int64), minlength=n_classes).tolist())
    if expected is not None and counts != expected:
        raise DataFormatError(
            f"the classes in the {part} part of {name} have {_shorten(expected)} rows; in these files they have "
            f"{_shorten(counts)}. They are other data: MNIST and Fashion-MNIST, for example, have files of the same "
            f"names, so keep each in a folder of its own ({name}/)."
        )
    if X.shape != (len(y), *row_shape):
        raise DataFormatError(
            f"the {part} part of {name} must be of shape {(len(y), *row_shape)} for {len(y):,} labels; got {X.shape}."
        )


def _shorten(values: Any) -> str:
    values = np.asarray(values).tolist()
    return ", ".join(map(str, values[:10])) + (", …" if len(values) > 10 else "")
