"""Routing of rows to the leaves of trees and forests: the NumPy definition, and the kernel, equal bit for bit.

A score above zero goes right; zero goes left.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.data.images import Windows
from crisptree.data.sparse import SparseRows
from crisptree.exceptions import CrispTreeWarning
from crisptree.inference.flat_tree import CrispTree, Doubles, FlatTree, Rows
from crisptree.native import router
from crisptree.targets import Target
from crisptree.threads import n_threads, row_blocks

Leaves = npt.NDArray[np.int64]

TYPES = tuple(np.dtype(kind) for kind in (np.float32, np.float64, np.float16, np.uint8))
"""Element types that the kernel reads; each value becomes float32 as it is read, without a copy of the array."""

MIN_VALUES_FOR_THREADS = 2**19
"""The kernel works on one thread below this, so n_jobs is not resolved: joblib takes as long for it as a row takes."""

WINDOWS_AT_ONCE = 2048
SPARSE_VALUES_AT_ONCE = 2**24
"""Without the kernel, how many windows, or values of sparse rows, are made dense at a time."""


@singledispatch
def route_rows(tree: CrispTree, X: Rows, n_jobs: int | None = None) -> Leaves:
    """Leaf of every row: by the kernel for linear splits, by the definition for any others.  (n, n_features) → (n,)"""
    return route_reference(tree, np.asarray(X[:], dtype=np.float32))


@route_rows.register
def _(tree: FlatTree, X: Rows, n_jobs: int | None = None) -> Leaves:
    if isinstance(X, Windows):
        return route_windows(tree, X, n_jobs=n_jobs)
    if isinstance(X, SparseRows):
        return route_sparse(tree, X, n_jobs=n_jobs)
    leaves = route_array(tree, X, n_jobs=n_jobs)
    assert leaves is not None  # only a check for finite values can fail
    return leaves


def route_reference(tree: CrispTree, X: npt.NDArray[np.float32]) -> Leaves:
    """Leaf of every row: the definition.  (n, n_features) → (n,)"""
    leaves = np.zeros(len(X), dtype=np.int64)
    for split, rows, scores in visit_splits(tree, X):
        children = np.where(scores > 0, tree.structure.right[split], tree.structure.left[split])
        leaves[rows] = ~children
    return leaves


def visit_splits(
    tree: CrispTree, X: npt.NDArray[np.float32]
) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.float32]]]:
    """Iterate over the splits that some row visits, with those rows and their scores; parents before children."""
    waiting = {0: np.arange(len(X))} if tree.structure.n_splits else {}
    for split in range(tree.structure.n_splits):
        rows = waiting.pop(split, None)
        if rows is None or not len(rows):
            continue
        scores = tree.scores(X[rows], split)
        yield split, rows, scores
        goes_right = scores > 0
        for child, taken in ((tree.structure.left[split], ~goes_right), (tree.structure.right[split], goes_right)):
            if child >= 0:
                waiting[int(child)] = rows[taken]


def route_array(
    tree: FlatTree,
    X: npt.NDArray[np.floating | np.uint8],
    *,
    n_jobs: int | None = None,
    check_finite: bool = False,
    instruction_set: str = "",
) -> Leaves | None:
    """Leaf of every row of an array of one of ``TYPES`` with any strides; values become float32 as they are read.

    With ``check_finite``, None if any value is infinite or NaN in float32. ``instruction_set`` is one of
    ``native.router.instruction_sets()``; the empty string takes the widest.
    """
    if router is None:
        _warn_once()
        with np.errstate(over="ignore", under="ignore"):
            rows = np.asarray(X, dtype=np.float32)
        return None if check_finite and not np.isfinite(rows).all() else route_reference(tree, rows)
    leaves = np.empty(len(X), dtype=np.int64)
    if not X.flags.aligned or X.strides[0] % X.itemsize or X.strides[1] % X.itemsize:
        X = X.copy()  # a field of a record, or bytes of a file: the kernel counts in whole values
    threads = 1 if X.size < MIN_VALUES_FOR_THREADS else n_threads(n_jobs)
    finite = compiled_tree(tree).route(X, leaves, threads, check_finite, instruction_set)
    return leaves if finite else None


def route_windows(tree: FlatTree, windows: Windows, *, n_jobs: int | None = None, instruction_set: str = "") -> Leaves:
    """Leaf of every window, as if its values were an array of rows. All values must be finite."""
    leaves = np.empty(len(windows), dtype=np.int64)
    if router is None:
        _warn_once()
        for rows in row_blocks(len(windows), WINDOWS_AT_ONCE):
            leaves[rows] = route_reference(tree, windows[rows])
        return leaves
    compiled_tree(tree).route_windows(*_window_arrays(windows), leaves, n_threads(n_jobs), instruction_set)
    return leaves


def route_sparse(tree: FlatTree, rows: SparseRows, *, n_jobs: int | None = None) -> Leaves:
    """Leaf of every sparse row: that of the same row with its zeros, bit for bit. All values must be finite.

    Zeros add nothing to a score, and the other terms go to the lanes of a sum in the order of their features.
    """
    leaves = np.empty(len(rows), dtype=np.int64)
    if router is None:
        _warn_once()
        for block in row_blocks(len(rows), max(1, SPARSE_VALUES_AT_ONCE // rows.n_features)):
            leaves[block] = route_reference(tree, rows[block].dense())
        return leaves
    compiled_tree(tree).route_sparse(*_csr_arrays(rows), leaves, n_threads(n_jobs))
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
    kernel, threads = compiled_tree(tree), n_threads(n_jobs)
    if isinstance(X, SparseRows):
        kernel.score_moments_of_sparse(*_csr_arrays(X), _contiguous(sample_weight), moments, threads)
    elif isinstance(X, Windows):
        kernel.score_moments_of_windows(*_window_arrays(X), _contiguous(sample_weight), moments, threads)
    else:
        kernel.score_moments(_contiguous(X), _contiguous(sample_weight), moments, threads)
    return moments


def compiled_tree(tree: FlatTree) -> Any:
    """Compile the tree for the kernel, cached on the tree."""
    cached = tree.__dict__.get("_router")
    if cached is None:
        assert router is not None
        cached = router.Router(*(_contiguous(part) for part in (tree.left, tree.right, tree.weight, tree.bias)))
        tree.__dict__["_router"] = cached
    return cached


def _window_arrays(windows: Windows) -> tuple[Any, ...]:
    return tuple(_contiguous(part) for part in (windows.data, windows.base, windows.offset))


def _csr_arrays(rows: SparseRows) -> tuple[Any, ...]:
    data = np.asarray(rows.data, dtype=np.float32)
    return (*(_contiguous(part) for part in (data, rows.index, rows.start)), rows.n_features)


def _contiguous(values: Any) -> npt.NDArray[Any]:
    """Return the values in C order and aligned, copied only if necessary."""
    return np.require(values, requirements=("C", "A"))


_warned: set[str] = set()


def _warn_once() -> None:
    if not _warned:
        _warned.add("once")
        warnings.warn(
            "crisptree was installed without its compiled kernel and predicts with NumPy: the same leaves, but many "
            "times slower. Reinstall it where a C++ compiler is available.",
            CrispTreeWarning,
            stacklevel=4,
        )


@dataclass(frozen=True, eq=False)
class CrispForest:
    """Trees of the same features and outputs. Sums are in the order of the trees, whatever the number of threads."""

    trees: tuple[CrispTree, ...]

    @classmethod
    def of(cls, trees: Sequence[CrispTree]) -> CrispForest:
        return cls(tuple(trees))

    def __len__(self) -> int:
        return len(self.trees)

    def __iter__(self) -> Iterator[CrispTree]:
        return iter(self.trees)

    @property
    def target(self) -> Target:
        """The target of the leaf tables."""
        return self.trees[0].target

    @property
    def n_features(self) -> int:
        return self.trees[0].n_features

    @property
    def n_outputs(self) -> int:
        return self.trees[0].n_outputs

    @cached_property
    def kernel(self) -> Any:
        """All trees in the kernel's own form; None if it is not installed or cannot route them."""
        if router is None or not all(type(tree) is FlatTree and not tree.is_linear for tree in self.trees):
            return None
        tables = np.concatenate([tree.leaf_values() for tree in self.trees])
        return router.Forest(tuple(compiled_tree(tree) for tree in self.trees if isinstance(tree, FlatTree)), tables)

    def leaves(self, X: Rows, n_jobs: int | None = None, *, check_finite: bool = False) -> Leaves | None:
        """Leaf of every row in every tree; None if ``check_finite`` and a value is not finite.  (n, n_trees)"""
        if self._reads(X):
            leaves = np.empty((len(X), len(self)), dtype=np.int64)
            return leaves if self.kernel.route(X, leaves, n_threads(n_jobs), check_finite) else None
        if check_finite and not _is_finite(X):
            return None
        return np.stack([route_rows(tree, X, n_jobs) for tree in self.trees], axis=1)

    def values(self, X: Rows, n_jobs: int | None = None, *, check_finite: bool = False) -> Doubles | None:
        """Mean of the leaf outputs of every row; None if ``check_finite`` and a value is not finite.

        (n, n_features) → (n, n_outputs)
        """
        sums = np.empty((len(X), self.n_outputs))
        if self._reads(X):
            if not self.kernel.sum(X, sums, n_threads(n_jobs), check_finite):
                return None
        elif check_finite and not _is_finite(X):
            return None
        else:
            sums[:] = 0.0
            for tree in self.trees:
                sums += tree.leaf_values(route_rows(tree, X, n_jobs), X)
        sums /= len(self)
        return sums

    def _reads(self, X: Rows) -> bool:
        """True if the kernel can read such rows."""
        if isinstance(X, Windows | SparseRows) or self.kernel is None:
            return False
        whole = all(stride % X.itemsize == 0 for stride in X.strides)
        return X.dtype in TYPES and X.flags.aligned and whole

    def __getstate__(self) -> dict[str, Any]:
        return {name.name: getattr(self, name.name) for name in fields(self)}


def _is_finite(X: Any) -> bool:
    return bool(np.isfinite(np.asarray(X, dtype=np.float32)).all())
