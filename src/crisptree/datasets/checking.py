"""That a file holds what its name says: nothing else is ever loaded under the name of a data set."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.datasets.catalog import CATALOG
from crisptree.datasets.errors import DataFormatError


def check_labels(name: str, part: str, y: npt.NDArray[Any], n_classes: int) -> None:
    """Raise unless the labels are class numbers, as many as were published, and as often where that is known."""
    publication = CATALOG[name]
    if y.ndim != 1 or not np.isin(y, np.arange(n_classes)).all():
        raise DataFormatError(
            f"{name} must have one of {n_classes} classes per row; the {part} part has the labels "
            f"{_shortened(np.unique(y))} in an array of shape {y.shape}."
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
            f"the classes in the {part} part of {name} have {_shortened(expected)} rows; in these files they have "
            f"{_shortened(counts)}. They are other data: MNIST and Fashion-MNIST, for example, have files of the same "
            f"names, so keep each in a folder of its own ({name}/)."
        )


def check_features(name: str, part: str, X: npt.NDArray[Any], y: npt.NDArray[Any], shape: tuple[int, ...]) -> None:
    """Raise unless there is one row of the published shape for every label."""
    if X.shape != (len(y), *shape):
        raise DataFormatError(
            f"the {part} part of {name} must be of shape {(len(y), *shape)} for {len(y):,} labels; got {X.shape}."
        )


def _shortened(values: Any) -> str:
    values = list(np.asarray(values).tolist())
    return ", ".join(map(str, values[:10])) + (", …" if len(values) > 10 else "")
