"""Which leaf a row reaches: the compiled kernel, bit for bit the reference."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.blocks import n_threads, row_blocks
from crisptree.data.sparse import SparseRows
from crisptree.data.windows import Windows
from crisptree.exceptions import CrispTreeWarning
from crisptree.inference import reference
from crisptree.inference.flat import FlatTree
from crisptree.native import router

TYPES = tuple(np.dtype(kind) for kind in (np.float32, np.float64, np.float16, np.uint8))
"""What rows may be made of; each value becomes float32 as it is read, and no copy of all of them is made."""

FEWEST_VALUES_FOR_THREADS = 2**19
"""The kernel works on one thread below this, so n_jobs is not resolved there: joblib takes as long as a row for it."""

WINDOWS_AT_ONCE = 2048
SPARSE_VALUES_AT_ONCE = 2**24
"""Without the kernel so many windows, or values of sparse rows, are written down at a time."""


def route_rows(
    tree: FlatTree,
    X: npt.NDArray[np.floating | np.uint8],
    *,
    n_jobs: int | None = None,
    check_finite: bool = False,
    instruction_set: str = "",
) -> npt.NDArray[np.int64] | None:
    """The leaf of every row of values of one of ``TYPES`` at any strides; each becomes float32 as it is read.

    Parameters
    ----------
    tree : FlatTree
        A tree with linear splits.
    X : ndarray of shape (n, n_features)
        Rows.
    n_jobs : int or None, default=None
        Threads; see ``blocks.n_threads``.
    check_finite : bool, default=False
        Give None, and no leaves, if any value is infinite or not a number in float32.
    instruction_set : str, default=""
        One of ``native.router.instruction_sets()``; the empty string takes ``native.instruction_set``.
    """
    if router is None:
        return _by_reference(tree, X, check_finite)
    leaves = np.empty(len(X), dtype=np.int64)
    if not X.flags.aligned or X.strides[0] % X.itemsize or X.strides[1] % X.itemsize:
        X = X.copy()  # a field of a record, or bytes of a file: the kernel counts in whole values
    threads = 1 if X.size < FEWEST_VALUES_FOR_THREADS else n_threads(n_jobs)
    finite = prepared(tree).route(X, leaves, threads, check_finite, instruction_set)
    return leaves if finite else None


def route_windows(
    tree: FlatTree, windows: Windows, *, n_jobs: int | None = None, instruction_set: str = ""
) -> npt.NDArray[np.int64]:
    """The leaf of every window, as if its values stood in an array of rows. All values must be finite."""
    leaves = np.empty(len(windows), dtype=np.int64)
    if router is None:
        _say_once()
        for rows in row_blocks(len(windows), WINDOWS_AT_ONCE):
            leaves[rows] = reference.route_rows(tree, windows[rows])
        return leaves
    arrays = (_in_order(part) for part in (windows.data, windows.base, windows.offset))
    prepared(tree).route_windows(*arrays, leaves, n_threads(n_jobs), instruction_set)
    return leaves


def route_sparse(tree: FlatTree, rows: SparseRows, *, n_jobs: int | None = None) -> npt.NDArray[np.int64]:
    """The leaf of every sparse row: that of the same row with its zeros, bit for bit. All values must be finite.

    Zeros add nothing to a score, and the other terms go to the lanes of ``summation`` in the order of their features.
    """
    leaves = np.empty(len(rows), dtype=np.int64)
    if router is None:
        _say_once()
        for block in row_blocks(len(rows), max(1, SPARSE_VALUES_AT_ONCE // rows.n_features)):
            leaves[block] = reference.route_rows(tree, rows[block].dense())
        return leaves
    prepared(tree).route_sparse(*_csr(rows), leaves, n_threads(n_jobs))
    return leaves


def score_moments(
    tree: FlatTree,
    X: npt.NDArray[np.float32] | Windows | SparseRows,
    sample_weight: npt.NDArray[np.float64],
    n_jobs: int | None,
) -> npt.NDArray[np.float64] | None:
    """Σ w, Σ w f and Σ w f² of the rows that pass each split, or None without the kernel.  (n_splits, 3)"""
    if router is None:
        return None
    moments = np.zeros((tree.structure.n_splits, 3))
    kernel, threads = prepared(tree), n_threads(n_jobs)
    if isinstance(X, SparseRows):
        kernel.score_moments_of_sparse(*_csr(X), _in_order(sample_weight), moments, threads)
    elif isinstance(X, Windows):
        arrays = (_in_order(part) for part in (X.data, X.base, X.offset))
        kernel.score_moments_of_windows(*arrays, _in_order(sample_weight), moments, threads)
    else:
        kernel.score_moments(_in_order(X), _in_order(sample_weight), moments, threads)
    return moments


def prepared(tree: FlatTree) -> Any:
    """The tree in the kernel's own form, made once and kept with it."""
    kept = tree.__dict__.get("_router")
    if kept is None:
        assert router is not None
        kept = router.Router(*(_in_order(part) for part in (tree.left, tree.right, tree.weight, tree.bias)))
        tree.__dict__["_router"] = kept
    return kept


def _csr(rows: SparseRows) -> tuple[Any, ...]:
    data = np.asarray(rows.data, dtype=np.float32)
    return (*(_in_order(part) for part in (data, rows.index, rows.start)), rows.n_features)


def _in_order(values: Any) -> npt.NDArray[Any]:
    """The values side by side and aligned, copied only where they are not."""
    return np.require(values, requirements=("C", "A"))


_said: set[str] = set()


def _by_reference(tree: FlatTree, X: npt.NDArray[Any], check_finite: bool) -> npt.NDArray[np.int64] | None:
    _say_once()
    with np.errstate(over="ignore", under="ignore"):
        rows = np.asarray(X, dtype=np.float32)
    if check_finite and not np.isfinite(rows).all():
        return None
    return reference.route_rows(tree, rows)


def _say_once() -> None:
    if not _said:
        _said.add("once")
        warnings.warn(
            "crisptree was installed without its compiled kernel and predicts with NumPy: the same leaves, but many "
            "times slower. Reinstall it where a C++ compiler is at hand.",
            CrispTreeWarning,
            stacklevel=5,
        )
