"""What all forests can do once they are fitted, whatever their trees predict."""

from __future__ import annotations

from abc import abstractmethod
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from crisptree.estimators import validation as checks
from crisptree.estimators.base import TreeEstimator
from crisptree.estimators.fast_lane import is_plain
from crisptree.inference.forest import CrispForest

if TYPE_CHECKING:
    from crisptree.learning.history import EpochRecord
    from crisptree.tables.table_encoder import TableEncoder

ROWS_AT_ONCE = 1024
"""Rows of a table of proximities that are counted at a time."""


class ForestEstimator(BaseEstimator):
    """Fitted trees that answer together."""

    FITTED: ClassVar[tuple[str, ...]] = (
        *("forest_", "history_", "chosen_", "path_", "seed_", "n_rows_", "preprocessing_"),
        *("oob_score_", "oob_decision_function_", "classes_"),
    )
    """What a fit leaves behind, and the next one forgets first."""

    forest_: CrispForest
    image_shape_: tuple[int, ...] | None
    n_features_in_: int
    encoder_: TableEncoder
    history_: list[EpochRecord]

    _fitting = TreeEstimator._fitting
    _forget = TreeEstimator._forget

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")

    def __len__(self) -> int:
        """How many trees there are."""
        check_is_fitted(self, "forest_")
        return len(self.forest_)

    @abstractmethod
    def tree(self, number: int) -> Any:
        """One of the trees as an estimator of its own."""

    @property
    def estimators_(self) -> list[Any]:
        """All trees as estimators of their own, which predict, draw and explain themselves."""
        check_is_fitted(self, "forest_")
        return [self.tree(number) for number in range(len(self.forest_))]

    def _values(self, X: Any) -> npt.NDArray[np.float64]:
        """The mean of what the leaves of every row say.  (n, n_outputs)"""
        known = self.__dict__
        if "forest_" in known and is_plain(X, known["forest_"].n_features, known):
            finite = not get_config()["assume_finite"]
            values = known["forest_"].values(X, self.n_jobs, check_finite=finite)
            if values is not None:
                return values
        check_is_fitted(self, "forest_")
        values = self.forest_.values(checks.check_rows(self, X), self.n_jobs)
        assert values is not None  # only a check for finite values can fail
        return values

    def apply(self, X: Any) -> npt.NDArray[np.int64]:
        """The number of the leaf that every row reaches in every tree.  (n, n_features) → (n, n_trees)"""
        check_is_fitted(self, "forest_")
        leaves = self.forest_.leaves(checks.check_rows(self, X), self.n_jobs)
        assert leaves is not None
        return leaves

    def proximity(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        """The share of trees in which two rows end in the same leaf.  (n, n_features), (m, n_features) → (n, m)

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        Y : array-like of shape (m_samples, n_features), default=None
            Rows to hold them against; None holds X against itself.
        """
        here = self.apply(X)
        there = here if Y is None else self.apply(Y)
        shares = np.empty((len(here), len(there)))
        for start in range(0, len(here), ROWS_AT_ONCE):
            rows = here[start : start + ROWS_AT_ONCE]
            same = np.zeros((len(rows), len(there)), dtype=np.int32)
            for tree in range(here.shape[1]):
                same += rows[:, tree, None] == there[None, :, tree]
            shares[start : start + len(rows)] = same / here.shape[1]
        return shares

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """The mean of the trees' importances, sum 1; see ``explain.feature_importances``."""
        check_is_fitted(self, "forest_")
        from crisptree.explain import feature_importances

        try:
            each = [feature_importances(tree) for tree in self.forest_]
        except TypeError as error:  # so that hasattr says no for trees with modules
            raise AttributeError(str(error)) from error
        mean = np.mean(each, axis=0)
        total = mean.sum()
        mean = mean / total if total > 0 else mean
        encoder = self.__dict__.get("encoder_")
        return mean if encoder is None else np.asarray(encoder.preprocessing_.by_input(mean))

    def get_depth(self) -> int:
        """The largest number of splits that a row may visit in a tree."""
        check_is_fitted(self, "forest_")
        return max(tree.structure.depth for tree in self.forest_)

    def get_n_leaves(self) -> int:
        """The number of leaves of all trees together."""
        check_is_fitted(self, "forest_")
        return sum(tree.structure.n_leaves for tree in self.forest_)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted forest to a file that ``crisptree.load`` reads."""
        check_is_fitted(self, "forest_")
        from crisptree.estimators.loading import save

        save(self, path)
