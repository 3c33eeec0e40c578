"""Forests of classification and regression trees, with the interface of scikit-learn's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from crisptree.estimators.classifier import CrispTreeClassifier, ProbabilisticClassifier
from crisptree.estimators.forest_base import ForestEstimator
from crisptree.estimators.regressor import CrispTreeRegressor, Doubles, GaussianRegressor, check_reference_rows
from crisptree.inference.quantiles import forest_quantiles
from crisptree.parameters.estimators import ForestClassifierParameters, ForestRegressorParameters
from crisptree.pipeline import validation as checks
from crisptree.targets.classification import ClassEncoding
from crisptree.targets.regression import RegressionEncoding, squeeze_outputs
from crisptree.typing import ArrayLike, MatrixLike

if TYPE_CHECKING:
    from crisptree.pipeline.forests import OutOfBag


class CrispForestClassifier(ProbabilisticClassifier, ForestClassifierParameters, ForestEstimator):
    """A forest of deterministic trees on bootstrap samples, which averages the class frequencies of their leaves.

    Each tree is trained as a ``CrispTreeClassifier`` on its own bootstrap sample; regularisation is selected once for
    all trees. The stumps of one level of all trees are trained in one batch. A row visits at most ``n_estimators``
    times ``max_depth`` splits.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    forest_ : CrispForest
        The deterministic trees.
    estimators_ : list of CrispTreeClassifier
        The trees as estimators, see ``tree``.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    oob_score_ : float
        Out-of-bag accuracy; missing if every tree is trained on all rows.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        Out-of-bag class probabilities; NaN for rows without weight and rows that all trees were trained on.
    best_params_, cv_results_, image_shape_, encoder_, n_features_in_, feature_names_in_, history_
        As in ``CrispTreeClassifier``; ``history_`` has the growth of all trees, then the finetuning of each.
    best_iteration_ : ndarray of shape (n_trees,)
        With ``early_stopping`` only: the finetuning epoch that is kept of every tree; 0 for the tree before it.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from crisptree import CrispForestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> parameters = {"split": "oblique", "input_noise": 0.3, "l1": 0.0}
    >>> forest = CrispForestClassifier(n_estimators=5, max_depth=3, **parameters, random_state=0).fit(X, y)
    >>> len(forest), bool(forest.oob_score_ > 0.9)
    (5, True)
    """

    ENCODING = ClassEncoding
    SCORE = ("accuracy", ".2%")

    oob_decision_function_: npt.NDArray[np.float64]

    def _set_out_of_bag(self, out_of_bag: OutOfBag, kept: npt.NDArray[np.bool_]) -> None:
        self.oob_decision_function_ = np.full((len(kept), len(self.classes_)), np.nan)
        self.oob_decision_function_[kept] = out_of_bag.values

    def predict(self, X: MatrixLike) -> npt.NDArray[Any]:
        """Predict the class of the highest mean probability.  (n, n_features) → (n,)"""
        values = self._values(X)
        return self.classes_[self.forest_.target.predict(values)]

    def predict_proba(self, X: MatrixLike) -> npt.NDArray[np.float64]:
        """Predict the mean of the trees' class probabilities.  (n, n_features) → (n, n_classes)"""
        return self._values(X)

    def soft_predict_proba(self, X: MatrixLike, steepness: float | None = None) -> npt.NDArray[np.float64]:
        """Predict class probabilities with the probabilistic trees, which visit every leaf."""
        check_is_fitted(self)
        return np.mean([tree.soft_predict_proba(X, steepness) for tree in self.estimators_], axis=0)

    def _difference(self, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
        return float(np.mean(one != other))

    def margins(self, X: MatrixLike, y: ArrayLike | None = None) -> npt.NDArray[np.float64]:
        """Compute margins: the mean probability of a class minus that of the best other class.  (n,)

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), default=None
            The classes, such as the true ones, whose margins are negative where the forest is wrong. None takes the
            predicted ones.
        """
        values = self._values(X)
        numbers = values.argmax(axis=1)
        if y is not None:
            numbers = checks.check_validation(self, (X, y), ClassEncoding(self.classes_), "y").y
        own = values[np.arange(len(values)), numbers]
        others = values.copy()
        others[np.arange(len(values)), numbers] = -np.inf
        return own - (others.max(axis=1) if values.shape[1] > 1 else 0.0)

    def tree(self, number: int) -> CrispTreeClassifier:
        """Return one of the trees as a fitted ``CrispTreeClassifier``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> parameters = {"split": "oblique", "input_noise": 0.3, "l1": 0.0}
        >>> forest = CrispForestClassifier(n_estimators=3, max_depth=2, **parameters, random_state=0).fit(X, y)
        >>> forest.tree(2).get_depth()
        2
        """
        check_is_fitted(self)
        return self._as_tree(CrispTreeClassifier, number)

    def to_tree(self, X: MatrixLike, y: ArrayLike | None = None, **options: Any) -> CrispTreeClassifier:
        """Distill the forest into one tree; see ``CrispTreeClassifier.distill``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, usually those of the training.
        y : array-like of shape (n_samples,), default=None
            True classes, mixed with the predictions of the forest.
        **options
            Parameters of the tree, such as ``max_depth``, and arguments of ``distill``, such as ``copies``.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_wine(return_X_y=True)
        >>> parameters = {"split": "oblique", "input_noise": 0.3, "l1": 0.0}
        >>> forest = CrispForestClassifier(n_estimators=5, max_depth=3, **parameters, random_state=0).fit(X, y)
        >>> tree = forest.to_tree(X, max_depth=2, copies=1)
        >>> bool((tree.predict(X) == forest.predict(X)).mean() > 0.9)
        True
        """
        return cast(CrispTreeClassifier, self._distill(CrispTreeClassifier, X, y, options))


class CrispForestRegressor(GaussianRegressor, ForestRegressorParameters, ForestEstimator):
    """A forest of deterministic regression trees on bootstrap samples, which averages the means of their leaves.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    forest_ : CrispForest
        The deterministic trees.
    estimators_ : list of CrispTreeRegressor
        The trees as estimators, see ``tree``.
    n_outputs_ : int
        Number of outputs.
    oob_score_ : float
        Out-of-bag 1 − squared error / variance; missing if every tree is trained on all rows.
    oob_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Out-of-bag predictions; NaN for rows without weight and rows that all trees were trained on.
    best_params_, cv_results_, best_iteration_, image_shape_, encoder_, n_features_in_, feature_names_in_, history_
        As in ``CrispForestClassifier``.

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

    oob_prediction_: Doubles

    def _set_out_of_bag(self, out_of_bag: OutOfBag, kept: npt.NDArray[np.bool_]) -> None:
        means = np.full((len(kept), self.n_outputs_), np.nan)
        means[kept] = out_of_bag.values[:, : self.n_outputs_]
        self.oob_prediction_ = squeeze_outputs(means)

    def predict(self, X: MatrixLike) -> Doubles:
        """Predict the mean of the trees' means.  (n, n_features) → (n,), or (n, n_outputs) for several outputs"""
        return squeeze_outputs(self._values(X)[:, : self.n_outputs_])

    def _difference(self, one: Doubles, other: Doubles) -> float:
        return float(np.mean((one - other) ** 2))

    def soft_predict(self, X: MatrixLike, steepness: float | None = None) -> Doubles:
        """Predict the mean of the probabilistic trees, which visit every leaf."""
        check_is_fitted(self)
        return np.asarray(np.mean([tree.soft_predict(X, steepness) for tree in self.estimators_], axis=0))

    @np.errstate(under="ignore")  # the square of a tiny spread is 0
    def predict_std(self, X: MatrixLike) -> Doubles:
        """Predict the standard deviation of the mixture of the trees' normal distributions, shaped like ``predict``."""
        check_is_fitted(self)
        rows = self.check_rows(X)
        leaves = self.forest_.leaves(rows, self.n_jobs)
        assert leaves is not None
        n, k = len(self.forest_), self.n_outputs_
        first, second, within = np.zeros((3, len(leaves), k))
        center = None
        for tree, leaf in zip(self.forest_, leaves.T, strict=True):
            values = tree.leaf_values(leaf, rows)
            center = values[:, :k] if center is None else center  # squares of large means would cancel
            deviation = values[:, :k] - center
            first, second, within = first + deviation, second + deviation**2, within + values[:, k:]
        between = np.maximum(second / n - (first / n) ** 2, 0.0)
        return squeeze_outputs(np.sqrt(within / n + between))

    def predict_quantiles(self, X: MatrixLike, quantiles: ArrayLike, *, among: tuple[Any, ...]) -> Doubles:
        """Predict quantiles of y among reference rows, weighted by the number of leaves that they share with a row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        quantiles : array-like of shape (n_quantiles,)
            Numbers from 0 to 1.
        among : (X, y) or (X, y, sample_weight)
            Reference rows, usually those of the training, which a model does not store. A row that shares no leaf
            with any of them has the quantiles of the normal distribution of ``predict`` and ``predict_std``.

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
        leaves = self.apply(X)
        levels, reference, y, weight = check_reference_rows(self, self.forest_, quantiles, among)
        values = forest_quantiles(leaves, reference, y, weight, levels)
        has_none = np.isnan(values).any(axis=(1, 2))
        if has_none.any():
            mean, std = (part.reshape(len(leaves), 1, -1) for part in (self.predict(X), self.predict_std(X)))
            values[has_none] = (mean + ndtri(np.clip(levels, 1e-6, 1 - 1e-6))[None, :, None] * std)[has_none]
        return squeeze_outputs(values)

    def tree(self, number: int) -> CrispTreeRegressor:
        """Return one of the trees as a fitted ``CrispTreeRegressor``."""
        check_is_fitted(self)
        return self._as_tree(CrispTreeRegressor, number)

    def to_tree(self, X: MatrixLike, y: ArrayLike | None = None, **options: Any) -> CrispTreeRegressor:
        """Distill the forest into one tree; see ``CrispForestClassifier.to_tree``."""
        return cast(CrispTreeRegressor, self._distill(CrispTreeRegressor, X, y, options))
