"""Sparse rows at the front door: what they may be used with, and what must be dense."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from crisptree.data.sparse import MOST_FEATURES, SparseRows
from crisptree.inference import CrispTree, FlatTree

POSSIBLE: dict[str, tuple[Any, ...]] = {
    "split": ("auto", "oblique"),
    "grow": ("greedy", "balanced"),
    "algorithm": ("em", "alternating", "likelihood"),
    "image_shape": (None,),
    "device": ("auto", "cpu"),
    "categorical": ("auto", None),
}
"""What the parameters of a fit on sparse rows may be: hyperplanes that know of no image, trained on the CPU."""


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


def takes_sparse_rows(parameters: Mapping[str, Any]) -> bool:
    """Whether a fit with these parameters can do without the zeros."""
    return not any(True for _ in _in_the_way(parameters))


def check_sparse_fit(parameters: Mapping[str, Any]) -> None:
    """Refuse what needs rows with all of their values."""
    for name in _in_the_way(parameters):
        words = ", ".join(map(repr, POSSIBLE[name]))
        raise ValueError(
            f"`{name}` must be {'one of ' if len(POSSIBLE[name]) > 1 else ''}{words} for sparse rows; got "
            f"{parameters[name]!r}. Give X.toarray() where that fits into memory."
        )


def _in_the_way(parameters: Mapping[str, Any]) -> Iterator[str]:
    for name, possible in POSSIBLE.items():
        if callable(parameters[name]) or parameters[name] not in possible:
            yield name


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
