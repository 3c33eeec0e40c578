"""The rows that a report is written with, and where the tree sends them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.view import ModelView

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReportRows:
    """Rows that the model has not been trained on, or any others."""

    X: npt.NDArray[np.float32]  # as the tree sees them
    leaf: Integers  # where it sends each of them
    predicted: Integers  # class numbers
    y: Integers | None  # class numbers, where the caller knows them

    @classmethod
    def of(cls, view: ModelView, X: Any, y: Any) -> ReportRows | None:
        """What the caller gives, checked; None where there are no rows."""
        if X is None and y is not None:
            raise ValueError("`y` must come with the rows it belongs to; got y without X. Give both, or neither.")
        if X is None:
            return None
        view.check_takes_rows("a report with rows")
        rows = view.rows(X)
        leaf = view.leaves(rows)
        numbers = None if y is None else view.class_numbers(y, len(leaf))
        return cls(rows, leaf, view.tree.labels(leaf).astype(np.int64), numbers)

    @property
    def labels(self) -> Integers:
        """The true classes, or the predicted ones where nobody knows the truth."""
        return self.predicted if self.y is None else self.y

    @property
    def wrong(self) -> npt.NDArray[np.bool_]:
        return self.predicted != self.labels
