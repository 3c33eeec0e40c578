"""The forest of classifiers: many deterministic trees that answer together, used like scikit-learn's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from crisptree.estimators.classifier import CrispTreeClassifier
from crisptree.estimators.forest_base import ForestEstimator
from crisptree.parameters.estimators import ForestClassifierParameters
from crisptree.pipeline import validation as checks
from crisptree.targets.classification import ClassEncoding
from crisptree.typing import ArrayLike, MatrixLike

if TYPE_CHECKING:
    from crisptree.pipeline.forests import OutOfBag


class CrispForestClassifier(ClassifierMixin, ForestClassifierParameters, ForestEstimator):
    """Many crisp trees on rows drawn by chance, which predict by the mean of their leaves.

    Each tree is trained as ``CrispTreeClassifier`` trains one, on rows drawn by chance; how strongly they are
    regularised is chosen once for all. The stumps of one level of all trees are one batch, so that many trees take
    less time than one after the other. A row visits at most ``n_estimators`` times ``max_depth`` splits.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    forest_ : CrispForest
        The deterministic trees.
    estimators_ : list of CrispTreeClassifier
        The same as estimators of their own, see ``tree``.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    oob_score_ : float
        The accuracy on the training rows, each judged by the trees that have not seen it; there is none where every
        tree sees all rows.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        The class probabilities by those trees; not numbers for a row that all trees have seen or that weighs nothing.
    best_params_ : dict
        What the fit chose for the parameters that say "auto".
    best_iteration_ : ndarray of shape (n_trees,)
        With ``early_stopping`` only: of every tree of the last ``fit`` the number of the finetuning epoch that is kept;
        0 for the greedy tree.
    cv_results_ : list of Trial
        All candidates that were compared for that, with their scores on held-out rows.
    image_shape_, encoder_, n_features_in_, feature_names_in_, history_
        As those of ``CrispTreeClassifier``; ``history_`` has the growth of all trees, then each tree's finetuning.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from crisptree import CrispForestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> given = {"split": "oblique", "input_noise": 0.3, "l1": 0.0}
    >>> forest = CrispForestClassifier(n_estimators=5, max_depth=3, **given, random_state=0).fit(X, y)
    >>> len(forest), bool(forest.oob_score_ > 0.9)
    (5, True)
    """

    ENCODING = ClassEncoding
    SCORE = ("accuracy", ".2%")

    classes_: npt.NDArray[Any]
    oob_decision_function_: npt.NDArray[np.float64]

    def _set_out_of_bag(self, out_of_bag: OutOfBag, kept: npt.NDArray[np.bool_]) -> None:
        self.oob_decision_function_ = np.full((len(kept), len(self.classes_)), np.nan)
        self.oob_decision_function_[kept] = out_of_bag.values

    def predict(self, X: MatrixLike) -> npt.NDArray[Any]:
        """The class of the highest mean probability.  (n, n_features) → (n,)"""
        values = self._values(X)
        return self.classes_[self.forest_.target.predict(values)]

    def predict_proba(self, X: MatrixLike) -> npt.NDArray[np.float64]:
        """The mean of the trees' probabilities.  (n, n_features) → (n, n_classes)"""
        return self._values(X)

    def predict_log_proba(self, X: MatrixLike) -> npt.NDArray[np.float64]:
        """Logarithms of ``predict_proba``; −∞ for a class that no tree gives a chance."""
        with np.errstate(divide="ignore"):
            return np.log(self._values(X))

    def soft_predict_proba(self, X: MatrixLike, steepness: float | None = None) -> npt.NDArray[np.float64]:
        """The mean of what the probabilistic trees say, which visit every leaf; for study."""
        check_is_fitted(self)
        return np.mean([tree.soft_predict_proba(X, steepness) for tree in self.estimators_], axis=0)

    def _difference(self, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
        return float(np.mean(one != other))

    def margins(self, X: MatrixLike, y: ArrayLike | None = None) -> npt.NDArray[np.float64]:
        """By how much the trees prefer a class: its mean probability less that of the next best.  (n,)

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), default=None
            The classes that are meant, true ones for instance: below zero where the forest is wrong. None takes those
            that it predicts.
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
        """One of the trees as a fitted ``CrispTreeClassifier``: it predicts, explains, draws and saves itself.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> given = {"split": "oblique", "input_noise": 0.3, "l1": 0.0}
        >>> forest = CrispForestClassifier(n_estimators=3, max_depth=2, **given, random_state=0).fit(X, y)
        >>> forest.tree(2).get_depth()
        2
        """
        check_is_fitted(self)
        return self._as_tree(CrispTreeClassifier, number)

    def to_tree(self, X: MatrixLike, y: ArrayLike | None = None, **options: Any) -> CrispTreeClassifier:
        """One tree that answers as the forest does, distilled on rows; see ``CrispTreeClassifier.distill``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, usually those of the training.
        y : array-like of shape (n_samples,), default=None
            Their true classes, to be mixed with what the forest says.
        **options
            Parameters of the tree, such as ``max_depth``, and arguments of ``distill``, such as ``copies``.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_wine(return_X_y=True)
        >>> given = {"split": "oblique", "input_noise": 0.3, "l1": 0.0}
        >>> forest = CrispForestClassifier(n_estimators=5, max_depth=3, **given, random_state=0).fit(X, y)
        >>> tree = forest.to_tree(X, max_depth=2, copies=1)
        >>> bool((tree.predict(X) == forest.predict(X)).mean() > 0.9)
        True
        """
        return cast(CrispTreeClassifier, self._distill(CrispTreeClassifier, X, y, options))
