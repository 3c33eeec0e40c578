"""Margins: how many rows lie near a decision boundary, where a small change alters their path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.blocks import row_blocks
from crisptree.inference.routing import visit_splits
from crisptree.inspection import view_model
from crisptree.inspection.decision_path import margin_scales
from crisptree.inspection.notebook_html import render_table

Doubles = npt.NDArray[np.float64]

DEFAULT_LIMITS = (0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class MarginReport:
    """Shares of rows near boundaries; ``print`` shows them as text.

    Parameters
    ----------
    limits : tuple of float
        Upper limits of |margin|, in standard deviations of the training scores at each split.
    overall : ndarray of shape (n_limits,)
        The share of rows whose smallest |margin| on their path lies below each limit.
    by_split : ndarray of shape (n_splits, n_limits)
        The same for the margin at each split, among the rows that visit it; 0 where no row does.
    visits : ndarray of shape (n_splits,)
        Number of rows that visit each split.
    smallest : ndarray of shape (n_samples,)
        Smallest |margin| on the path of every row; infinite in a tree of one leaf.
    """

    limits: tuple[float, ...]
    overall: Doubles
    by_split: Doubles
    visits: npt.NDArray[np.int64]
    smallest: Doubles

    def __str__(self) -> str:
        head = f"{'rows nearer than':>16} " + " ".join(f"{limit:>8g}" for limit in self.limits) + "  spreads"
        lines = [head, f"{'all boundaries':>16} " + _shares(self.overall) + f"  of {len(self.smallest)}"]
        for split in np.argsort(-self.by_split[:, 0] * self.visits, kind="stable"):
            lines.append(f"{f'split {split}':>16} " + _shares(self.by_split[split]) + f"  of {self.visits[split]}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks."""
        order = np.argsort(-self.by_split[:, 0] * self.visits, kind="stable")
        rows = [("all boundaries", *(f"{share:.1%}" for share in self.overall), f"{len(self.smallest):,}")]
        rows += [
            (f"split {split}", *(f"{share:.1%}" for share in self.by_split[split]), f"{self.visits[split]:,}")
            for split in order
        ]
        head = ("", *(f"< {limit:g}" for limit in self.limits), "rows")
        return render_table(head, rows, "Rows near a boundary, in spreads of the scores there")


def _shares(values: Doubles) -> str:
    return " ".join(f"{share:>8.1%}" for share in values)


def margin_report(model: Any, X: Any, *, limits: Sequence[float] = DEFAULT_LIMITS) -> MarginReport:
    """Report how many rows lie near a boundary, at every split and on their whole paths.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one; its splits may be of any kind.
    X : array-like of shape (n_samples, n_features)
        Rows, for example those of the training.
    limits : sequence of float, default=(0.1, 0.25, 0.5, 1.0)
        Upper limits of |margin|, in standard deviations of the training scores at each split.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0).fit(X, [0, 0, 1, 1])
    >>> explain.margin_report(model, X, limits=[0.1, 2.0]).overall.tolist()
    [0.0, 1.0]
    """
    view = view_model(model, "explain.margin_report")
    tree, rows = view.tree, view.prepare_rows(X)
    bounds = np.asarray(limits)
    if bounds.ndim != 1 or bounds.dtype.kind not in "iuf" or not len(bounds) or not (bounds > 0).all():
        raise ValueError(f"`limits` must be numbers above 0, e.g. {list(DEFAULT_LIMITS)}; got {limits!r}.")
    bounds = bounds.astype(np.float64)
    units, n_splits = margin_scales(tree), tree.structure.n_splits
    smallest = np.full(len(rows), np.inf)
    near, visited = np.zeros((n_splits, len(bounds))), np.zeros(n_splits, dtype=np.int64)
    for block in row_blocks(len(rows)):
        least = smallest[block]  # a view
        for split, here, scores in visit_splits(tree, rows[block]):
            margins = np.abs(scores.astype(np.float64)) / units[split]
            least[here] = np.minimum(least[here], margins)
            near[split] += (margins[:, None] < bounds).sum(axis=0)
            visited[split] += len(here)
    overall, by_split = (smallest[:, None] < bounds).mean(axis=0), near / np.maximum(visited, 1)[:, None]
    return MarginReport(tuple(bounds.tolist()), overall, by_split, visited, smallest)
