"""The deterministic tree in flat arrays, and its routing: one path per row. NumPy and C++, never torch."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache, cached_property, singledispatch
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt

from crisptree.data.raw_rows import Scaling, SparseRows, Windows
from crisptree.exceptions import CrispTreeWarning
from crisptree.inference.node_arrays import NodeArrays, visited_nodes
from crisptree.native import router
from crisptree.structure import TreeStructure
from crisptree.targets import TARGETS, Target
from crisptree.threads import ROWS_AT_ONCE, n_threads, row_blocks

if TYPE_CHECKING:
    from scipy import sparse

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Rows = npt.NDArray[np.floating] | Windows | SparseRows

LANES = 32

BRANCH_LINEAR = "branch_linear"
LINEAR_LEAVES = ("linear", BRANCH_LINEAR)
"""Values of ``leaf_model``: models of all features, or of those that the splits of the tree have."""

SPARSE_LINEAR = "sparse_linear"
"""Linear models of a few features that readable regression trees get once their splits are trained."""


def has_linear_leaves(parameters: Mapping[str, Any]) -> bool:
    """Return True if the leaves of a tree with these parameters have linear models."""
    return parameters.get("leaf_model") in LINEAR_LEAVES


@dataclass(frozen=True, eq=False)
class Statistics:
    """Statistics of the training rows, which explanations, plots and the soft tree need.

    Parameters
    ----------
    node_counts : ndarray of shape (n_nodes, n_statistics)
        Sufficient statistics of the training rows that pass each node, splits first, then leaves; for classification
        the weight of every class.
    gain : ndarray of shape (n_splits,)
        Information gain of each split in nats, from those counts.
    score_mean, score_spread : ndarray of shape (n_splits,)
        Weighted mean and standard deviation of f(x) over the training rows that visit each split.
    scaling : Scaling
        Mean and spread of every feature in training, and how they were brought to one scale.
    soft_leaves : ndarray of shape (n_leaves, n_outputs)
        Leaf tables of the probabilistic tree.
    steepness : float
        γ of the last epoch.
    shrinkage : float or None
        Strength of the hierarchical shrinkage of the leaf tables; None without.
    lowest, highest : ndarray of shape (n_features,) or None
        The smallest and the largest value of every feature in training; None if unknown.
    whole : ndarray of shape (n_features,), uint8, or None
        1 for features that were whole numbers in every training row.
    monotonic : ndarray of shape (n_features,), uint8, or None
        1 for features with a monotonic constraint: splits that use one order the leaves below them.
    y_center, y_unit : ndarray of shape (n_targets,) or None
        For regression the mean and spread of y in training: tables and counts are those of (y − center) / unit.
    """

    node_counts: Annotated[Doubles, "nodes", "statistics"]
    gain: Annotated[Doubles, "splits"]
    score_mean: Annotated[Doubles, "splits"]
    score_spread: Annotated[Doubles, "splits"]
    scaling: Scaling
    soft_leaves: Annotated[Doubles, "leaves", "outputs"]
    steepness: float
    shrinkage: float | None = None
    lowest: Annotated[Doubles, "features"] | None = None
    highest: Annotated[Doubles, "features"] | None = None
    whole: Annotated[npt.NDArray[np.uint8], "features"] | None = None
    monotonic: Annotated[npt.NDArray[np.uint8], "features"] | None = None
    y_center: Annotated[Doubles, "targets"] | None = None
    y_unit: Annotated[Doubles, "targets"] | None = None

    def __post_init__(self) -> None:
        if (self.y_center is None) != (self.y_unit is None):
            raise ValueError("y must have a center and a unit, or neither.")
        if self.shrinkage is not None and self.shrinkage < 0:  # from a file; it would divide by zero some day
            raise ValueError(f"shrinkage must be at least 0; got {self.shrinkage}.")


@dataclass(frozen=True, eq=False)
class CrispTree(NodeArrays, ABC):
    """A trained tree that sends every row down one path: its structure, leaf tables and statistics."""

    structure: TreeStructure
    leaves: Annotated[Doubles, "leaves", "outputs"]
    statistics: Statistics
    target_name: str = field(default="classes", kw_only=True)

    @cached_property
    def target(self) -> Target:
        """The target of the leaf tables."""
        return TARGETS[self.target_name](self.leaves.shape[1])

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features of a row."""

    @abstractmethod
    def scores(self, X: Singles, split: int) -> Singles:
        """f(x) of one split for the rows given.  (n, n_features) → (n,)"""

    @abstractmethod
    def parts_of(self, splits: npt.NDArray[np.int64]) -> dict[str, Any]:
        """Select the fields of some splits."""

    @property
    def is_linear(self) -> bool:
        """True if leaves have linear models, so that a prediction needs the row and not only its leaf."""
        return False

    def models_of(self, nodes: npt.NDArray[np.int64]) -> dict[str, Any]:
        """Select the linear models of some nodes."""
        return {}

    def predictions(self, leaf: npt.NDArray[np.int64], X: Rows) -> npt.NDArray[Any]:
        """Predict rows that have reached the given leaves.  (b,), (b, n_features) → (b, …)"""
        if not self.is_linear:
            return self.labels(leaf)
        predictions: npt.NDArray[Any] = self.target.predict(self.leaf_values(leaf, X))
        return predictions

    @property
    def n_values(self) -> int:
        """Length of a leaf table: one entry per class, or a mean and a variance per output."""
        return self.leaves.shape[1]

    def apply(self, X: Rows) -> npt.NDArray[np.int64]:
        """Return the node in which every row ends.  (n, n_features) → (n,)"""
        return self.structure.n_splits + route_rows(self, X)

    def decision_path(self, X: Rows) -> sparse.csr_matrix:
        """Indicate the nodes that every row visits.  (n, n_features) → (n, n_nodes)"""
        return visited_nodes(self.structure, route_rows(self, X))

    def restore_units(self, tables: Doubles) -> Doubles:
        """Convert tables of a regression to the units of y; those of classification stay.  (m, n_outputs)"""
        center, unit = self.statistics.y_center, self.statistics.y_unit
        return tables if center is None or unit is None else self.target.restore_units(tables, center, unit)

    @cached_property
    def _tables(self) -> Doubles:
        return self.restore_units(self.leaves)

    @cached_property
    def _predictions(self) -> npt.NDArray[Any]:
        predictions: npt.NDArray[Any] = self.target.predict(self._tables)
        return predictions

    def labels(self, leaf: Any = slice(None)) -> npt.NDArray[Any]:
        """Predictions of some leaves, or of all: the index of the most frequent class, or means.  (b,) → (b, …)"""
        return self._predictions[leaf]

    def leaf_values(self, leaf: Any = slice(None), X: Rows | None = None) -> Doubles:
        """Outputs for rows that end in some leaves: class probabilities, or means and variances.

        (b,) → (b, n_outputs). ``X`` are those rows, which linear leaves need.
        """
        return self._tables[leaf]

    def __getstate__(self) -> dict[str, Any]:
        # What was derived from the fields is derived again; the kernel's own form cannot be pickled.
        return {name.name: getattr(self, name.name) for name in fields(self)}


@dataclass(frozen=True, eq=False)
class FlatTree(CrispTree):
    """A tree with linear splits f(x) = weight · x + bias on raw features, in single precision.

    Parameters
    ----------
    structure : TreeStructure
        Its children arrays are ``left`` and ``right``.
    leaves : ndarray of shape (n_leaves, n_classes)
        Class probabilities of every leaf.
    statistics : Statistics
        See there.
    weight : ndarray of shape (n_splits, n_features), float32
        Hyperplanes on raw features, the training scale folded in.
    bias : ndarray of shape (n_splits,), float32
        Their offsets.
    linear_weight : ndarray of shape (n_nodes, n_predictions, n_features) or None
        Where leaves have linear models, their weights on raw features: one function for every class or output. A node's
        are the sums of the parts on its path, so that a split that becomes a leaf has a model too.
    linear_bias : ndarray of shape (n_nodes, n_predictions) or None
        Their offsets.
    linear_variance : ndarray of shape (n_nodes, n_predictions) or None
        For regression the residual variance of the models, in the units of training.
    """

    weight: Annotated[Singles, "splits", "features"] = field(kw_only=True)
    bias: Annotated[Singles, "splits"] = field(kw_only=True)
    linear_weight: Annotated[Doubles, "nodes", "predictions", "features"] | None = field(default=None, kw_only=True)
    linear_bias: Annotated[Doubles, "nodes", "predictions"] | None = field(default=None, kw_only=True)
    linear_variance: Annotated[Doubles, "nodes", "predictions"] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if (self.linear_weight is None) != (self.linear_bias is None):
            raise ValueError("linear models must have weights and offsets.")
        if self.linear_weight is None:
            return
        is_regression = self.target.is_regression
        if self.linear_weight.shape[1] != (self.n_values // 2 if is_regression else self.n_values):
            raise ValueError("linear models must have a function for every class or output.")
        if is_regression != (self.linear_variance is not None) or (is_regression and (self.linear_variance < 0).any()):  # type: ignore[operator, union-attr]
            raise ValueError("linear models of a regression, and no others, must have variances.")

    @property
    def is_linear(self) -> bool:
        return self.linear_weight is not None

    def models_of(self, nodes: npt.NDArray[np.int64]) -> dict[str, Any]:
        names = ("linear_weight", "linear_bias", "linear_variance")
        models = {name: getattr(self, name) for name in names}
        return {name: None if value is None else value[nodes] for name, value in models.items()}

    def leaf_values(self, leaf: Any = slice(None), X: Rows | None = None) -> Doubles:
        if not self.is_linear or X is None:
            return super().leaf_values(leaf)
        return self.restore_units(self.scaled_values(np.asarray(leaf), X))

    def scaled_values(self, leaf: npt.NDArray[np.int64], X: Rows) -> Doubles:
        """Outputs for rows that have reached some leaves, in the units of training.  (b,), (b, n_features)"""
        if not self.is_linear:
            return self.leaves[leaf]
        return linear_tables(self, leaf, X)

    @property
    def n_features(self) -> int:
        return self.weight.shape[1]

    def linear_splits(self) -> tuple[Singles, Singles]:
        return self.weight, self.bias

    def scores(self, X: Singles, split: int) -> Singles:
        return linear_scores(X, self.weight[split], self.bias[split])

    def parts_of(self, splits: npt.NDArray[np.int64]) -> dict[str, Any]:
        return {"weight": self.weight[splits], "bias": self.bias[splits]}

    def scaled_hyperplanes(self) -> tuple[Doubles, Doubles]:
        """β in the scaled space of training: the weights to look at.  (n_splits, n_features), (n_splits,)"""
        return self.statistics.scaling.unfold(self.weight, self.bias)


def linear_tables(tree: FlatTree, leaf: npt.NDArray[np.int64], X: Rows) -> Doubles:
    """Evaluate the linear models of leaves: one small matrix product for all rows of a leaf.  (b, n_outputs)"""
    weight, bias, variance = tree.linear_weight, tree.linear_bias, tree.linear_variance
    assert weight is not None
    assert bias is not None
    n_splits = tree.structure.n_splits
    scores = np.empty((len(leaf), weight.shape[1]))
    for rows in group_by_leaf(leaf):
        node, some = n_splits + leaf[rows[0]], X[rows]
        with np.errstate(under="ignore"):  # numbers near 0 become 0
            x = np.asarray(some.dense() if isinstance(some, SparseRows) else some, dtype=np.float32).astype(np.float64)
        scores[rows] = x @ weight[node].T + bias[node]
    if variance is not None:
        return np.concatenate([scores, variance[n_splits + leaf]], axis=1)
    with np.errstate(under="ignore"):  # a class far less likely than the likeliest has probability 0
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def group_by_leaf(leaf: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Group row indices by their leaf, ascending; leaves without rows have no group."""
    order = np.argsort(leaf, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(leaf[order])) + 1) if len(order) else []


def linear_scores(X: Singles, weight: Singles, bias: np.float32) -> Singles:
    """weight · x + bias in the fixed order.  (n, n_features) → (n,)"""
    lanes = np.zeros((len(X), LANES), dtype=np.float32)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for start in range(0, X.shape[1], LANES):
            terms = X[:, start : start + LANES] * weight[start : start + LANES]
            lanes[:, : terms.shape[1]] += terms
        while lanes.shape[1] > 1:
            half = lanes.shape[1] // 2
            lanes = lanes[:, :half] + lanes[:, half:]
        return lanes[:, 0] + bias


Leaves = npt.NDArray[np.int64]

TYPES = tuple(np.dtype(kind) for kind in (np.float32, np.float64, np.float16, np.uint8))
"""Element types that the kernel reads; each value becomes float32 as it is read, without a copy of the array."""

MIN_VALUES_FOR_THREADS = 2**19
"""Rows below which the kernel uses one thread without resolving n_jobs, for which joblib takes as long as a row."""

SPARSE_VALUES_AT_ONCE = 2**24
"""Values of sparse rows that are made dense at a time."""


@singledispatch
def route_rows(tree: CrispTree, X: Rows, n_jobs: int | None = None) -> Leaves:
    """Leaf of every row: by the kernel for linear splits, by the definition for any others.  (n, n_features) → (n,)"""
    return route_reference(tree, np.asarray(X[:], dtype=np.float32))


@route_rows.register
def _(tree: FlatTree, X: Rows, n_jobs: int | None = None) -> Leaves:
    if isinstance(X, Windows | SparseRows):
        return route_implicit(tree, X, n_jobs=n_jobs)
    leaves = route_array(tree, X, n_jobs=n_jobs)
    assert leaves is not None  # only a check for finite values can fail
    return leaves


def dense_blocks(X: Singles | Windows | SparseRows) -> Iterator[tuple[slice, Singles]]:
    """Iterate over blocks of rows as dense arrays."""
    at_once = max(1, SPARSE_VALUES_AT_ONCE // X.n_features) if isinstance(X, SparseRows) else ROWS_AT_ONCE
    for block in row_blocks(len(X), at_once):
        rows = X[block]
        yield block, rows.dense() if isinstance(rows, SparseRows) else rows


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


def route_implicit(
    tree: FlatTree, X: Windows | SparseRows, *, n_jobs: int | None = None, instruction_set: str = ""
) -> Leaves:
    """Leaf of every window or sparse row: that of the same row in an array, bit for bit. All values must be finite.

    Zeros add nothing to a score, and the other terms go to the lanes of a sum in the order of their features.
    """
    leaves = np.empty(len(X), dtype=np.int64)
    if router is None:
        _warn_once()
        for block, rows in dense_blocks(X):
            leaves[block] = route_reference(tree, rows)
    elif isinstance(X, Windows):
        compiled_tree(tree).route_windows(*_window_arrays(X), leaves, n_threads(n_jobs), instruction_set)
    else:
        compiled_tree(tree).route_sparse(*_csr_arrays(X), leaves, n_threads(n_jobs))
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
        cached = router.Router(
            *(_contiguous(part) for part in (tree.structure.left, tree.structure.right, tree.weight, tree.bias))
        )
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


@cache
def _warn_once() -> None:
    warnings.warn(
        "crisptree was installed without its compiled kernel and predicts with NumPy: the same leaves, but many times "
        "slower. Reinstall it where a C++ compiler is available.",
        CrispTreeWarning,
        stacklevel=4,
    )


@dataclass(frozen=True, eq=False)
class CrispForest:
    """Trees of the same features and outputs. Sums are in the order of the trees, whatever the number of threads."""

    trees: tuple[CrispTree, ...]

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
    def n_values(self) -> int:
        return self.trees[0].n_values

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
        sums = np.empty((len(X), self.n_values))
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
        """Return True if the kernel can read such rows."""
        if isinstance(X, Windows | SparseRows) or self.kernel is None:
            return False
        whole = all(stride % X.itemsize == 0 for stride in X.strides)
        return X.dtype in TYPES and X.flags.aligned and whole

    def __getstate__(self) -> dict[str, Any]:
        return {name.name: getattr(self, name.name) for name in fields(self)}


def _is_finite(X: Any) -> bool:
    with np.errstate(under="ignore"):  # numbers near 0 become 0
        return bool(np.isfinite(np.asarray(X, dtype=np.float32)).all())
