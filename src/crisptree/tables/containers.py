"""Which container X may be: arrays and tables in memory as they are, Arrow streams read, lazy containers refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from crisptree.tables.errors import TableError

LOADERS = ("toPandas", "collect", "compute", "to_table", "to_arrow_table", "to_pandas")
"""Methods by which lazy containers are read into memory."""


def materialize(X: Any, name: str = "X") -> Any:
    """Return X as a container in memory that NumPy, scikit-learn or ``table_of`` can take.

    Arrays, lists, sparse matrices, frames of pandas and polars and tables of pyarrow are returned as they are. Other
    tables that offer ``__arrow_c_stream__`` or ``__dataframe__`` become tables of pyarrow.

    Raises
    ------
    TableError
        If X is lazy (LazyFrame of polars, dask) or a dataset that must be read first (pyarrow, Hugging Face).
    """
    if isinstance(X, np.ndarray | list | tuple):
        return X
    if hasattr(X, "__dask_graph__") and hasattr(X, "columns"):  # looks like a DataFrame of pandas until values are read
        raise _not_in_memory(X, name, "compute")
    if is_pandas(X) or is_polars(X) or is_arrow(X):
        return X
    is_array = hasattr(X, "__array__")
    if hasattr(X, "__arrow_c_stream__") and (not is_array or hasattr(X, "columns")):  # others are Series
        return _pyarrow_for(X, name).table(X)
    if is_array or hasattr(X, "toarray"):
        return X
    if hasattr(X, "__dataframe__"):
        _pyarrow_for(X, name)
        from pyarrow.interchange import from_dataframe

        return from_dataframe(X)
    loader = next((method for method in LOADERS if hasattr(type(X), method)), None)
    if loader is not None:
        raise _not_in_memory(X, name, loader)
    if isinstance(X, dict) and X and all(hasattr(type(part), "column_names") for part in X.values()):
        raise TableError(
            f"{name} must be one table; got {_described(X)}, which holds {len(X)}. Choose one, such as "
            f"{name}[{next(iter(X))!r}]."
        )
    if X is not None and not np.isscalar(X) and not hasattr(type(X), "__len__"):
        raise TypeError(
            f"{name} must be an array, a list, a sparse matrix or a table; got {_described(X)}, which is none of them."
        )
    return X


def is_pandas(X: Any) -> bool:
    """Return True for a DataFrame of pandas, or of a library with the same interface."""
    return hasattr(X, "iloc") and hasattr(X, "columns")


def is_polars(X: Any) -> bool:
    """Return True for a DataFrame of polars that is in memory."""
    return hasattr(X, "get_columns") and hasattr(X, "with_columns")


def is_arrow(X: Any) -> bool:
    """Return True for a table of pyarrow; a RecordBatch has no ``combine_chunks``."""
    return hasattr(X, "column_names") and hasattr(X, "combine_chunks")


def _not_in_memory(X: Any, name: str, loader: str) -> TableError:
    return TableError(f"{name} must be a table in memory; got {_described(X)}. Call its {loader}() first.")


def _described(X: Any) -> str:
    """Name the type and its package, since many have a DataFrame or a Dataset."""
    return f"a {type(X).__name__} of {type(X).__module__.split('.')[0]}"


def _pyarrow_for(X: Any, name: str) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            f"{name} must be an array, or a frame of pandas or polars, where pyarrow is not installed; got "
            f"{_described(X)}. Install it with: pip install 'crisptree[tables]'"
        ) from error
    return pyarrow
