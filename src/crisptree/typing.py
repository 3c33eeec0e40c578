"""Types of arguments, for annotations of programs that hand X and y on to an estimator.

>>> from crisptree.typing import MatrixLike
>>> def count_rows(X: MatrixLike) -> int: ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy.typing as npt

if TYPE_CHECKING:
    from torch.utils.data import DataLoader, Dataset

    from crisptree.data.batches import Batches

__all__ = ["ArrayLike", "BatchesLike", "MatrixLike"]


class SupportsArray(Protocol):
    """An array of any library, or a frame that becomes one."""

    def __array__(self) -> Any: ...


class SupportsArrowStream(Protocol):
    """A table of any library that speaks Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy, whether its stubs are installed or not."""

    def tocsr(self) -> Any: ...


ArrayLike: TypeAlias = npt.ArrayLike | SupportsArray
"""One value per row, or several: lists, arrays, Series."""

MatrixLike: TypeAlias = ArrayLike | Sequence[Any] | Mapping[str, Any] | SparseMatrix | SupportsArrowStream
"""Rows: arrays, lists of rows, dictionaries of columns, sparse matrices, frames and tables."""

BatchesLike: TypeAlias = "Batches | Callable[[], Iterable[Any]] | Dataset[Any] | DataLoader[Any]"
"""Rows and their y in batches; see ``crisptree.Batches``."""
