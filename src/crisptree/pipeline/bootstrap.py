"""Bootstrap samples of the trees of a forest, functions of the forest's seed and the index of a tree."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crisptree.data.raw_rows import SparseRows
from crisptree.inference.flat_tree import has_linear_leaves

if TYPE_CHECKING:
    from crisptree.pipeline.validation import TrainingData


Integers = npt.NDArray[np.int64]

IMAGE_SAMPLE_FRACTION = 0.8
"""Share of images that a tree is trained on by default, without replacement. A bootstrap sample lacks more than a third
of the rows, which costs trees of many pixels more than averaging gains."""

MIN_IMAGES_TO_SAMPLE = 3
"""With fewer, that share would leave none out."""


@dataclass(frozen=True, eq=False)
class Bagging:
    """Sampling of ``n_drawn`` of ``n_rows`` rows for every tree of a forest with a seed.

    ``bootstrap`` True draws with replacement, False without, and "balanced" with replacement as many of each of the
    ``classes`` (n_rows,).

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
        """Make the sampling of an estimator's parameters; ``strata`` are the class indices, for "balanced"."""
        bootstrap, share = parameters["bootstrap"], parameters["max_samples"]
        if bootstrap == "auto":
            bootstrap = not are_images or share is not None or n_rows < MIN_IMAGES_TO_SAMPLE
            share = share if bootstrap else IMAGE_SAMPLE_FRACTION
        return cls(n_rows, number_of(share, n_rows), bootstrap, seed, strata)

    @property
    def kind(self) -> str:
        """Description of the sampling, for errors and warm starts."""
        how = {True: "with replacement", False: "each once", "balanced": "as many of every class"}[self.bootstrap]
        return f"{self.n_drawn} of {self.n_rows} rows, {how}"

    @property
    def leaves_rows_out(self) -> bool:
        """True if trees have out-of-bag rows."""
        return bool(self.bootstrap) or self.n_drawn < self.n_rows

    def times(self, tree: int) -> Integers:
        """Count how often each row is drawn for a tree.  (n_rows,)"""
        rng = self._generator(tree)
        if not self.bootstrap:
            drawn = rng.permutation(self.n_rows)[: self.n_drawn]
        elif self.bootstrap == "balanced":
            drawn = self._balanced(rng)
        else:
            drawn = rng.integers(self.n_rows, size=self.n_drawn)
        return np.bincount(drawn, minlength=self.n_rows)

    def tree_seed(self, tree: int) -> int:
        """Derive the seed of a tree's training."""
        return int(np.random.SeedSequence((self.seed, tree, 1)).generate_state(1)[0])

    def _generator(self, tree: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence((self.seed, tree, 0)))

    def _balanced(self, rng: np.random.Generator) -> Integers:
        assert self.classes is not None
        kinds, sizes = np.unique(self.classes, return_counts=True)
        shares = np.full(len(kinds), self.n_drawn // len(kinds))
        shares[: self.n_drawn % len(kinds)] += 1  # the remainder goes to the first ones
        by_class = np.split(np.argsort(self.classes, kind="stable"), np.cumsum(sizes)[:-1])
        return np.concatenate(
            [rows[rng.integers(len(rows), size=share)] for rows, share in zip(by_class, shares, strict=True)]
        )


def number_of(share: Any, n: int) -> int:
    """Convert a number or a share of n to a number of at least one."""
    if share is None:
        return n
    return min(int(share), n) if isinstance(share, int | np.integer) else max(1, round(float(share) * n))


MAX_ROWS_IN_DIGEST = 1000
"""Evenly spaced rows whose checksum a warm start compares."""


def check_more_trees(
    parameters: Mapping[str, Any], n_trees: int, n_rows: int, n_given: int, *, has_models: bool
) -> None:
    """Check that a warm start has the same rows and leaf model, and at least as many trees."""
    if has_models != has_linear_leaves(parameters):
        before = "linear" if has_models else "constant"
        raise ValueError(
            f"`leaf_model` must be {before!r} with warm_start=True, as in the trees that are there; got "
            f"{parameters['leaf_model']!r}. Use a new estimator for other leaves."
        )
    if n_given != n_rows:
        raise ValueError(
            f"`warm_start` must continue with the same rows, {n_rows} of them; got {n_given}. Use a new estimator for "
            "other data."
        )
    n_estimators = parameters["n_estimators"]
    if n_estimators != "auto" and n_estimators < n_trees:
        raise ValueError(
            f"`n_estimators` must be at least {n_trees} with warm_start=True, because there are so many trees; got "
            f"{n_estimators}. Use a new estimator for fewer."
        )


def check_bags(before: str, bagging: Bagging, n_estimators: Any) -> None:
    """Check that a warm start samples rows as before, and that "auto" has out-of-bag rows."""
    if bagging.kind != before:
        raise ValueError(
            f"`warm_start` must continue with trees that draw rows as those that are there did ({before}), or the "
            f"out-of-bag score would use training rows; bootstrap, max_samples and the shape of X ask for "
            f"{bagging.kind}. Use a new estimator for others."
        )
    if n_estimators == "auto" and not bagging.leaves_rows_out:
        raise ValueError(
            f"`n_estimators` must be a number where every tree sees all rows ({bagging.kind}), because there is no "
            "out-of-bag score; got 'auto'. Give a number, or draw fewer rows with max_samples."
        )


def digest_of(data: TrainingData) -> str:
    """Compute a checksum of y, of weights and of some rows."""
    X = data.X[np.linspace(0, len(data.y) - 1, min(len(data.y), MAX_ROWS_IN_DIGEST)).astype(np.int64)]
    checksum = hashlib.sha256()
    for part in (data.y, data.weight, *((X.data, X.index) if isinstance(X, SparseRows) else (X,))):
        checksum.update(np.ascontiguousarray(part).data)
    return checksum.hexdigest()


def check_same_rows(before: str, here: str) -> None:
    """Check that a warm start has the rows of the fit before, by their checksums."""
    if before != here:
        raise ValueError(
            "`warm_start` must continue with the same rows, or the out-of-bag score would use training rows; "
            "X, y or sample_weight differ from those of the fit before. Use a new estimator for other data."
        )


def check_tree_number(number: Any, n_trees: int) -> int:
    """Return the index of a tree; negative ones count from the end."""
    try:
        return range(n_trees)[index(number)]
    except (IndexError, TypeError):
        raise IndexError(
            f"the number of a tree must be a whole one from 0 to {n_trees - 1}, or from -{n_trees} to -1 counted from "
            f"the end; got {number!r}."
        ) from None
