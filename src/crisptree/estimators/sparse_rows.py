"""Sparse rows at the front door: what they may be used with, and what must be dense."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from crisptree.data.sparse import MOST_FEATURES, SparseRows
from crisptree.inference import CrispTree, FlatTree


def is_sparse(X: Any) -> bool:
    """Whether X is one of scipy's sparse matrices or arrays; its numbers of rows and columns must fit its shape."""
    found: Any = X if sparse.issparse(X) else None
    if hasattr(found, "check_format"):
        try:
            found.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(
                f"X must be a sparse matrix whose indices fit its shape {found.shape}; {error}."
            ) from error
    if hasattr(found, "tocoo") and found.dtype.kind == "f" and not np.isfinite(found.sum()):
        entries = found.tocoo()
        odd = np.flatnonzero(~np.isfinite(entries.data))
        if len(odd):
            row, column, value = (part[odd[0]] for part in (entries.row, entries.col, entries.data))
            raise ValueError(
                f"X: sparse rows must hold finite numbers; row {row} has {value} in column {column}. Missing values "
                "(NaN) are for dense rows; infinite ones must be corrected."
            )
    return found is not None


def as_sparse_rows(X: Any, tree: CrispTree | None = None) -> SparseRows:
    """Checked rows in CSR as the tree takes them; where there is a tree, only hyperplanes can read them."""
    if tree is not None and not isinstance(tree, FlatTree):
        raise ValueError(
            "X must be dense for a tree whose splits are modules, which see whole rows; got sparse rows. "
            "Give X.toarray(), a part of the rows at a time where there are many."
        )
    if X.shape[1] > MOST_FEATURES:
        raise ValueError(f"sparse rows must have at most {MOST_FEATURES} features; got {X.shape[1]}.")
    return SparseRows.of(X)
