"""The classifier: one deterministic tree, used like scikit-learn's."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from crisptree.distributed import is_together
from crisptree.estimators import validation as checks
from crisptree.estimators.arguments import check_argument
from crisptree.estimators.base import Checkpoints
from crisptree.estimators.distilling import DistillingMixin
from crisptree.estimators.inspecting import InspectingMixin
from crisptree.estimators.parameters import ClassifierParameters
from crisptree.estimators.protocol import PAPER
from crisptree.estimators.row_estimator import RowEstimator
from crisptree.estimators.simplifying_mixin import SimplifyingMixin
from crisptree.estimators.updating_mixin import UpdatingMixin
from crisptree.streams import as_batches
from crisptree.targets.classification import ClassEncoding
from crisptree.typing import ArrayLike, BatchesLike, MatrixLike


class CrispTreeClassifier(
    InspectingMixin,
    SimplifyingMixin,
    DistillingMixin,
    UpdatingMixin,
    ClassifierMixin,
    ClassifierParameters,
    RowEstimator,
):
    """A single decision tree, trained as a probabilistic one, that predicts along one path.

    Growth trains every split as a probabilistic stump on the rows that reach it; finetuning then trains all splits
    and leaves jointly while the turns become steeper. How strongly that is regularised, a fit finds out by itself on
    rows that it holds out, and then trains on all. Prediction is deterministic: a row visits at most ``max_depth``
    splits and ends in one leaf.

    Parameters
    ----------
    split : {"auto", "oblique", "axis", "conv"} or callable, default="auto"
        What a split asks: a hyperplane, a threshold on one feature, the paper's small convolutional network (needs
        ``image_shape``), or the module that ``split(input_shape)`` returns, which maps a batch to one number per row.
        "auto" tries hyperplanes and, for tables, CART's thresholds on held-out rows. ``input_shape`` is (n_features,),
        or (channels, height, width) with ``image_shape``.
    algorithm : {"em", "alternating", "likelihood", "non_greedy"}, default="likelihood"
        How stumps and the whole tree are trained: expectation-maximisation, the supplement's alternating scheme
        with hard leaf counts, or the gradient of the log-likelihood itself. "non_greedy" (Norouzi et al. 2015) trains
        the whole tree by a bound of its hard loss, with ``nu`` in place of all penalties; its stumps are those of "em".
    grow : {"greedy", "balanced", "axis_aligned", "random", "oc1", "co2"}, default="greedy"
        Learn the structure, or start from a random complete tree of ``max_depth``; or let a rival grow the tree of
        hyperplanes: CART, the best of random directions, OC1's coordinate descent, CO2's bound of the hard loss.
        With ``split="axis"`` CART's splits stay on their features while finetuning trains them together.
    max_depth : int or None, default=8
        The largest number of splits on a path. None grows until leaves are pure or their rows all alike, as far as the
        limits below allow: where six stumps in a row leave one side empty, the best threshold on one feature takes
        their place. That holds before finetuning, which moves rows to other leaves. Split modules, ``signs``, sparse
        rows, batches and process groups have no such threshold: there such a leaf stays. With "auto" parameters the
        fit may choose a smaller depth.
    max_leaf_nodes : int or None, default=None
        With a number, the tree grows best first by information gain up to that many leaves.
    min_samples_split, min_samples_leaf : int or float, default=2, 1
        Rows that a node needs to be split, and that each side must keep; a float is a fraction of the training rows,
        ``ceil(fraction * n_samples)``, as in scikit-learn. Rows count as rows whatever their weight.
    min_weight_fraction_leaf : float, default=0.0
        The share of all weights that each side of a split must keep.
    min_impurity_decrease : float, default=0.0
        The least information gain (in nats, times the node's share of the samples) of a split.
    epochs, finetune_epochs : int, default=20, 40
        Epochs of every stump, and of the whole tree afterwards.
    min_updates : int, default=200
        The least number of optimiser steps that a stump, or the whole tree, gets: small nodes go through their rows
        several times an epoch. 0 counts epochs alone, as the paper does.
    learning_rate : float or "auto", default="auto"
        Adam's step. "auto" is 0.02 up to 64 features and shrinks with 1 / n_features beyond, because the steps of all
        weights of a hyperplane add up.
    learning_rate_decay : {"linear", "cosine", "none"}, default="linear"
        How the learning rate falls to almost zero over the epochs of a stump, and again over those of finetuning.
    batch_size : int, default=256
        Rows in a batch, per node while growing.
    steepness, steepness_step : float, default=1.0, 0.1
        γ of the first epoch, and what every epoch adds.
    annealing : {"linear", "geometric"}, default="linear"
        Add the step to γ, or multiply γ by 1 + step.
    finetune_steepness : float, "restart" or "continue", default="restart"
        γ of finetuning's first epoch: a number, ``steepness`` again, or on from where greedy growth ended.
    l1, l2 : float or "auto", default="auto", 0.0
        Strength of Σ|β| (exact zeros; linear splits only) and of Σβ² on scaled weights, beside the mean loss per row.
        "auto" tries some on held-out rows. The features that a table's column becomes are shrunk together, by
        √size ‖β‖ in place of Σ|β|.
    leaf_prior : float, default=0.0
        Pseudo-count of every class in every leaf.
    roughness : float, default=0.0
        Strength of squared differences of neighbouring pixels' weights, for oblique splits; needs ``image_shape``.
    penalty_share : {"rows", "none"}, default="rows"
        How strong the penalties of a split are while the whole tree trains: by the share of the rows that visit it, so
        that they weigh as much beside what those rows say as at the root; or one strength for all splits, the paper's
        one λ, which smooths deep splits more. Growth knows no difference: a stump's loss is a mean over its own rows.
    input_noise : float or "auto", default="auto"
        Width σ of noise on the scaled features while a tree trains, integrated out in closed form: every split gets a
        steepness of its own that falls with its norm. Linear splits only. "auto" tries some on held-out rows.
    image_shape : tuple of int, default=None
        (height, width) or (height, width, channels) of the image that a row is; images given as X carry their own.
    shifts : int, default=0
        The most pixels that an image is shifted while it trains, up or down and left or right, by other random numbers
        in every epoch; what comes in from outside repeats the border. Needs ``image_shape``, and scales all pixels
        alike. Rows that judge and final leaf tables are those of the images as they are.
    categorical : "auto", None, list of columns or TableEncoder, default="auto"
        What is done to an X that is not all numbers. "auto" encodes text, categories and missing values by a
        ``TableEncoder``, and leaves rows of finite numbers as they are. A list names columns of numbers that are
        categories, by label or by place; a ``TableEncoder`` says more, such as columns to drop. None refuses all
        but finite numbers. See docs/tables.md.
    signs : dict or None, default=None
        Columns, by name or number, and 1 or -1: in every split their weight has that sign or is zero. What that says
        of the tree as a whole, and what it does not, is on docs/constraints.md.
    max_features_per_split : int or None, default=None
        The most weights of a split that are not zero. A stump is trained with all of them first; the largest stay and
        are trained on. Other than l1, which thins out by strength, this counts.
    apart : list of lists or None, default=None
        Groups of columns, by name or number, of which no split combines two; columns in no group go with any. Of each
        split the group with most influence stays, and is trained on.
    leaves : {"constant", "linear"}, default="constant"
        What a leaf says: the class frequencies of its rows, or a logistic model of them, whose weights are sums of
        parts along the path; see docs/linear-leaves.md. Finetuning then trains models and splits in turn. Linear leaves
        need dense rows of at most 512 features and splits that are hyperplanes or thresholds.
    leaf_penalty : float or "auto", default="auto"
        λ, in rows: how strongly each part of a linear leaf's weights is held down, so that a leaf of few rows says what
        the nodes above it would. "auto" takes the best of some on the rows that judge the other choices.
    nu : float or None, default=None
        The bound on ‖w‖² of a scaled hyperplane in grow="co2" and algorithm="non_greedy". None lets the gain at each
        leaf choose in the former; in the latter validation rows choose, held out as with ``early_stopping``.
    mass_threshold : float, default=1e-3
        While finetuning, a split that carries less than this share of a row's probability is left alone: it is neither
        evaluated nor moved for that row. 0 is exact.
    upper_levels : int from 1 to 10 or None, default=4
        A tree of 1024 splits or more, with four rows or fewer to each, is finetuned from above: so many levels first,
        twice as many, and so on to all. Quicker, and better (docs/results/training-speed.md); None takes all at once.
    scale : {"auto", "feature", "global"} or None, default="auto"
        Subtract each feature's mean and divide by its own spread, by one spread for all, or leave the rows as they
        are; sparse rows are divided only. "auto" takes one spread for the pixels of images and each feature's own for
        tables, where it also tries one for all on held-out rows if the spreads are not too far apart; for sparse rows
        it takes one for all and tries each feature's own. The scale is folded into the weights after
        training.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the rows of each class.
    prune : float, "auto" or None, default=None
        What a leaf must save for ``tree_`` to keep it, in nats of impurity for each training row (cost–complexity, as
        scikit-learn's ``ccp_alpha``); see ``ccp_path``. "auto" takes the smallest tree that is as accurate on held-out
        rows as the best one, within a standard error of their difference. Those are the rows of ``validation``, or
        those that the fit holds out for another reason. If there are none, a first tree is trained without
        ``validation_fraction`` of the rows, which choose, and then the tree itself on all of them: twice the time.
    shrinkage : float or "auto", default="auto"
        λ, by which the tables of leaves are drawn towards those of the nodes above: a node of λ rows is trusted by
        half. Routing stays as it is; the class of a small leaf may become that of the nodes above it. "auto" takes the
        λ of the least log loss on the rows that judge the other choices, the median where there are several folds, and
        0 where nothing is chosen.
    validation_fraction : float, default=0.1
        The share of rows held out, where some are needed, when ``fit`` is given no ``validation``.
    early_stopping : bool, default=False
        Stop finetuning after ``n_iter_no_change`` epochs without a better accuracy of the deterministic tree on
        validation rows, and keep the tree of the best epoch, the greedy one included; see ``best_iteration_``.
    n_iter_no_change : int, default=10
        The patience of ``early_stopping``: epochs of finetuning in a row, counted from its start or from the best one,
        whose validation score is no better. γ begins low and rises, and the deterministic tree may be worse than before
        until it has: a small number may end finetuning there.
    warm_start : bool, default=False
        Let the next ``fit`` grow ``greedy_tree_`` further (to a larger ``max_depth``, on the same rows and the scale
        learned first) and finetune again.
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
        Each is called with an ``EpochRecord`` after every epoch.

    Attributes
    ----------
    tree_ : FlatTree or ModuleTree
        The deterministic tree: arrays, leaf tables and statistics. Every split parts some training rows.
    greedy_tree_ : FlatTree or ModuleTree
        The same before finetuning, neither pruned nor shrunk.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    chosen_ : dict
        What a fit chose for the parameters that say "auto", and the depth, which may be below ``max_depth``; empty
        where it had nothing to choose or too few rows to tell.
    path_ : list of Trial
        Everything that was tried for that: values, score on held-out rows, weights, leaves. A model file keeps neither.
    shrinkage_ : float
        The strength by which the tables of ``tree_`` are shrunk, chosen or given.
    nu_ : float
        The ν of algorithm="non_greedy"; other algorithms have none, and a model file does not keep it.
    image_shape_ : tuple of int or None
        The image that a row is, from ``image_shape`` or from X.
    encoder_ : TableEncoder
        What makes numbers of a table, where X needed it; the tree's features are those that leave it.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where X had some.
    column_labels_ : list
        Labels of a DataFrame's columns where they are no text; rows are then found by them. A model file has no
        room for them.
    target_name_ : str
        The name of y, where it was a Series with one.
    history_ : list of EpochRecord
        One record for every epoch.
    best_iteration_ : int
        With ``early_stopping`` only: which epoch's tree is kept, as a number, from 1 on, among the records of
        ``history_`` whose phase is "finetune"; 0 where it is the greedy tree. A model file does not keep it.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> model.get_n_leaves(), bool(model.score(X, y) > 0.95)
    (3, True)
    """

    ENCODING = ClassEncoding
    FITTED = (*RowEstimator.FITTED, "nu_", "simplification_")

    classes_: npt.NDArray[Any]
    nu_: float

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The paper's protocol: EM, Adam with batches of 1000 rows per node, γ = 1 + 0.1 per epoch, no regularisation.

        One thing is not the paper's: ``mass_threshold`` stays at 1e-3. On held-out rows the accuracy is that of exact
        steps, in a fraction of the time (docs/results/training-speed.md); ``paper(mass_threshold=0)`` takes them.

        Examples
        --------
        >>> CrispTreeClassifier.paper(max_depth=4, epochs=20, finetune_epochs=20).batch_size
        1000
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
        """Grow a tree and finetune it.

        Inside an initialised process group of torch, all its processes do that together, each with the rows that it is
        given; see docs/many-processes.md.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; they become float32 first. A DataFrame, a table of pyarrow, any other table with
            ``__arrow_c_stream__`` or a dictionary of columns may hold text and categories too, and values may be
            missing; see ``categorical``. Or images (n_samples, height, width[, channels]). Or a scipy.sparse matrix,
            which stays sparse; see docs/sparse.md. Or, without y, rows in batches that are read again in every epoch,
            because they are more than the memory holds: ``Batches``, a function that begins a pass, a dataset or loader
            of torch; see docs/streams.md.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Class labels: numbers, strings, booleans, NumPy's dates or bytes. Or a float matrix of probabilities: a row
            then counts as one row of every class, with these weights. Columns are classes 0, 1, …, or what a DataFrame
            calls them. See docs/distill.md.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of two equals the row twice, a weight of zero equals leaving it out.
        validation : (X, y), default=None
            Rows that judge deterministic trees: all choices that a parameter leaves to the fit with "auto" are made by
            them, and they score every epoch of finetuning, by which ``early_stopping`` goes. A list of one pair is
            taken too. For rows in batches they are arrays, and score epochs only with ``early_stopping``.
        checkpoint : path, default=None
            A folder in which the fit keeps what it has done, so that it can go on after a crash; see docs/endurance.md.
        checkpoint_every : float, default=60.0
            Seconds between two writings; 0 writes after every epoch.
        resume : bool, default=False
            Go on from the checkpoint that is in the folder, if there is one: the tree is the one that the fit would
            have come to at once, bit for bit. Data, parameters and versions must be the same.
        shards : int, default=8
            In a process group only: into how many parts all rows are divided. The tree depends on it, and not on how
            many processes there are, which should be no more.
        """
        checkpoints = Checkpoints(checkpoint, checkpoint_every, resume)
        if is_together():
            return self._fit_together((X, y, sample_weight), validation, checkpoints, shards)
        batches = as_batches(X, y)
        if batches is not None:
            return self._fit_batches(batches, sample_weight, validation, checkpoints)
        return self._fit_rows(X, y, sample_weight, validation, checkpoints)

    def predict(self, X: MatrixLike) -> npt.NDArray[Any]:
        """The class of every row.  (n, n_features) → (n,)"""
        if self.__sklearn_is_fitted__() and self.tree_.is_linear:
            return self.classes_[self.tree_.meaning.answers(self._values(X))]
        leaf = self.apply(X)  # which says so where nothing is fitted
        return self.classes_[self.tree_.labels(leaf)]

    def predict_proba(self, X: MatrixLike) -> npt.NDArray[np.float64]:
        """The class frequencies of the leaf that every row reaches, shrunk or not.  (n, n_features) → (n, n_classes)"""
        if self.__sklearn_is_fitted__() and self.tree_.is_linear:
            return self._values(X)
        leaf = self.apply(X)
        return self.tree_.leaf_values(leaf)

    def predict_log_proba(self, X: MatrixLike) -> npt.NDArray[np.float64]:
        """Logarithms of ``predict_proba``; −∞ for a class that never reached the leaf."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def soft_predict_proba(self, X: MatrixLike, steepness: float | None = None) -> npt.NDArray[np.float64]:
        """Class probabilities of the probabilistic tree, which visits every leaf; for study.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        steepness : float, default=None
            γ of the turns; None takes that of the end of training.
        """
        check_is_fitted(self, "tree_")
        rows = checks.check_rows(self, X)
        if steepness is not None:
            check_argument("steepness", steepness)
        from crisptree.estimators.fitting import soft_probabilities

        return soft_probabilities(self.tree_, rows, steepness)
