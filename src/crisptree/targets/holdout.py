"""Stratified hold-out: one rule for data sets, estimators and the command line."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

RowNumbers = npt.NDArray[np.intp]

N_STRATA = 10
"""Quantile bins of a regression target; every bin gives its share of the held-out rows."""


def hold_out(
    y: npt.NDArray[Any], share: float, seed: int, *, keep_classes: bool = False, source: RowNumbers | None = None
) -> tuple[RowNumbers, RowNumbers]:
    """Split rows into those that stay and those that are held out, stratified by class where possible.

    It is possible if every class has two rows and both parts have room for all classes. ``share`` is a share of the
    rows, rounded to at least one and not all of them, or their number. With ``keep_classes``, held-out rows of classes
    that would have no other row stay. ``source`` is the row that each row is a copy of: copies stay or leave with it,
    and are never held out themselves. Returns row indices in the order in which they were drawn.

    Examples
    --------
    >>> y = np.array(["no", "no", "no", "no", "yes", "yes"])
    >>> kept, held_out = hold_out(y, 0.5, seed=0)
    >>> sorted(y[held_out].tolist())
    ['no', 'no', 'yes']
    """
    from sklearn.model_selection import train_test_split  # takes a second to import

    if source is not None:
        originals = find_originals(len(y), source)
        kept, held_out = hold_out(y[originals], share, seed, keep_classes=keep_classes)
        return add_copies(originals[kept], source), originals[held_out]
    n_rows = len(y)
    if n_rows < 2:
        raise ValueError(f"there must be at least 2 rows to hold one of them out; got {n_rows}. Give more rows.")
    _, counts = np.unique(y, return_counts=True)
    n_held_out = share if isinstance(share, int | np.integer) else min(max(1, round(share * n_rows)), n_rows - 1)
    is_stratified = counts.min() >= 2 and len(counts) <= min(n_held_out, n_rows - n_held_out)
    strata = y if is_stratified else None
    kept, held_out = train_test_split(np.arange(n_rows), test_size=n_held_out, random_state=seed, stratify=strata)
    if keep_classes:
        stays = ~np.isin(y[held_out], y[kept])
        kept, held_out = np.concatenate([kept, held_out[stays]]), held_out[~stays]
    return kept, held_out


def find_originals(n_rows: int, source: RowNumbers | None) -> RowNumbers:
    """Return the rows that are no copies: the first of each source."""
    return np.arange(n_rows) if source is None else np.sort(np.unique(source, return_index=True)[1])


def add_copies(rows: RowNumbers, source: RowNumbers | None) -> RowNumbers:
    """Return the rows and all copies of them.

    Examples
    --------
    >>> add_copies(np.array([1]), source=np.array([0, 1, 0, 1])).tolist()
    [1, 3]
    """
    return rows if source is None else np.flatnonzero(np.isin(source, source[rows]))


def quantile_strata(y: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Assign values to quantile bins of about as many rows each.  (n,)"""
    edges = np.unique(np.quantile(y, np.arange(1, N_STRATA) / N_STRATA))
    return np.unique(np.searchsorted(edges, y, side="left"), return_inverse=True)[1].astype(np.int64)
