"""What every loader returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


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
        """The rows of training and validation together: what a final model is trained on.

        Examples
        --------
        >>> from crisptree.datasets import load_digits
        >>> X, y = load_digits().all_but_test()
        >>> X.shape, y.shape
        ((1437, 64), (1437,))
        """
        return np.concatenate([self.X_train, self.X_valid]), np.concatenate([self.y_train, self.y_valid])
