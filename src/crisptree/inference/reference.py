"""Which leaf a row reaches: the definition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from crisptree.inference.flat import CrispTree


def route_rows(tree: CrispTree, X: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """The leaf of every row. A score above zero goes right; zero goes left.  (n, n_features) → (n,)"""
    leaves = np.zeros(len(X), dtype=np.int64)
    for split, rows, scores in visits(tree, X):
        children = np.where(scores > 0, tree.structure.right[split], tree.structure.left[split])
        leaves[rows] = ~children
    return leaves


def visits(
    tree: CrispTree, X: npt.NDArray[np.float32]
) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.float32]]]:
    """Every split that some row visits, with the rows that do and their scores; parents before children."""
    waiting = {0: np.arange(len(X))} if tree.structure.n_splits else {}
    for split in range(tree.structure.n_splits):
        rows = waiting.pop(split, None)
        if rows is None or not len(rows):
            continue
        scores = tree.scores(X[rows], split)
        yield split, rows, scores
        turns = scores > 0
        for child, taken in ((tree.structure.left[split], ~turns), (tree.structure.right[split], turns)):
            if child >= 0:
                waiting[int(child)] = rows[taken]
