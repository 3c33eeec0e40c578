"""The forest of classifiers: many deterministic trees that answer together, used like scikit-learn's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, check_random_state

from crisptree.estimators import validation as checks
from crisptree.estimators.classifier import CrispTreeClassifier
from crisptree.estimators.constraints import by_number
from crisptree.estimators.forest_base import ForestEstimator
from crisptree.estimators.forest_checks import check_forest, check_warm_start
from crisptree.estimators.forest_parameters import ForestParameters
from crisptree.estimators.parameters import ClassifierParameters
from crisptree.estimators.sparse_rows import takes_sparse_rows
from crisptree.inference.forest import CrispForest

if TYPE_CHECKING:
    from crisptree.explain import ForestPath


class CrispForestClassifier(ClassifierMixin, ForestParameters, ForestEstimator):
    """Many crisp trees on rows drawn by chance, which predict by the mean of their leaves.

    Each tree is trained as ``CrispTreeClassifier`` trains one, on a bootstrap of the rows; how strongly they are
    regularised is chosen once for all. The stumps of one level of all trees are one batch, so that many trees take
    less time than one after the other. A row visits at most ``n_estimators`` times ``max_depth`` splits.

    Parameters
    ----------
    n_estimators : int or "auto", default=25
        How many trees. "auto" adds ten at a time, up to a hundred, until the last ten were no gain on the rows that
        they have not seen (by more than the gain's standard error); that needs rows which are left out.
    bootstrap : bool or "balanced", default=True
        Draw rows with replacement; False draws them without, and without ``max_samples`` takes all. "balanced"
        draws as many rows of every class. What is drawn are weights: no row is copied.
    max_samples : int, float or None, default=None
        How many rows are drawn for a tree, or what share of them; None draws as many as there are.
    max_features : int, float, "sqrt", "auto" or None, default="auto"
        How many features a split may have, drawn for each split, or what share of them; None lets it have all. "auto"
        lets hyperplanes have all and thresholds the square root of their number.
    max_depth : int, "auto" or None, default="auto"
        The largest number of splits on a path. "auto" is 10 for hyperplanes, and no bound for thresholds.
    random_state : int, RandomState or None, default=None
        Makes the fit repeatable. A tree follows from this and from its number alone.
    warm_start : bool, default=False
        Let the next ``fit`` on the same rows add trees, up to ``n_estimators``, to those that there are.
    **tree_parameters
        All others are those of ``CrispTreeClassifier`` and mean the same for each tree. Those that say "auto" are
        chosen once, by small forests on rows that are held out. ``early_stopping`` needs ``validation`` rows,
        ``prune`` and ``shrinkage`` need numbers.

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
    chosen_ : dict
        What the fit chose for the parameters that say "auto".
    path_ : list of Trial
        Everything that was tried for that.
    image_shape_, encoder_, n_features_in_, feature_names_in_, history_
        As those of ``CrispTreeClassifier``; ``history_`` has the growth of all trees, then each tree's finetuning.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from crisptree import CrispForestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> forest = CrispForestClassifier(n_estimators=5, max_depth=3, epochs=5, random_state=0).fit(X, y)
    >>> len(forest), bool(forest.oob_score_ > 0.9)
    (5, True)
    """

    classes_: npt.NDArray[Any]
    oob_score_: float
    oob_decision_function_: npt.NDArray[np.float64]

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        validation: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    ) -> Self:
        """Draw rows for every tree, grow all of them together and finetune each.

        Parameters
        ----------
        X, y : array-like
            Rows and classes as ``CrispTreeClassifier.fit`` takes them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, beside how often a tree has drawn them. A row of weight zero is left out.
        validation : (X, y), default=None
            Rows that judge choices and, with ``early_stopping``, every epoch of finetuning.
        """
        with self._fitting() as twin:
            parameters = self.get_params(deep=False)
            check_forest(self.PARAMETERS, parameters, has_validation=validation is not None)
            earlier = self.__dict__.get("forest_") if self.warm_start else None
            data = checks.check_training_data(twin, X, y, sample_weight, reset=earlier is None)
            twin.image_shape_ = data.image_shape
            held_out = None
            if validation is not None:
                held_out = checks.check_validation(twin, validation, data.classes, may_be_soft=True).part
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            if earlier is not None:
                seed = check_warm_start(self, parameters, data)
            from crisptree.estimators.fitting_forest import fit_classes

            trained = fit_classes(by_number(parameters, twin), data, held_out, earlier, self._chosen(), seed)
            twin._forget()
            twin.classes_, twin.seed_, twin.n_rows_ = data.classes, seed, len(data.y)
            twin.forest_, twin.history_ = CrispForest.of(trained.trees), trained.history
            twin.chosen_, twin.path_ = trained.chosen, trained.path
            if trained.bagging.leaves_rows_out:
                judge = trained.out_of_bag
                if judge.trees.any():
                    scores, weights = judge.scores(trained.target)
                    twin.oob_score_ = float(np.average(scores, weights=weights))
                kept = checks.kept_rows(self, y, sample_weight, len(data.y))
                twin.oob_decision_function_ = np.full((len(kept), len(data.classes)), np.nan)
                twin.oob_decision_function_[kept] = judge.values
        return self

    def _chosen(self) -> dict[str, Any]:
        chosen: dict[str, Any] = self.__dict__.get("chosen_", {}) if self.warm_start else {}
        return chosen

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """The class of the highest mean probability.  (n, n_features) → (n,)"""
        values = self._values(X)
        return self.classes_[self.forest_.meaning.answers(values)]

    def predict_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The mean of the trees' probabilities.  (n, n_features) → (n, n_classes)"""
        return self._values(X)

    def predict_log_proba(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Logarithms of ``predict_proba``; −∞ for a class that no tree gives a chance."""
        with np.errstate(divide="ignore"):
            return np.log(self._values(X))

    def margins(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None) -> npt.NDArray[np.float64]:
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
            numbers = checks.check_validation(self, (X, y), self.classes_, "y").y
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
        >>> forest = CrispForestClassifier(n_estimators=3, max_depth=2, epochs=5, random_state=0).fit(X, y)
        >>> forest.tree(2).get_depth()
        2
        """
        check_is_fitted(self, "forest_")
        return self._as_estimator(self.forest_.trees[range(len(self.forest_))[number]])

    def _as_estimator(self, tree: Any) -> CrispTreeClassifier:
        own = {name: getattr(self, name) for name in ClassifierParameters.PARAMETERS}
        one = CrispTreeClassifier(**own | {"warm_start": False, "random_state": None})
        one.tree_ = one.greedy_tree_ = tree
        one.history_, one.classes_, one.image_shape_ = [], self.classes_, self.image_shape_
        for name in ("n_features_in_", "feature_names_in_", "encoder_", "preprocessing_", "chosen_"):
            if name in self.__dict__:
                one.__dict__[name] = self.__dict__[name]
        return one

    def explain(self, x: Any, *, top: int = 5) -> ForestPath:
        """What every tree says of one row and on which way, and which features pushed it most; see ``explain.votes``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> forest = CrispForestClassifier(n_estimators=3, max_depth=2, epochs=5, random_state=0).fit(X, y)
        >>> said = forest.explain(X.iloc[0], top=1)
        >>> said.n_for, len(said.paths)
        (3, 3)
        """
        from crisptree.explain import votes

        return votes(self, x, top=top)

    def to_tree(self, X: npt.ArrayLike, y: npt.ArrayLike | None = None, **options: Any) -> CrispTreeClassifier:
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
        >>> forest = CrispForestClassifier(n_estimators=5, max_depth=3, epochs=5, random_state=0).fit(X, y)
        >>> tree = forest.to_tree(X, max_depth=2, copies=1)
        >>> bool((tree.predict(X) == forest.predict(X)).mean() > 0.9)
        True
        """
        check_is_fitted(self, "forest_")
        own = {name: options.pop(name) for name in list(options) if name in CrispTreeClassifier.PARAMETERS}
        shared = {name: getattr(self, name) for name in ("random_state", "device", "n_jobs", "categorical")}
        tree = CrispTreeClassifier(**shared | {"image_shape": self.image_shape_} | own)
        return tree.distill(self, X, y, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        takes = self.categorical is not None
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = takes
        tags.input_tags.sparse = takes_sparse_rows(self.get_params(deep=False))
        return tags
