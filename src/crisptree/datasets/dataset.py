"""What every loader returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and labels in three parts; ``image_shape`` is None where rows are not images."""

    X_train: npt.NDArray[Any]
    y_train: npt.NDArray[Any]
    X_valid: npt.NDArray[Any]
    y_valid: npt.NDArray[Any]
    X_test: npt.NDArray[Any]
    y_test: npt.NDArray[Any]
    class_names: tuple[str, ...]
    image_shape: tuple[int, ...] | None = None
