"""The classifier: one deterministic tree, used like scikit-learn's."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from crisptree.estimators.row_estimator import RowEstimator
from crisptree.parameters.estimators import PAPER, ClassifierParameters, check_argument
from crisptree.pipeline.checkpoints import Checkpoints
from crisptree.pipeline.distillation import label_by_classifier, make_copies
from crisptree.targets.classification import ClassEncoding
from crisptree.targets.labels import label_type
from crisptree.typing import ArrayLike, BatchesLike, MatrixLike


class CrispTreeClassifier(
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
    {parameters}

    Attributes
    ----------
    tree_ : FlatTree or ModuleTree
        The deterministic tree: arrays, leaf tables and statistics. Every split parts some training rows.
    greedy_tree_ : FlatTree or ModuleTree
        The same before finetuning, neither pruned nor shrunk.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    best_params_ : dict
        What a fit chose for the parameters that say "auto", and the depth, which may be below ``max_depth``; empty
        where it had nothing to choose or too few rows to tell.
    cv_results_ : list of Trial
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

    classes_: npt.NDArray[Any]

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The paper's protocol: EM, Adam with batches of 1000 rows per node, γ = 1 + 0.1 per epoch, no regularisation.

        One thing is not the paper's: ``mass_threshold`` stays at 1e-3. On held-out rows the accuracy is that of exact
        steps, in a fraction of the time (docs/results/training-speed.md); ``paper(mass_threshold=0)`` takes them.

        Examples
        --------
        >>> CrispTreeClassifier.paper(max_depth=4, epochs=20, finetune_epochs=20).training.batch_size
        1000
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
        eval_set : (X, y), default=None
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
        return self._fit((X, y, sample_weight), eval_set, checkpoints, shards)

    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        memory: float = 1.0,
        grow: bool = False,
    ) -> Self:
        """Learn from new rows, with what the tree has learned from earlier ones.

        The first call is a fit. Each further one keeps the structure: all splits and leaves are finetuned on the new
        rows, leaves beside what they have counted before. What that forgets is on docs/endurance.md.

        Parameters
        ----------
        X, y : array-like
            New rows and their classes, as ``fit`` takes them, but for probabilities.
        classes : array-like of shape (n_classes,), default=None
            All classes that may ever come; the first call must name them. A fitted estimator knows them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the new rows.
        memory : float, default=1.0
            What an old row counts beside a new one: 1 lets all rows count alike, 0 forgets the old ones' counts. With
            0.5 in every call, rows that are ten calls old count a thousandth.
        grow : bool, default=False
            Split leaves that the new rows show to be mixed, within ``max_depth`` and the other limits.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CrispTreeClassifier(split="oblique", max_depth=2, random_state=0)
        >>> model = model.partial_fit(X[::2], y[::2], classes=[0, 1, 2]).partial_fit(X[1::2], y[1::2])
        >>> int(model.tree_.statistics.node_counts[0].sum()), bool(model.score(X, y) > 0.9)
        (150, True)
        """
        self._check_updating(memory, grow)
        if self.__sklearn_is_fitted__():
            if classes is not None and not np.array_equal(_unique(classes), self.classes_):
                raise ValueError(
                    f"`classes` must be those of the first call, {self.classes_.tolist()}; got "
                    f"{_unique(classes).tolist()}. Leave it out, or use a new estimator."
                )
            return self._partial_fit((X, y, sample_weight), memory, grow)
        if classes is None:
            raise ValueError(
                "`classes` must name all classes in the first call of partial_fit, because a part of the rows may "
                "not have all of them; got None."
            )
        return self._partial_fit((X, y, sample_weight), memory, grow, ClassEncoding(_unique(classes)))

    def distill(
        self,
        teacher: Any,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        copies: int | str = "auto",
        noise: float = 0.5,
        labels: str = "hard",
        trust: float | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: tuple[MatrixLike, ArrayLike] | None = None,
    ) -> Self:
        """Fit the tree to what a fitted classifier answers, on the rows and on noisy copies of them.

        Parameters
        ----------
        teacher : classifier
            Fitted, with ``classes_`` and ``predict_proba`` or ``predict``: a forest, a Pipeline, anything of the kind.
        X : array-like of shape (n_samples, n_features)
            Rows. They need no labels; those that the teacher learned from will do.
        y : array-like of shape (n_samples,), default=None
            True labels of the rows, to be mixed with what the teacher says of them. Copies have none.
        copies : int or "auto", default="auto"
            How many noisy copies of every row the teacher labels too. More take longer. "auto" makes 4 of rows of
            numbers, and none of a table with text or holes, for which there can be none.
        noise : float, default=0.5
            Width of the copies' Gaussian noise, in standard deviations of each feature. 0 makes no copies.
        labels : {"hard", "sample", "soft"}, default="hard"
            What a row gets: the likeliest class, a class drawn from the probabilities, or the probabilities
            themselves. The first two train in the fast native steps, the last in torch's.
        trust : float, default=None
            The teacher's share in the probabilities of a row whose label is known, from 0 to 1, for where y is given;
            None is 0.5. With 0.5 or less, "hard" labels of such rows are the true ones, which win ties.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, and of their copies.
        eval_set : (X, y), default=None
            Rows with true labels that judge what the fit chooses and, with ``early_stopping``, every epoch of
            finetuning. Without them rows of X are held out where some are needed; their copies are then left out too,
            and the labels that they judge by are those of the fit.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from sklearn.ensemble import RandomForestClassifier
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_wine(return_X_y=True)
        >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
        >>> tree = CrispTreeClassifier(max_depth=3, random_state=0).distill(forest, X)
        >>> bool((tree.predict(X) == forest.predict(X)).mean() > 0.97)
        True
        """
        for name, value in (("copies", copies), ("noise", noise), ("labels", labels), ("trust", trust)):
            check_argument(name, value)
        rows = make_copies(self.training_parameters(), teacher, X, copies, noise, sample_weight)
        targets = label_by_classifier(teacher, rows, y, labels, trust)
        return self.fit(rows.together, targets, rows.weight, eval_set)

    def predict(self, X: MatrixLike) -> npt.NDArray[Any]:
        """The class of every row.  (n, n_features) → (n,)"""
        if self.__sklearn_is_fitted__() and self.tree_.is_linear:
            return self.classes_[self.tree_.target.predict(self._values(X))]
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
        check_is_fitted(self)
        rows = self.check_rows(X)
        if steepness is not None:
            check_argument("steepness", steepness)
        from crisptree.pipeline.trees import soft_probabilities

        return soft_probabilities(self.tree_, rows, steepness)


def _unique(classes: ArrayLike) -> npt.NDArray[Any]:
    """Classes in their order, each once."""
    found: npt.NDArray[Any] = np.unique(np.asarray(classes))
    label_type(found)
    return found
