"""The regression tree: one deterministic tree with the interface of scikit-learn's regressors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from crisptree.estimators.loading import ESTIMATOR, ReadTrees
from crisptree.estimators.readability import ReadableEstimator
from crisptree.inference import CrispTree, FlatTree
from crisptree.parameters.estimators import RegressorParameters, check_argument
from crisptree.persistence.model_file import ModelFile, ModelFileError
from crisptree.pipeline.distillation import label_by_regressor, make_copies
from crisptree.pipeline.monitoring import Checkpoints
from crisptree.targets.base import detach
from crisptree.targets.regression import RegressionEncoding, squeeze_outputs
from crisptree.typing import ArrayLike, MatrixLike

if TYPE_CHECKING:
    from crisptree.pipeline.trees import TrainedRows
    from crisptree.selection.candidates import Trial

Doubles = npt.NDArray[np.float64]


class GaussianRegressor(RegressorMixin):
    """Base of regressors of rows, trees and forests, which predict a mean and a standard deviation."""

    n_outputs_: int
    interval_scale_: float = 1.0
    """Factor of ``predict_std`` in intervals; 1 where no rows were held out."""

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
        """Predict an interval of y by a normal distribution around ``predict``.

        Its standard deviation is ``predict_std``, that of training rows. In a single tree it is multiplied by
        ``interval_scale_``, by which the error on rows held out for model selection exceeds that of training rows.

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
        mean, radius = self.predict(X), ndtri(0.5 + coverage / 2) * self.interval_scale_ * self.predict_std(X)
        return mean - radius, mean + radius

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = False
        return tags


def compare_spreads(tree: CrispTree, trials: Sequence[Trial]) -> float:
    """Divide the error of the best trial on held-out rows by the standard deviation in the leaves; at least 1.

    The leaves of a tree that was fitted to few rows underestimate its error on new ones. Both are in the units of
    training, and averaged over the outputs.
    """
    if not trials:
        return 1.0
    held_out = 1 - max(trial.score for trial in trials)
    leaves = np.arange(tree.structure.n_splits, tree.structure.n_nodes)
    linear = tree.models_of(leaves)["linear_variance"] if isinstance(tree, FlatTree) else None
    variances = tree.leaves[:, tree.target.n_values // 2 :] if linear is None else linear
    within = np.average(variances.mean(axis=1), weights=tree.statistics.node_counts[leaves, 0])
    return max(1.0, float(np.sqrt(held_out / within)))


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
    interval_scale_ : float
        Factor of ``predict_std`` in ``predict_interval``: the error of the best candidate on held-out rows divided by
        the standard deviation in the leaves, at least 1. It is 1 where nothing was selected, or by another ``scoring``.
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

    def _set_trained(self, trained: TrainedRows) -> None:
        super()._set_trained(trained)
        self.interval_scale_ = compare_spreads(self.tree_, trained.trials) if self.scoring is None else 1.0

    def _extra_header(self) -> dict[str, Any]:
        return {} if self.interval_scale_ == 1 else {"interval_scale": self.interval_scale_}

    def _restore_trees(self, file: ModelFile, read: ReadTrees) -> CrispTree:
        scale = file.section(ESTIMATOR).content.get("interval_scale", 1.0)
        if not isinstance(scale, float) or not 1 <= scale < np.inf:
            raise ModelFileError(f"{file.path} must store a scale of intervals, a number from 1 on; it has {scale!r}.")
        self.interval_scale_ = scale
        return super()._restore_trees(file, read)

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
        from crisptree.pipeline.probabilistic import soft_means

        return squeeze_outputs(soft_means(*self._soft_input(X, steepness)))
