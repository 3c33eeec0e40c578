"""The regression tree: one deterministic tree with the interface of scikit-learn's regressors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from crisptree.estimators.readability import ReadableEstimator
from crisptree.parameters.estimators import READABLE, RegressorParameters, check_argument
from crisptree.pipeline.distillation import label_by_regressor, make_copies
from crisptree.pipeline.monitoring import Checkpoints
from crisptree.targets.base import detach
from crisptree.targets.regression import RegressionEncoding, squeeze_outputs
from crisptree.typing import ArrayLike, MatrixLike

Doubles = npt.NDArray[np.float64]


class GaussianRegressor(RegressorMixin):
    """Base of regressors of rows, trees and forests, which predict a mean and a standard deviation."""

    n_outputs_: int

    if TYPE_CHECKING:

        def predict(self, X: MatrixLike) -> Doubles: ...
        def predict_std(self, X: MatrixLike) -> Doubles: ...

    def __call__(self, X: MatrixLike) -> Doubles:
        """Return ``predict(X)``: libraries such as shap explain functions."""
        return self.predict(X)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Compute R², the mean over the outputs.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from crisptree import CrispTreeRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> bool(CrispTreeRegressor(max_depth=2, random_state=0).fit(X, y).score(X, y) > 0.4)
        True
        """
        return float(super().score(X, detach(y), detach(sample_weight)))

    def predict_interval(self, X: MatrixLike, coverage: float = 0.9) -> tuple[Doubles, Doubles]:
        """Predict an interval of y by the normal distribution of ``predict`` and ``predict_std``.

        The variance is that of the training rows: an overfitted model makes its intervals too narrow.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            Probability of the interval, above 0 and below 1.

        Returns
        -------
        low, high : ndarray
            In the shape of ``predict``.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispTreeRegressor
        >>> X = np.repeat([[0.0], [1.0]], 50, axis=0)
        >>> y = X[:, 0] * 10 + np.tile([-1.0, 1.0], 50)
        >>> parameters = {"split": "oblique", "input_noise": 0.0, "l1": 0.0, "shrinkage": 0.0}
        >>> model = CrispTreeRegressor(**parameters, max_depth=1, random_state=0).fit(X, y)
        >>> low, high = model.predict_interval([[0.0], [1.0]], coverage=0.6827)
        >>> low.round(2).tolist(), high.round(2).tolist()
        ([-1.0, 9.0], [1.0, 11.0])
        """
        check_argument("coverage", coverage)
        mean, radius = self.predict(X), ndtri(0.5 + coverage / 2) * self.predict_std(X)
        return mean - radius, mean + radius

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = False
        return tags


class CrispTreeRegressor(GaussianRegressor, RegressorParameters, ReadableEstimator):
    """A single regression tree, trained as a probabilistic one, that predicts along one path.

    A leaf is a normal distribution of every output, whose mean and variance follow in closed form; growth, finetuning,
    penalties and model selection are those of ``CrispTreeClassifier``, with the squared error in the place of accuracy
    and the variance in that of entropy. Every output is scaled to mean 0 and variance 1, so penalties do not depend on
    the unit of y. See docs/guide/regression.md.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    tree_ : FlatTree or ModuleTree
        The deterministic tree. Its ``leaves`` are means and variances of the scaled y; ``leaf_values`` are those of y.
    greedy_tree_ : FlatTree or ModuleTree
        The tree before finetuning, neither pruned nor shrunk.
    n_outputs_ : int
        Number of outputs.
    best_params_, cv_results_, n_candidates_, shrinkage_, best_iteration_, history_
        As in ``CrispTreeClassifier``.
    image_shape_, encoder_, n_features_in_, feature_names_in_
        As in ``CrispTreeClassifier``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from crisptree import CrispTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> parameters = {"split": "oblique", "leaf_model": "constant", "input_noise": 0.3, "l1": 0.0}
    >>> model = CrispTreeRegressor(**parameters, max_depth=2, random_state=0).fit(X, y)
    >>> model.get_depth(), bool(model.score(X, y) > 0.4)
    (2, True)
    """

    ENCODING = RegressionEncoding
    LIMITS = READABLE

    def partial_fit(
        self, X: MatrixLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None, *, decay: float = 1.0
    ) -> Self:
        """Update the tree with new rows; see ``CrispTreeClassifier.partial_fit``.

        The first call is a fit, and sets the scale of y and of the features for all later ones.

        Parameters
        ----------
        X, y, sample_weight : array-like
            New rows, their targets and weights, as in ``fit``.
        decay : float, default=1.0
            As in ``CrispTreeClassifier.partial_fit``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from crisptree import CrispTreeRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> parameters = {"split": "oblique", "input_noise": 0.7, "l1": 0.0, "shrinkage": 0.0}
        >>> model = CrispTreeRegressor(max_depth=2, random_state=0, **parameters).partial_fit(X[::2], y[::2])
        >>> model = model.partial_fit(X[1::2], y[1::2])
        >>> int(model.tree_.statistics.node_counts[0, 0]), bool(model.score(X, y) > 0.3)
        (442, True)
        """
        return self._partial_fit((X, y, sample_weight), decay)

    def distill(
        self,
        teacher: Any,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        copies: int | str = "auto",
        noise: float = 0.5,
        trust: float | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: tuple[MatrixLike, ArrayLike] | None = None,
    ) -> Self:
        """Fit the tree to the predictions of a fitted regressor, on the rows and on noisy copies of them.

        Parameters
        ----------
        teacher : regressor
            Fitted, with ``predict``, such as a forest or a Pipeline.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            True targets, averaged with the predictions of the teacher. Copies have none.
        trust : float, default=None
            Weight of the teacher in that average, from 0 to 1; None is 0.5.
        X, copies, noise, sample_weight, eval_set
            As in ``CrispTreeClassifier.distill``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from crisptree import CrispTreeRegressor, TrainingOptions
        >>> X, y = load_diabetes(return_X_y=True)
        >>> forest = RandomForestRegressor(random_state=0).fit(X, y)
        >>> training = TrainingOptions(steepness_step=0.1)
        >>> parameters = {"split": "oblique", "input_noise": 0.7, "l1": 0.0, "shrinkage": 0.0, "training": training}
        >>> tree = CrispTreeRegressor(max_depth=3, random_state=0, **parameters).distill(forest, X, copies=1)
        >>> bool(tree.score(X, forest.predict(X)) > 0.5)
        True
        """
        for name, value in (("copies", copies), ("noise", noise), ("trust", trust)):
            check_argument(name, value)
        rows = make_copies(self.training_parameters(), teacher, X, copies, noise, sample_weight)
        targets = label_by_regressor(teacher, rows, y, trust)
        return self._fit_array((rows.X, targets, rows.weight), eval_set, Checkpoints(), source=rows.source)

    def predict(self, X: MatrixLike) -> Doubles:
        """Predict the mean of every row's leaf.  (n, n_features) → (n,), or (n, n_outputs)

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispTreeRegressor
        >>> X = np.arange(100.0)[:, None]
        >>> model = CrispTreeRegressor(leaf_model="constant", random_state=0).fit(X, X[:, 0] > 49)
        >>> model.predict([[10.0], [90.0]]).round(1).tolist()
        [0.0, 1.0]
        """
        if self.__sklearn_is_fitted__() and self.tree_.is_linear:
            return squeeze_outputs(self.tree_.target.predict(self._values(X)))
        leaf = self.leaf_indices(X)
        return squeeze_outputs(self.tree_.labels())[leaf]

    def predict_std(self, X: MatrixLike) -> Doubles:
        """Predict the standard deviation of y in every row's leaf, in the shape of ``predict``.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispTreeRegressor
        >>> X, noise = np.repeat([[0.0], [1.0]], 100, axis=0), np.random.default_rng(0).normal(size=200)
        >>> model = CrispTreeRegressor(max_depth=1, leaf_model="constant", random_state=0)
        >>> model = model.fit(X, 10 * X[:, 0] + (1 + X[:, 0]) * noise)
        >>> model.predict_std([[0.0], [1.0]]).round(0).tolist()
        [1.0, 2.0]
        """
        check_is_fitted(self)
        return squeeze_outputs(np.sqrt(self._values(X)[:, self.n_outputs_ :]))

    def soft_predict(self, X: MatrixLike, steepness: float | None = None) -> Doubles:
        """Predict the mean of the probabilistic tree, which visits every leaf.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        steepness : float, default=None
            γ of the splits; None is that of the end of training.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from crisptree import CrispTreeRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = CrispTreeRegressor(split="oblique", leaf_model="constant", max_depth=2, random_state=0).fit(X, y)
        >>> model.soft_predict(X[:3]).shape
        (3,)
        """
        from crisptree.pipeline.trees import soft_means

        return squeeze_outputs(soft_means(*self._soft_input(X, steepness)))
