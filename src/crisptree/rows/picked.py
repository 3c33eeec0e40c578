"""Some rows of an array, read where they lie: what each of many trees is trained on, without copies."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from crisptree.rows.arrays import ArrayRows
from crisptree.rows.windows import Windows


@dataclass(frozen=True, eq=False)
class PickedRows(Windows):
    """Rows by their numbers in an array; a row may be picked several times.

    For the kernels each is a window of one run, which they read in place.

    Parameters
    ----------
    values : Tensor of shape (n, n_features)
        The array.
    index : Tensor of shape (m,), int64
        The rows that are picked.

    Examples
    --------
    >>> rows = PickedRows.of(ArrayRows(torch.tensor([[1.0, 2.0], [3.0, 4.0]])), torch.tensor([1, 1, 0]))
    >>> rows.batch(torch.tensor([0, 2])).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """

    values: Tensor = field(kw_only=True)
    index: Tensor = field(kw_only=True)

    @classmethod
    def of(cls, rows: ArrayRows | PickedRows, index: Tensor) -> PickedRows:
        """Some of the rows, or some of those that were picked before."""
        if isinstance(rows, PickedRows):
            index = rows.index[index]
        values = rows.values
        width = values.shape[1]
        offset = torch.arange(width, device=values.device)
        return cls(values.reshape(-1), index * width, offset, values=values, index=index)

    def batch(self, rows: Tensor) -> Tensor:
        return self.values.index_select(0, self.index[rows])
