"""Rows that are put aside to judge a model by: one rule for data sets, estimators and the command line."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

RowNumbers = npt.NDArray[np.intp]


def hold_out(
    y: npt.NDArray[Any], share: float, seed: int, *, keep_classes: bool = False, source: RowNumbers | None = None
) -> tuple[RowNumbers, RowNumbers]:
    """The numbers of the rows that stay and of those that are held out, of every class alike where that can be done.

    It can be done where every class has two rows and both parts have room for all classes; else rows are drawn
    without regard to their class.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels of any type that can be sorted.
    share : float or int
        How much to hold out: a share of the rows between 0 and 1, rounded to at least one and not all of them; or a
        whole number, so many rows.
    seed : int
        Draws the rows.
    keep_classes : bool, default=False
        Whether rows stay whose class would have none left among those that stay; it may be that fewer are held out.
    source : ndarray of int of shape (n,), default=None
        Which row a row is a copy of, where there are copies: they go with it, and are never held out.

    Returns
    -------
    kept, held : ndarray of int
        Row numbers, in the order in which they were drawn.

    Examples
    --------
    >>> y = np.array(["no", "no", "no", "no", "yes", "yes"])
    >>> kept, held = hold_out(y, 0.5, seed=0)
    >>> sorted(y[held].tolist())
    ['no', 'no', 'yes']
    """
    from sklearn.model_selection import train_test_split  # takes a second to import

    if source is not None:
        own = own_rows(len(y), source)
        kept, held = hold_out(y[own], share, seed, keep_classes=keep_classes)
        return and_copies(own[kept], source), own[held]
    n_rows = len(y)
    if n_rows < 2:
        raise ValueError(f"there must be at least 2 rows to hold one of them out; got {n_rows}. Give more rows.")
    _, counts = np.unique(y, return_counts=True)
    n_held = share if isinstance(share, int | np.integer) else min(max(1, round(share * n_rows)), n_rows - 1)
    alike = counts.min() >= 2 and len(counts) <= min(n_held, n_rows - n_held)
    kept, held = train_test_split(np.arange(n_rows), test_size=n_held, random_state=seed, stratify=y if alike else None)
    if keep_classes:
        stays = ~np.isin(y[held], y[kept])
        kept, held = np.concatenate([kept, held[stays]]), held[~stays]
    return kept, held


def own_rows(n_rows: int, source: RowNumbers | None) -> RowNumbers:
    """The rows that are no copies: the first of each source."""
    return np.arange(n_rows) if source is None else np.sort(np.unique(source, return_index=True)[1])


def and_copies(rows: RowNumbers, source: RowNumbers | None) -> RowNumbers:
    """The rows and all copies of them.

    Examples
    --------
    >>> and_copies(np.array([1]), source=np.array([0, 1, 0, 1])).tolist()
    [1, 3]
    """
    return rows if source is None else np.flatnonzero(np.isin(source, source[rows]))
