"""Which rows each tree of a forest sees, and how often: drawn from the forest's seed and the tree's number alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

OF_IMAGES = 0.8
"""The share of images that a tree sees where nothing else is asked for, each of them once. A bootstrap leaves out more
than a third, and trees of many pixels lose more by that than their mean gains; the rest still judges."""

FEWEST_IMAGES = 3
"""Of fewer, such a share would leave none out."""


@dataclass(frozen=True, eq=False)
class Bagging:
    """How rows are drawn.

    Parameters
    ----------
    n_rows : int
        How many there are.
    n_drawn : int
        How many are drawn for a tree.
    bootstrap : bool or "balanced"
        With replacement, without, or with replacement as many of every class.
    seed : int
        That of the forest.
    classes : ndarray of shape (n_rows,) or None
        The class numbers of the rows, for "balanced".

    Examples
    --------
    >>> Bagging(6, 6, True, seed=0).times(0).tolist()
    [1, 2, 0, 2, 0, 1]
    """

    n_rows: int
    n_drawn: int
    bootstrap: bool | str
    seed: int
    classes: Integers | None = None

    @classmethod
    def of(
        cls, parameters: Mapping[str, Any], n_rows: int, seed: int, strata: Integers | None, *, are_images: bool
    ) -> Bagging:
        """As an estimator's parameters say; ``strata`` are the class numbers of the rows, for "balanced"."""
        bootstrap, share = parameters["bootstrap"], parameters["max_samples"]
        if bootstrap == "auto":
            bootstrap = not are_images or share is not None or n_rows < FEWEST_IMAGES
            share = share if bootstrap else OF_IMAGES
        return cls(n_rows, number_of(share, n_rows), bootstrap, seed, strata)

    @property
    def kind(self) -> str:
        """How rows are drawn, in words."""
        how = {True: "with replacement", False: "each once", "balanced": "as many of every class"}[self.bootstrap]
        return f"{self.n_drawn} of {self.n_rows} rows, {how}"

    @property
    def leaves_rows_out(self) -> bool:
        """Whether trees have rows that they have not seen."""
        return bool(self.bootstrap) or self.n_drawn < self.n_rows

    def times(self, tree: int) -> Integers:
        """How often each row counts for a tree.  (n_rows,)"""
        rng = self._generator(tree)
        if not self.bootstrap:
            drawn = rng.permutation(self.n_rows)[: self.n_drawn]
        elif self.bootstrap == "balanced":
            drawn = self._balanced(rng)
        else:
            drawn = rng.integers(self.n_rows, size=self.n_drawn)
        return np.bincount(drawn, minlength=self.n_rows)

    def tree_seed(self, tree: int) -> int:
        """What the random numbers of a tree's training follow from."""
        return int(np.random.SeedSequence((self.seed, tree, 1)).generate_state(1)[0])

    def _generator(self, tree: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence((self.seed, tree, 0)))

    def _balanced(self, rng: np.random.Generator) -> Integers:
        assert self.classes is not None
        kinds, sizes = np.unique(self.classes, return_counts=True)
        shares = np.full(len(kinds), self.n_drawn // len(kinds))
        shares[: self.n_drawn % len(kinds)] += 1  # what does not go up goes to the first ones
        by_class = np.split(np.argsort(self.classes, kind="stable"), np.cumsum(sizes)[:-1])
        return np.concatenate(
            [rows[rng.integers(len(rows), size=share)] for rows, share in zip(by_class, shares, strict=True)]
        )


def number_of(share: Any, n: int) -> int:
    """How many of n a whole number or a share means, one at least."""
    if share is None:
        return n
    return min(int(share), n) if isinstance(share, int | np.integer) else max(1, round(float(share) * n))
