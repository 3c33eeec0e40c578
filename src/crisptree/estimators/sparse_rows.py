"""Sparse rows at the front door: what they may be used with, and what must be dense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scipy import sparse

from crisptree.inference import CrispTree, FlatTree
from crisptree.rows.sparse import MOST_FEATURES, SparseRows

POSSIBLE: dict[str, tuple[Any, ...]] = {
    "split": ("auto", "oblique"),
    "grow": ("greedy", "balanced"),
    "algorithm": ("em", "alternating", "likelihood"),
    "image_shape": (None,),
    "device": ("auto", "cpu"),
}
"""What the parameters of a fit on sparse rows may be: hyperplanes that know of no image, trained on the CPU."""


def is_sparse(X: Any) -> bool:
    """Whether X is one of scipy's sparse matrices or arrays."""
    return bool(sparse.issparse(X))


def check_sparse_fit(parameters: Mapping[str, Any]) -> None:
    """Refuse what needs rows with all of their values."""
    for name, possible in POSSIBLE.items():
        value = parameters[name]
        if callable(value) or value not in possible:
            words = ", ".join(map(repr, possible))
            raise ValueError(
                f"`{name}` must be {'one of ' if len(possible) > 1 else ''}{words} for sparse rows; got {value!r}. "
                "Give X.toarray() where that fits into memory."
            )


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
