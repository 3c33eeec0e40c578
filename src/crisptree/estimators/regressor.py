"""The regressor: one deterministic tree whose leaves are numbers, used like scikit-learn's."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from crisptree.estimators.row_estimator import RowEstimator
from crisptree.inference import CrispTree
from crisptree.inference.quantiles import leaf_quantiles
from crisptree.parameters.estimators import PAPER, RegressorParameters, check_argument
from crisptree.pipeline.checkpoints import Checkpoints
from crisptree.pipeline.distillation import label_by_regressor, make_copies
from crisptree.targets.labels import check_sample_weight
from crisptree.targets.regression import RegressionEncoding, check_numbers
from crisptree.tensors import detach
from crisptree.typing import ArrayLike, BatchesLike, MatrixLike

Doubles = npt.NDArray[np.float64]


class CrispTreeRegressor(
    RegressorMixin,
    RegressorParameters,
    RowEstimator,
):
    """A single regression tree, trained as a probabilistic one, that predicts along one path.

    A leaf is a normal distribution of every output, whose mean and variance follow in closed form; growth, finetuning,
    penalties and choices are those of ``CrispTreeClassifier``. Where that one is judged by its accuracy, this one is by
    the squared error, and a split gains what it takes off the variance. y is scaled inside to mean 0 and variance 1,
    output by output, so penalties and prices mean the same for any unit. See docs/regression.md.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    tree_ : FlatTree or ModuleTree
        The deterministic tree. Its ``leaves`` are means and variances of the scaled y; ``leaf_values`` are those of y.
    greedy_tree_ : FlatTree or ModuleTree
        The same before finetuning, neither pruned nor shrunk.
    n_outputs_ : int
        How many numbers a row has.
    best_params_ : dict
        What a fit chose for the parameters that say "auto", and the depth.
    cv_results_ : list of Trial
        Everything that was tried for that. A model file does not keep it.
    shrinkage_ : float
        The strength by which the tables of ``tree_`` are shrunk, chosen or given.
    image_shape_ : tuple of int or None
        The image that a row is.
    encoder_ : TableEncoder
        What makes numbers of a table, where X needed it.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where X had some.
    history_ : list of EpochRecord
        One record for every epoch.
    best_iteration_ : int
        With ``early_stopping`` only: the number of the finetuning epoch whose tree is kept; 0 for the greedy tree.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from crisptree import CrispTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> settled = {"split": "oblique", "input_noise": 0.3, "l1": 0.0}
    >>> model = CrispTreeRegressor(**settled, max_depth=2, random_state=0).fit(X, y)
    >>> model.get_depth(), bool(model.score(X, y) > 0.4)
    (2, True)
    """

    ENCODING = RegressionEncoding

    n_outputs_: int

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The paper's protocol with numbers instead of classes; see ``CrispTreeClassifier.paper``.

        Examples
        --------
        >>> CrispTreeRegressor.paper(max_depth=4).training.algorithm
        'em'
        """
        return cls.from_flat(**{**PAPER, **changes})

    def fit(
        self,
        X: MatrixLike | BatchesLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: tuple[MatrixLike, ArrayLike] | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        resume: bool = False,
        shards: int = 8,
    ) -> Self:
        """Grow a tree and finetune it; in a process group of torch, all its processes together.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as ``CrispTreeClassifier.fit`` takes them; in batches too, whose second part are the numbers.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Numbers to predict.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of two equals the row twice, a weight of zero equals leaving it out.
        eval_set : (X, y), default=None
            Rows that judge deterministic trees wherever rows judge.
        checkpoint, checkpoint_every, resume : path, float, bool, default=None, 60.0, False
            As in ``CrispTreeClassifier.fit``: a folder from which a fit that was killed goes on.
        shards : int, default=8
            As in ``CrispTreeClassifier.fit``, in a process group only.
        """
        checkpoints = Checkpoints(checkpoint, checkpoint_every, resume)
        return self._fit((X, y, sample_weight), eval_set, checkpoints, shards)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R²: which share of the variance of y the predictions explain; of several outputs the mean."""
        return float(super().score(X, detach(y), detach(sample_weight)))

    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        memory: float = 1.0,
        grow: bool = False,
    ) -> Self:
        """Learn from new rows, with what the tree has learned from earlier ones.

        The first call is a fit, and sets the scale of y and of the features for all later ones. Each of these keeps the
        structure: all splits and leaves are finetuned on the new rows, leaves beside what they have counted before.
        What that forgets is on docs/endurance.md.

        Parameters
        ----------
        X, y : array-like
            New rows and their numbers, as ``fit`` takes them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the new rows.
        memory : float, default=1.0
            What an old row counts beside a new one: 1 lets all rows count alike, 0 forgets the old ones' counts.
        grow : bool, default=False
            Split leaves in which the new rows differ, within ``max_depth`` and the other limits.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from crisptree import CrispTreeRegressor, TrainingOptions
        >>> X, y = load_diabetes(return_X_y=True)
        >>> training = TrainingOptions(steepness_step=0.1)
        >>> given = {"split": "oblique", "input_noise": 0.7, "l1": 0.0, "shrinkage": 0.0, "training": training}
        >>> model = CrispTreeRegressor(max_depth=2, random_state=0, **given).partial_fit(X[::2], y[::2])
        >>> model = model.partial_fit(X[1::2], y[1::2])
        >>> int(model.tree_.statistics.node_counts[0, 0]), bool(model.score(X, y) > 0.3)
        (442, True)
        """
        self._check_updating(memory, grow)
        return self._partial_fit((X, y, sample_weight), memory, grow)

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
        """Fit the tree to what a fitted regressor predicts, on the rows and on noisy copies of them.

        Parameters
        ----------
        teacher : regressor
            Fitted, with ``predict``: a forest, a Pipeline, anything of the kind.
        X : array-like of shape (n_samples, n_features)
            Rows. They need no numbers; those that the teacher learned from will do.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            True numbers of the rows, to be mixed with what the teacher says of them. Copies have none.
        copies, noise, sample_weight
            As in ``CrispTreeClassifier.distill``.
        trust : float, default=None
            The teacher's share in the number of a row whose true one is given, from 0 to 1; None is 0.5.
        eval_set : (X, y), default=None
            Rows with true numbers that judge what the fit chooses; without them rows of X do, by the teacher's.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from crisptree import CrispTreeRegressor, TrainingOptions
        >>> X, y = load_diabetes(return_X_y=True)
        >>> forest = RandomForestRegressor(random_state=0).fit(X, y)
        >>> training = TrainingOptions(steepness_step=0.1)
        >>> given = {"split": "oblique", "input_noise": 0.7, "l1": 0.0, "shrinkage": 0.0, "training": training}
        >>> tree = CrispTreeRegressor(max_depth=3, random_state=0, **given).distill(forest, X, copies=1)
        >>> bool(tree.score(X, forest.predict(X)) > 0.5)
        True
        """
        for name, value in (("copies", copies), ("noise", noise), ("trust", trust)):
            check_argument(name, value)
        rows = make_copies(self.training_parameters(), teacher, X, copies, noise, sample_weight)
        targets = label_by_regressor(teacher, rows, y, trust)
        return self._fit_rows(rows.together, targets, rows.weight, eval_set, Checkpoints(), source=rows.source)

    def predict(self, X: MatrixLike) -> Doubles:
        """The mean of the leaf that every row reaches.  (n, n_features) → (n,), or (n, n_outputs)"""
        if self.__sklearn_is_fitted__() and self.tree_.is_linear:
            return self._flat(self.tree_.target.predict(self._values(X)))
        leaf = self.apply(X)
        return self._flat(self.tree_.labels())[leaf]

    def predict_std(self, X: MatrixLike) -> Doubles:
        """The standard deviation of y in the leaf that every row reaches, in the shape of ``predict``."""
        check_is_fitted(self)
        return self._flat(np.sqrt(self._values(X)[:, self.n_outputs_ :]))

    def predict_interval(self, X: MatrixLike, coverage: float = 0.9) -> tuple[Doubles, Doubles]:
        """From where to where y lies with a probability, by the normal distribution of every row's leaf.

        Its variance is that of the training rows: a tree that has overfitted makes its intervals too narrow. Where y is
        skew in a leaf, ``predict_quantiles`` says more.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        coverage : float, default=0.9
            The probability, above 0 and below 1.

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
        >>> settled = {"split": "oblique", "input_noise": 0.0, "l1": 0.0, "shrinkage": 0.0}
        >>> model = CrispTreeRegressor(**settled, max_depth=1, random_state=0).fit(X, y)
        >>> low, high = model.predict_interval([[0.0], [1.0]], coverage=0.6827)
        >>> low.round(2).tolist(), high.round(2).tolist()
        ([-1.0, 9.0], [1.0, 11.0])
        """
        check_argument("coverage", coverage)
        mean, reach = self.predict(X), ndtri(0.5 + coverage / 2) * self.predict_std(X)
        return mean - reach, mean + reach

    def predict_quantiles(self, X: MatrixLike, quantiles: ArrayLike, *, among: tuple[Any, ...]) -> Doubles:
        """Quantiles of y among the rows that end in the same leaf as each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        quantiles : array-like of shape (n_quantiles,)
            Numbers from 0 to 1.
        among : (X, y) or (X, y, sample_weight)
            Rows with known y, usually those of the training; the model keeps none of them. For a leaf that none of
            them reaches, the leaf's own normal distribution answers.

        Returns
        -------
        ndarray of shape (n_samples, n_quantiles), or (n_samples, n_quantiles, n_outputs)

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispTreeRegressor
        >>> X, y = np.repeat([[0.0], [1.0]], 5, axis=0), np.arange(10.0)
        >>> model = CrispTreeRegressor(max_depth=1, random_state=0).fit(X, y)
        >>> model.predict_quantiles([[0.0], [1.0]], [0.0, 0.5, 1.0], among=(X, y)).tolist()
        [[0.0, 2.0, 4.0], [5.0, 7.0, 9.0]]
        """
        leaf = self.apply(X)
        wanted, there, known, weight = check_reference_rows(self, [self.tree_], quantiles, among)
        found = leaf_quantiles(self.tree_, there, known, weight, wanted)
        return (found[:, :, 0] if self.n_outputs_ == 1 else found)[leaf]

    def soft_predict(self, X: MatrixLike, steepness: float | None = None) -> Doubles:
        """The mean of the probabilistic tree, which visits every leaf; for study.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        steepness : float, default=None
            γ of the turns; None takes that of the end of training.
        """
        check_is_fitted(self)
        rows = self.check_rows(X)
        if steepness is not None:
            check_argument("steepness", steepness)
        from crisptree.pipeline.trees import soft_means

        return self._flat(soft_means(self.tree_, rows, steepness))

    def _flat(self, values: Doubles) -> Doubles:
        """One number per row where there is one output."""
        return values[:, 0] if self.n_outputs_ == 1 else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        tags.regressor_tags.poor_score = False
        return tags


def check_reference_rows(
    estimator: Any, trees: Iterable[CrispTree], quantiles: Any, among: Any
) -> tuple[Doubles, npt.NDArray[np.int64], Doubles, Doubles]:
    """Quantiles from 0 to 1, and rows with known y: the leaves that they reach, y and weights."""
    if any(tree.is_linear for tree in trees):
        raise TypeError(
            "predict_quantiles must have constant leaves; those of leaf_model='linear' have no one y. Take "
            "predict_interval, or train with leaf_model='constant'."
        )
    wanted = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    if wanted.ndim != 1 or not ((wanted >= 0) & (wanted <= 1)).all():
        raise ValueError(f"`quantiles` must be numbers from 0 to 1; got {quantiles!r}.")
    if not isinstance(among, tuple | list) or len(among) not in (2, 3):
        raise ValueError("`among` must be (X, y) or (X, y, sample_weight), rows with known y.")
    known, weight = check_numbers(among[1]), among[2] if len(among) == 3 else None
    there = estimator.apply(among[0])
    check_consistent_length(there, known)
    if known.shape[1] != estimator.n_outputs_:
        raise ValueError(f"y of `among` must have {estimator.n_outputs_} columns as in training; got {known.shape[1]}.")
    return wanted, there, known, check_sample_weight(weight, there.reshape(len(there), -1))
