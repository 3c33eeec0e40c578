"""How many rows lie near a boundary of the tree, where a small change would turn them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.blocks import row_blocks
from crisptree.inference.routing import visit_splits
from crisptree.view import html, view_of
from crisptree.view.paths import margin_units

Doubles = npt.NDArray[np.float64]

LIMITS = (0.1, 0.25, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class MarginReport:
    """Shares of rows near boundaries; ``print`` it for a text.

    Parameters
    ----------
    limits : tuple of float
        How near, in spreads of the training scores at each split.
    overall : ndarray of shape (n_limits,)
        The share of rows whose smallest |margin| on their path lies below each limit.
    by_split : ndarray of shape (n_splits, n_limits)
        The same among the rows that visit each split, for its own margin; 0 where no row does.
    visits : ndarray of shape (n_splits,)
        How many rows visit each split.
    smallest : ndarray of shape (n_samples,)
        Every row's smallest |margin|; infinite in a tree of one leaf, which has no boundary.
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
        """What a notebook shows."""
        order = np.argsort(-self.by_split[:, 0] * self.visits, kind="stable")
        rows = [("all boundaries", *(f"{share:.1%}" for share in self.overall), f"{len(self.smallest):,}")]
        rows += [
            (f"split {split}", *(f"{share:.1%}" for share in self.by_split[split]), f"{self.visits[split]:,}")
            for split in order
        ]
        head = ("", *(f"< {limit:g}" for limit in self.limits), "rows")
        return html.table(head, rows, "Rows near a boundary, in spreads of the scores there")


def _shares(values: Doubles) -> str:
    return " ".join(f"{share:>8.1%}" for share in values)


def margin_report(model: Any, X: Any, *, limits: Sequence[float] = LIMITS) -> MarginReport:
    """How many rows lie near a boundary, at every split and on their whole paths.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline that ends in one; its splits may be of any kind.
    X : array-like of shape (n_samples, n_features)
        Rows, for example those of the training.
    limits : sequence of float, default=(0.1, 0.25, 0.5, 1.0)
        What counts as near, in spreads of the training scores at each split.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X = np.array([[0.0], [1.0], [8.0], [9.0]])
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0).fit(X, [0, 0, 1, 1])
    >>> explain.margin_report(model, X, limits=[0.1, 2.0]).overall.tolist()
    [0.0, 1.0]
    """
    view = view_of(model, "explain.margin_report")
    tree, rows = view.tree, view.rows(X)
    given = np.asarray(limits)
    if given.ndim != 1 or given.dtype.kind not in "iuf" or not len(given) or not (given > 0).all():
        raise ValueError(f"`limits` must be some numbers above 0, e.g. {list(LIMITS)}; got {limits!r}.")
    bounds = given.astype(np.float64)
    units, n_splits = margin_units(tree), tree.structure.n_splits
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
