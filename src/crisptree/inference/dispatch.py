"""The one way to a leaf: the kernel for linear splits, the definition for any others."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
import numpy.typing as npt

from crisptree.data.sparse import SparseRows
from crisptree.data.windows import Windows
from crisptree.inference import compiled, reference
from crisptree.inference.flat import CrispTree, FlatTree, Rows


@singledispatch
def route_rows(tree: CrispTree, X: Rows, n_jobs: int | None = None) -> npt.NDArray[np.int64]:
    """The leaf of every row. A score above zero goes right; zero goes left.  (n, n_features) → (n,)"""
    return reference.route_rows(tree, np.asarray(X[:], dtype=np.float32))


@route_rows.register
def _(tree: FlatTree, X: Rows, n_jobs: int | None = None) -> npt.NDArray[np.int64]:
    if isinstance(X, Windows):
        return compiled.route_windows(tree, X, n_jobs=n_jobs)
    if isinstance(X, SparseRows):
        return compiled.route_sparse(tree, X, n_jobs=n_jobs)
    leaves = compiled.route_rows(tree, X, n_jobs=n_jobs)
    assert leaves is not None  # only a check for finite values can fail
    return leaves
