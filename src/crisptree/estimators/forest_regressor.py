"""The forest of regressors: many deterministic trees whose means are averaged, used like scikit-learn's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from crisptree.estimators.forest_base import ForestEstimator
from crisptree.estimators.regressor import CrispTreeRegressor, check_reference_rows
from crisptree.inference.quantiles import forest_quantiles
from crisptree.parameters.estimators import ForestRegressorParameters, check_argument
from crisptree.targets.regression import RegressionEncoding
from crisptree.tensors import detach
from crisptree.typing import ArrayLike, MatrixLike

if TYPE_CHECKING:
    from crisptree.pipeline.forests import OutOfBag

Doubles = npt.NDArray[np.float64]


class CrispForestRegressor(RegressorMixin, ForestRegressorParameters, ForestEstimator):
    """Many crisp trees of numbers on rows drawn by chance, which predict the mean of their leaves' means.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    forest_ : CrispForest
        The deterministic trees.
    estimators_ : list of CrispTreeRegressor
        The same as estimators of their own, see ``tree``.
    n_outputs_ : int
        How many numbers a row has.
    oob_score_ : float
        1 − squared error / variance on the training rows, each judged by the trees that have not seen it. There is
        none where every tree sees all rows.
    oob_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        What those trees predict; not numbers for a row that all trees have seen or that weighs nothing.
    best_params_, cv_results_, best_iteration_, image_shape_, encoder_, n_features_in_, feature_names_in_, history_
        As those of ``CrispForestClassifier``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from crisptree import CrispForestRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forest = CrispForestRegressor(
    ...     n_estimators=5, split="oblique", input_noise=0.7, l1=0.0, max_depth=3, random_state=0
    ... ).fit(X, y)
    >>> len(forest), bool(forest.oob_score_ > 0.3)
    (5, True)
    """

    ENCODING = RegressionEncoding
    SCORE = ("R²", ".3f")

    n_outputs_: int
    oob_prediction_: Doubles

    def _set_out_of_bag(self, out_of_bag: OutOfBag, kept: npt.NDArray[np.bool_]) -> None:
        means = np.full((len(kept), self.n_outputs_), np.nan)
        means[kept] = out_of_bag.values[:, : self.n_outputs_]
        self.oob_prediction_ = self._flat(means)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R²: which share of the variance of y the predictions explain; of several outputs the mean."""
        return float(super().score(X, detach(y), detach(sample_weight)))

    def predict(self, X: MatrixLike) -> Doubles:
        """The mean of the trees' means.  (n, n_features) → (n,), or (n, n_outputs) for several outputs"""
        return self._flat(self._values(X)[:, : self.n_outputs_])

    def _difference(self, one: Doubles, other: Doubles) -> float:
        return float(np.mean((one - other) ** 2))

    def soft_predict(self, X: MatrixLike, steepness: float | None = None) -> Doubles:
        """The mean of what the probabilistic trees predict, which visit every leaf; for study."""
        check_is_fitted(self)
        return np.asarray(np.mean([tree.soft_predict(X, steepness) for tree in self.estimators_], axis=0))

    @np.errstate(under="ignore")  # the square of a tiny spread is 0
    def predict_std(self, X: MatrixLike) -> Doubles:
        """The spread of y by all trees together, in the shape of ``predict``.

        It is that of the mixture of their normal distributions: what the leaves leave open, and how far they differ.
        """
        check_is_fitted(self)
        rows = self.check_rows(X)
        leaves = self.forest_.leaves(rows, self.n_jobs)
        assert leaves is not None
        n, k = len(self.forest_), self.n_outputs_
        first, second, inside = np.zeros((3, len(leaves), k))
        middle = None
        for tree, leaf in zip(self.forest_, leaves.T, strict=True):
            said = tree.leaf_values(leaf, rows)
            middle = said[:, :k] if middle is None else middle  # squares of what is far from zero would cancel
            away = said[:, :k] - middle
            first, second, inside = first + away, second + away**2, inside + said[:, k:]
        between = np.maximum(second / n - (first / n) ** 2, 0.0)
        return self._flat(np.sqrt(inside / n + between))

    def predict_interval(self, X: MatrixLike, coverage: float = 0.9) -> tuple[Doubles, Doubles]:
        """From where to where y lies with a probability, by a normal distribution of that mean and spread.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            The probability, above 0 and below 1.
        """
        check_argument("coverage", coverage)
        mean, reach = self.predict(X), ndtri(0.5 + coverage / 2) * self.predict_std(X)
        return mean - reach, mean + reach

    def predict_quantiles(self, X: MatrixLike, quantiles: ArrayLike, *, among: tuple[Any, ...]) -> Doubles:
        """Quantiles of y among the rows that end in the same leaves as each row, by how many leaves they share.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        quantiles : array-like of shape (n_quantiles,)
            Numbers from 0 to 1.
        among : (X, y) or (X, y, sample_weight)
            Rows with known y, usually those of the training; the forest keeps none of them. For a row that shares no
            leaf with any of them, the normal distribution of ``predict`` and ``predict_std`` answers.

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles), or (n_samples, n_quantiles, n_outputs)

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispForestRegressor
        >>> X, y = np.repeat([[0.0], [1.0]], 5, axis=0), np.arange(10.0)
        >>> forest = CrispForestRegressor(
        ...     n_estimators=3, bootstrap=False, max_depth=1, split="oblique", input_noise=0.0, l1=0.0, random_state=0
        ... ).fit(X, y)
        >>> forest.predict_quantiles([[0.0], [1.0]], [0.0, 0.5, 1.0], among=(X, y)).tolist()
        [[0.0, 2.0, 4.0], [5.0, 7.0, 9.0]]
        """
        here = self.apply(X)
        wanted, there, known, weight = check_reference_rows(self, self.forest_, quantiles, among)
        found = forest_quantiles(here, there, known, weight, wanted)
        alone = np.isnan(found).any(axis=(1, 2))
        if alone.any():
            mean, spread = (values.reshape(len(here), 1, -1) for values in (self.predict(X), self.predict_std(X)))
            found[alone] = (mean + ndtri(np.clip(wanted, 1e-6, 1 - 1e-6))[None, :, None] * spread)[alone]
        return found[:, :, 0] if self.n_outputs_ == 1 else found

    def tree(self, number: int) -> CrispTreeRegressor:
        """One of the trees as a fitted ``CrispTreeRegressor``."""
        check_is_fitted(self)
        return self._as_tree(CrispTreeRegressor, number)

    def to_tree(self, X: MatrixLike, y: ArrayLike | None = None, **options: Any) -> CrispTreeRegressor:
        """One tree that answers as the forest does, distilled on rows; see ``CrispTreeRegressor.distill``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, usually those of the training.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Their true numbers, to be mixed with what the forest says.
        **options
            Parameters of the tree, such as ``max_depth``, and arguments of ``distill``, such as ``copies``.
        """
        return cast(CrispTreeRegressor, self._distill(CrispTreeRegressor, X, y, options))

    def _flat(self, values: Doubles) -> Doubles:
        """One number per row where there is one output."""
        return values[:, 0] if self.n_outputs_ == 1 else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = False
        return tags
