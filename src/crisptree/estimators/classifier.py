"""The classification tree: one deterministic tree with the interface of scikit-learn's classifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin

from crisptree.estimators.readability import ReadableEstimator
from crisptree.parameters.estimators import ClassifierParameters, check_argument
from crisptree.pipeline.distillation import label_by_classifier, make_copies
from crisptree.targets.classification import ClassEncoding
from crisptree.typing import ArrayLike, MatrixLike


class ProbabilisticClassifier(ClassifierMixin):
    """Base of classifiers of rows, trees and forests."""

    classes_: npt.NDArray[Any]

    if TYPE_CHECKING:

        def predict_proba(self, X: MatrixLike) -> npt.NDArray[np.float64]: ...

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        return len(self.classes_)

    @property
    def n_outputs_(self) -> int:
        """Number of outputs: 1."""
        return 1 if self.n_classes_ else 0

    def __call__(self, X: MatrixLike) -> npt.NDArray[np.float64]:
        """Return ``predict_proba(X)``: libraries such as shap explain functions."""
        return self.predict_proba(X)

    def predict_log_proba(self, X: MatrixLike) -> npt.NDArray[np.float64]:
        """Predict log-probabilities; −inf where ``predict_proba`` is 0.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        >>> model.predict_log_proba(X[:1]).argmax()
        np.int64(0)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class CrispTreeClassifier(ProbabilisticClassifier, ClassifierParameters, ReadableEstimator):
    """A single decision tree, trained as a probabilistic one, that predicts along one path.

    Growth trains every split as a probabilistic stump on the rows that reach it; finetuning then trains all splits
    and leaves jointly while the sigmoids become steeper. ``fit`` selects the strength of the regularisation on
    held-out rows, and then trains on all rows. Prediction is deterministic: a row visits at most ``max_depth`` splits
    and ends in one leaf.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    tree_ : FlatTree or ModuleTree
        The deterministic tree: arrays, leaf tables and statistics. Every split separates some training rows.
    greedy_tree_ : FlatTree or ModuleTree
        The tree before finetuning, neither pruned nor shrunk.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    best_params_ : dict
        Selected values of the parameters that are "auto", and the depth, which may be below ``max_depth``; empty
        without such parameters, or with too few rows.
    cv_results_ : list of Trial
        All trials of the candidates: ``values``, ``score`` on held-out rows and its ``error``, ``leaves``, ``weights``;
        docs/guide/model-selection.md lists their fields. Not part of a model file.
    n_candidates_ : int
        Number of candidates that were trained; as ``max_candidates`` it repeats a fit with a ``time_budget``.
    shrinkage_ : float
        The shrinkage λ of the leaf tables of ``tree_``, selected or given.
    image_shape_ : tuple of int or None
        The shape of a row that is an image, from ``image_shape`` or from X.
    encoder_ : TableEncoder
        The encoder of the table, if X needed one; its outputs are the features of the tree.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X had any.
    column_labels_ : list
        Labels of a DataFrame's columns that are not strings. Not part of a model file.
    target_name_ : str
        The name of y, if it was a Series with one.
    history_ : list of EpochRecord
        One record for every epoch.
    best_iteration_ : int
        With ``early_stopping`` only: the finetuning epoch whose tree is kept, counted from 1 among the records of
        ``history_`` whose phase is "finetune"; 0 for ``greedy_tree_``. Not part of a model file.

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

    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        decay: float = 1.0,
    ) -> Self:
        """Update the tree with new rows.

        The first call is a fit with ``leaf_model="constant"``. Each further one keeps the structure: all splits and
        leaves are finetuned jointly on the new rows, and their leaf statistics are added to those of earlier rows; see
        docs/guide/large-data.md.

        Parameters
        ----------
        X, y : array-like
            New rows and their class labels, as in ``fit``.
        classes : array-like of shape (n_classes,), default=None
            All classes that can occur; required in the first call.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the new rows.
        decay : float, default=1.0
            Decay of the statistics of earlier rows: 1 weighs all rows alike, 0 discards earlier ones. With 0.5 in
            every call, a row that is ten calls old has a thousandth of its weight.

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
        is_first = not self.__sklearn_is_fitted__()
        if is_first and classes is None:
            raise ValueError(
                "`classes` must name all classes in the first call of partial_fit, because the first rows may not "
                "have all of them; got None."
            )
        encoding = ClassEncoding.named(self.classes_ if classes is None else classes)
        if not is_first and not np.array_equal(encoding.classes, self.classes_):
            raise ValueError(
                f"`classes` must be those of the first call, {self.classes_.tolist()}; got "
                f"{encoding.classes.tolist()}. Leave it out, or use a new estimator."
            )
        return self._partial_fit((X, y, sample_weight), decay, encoding)

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
        """Fit the tree to the predictions of a fitted classifier, on the rows and on noisy copies of them.

        Parameters
        ----------
        teacher : classifier
            Fitted, with ``classes_`` and ``predict_proba`` or ``predict``, such as a forest or a Pipeline.
        X : array-like of shape (n_samples, n_features)
            Rows, unlabelled or those that the teacher was trained on.
        y : array-like of shape (n_samples,), default=None
            True labels, mixed with the predictions of the teacher. Copies have none.
        copies : int or "auto", default="auto"
            Noisy copies of every row that the teacher labels. "auto" is 4 for numeric rows, and 0 for a table with
            text or missing values.
        noise : float, default=0.5
            Standard deviation of the copies' Gaussian noise, in units of that of each feature. 0 makes no copies.
        labels : {"hard", "sample", "soft"}, default="hard"
            Label of a row: the most probable class, a class drawn from the probabilities, or the probabilities
            themselves. The first two train in the native engine, the last in torch.
        trust : float, default=None
            Weight of the teacher's probabilities against the true label, from 0 to 1; None is 0.5. At 0.5 or less,
            "hard" labels are the true ones.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, and of their copies.
        eval_set : (X, y), default=None
            Validation rows with true labels. Without them, rows of X are held out with their copies where needed, and
            scored by the labels of the fit.

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
        return self.fit(rows.X, targets, rows.weight, eval_set)

    def predict(self, X: MatrixLike) -> npt.NDArray[Any]:
        """Predict the class of every row.  (n, n_features) → (n,)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        >>> model.predict(X[[0, 60, 120]]).tolist()
        [0, 1, 2]
        """
        if self.__sklearn_is_fitted__() and self.tree_.is_linear:
            return self.classes_[self.tree_.target.predict(self._values(X))]
        leaf = self.leaf_indices(X)  # raises NotFittedError
        return self.classes_[self.tree_.labels(leaf)]

    def predict_proba(self, X: MatrixLike) -> npt.NDArray[np.float64]:
        """Predict the class frequencies of every row's leaf.  (n, n_features) → (n, n_classes)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> fixed = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 1.0, "random_state": 0}
        >>> model = CrispTreeClassifier(**fixed, max_depth=2).fit(X, y)
        >>> model.predict_proba(X[:1]).shape
        (1, 3)
        """
        if self.__sklearn_is_fitted__() and self.tree_.is_linear:
            return self._values(X)
        leaf = self.leaf_indices(X)
        return self.tree_.leaf_values(leaf)

    def soft_predict_proba(self, X: MatrixLike, steepness: float | None = None) -> npt.NDArray[np.float64]:
        """Predict class probabilities with the probabilistic tree, which visits every leaf.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        steepness : float, default=None
            γ of the splits; None is that of the end of training.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CrispTreeClassifier(split="oblique", max_depth=2, random_state=0).fit(X, y)
        >>> soft = model.soft_predict_proba(X[:1], steepness=0.5)
        >>> bool(soft.max() < model.predict_proba(X[:1]).max())
        True
        """
        from crisptree.pipeline.probabilistic import soft_probabilities

        return soft_probabilities(*self._soft_input(X, steepness))
