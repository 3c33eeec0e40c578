"""Exports by name, and the proof that they agree with their models."""

from __future__ import annotations

from typing import Any

from crisptree.export.agreement import Agreement, Rows, compare, rows_of
from crisptree.export.support import target_named


def write(model: Any, to: str, **options: Any) -> str | bytes:
    """A fitted model in another form, by the form's name.

    Parameters
    ----------
    model : CrispTreeClassifier, CrispSegmenter or Pipeline
        A fitted estimator, or a fitted Pipeline of a ``TableEncoder`` and one.
    to : str
        One of the targets of ``crisptree export``; docs/export/index.md has the table of what each can hold.
    **options
        Those of the target.

    Returns
    -------
    str or bytes
        What a file of that form holds.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y)
    >>> type(export.write(model, "sklearn")).__name__
    'bytes'
    """
    return target_named(to).write(model, **options)


def check(model: Any, X: Any, to: str, **options: Any) -> Agreement:
    """Export a model, run what was written on rows, and compare both row by row.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        As in ``write``.
    X : array-like or table
        Rows as the model takes them.
    to : str
        The target.
    **options
        Those of the target.

    Returns
    -------
    Agreement
        How many rows reach the same leaf, and whether rounding explains those that do not.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y)
    >>> agreement = export.check(model, X, "sklearn")
    >>> agreement.rows, agreement.equal_leaves, agreement.holds
    (4, 4, True)
    """
    return check_written(model, rows_of(model, X), to, target_named(to).write(model, **options))


def check_written(model: Any, rows: Rows, to: str, written: str | bytes) -> Agreement:
    """The same for what was written before."""
    found = target_named(to).answers(model, written, rows)
    return compare(model, rows.X, found, to)
