"""Ensembles of deterministic trees: the mean of their leaf tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.blocks import n_threads
from crisptree.data.sparse import SparseRows
from crisptree.data.windows import Windows
from crisptree.inference.flat_tree import CrispTree, Doubles, FlatTree, Rows
from crisptree.inference.routing import TYPES, compiled_tree, route_rows
from crisptree.native import router
from crisptree.targets import Target

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CrispForest:
    """Trees of the same features and outputs. Sums are in the order of the trees, whatever the number of threads.

    Parameters
    ----------
    trees : tuple of CrispTree
        At least one.
    """

    trees: tuple[CrispTree, ...]

    @classmethod
    def of(cls, trees: Sequence[CrispTree]) -> CrispForest:
        return cls(tuple(trees))

    def __len__(self) -> int:
        return len(self.trees)

    def __iter__(self) -> Iterator[CrispTree]:
        return iter(self.trees)

    @property
    def meaning(self) -> Target:
        """What a leaf predicts, and how."""
        return self.trees[0].meaning

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

    def leaves(self, X: Rows, n_jobs: int | None = None, *, check_finite: bool = False) -> Integers | None:
        """Leaf of every row in every tree; None if ``check_finite`` and a value is not finite.  (n, n_trees)"""
        if self._reads(X):
            found = np.empty((len(X), len(self)), dtype=np.int64)
            return found if self.kernel.route(X, found, n_threads(n_jobs), check_finite) else None
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
