"""Which rows each tree of a forest sees, and how often: drawn from the forest's seed and the tree's number alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crisptree.data.sparse import SparseRows

if TYPE_CHECKING:
    from crisptree.pipeline.validation import TrainingData


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


ROWS_LOOKED_AT = 1000
"""So many rows, spread over all, are compared where a warm start must go on with the same ones."""


def check_more_trees(
    parameters: Mapping[str, Any], n_trees: int, n_rows: int, n_given: int, *, has_models: bool
) -> None:
    """A warm start goes on with the same rows and the same kind of leaves, to more trees."""
    if has_models != (parameters["leaf_model"] == "linear"):
        before = "linear" if has_models else "constant"
        raise ValueError(
            f"`leaf_model` must be {before!r} with warm_start=True, as in the trees that are there; got "
            f"{parameters['leaf_model']!r}. Use a new estimator for other leaves."
        )
    if n_given != n_rows:
        raise ValueError(
            f"`warm_start` must go on with the same rows, {n_rows} of them; got {n_given}. Use a new estimator for "
            "other data."
        )
    wanted = parameters["n_estimators"]
    if wanted != "auto" and wanted < n_trees:
        raise ValueError(
            f"`n_estimators` must be at least {n_trees} with warm_start=True, because there are so many trees; got "
            f"{wanted}. Use a new estimator for fewer."
        )


def check_bags(before: str, bagging: Bagging, n_estimators: Any) -> None:
    """Trees of a warm start draw rows as those that are there, and some are left out where they must judge."""
    if bagging.kind != before:
        raise ValueError(
            f"`warm_start` must go on with trees that draw rows as those that are there did ({before}), or rows would "
            f"be judged by trees that have seen them; bootstrap, max_samples and the shape of X ask for "
            f"{bagging.kind}. Use a new estimator for others."
        )
    if n_estimators == "auto" and not bagging.leaves_rows_out:
        raise ValueError(
            f"`n_estimators` must be a number where every tree sees all rows ({bagging.kind}), because nothing judges "
            "then; got 'auto'. Give a number, or draw fewer rows with max_samples."
        )


def digest_of(data: TrainingData) -> str:
    """A checksum of y, of weights and of some rows."""
    some = np.linspace(0, len(data.y) - 1, min(len(data.y), ROWS_LOOKED_AT)).astype(np.int64)
    X = data.X[some]
    found = hashlib.sha256()
    for part in (data.y, data.weight, *((X.data, X.index) if isinstance(X, SparseRows) else (X,))):
        found.update(np.ascontiguousarray(part).data)
    return found.hexdigest()


def check_same_rows(before: str, here: str) -> None:
    """A warm start goes on with the same values, as far as a checksum of some of them tells."""
    if before != here:
        raise ValueError(
            "`warm_start` must go on with the same rows, because trees are judged by those of them that they have not "
            "drawn; X, y or sample_weight differ from those of the fit before. Use a new estimator for other data."
        )


def check_tree_number(number: Any, n_trees: int) -> int:
    """Which tree is meant, counted from the end below zero."""
    try:
        return range(n_trees)[index(number)]
    except (IndexError, TypeError):
        raise IndexError(
            f"the number of a tree must be a whole one from 0 to {n_trees - 1}, or from -{n_trees} to -1 counted from "
            f"the end; got {number!r}."
        ) from None
