"""The regressor: one deterministic tree whose leaves are numbers, used like scikit-learn's."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from crisptree.distributed import is_together
from crisptree.estimators.arguments import check_argument
from crisptree.estimators.base import Checkpoints
from crisptree.estimators.distilling import NumberDistillingMixin
from crisptree.estimators.inspecting import InspectingMixin
from crisptree.estimators.parameters import RegressorParameters
from crisptree.estimators.protocol import PAPER
from crisptree.estimators.quantiles import check_reference_rows
from crisptree.estimators.row_estimator import RowEstimator
from crisptree.estimators.simplifying_mixin import SimplifyingMixin
from crisptree.estimators.updating_mixin import NumberUpdatingMixin
from crisptree.estimators.validation import check_rows
from crisptree.inference.quantiles import leaf_quantiles
from crisptree.streams import as_batches
from crisptree.targets.regression import RegressionEncoding
from crisptree.tensors import detach
from crisptree.typing import ArrayLike, BatchesLike, MatrixLike

Doubles = npt.NDArray[np.float64]


class CrispTreeRegressor(
    InspectingMixin,
    SimplifyingMixin,
    NumberDistillingMixin,
    NumberUpdatingMixin,
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
    split : {"auto", "oblique", "axis", "conv"} or callable, default="auto"
        What a split asks; see ``CrispTreeClassifier``, here and wherever no more is said.
    algorithm : {"em", "alternating", "likelihood"}, default="likelihood"
        How stumps and the whole tree are trained.
    grow : {"greedy", "balanced", "axis_aligned", "random", "oc1"}, default="greedy"
        Learn the structure, or start from a random complete tree of ``max_depth``; or let a rival grow the tree of
        hyperplanes by the reduction of variance: CART, the best of random directions, OC1's coordinate descent.
    max_depth : int or None, default=8
        The largest number of splits on a path; None grows until the y of a leaf's rows are one value or its rows all
        alike, as in ``CrispTreeClassifier``.
    max_leaf_nodes : int or None, default=None
        With a number, the tree grows best first by reduction of variance up to that many leaves.
    min_samples_split, min_samples_leaf : int or float, default=2, 1
        Rows that a node needs to be split, and that each side must keep; a float is a fraction of the training rows.
    min_weight_fraction_leaf : float, default=0.0
        The share of all weights that each side of a split must keep.
    min_impurity_decrease : float, default=0.0
        The least reduction of variance (as a share of that of all rows, times the node's share of them) of a split.
    epochs, finetune_epochs : int, default=20, 40
        Epochs of every stump, and of the whole tree afterwards.
    min_updates : int, default=200
        The least number of optimiser steps that a stump, or the whole tree, gets.
    learning_rate : float or "auto", default="auto"
        Adam's step.
    learning_rate_decay : {"linear", "cosine", "none"}, default="linear"
        How the learning rate falls over the epochs of a phase.
    batch_size : int, default=256
        Rows in a batch, per node while growing.
    steepness : float, default=1.0
        γ of the first epoch.
    steepness_step : float or "auto", default="auto"
        What every epoch adds to γ. "auto" is 0.1, or 1 where that is better on the rows that judge the other choices.
    annealing : {"linear", "geometric"}, default="linear"
        Add the step to γ, or multiply γ by 1 + step.
    finetune_steepness : float, "restart" or "continue", default="restart"
        γ of finetuning's first epoch.
    l1, l2 : float or "auto", default="auto", 0.0
        Strength of Σ|β| and of Σβ² on scaled weights. "auto" tries some on held-out rows.
    leaf_prior : float, default=0.0
        Rows that every leaf has more than it has, spread like all training rows together.
    roughness : float, default=0.0
        Strength of the squared differences between weights of neighbouring pixels; needs ``image_shape``.
    penalty_share : {"rows", "none"}, default="rows"
        Whether penalties of a split count by the share of the rows that visit it.
    input_noise : float or "auto", default="auto"
        Width σ of noise on the scaled features while a tree trains, integrated out in closed form.
    image_shape : tuple of int, default=None
        (height, width) or (height, width, channels) of the image that a row is.
    shifts : int, default=0
        The most pixels that an image is shifted while it trains.
    categorical : "auto", None, list of columns or TableEncoder, default="auto"
        What is done to an X that is not all numbers; see docs/tables.md.
    signs : dict or None, default=None
        Columns, by name or number, and 1 or -1: the sign that their weights may have.
    max_features_per_split : int or None, default=None
        The most weights of a split that are not zero.
    apart : list of lists or None, default=None
        Groups of columns of which no split combines two.
    leaves : {"constant", "linear"}, default="constant"
        What a leaf says: the mean of its rows, or a ridge regression, whose weights are sums of parts along the path;
        see docs/linear-leaves.md. The structure then grows on what the regression at the root leaves over.
    leaf_penalty : float or "auto", default="auto"
        λ, in rows: how strongly each part of a linear leaf's weights is held down.
    mass_threshold : float, default=1e-3
        While finetuning, a split that carries less than this share of a row's probability is left alone.
    upper_levels : int from 1 to 10 or None, default=4
        A tree of 1024 splits or more, with four rows or fewer to each, is finetuned from above: so many levels first,
        twice as many, and so on to all. Quicker, and better (docs/results/training-speed.md); None takes all at once.
    scale : {"auto", "feature", "global"} or None, default="auto"
        How features are scaled for training.
    prune : float, "auto" or None, default=None
        What a leaf must save for ``tree_`` to keep it, as a share of the variance of y for each training row; "auto"
        takes the smallest tree that is as good on held-out rows as the best one, within a standard error.
    shrinkage : float or "auto", default="auto"
        λ, by which the means and variances of leaves are drawn towards those of the nodes above. "auto" takes the λ of
        the least squared error on the rows that judge the other choices.
    validation_fraction : float, default=0.1
        The share of rows held out, where some are needed, when ``fit`` is given no ``validation``.
    early_stopping : bool, default=False
        Stop finetuning after ``n_iter_no_change`` epochs without a lower squared error on validation rows, and keep
        the tree of the best epoch.
    n_iter_no_change : int, default=10
        The patience of ``early_stopping``, in epochs of finetuning.
    warm_start : bool, default=False
        Let the next ``fit`` grow ``greedy_tree_`` further and finetune again.
    random_state : int, RandomState or None, default=None
        Makes the fit repeatable.
    device : str, default="auto"
        Where to train: "cpu", "cuda", or "auto" for CUDA where there is one.
    n_jobs : int or None, default=None
        Threads of fits and predictions. None is 1, or what a ``joblib.parallel_config`` context says; -1 takes all
        available cores (CPU affinity and cgroup quota are honoured), -2 all but one. Results are the same, bit for bit,
        for any number.
    verbose : int, default=0
        1 or more shows a live line of progress; 0 and below show nothing.
    callbacks : list of callable, default=None
        Each is called with an ``EpochRecord`` after every epoch; its scores are R² about, 1 − squared error / variance.

    Attributes
    ----------
    tree_ : FlatTree or ModuleTree
        The deterministic tree. Its ``leaves`` are means and variances of the scaled y; ``leaf_values`` are those of y.
    greedy_tree_ : FlatTree or ModuleTree
        The same before finetuning, neither pruned nor shrunk.
    n_outputs_ : int
        How many numbers a row has.
    chosen_ : dict
        What a fit chose for the parameters that say "auto", and the depth.
    path_ : list of Trial
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
    FITTED = (*RowEstimator.FITTED, "n_outputs_", "simplification_")

    n_outputs_: int

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The paper's protocol with numbers instead of classes; see ``CrispTreeClassifier.paper``.

        Examples
        --------
        >>> CrispTreeRegressor.paper(max_depth=4).algorithm
        'em'
        """
        return cls(**{**PAPER, **changes})

    def fit(
        self,
        X: MatrixLike | BatchesLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        validation: tuple[MatrixLike, ArrayLike] | None = None,
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
        validation : (X, y), default=None
            Rows that judge deterministic trees wherever rows judge.
        checkpoint, checkpoint_every, resume : path, float, bool, default=None, 60.0, False
            As in ``CrispTreeClassifier.fit``: a folder from which a fit that was killed goes on.
        shards : int, default=8
            As in ``CrispTreeClassifier.fit``, in a process group only.
        """
        checkpoints = Checkpoints(checkpoint, checkpoint_every, resume)
        if is_together():
            return self._fit_together((X, y, sample_weight), validation, checkpoints, shards)
        batches = as_batches(X, y)
        if batches is not None:
            return self._fit_batches(batches, sample_weight, validation, checkpoints)
        return self._fit_rows(X, y, sample_weight, validation, checkpoints)

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """R²: which share of the variance of y the predictions explain; of several outputs the mean."""
        return float(super().score(X, detach(y), detach(sample_weight)))

    def predict(self, X: MatrixLike) -> Doubles:
        """The mean of the leaf that every row reaches.  (n, n_features) → (n,), or (n, n_outputs)"""
        if self.__sklearn_is_fitted__() and self.tree_.is_linear:
            return self._flat(self.tree_.meaning.answers(self._values(X)))
        leaf = self.apply(X)
        return self._flat(self.tree_.labels())[leaf]

    def predict_std(self, X: MatrixLike) -> Doubles:
        """The standard deviation of y in the leaf that every row reaches, in the shape of ``predict``."""
        check_is_fitted(self, "tree_")
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
        check_is_fitted(self, "tree_")
        rows = check_rows(self, X)
        if steepness is not None:
            check_argument("steepness", steepness)
        from crisptree.estimators.fitting import soft_means

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
