"""The rows that a report is written with, and where the tree sends them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.view import ModelView


@dataclass(frozen=True, eq=False)
class ReportRows:
    """Rows that the model has not been trained on, or any others.

    Parameters
    ----------
    X : ndarray of shape (n, n_features), float32
        The rows as the tree sees them.
    leaf : ndarray of shape (n,)
        Where it sends each of them.
    predicted : ndarray of shape (n,)
        Class numbers.
    y : ndarray of shape (n,) or None
        Class numbers, where the caller knows them.
    """

    X: npt.NDArray[np.float32]
    leaf: npt.NDArray[np.int64]
    predicted: npt.NDArray[np.int64]
    y: npt.NDArray[np.int64] | None

    @classmethod
    def of(cls, view: ModelView, X: Any, y: Any) -> ReportRows | None:
        """What the caller gives, checked; None where there are no rows."""
        if X is None:
            if y is not None:
                raise ValueError("`y` must come with the rows it belongs to; got y without X. Give both, or neither.")
            return None
        view.check_takes_rows("a report with rows")
        rows = view.rows(X)
        leaf = view.leaves(rows)
        numbers = None if y is None else view.class_numbers(y, len(leaf))
        return cls(rows, leaf, view.tree.labels(leaf).astype(np.int64), numbers)

    @property
    def labels(self) -> npt.NDArray[np.int64]:
        """The true classes, or the predicted ones where nobody knows the truth."""
        return self.predicted if self.y is None else self.y

    @property
    def wrong(self) -> npt.NDArray[np.bool_]:
        return np.zeros(len(self.X), dtype=bool) if self.y is None else self.predicted != self.y
