"""Forests: the common base, classifier and regressor."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from operator import index
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from crisptree.encoding.containers import split_encoded
from crisptree.estimators.base import Estimator, RowEstimator, is_plain, set_row_tags
from crisptree.estimators.classifier import CrispTreeClassifier, ProbabilisticClassifier
from crisptree.estimators.loading import ESTIMATOR, MEMBER, ReadTrees
from crisptree.estimators.regressor import CrispTreeRegressor, Doubles, GaussianRegressor
from crisptree.estimators.selected import SelectionResults
from crisptree.inference import CrispTree, visited_nodes
from crisptree.inference.flat_tree import CrispForest
from crisptree.parameters.estimators import (
    MAX_TREES,
    BaggingParameters,
    ForestClassifierParameters,
    ForestRegressorParameters,
)
from crisptree.persistence.model_file import ModelFile, ModelFileError
from crisptree.pipeline import validation as checks
from crisptree.pipeline.monitoring import Checkpoints
from crisptree.targets.classification import ClassEncoding
from crisptree.targets.regression import RegressionEncoding, squeeze_outputs
from crisptree.threads import is_distributed, single_process
from crisptree.typing import ArrayLike, MatrixLike

if TYPE_CHECKING:
    from crisptree.pipeline.forests import OutOfBag

TreeT = TypeVar("TreeT", bound=RowEstimator)


class ForestEstimator(BaggingParameters, SelectionResults, Estimator, Generic[TreeT]):
    """Base of the forests; ``ENCODING`` and ``TREE`` of a subclass are what depends on y."""

    MODEL = "forest_"
    TREE: type[TreeT]
    """Class of the trees."""

    SCORE: ClassVar[tuple[str, str]]
    """Name and format of the score."""

    forest_: CrispForest
    best_iteration_: npt.NDArray[np.int64]
    oob_score_: float
    seed_: int
    n_rows_: int
    rows_digest_: str
    bags_: tuple[str, Any, npt.NDArray[np.intp] | None]

    if TYPE_CHECKING:

        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    @abstractmethod
    def predict(self, X: MatrixLike) -> npt.NDArray[Any]:
        """Predict rows."""

    @abstractmethod
    def _difference(self, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
        """Compute the mean distance of two predictions."""

    @abstractmethod
    def _set_out_of_bag(self, out_of_bag: OutOfBag, kept: npt.NDArray[np.bool_]) -> None:
        """Set the out-of-bag predictions; ``kept`` are the rows with a positive weight."""

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        eval_set: tuple[MatrixLike, ArrayLike] | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        resume: bool = False,
    ) -> Self:
        """Draw a bootstrap sample for every tree, grow all trees in one batch and finetune each.

        In an initialised process group of torch, every process gets the rows of all processes and trains a share of the
        trees; the forest is that of a single process with all rows. A failed fit leaves the estimator unchanged.

        Parameters
        ----------
        X, y : array-like
            Rows and targets, as in ``CrispTreeClassifier.fit``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, multiplied by those of the bootstrap sample. A row of weight zero is left out.
        eval_set : (X, y), default=None
            Validation set used for model selection and early stopping.
        checkpoint, checkpoint_every, resume
            As in ``CrispTreeClassifier.fit``. With a checkpoint, trees are finetuned one after the other.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> forest = CrispForestClassifier(n_estimators=10, random_state=0).fit(X, y)
        >>> len(forest), bool(forest.oob_score_ > 0.9)
        (10, True)
        """
        checkpoints = Checkpoints(checkpoint, checkpoint_every, resume)
        X, encoded_by = split_encoded(X)
        workers: list[Any] = []
        if is_distributed():
            from crisptree.pipeline.gathered_rows import gather_rows

            (X, y, sample_weight), eval_set, *workers = gather_rows(self, (X, y, sample_weight), eval_set, checkpoints)
        with self._fitting(encoded_by=encoded_by) as twin, single_process():
            from crisptree.pipeline.forests import ForestWarmStart, fit_forest_array

            earlier = None
            if self.warm_start and hasattr(self, "forest_"):
                earlier = ForestWarmStart(
                    self.forest_,
                    self._fitted_encoding(self.forest_.trees[0]),
                    getattr(self, "best_params_", {}),
                    seed=self.seed_,
                    n_rows=self.n_rows_,
                    digest=getattr(self, "rows_digest_", None),
                    sampling=self.bags_[0] if hasattr(self, "bags_") else None,
                )
                twin.set_input_schema(self.input_schema)
            trained = fit_forest_array(twin, (X, y, sample_weight), eval_set, checkpoints, earlier, *workers)
            twin._set_encoding(trained.encoding)
            twin.seed_, twin.n_rows_, twin.rows_digest_, bagging = trained[-4:]
            kept = checks.kept_rows(getattr(self, "class_weight", None), y, sample_weight, trained.n_rows)
            twin.bags_ = (bagging.kind, bagging.settings, None if kept.all() else np.flatnonzero(kept))
            twin.forest_, twin.history_ = CrispForest(tuple(trained.trees)), trained.history
            twin.best_params_, twin.cv_results_ = trained.selected, trained.trials
            if self.training_parameters()["early_stopping"]:
                twin.best_iteration_ = np.array(trained.best_iterations)
            if trained.out_of_bag is not None:
                twin.oob_score_ = trained.out_of_bag.score
                twin._set_out_of_bag(trained.out_of_bag, kept)
        return self

    @property
    def estimator_(self) -> TreeT:
        """An unfitted tree with the parameters of the forest."""
        kind = self.TREE
        own = {name: getattr(self, name) for name in kind.PARAMETERS if name in self.PARAMETERS} | self.FIXED
        if self.max_depth == "auto":
            own["max_depth"] = None
        for name, value in own.items():  # such as class_weight="balanced_subsample", which only forests have
            rule = kind.PARAMETERS[name].rule
            if rule is not None and not rule.holds(value):
                own[name] = kind.PARAMETERS[name].default
        return kind(**own | {"warm_start": False, "random_state": None})

    def tree(self, number: int) -> TreeT:
        """Return one of the trees as a fitted estimator.

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
        tree, one = self.forest_.trees[check_tree_number(number, len(self.forest_))], self.estimator_
        one.tree_ = one.greedy_tree_ = tree
        one.history_ = []
        one.set_input_schema(self.input_schema)
        one._set_encoding(self._fitted_encoding(tree))
        return one

    def to_tree(self, X: MatrixLike, y: ArrayLike | None = None, **options: Any) -> TreeT:
        """Distill the forest into one tree; see ``distill`` of the tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, usually those of the training.
        y : array-like of shape (n_samples,), default=None
            True classes or targets, mixed with the predictions of the forest.
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
        check_is_fitted(self)
        declared = self.TREE.declared_parameters()
        own = {name: options.pop(name) for name in list(options) if name in declared or name == "training"}
        shared = {name: getattr(self, name) for name in ("random_state", "n_jobs", "categorical_features")}
        tree: Any = self.TREE.from_flat(**shared | {"image_shape": self.image_shape_} | own)
        return cast(TreeT, tree.distill(self, X, y, **options))

    def __len__(self) -> int:
        """Return the number of trees."""
        check_is_fitted(self)
        return len(self.forest_)

    def __iter__(self) -> Iterator[TreeT]:
        """Iterate over the trees as estimators."""
        return iter(self.estimators_)

    def __getitem__(self, number: int) -> TreeT:
        """Return one of the trees as an estimator; see ``tree``."""
        return self.tree(number)

    @property
    def estimators_(self) -> list[TreeT]:
        """All trees as estimators."""
        check_is_fitted(self)
        return [self.tree(number) for number in range(len(self.forest_))]

    @property
    def estimators_samples_(self) -> list[npt.NDArray[np.intp]]:
        """Indices of the rows that each tree was trained on, as often as they were drawn; not in a model file."""
        check_is_fitted(self)
        if not hasattr(self, "bags_"):
            raise AttributeError("estimators_samples_ is not part of a model file; fit the forest for it.")
        from crisptree.pipeline.forests import Bagging

        _, settings, kept = self.bags_
        bagging, rows = Bagging(*settings), np.arange(self.n_rows_) if kept is None else kept
        return [np.repeat(rows, bagging.times(number)) for number in range(len(self.forest_))]

    def _values(self, X: MatrixLike) -> npt.NDArray[np.float64]:
        """Average the values of every row's leaves.  (n, n_outputs)"""
        has_names = hasattr(self, "feature_names_in_") or hasattr(self, "encoder_")
        if self.__sklearn_is_fitted__() and not has_names and is_plain(X, self.forest_.n_features):
            values = self.forest_.values(X, self.n_jobs, check_finite=not get_config()["assume_finite"])
            if values is not None:
                return values
        check_is_fitted(self)
        values = self.forest_.values(self.check_rows(X), self.n_jobs)
        assert values is not None  # only a check for finite values can fail
        return values

    def leaf_indices(self, X: MatrixLike) -> npt.NDArray[np.int64]:
        """Return the leaf index of every row in every tree.  (n, n_features) → (n, n_trees)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> CrispForestClassifier(n_estimators=10, random_state=0).fit(X, y).leaf_indices(X).shape
        (150, 10)
        """
        check_is_fitted(self)
        leaves = self.forest_.leaves(self.check_rows(X), self.n_jobs)
        assert leaves is not None
        return leaves

    def apply(self, X: MatrixLike) -> npt.NDArray[np.int64]:
        """Return the node in which every row ends in every tree, as in scikit-learn.  (n, n_features) → (n, n_trees)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> forest = CrispForestClassifier(n_estimators=10, random_state=0).fit(X, y)
        >>> nodes = forest.apply(X)
        >>> nodes.shape, bool((nodes >= forest.leaf_indices(X)).all())
        ((150, 10), True)
        """
        return self.leaf_indices(X) + np.array([tree.structure.n_splits for tree in self.forest_])

    def _named_trees(self) -> dict[str, CrispTree]:
        return {f"{MEMBER}_{number}": tree for number, tree in enumerate(self.forest_)}

    def _extra_header(self) -> dict[str, Any]:
        score = getattr(self, "oob_score_", np.nan)
        header = {"trees": len(self.forest_), "seed": self.seed_, "rows": self.n_rows_}
        return header | {"oob_score": score if np.isfinite(score) else None}

    def _restore_trees(self, file: ModelFile, read: ReadTrees) -> CrispTree:
        header = file.section(ESTIMATOR).content
        numbers = [header.get(name) for name in ("trees", "seed", "rows")]
        if not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in numbers):
            raise ModelFileError(
                f"{file.path} must store the number of trees, the seed and the number of rows; it stores {numbers}."
            )
        n_trees, self.seed_, self.n_rows_ = (int(one or 0) for one in numbers)
        if not 0 < n_trees <= MAX_TREES:
            raise ModelFileError(f"{file.path} must hold 1 to {MAX_TREES:,} trees; it stores {n_trees:,}.")
        self.forest_ = CrispForest(tuple(read(f"{MEMBER}_{number}" for number in range(n_trees)).values()))
        if any(tree.n_features != self.forest_.n_features for tree in self.forest_):
            raise ModelFileError(f"{file.path} holds trees for rows of different widths, which is invalid.")
        score = header.get("oob_score")
        if score is not None:
            if not isinstance(score, float | int) or isinstance(score, bool) or not math.isfinite(score):
                raise ModelFileError(f"{file.path} must store a finite out-of-bag score; it stores {score!r}.")
            self.oob_score_ = float(score)
        return self.forest_.trees[0]

    def decision_path(self, X: MatrixLike) -> tuple[sparse.csr_matrix, npt.NDArray[np.int64]]:
        """Return the nodes that every row visits in all trees, in the format of scikit-learn's forests.

        Returns
        -------
        indicator : sparse matrix of shape (n, n_nodes)
            Columns are the splits and then the leaves of the first tree, then those of the second, and so on.
        n_nodes_ptr : ndarray of shape (n_trees + 1,)
            The columns of tree k are those from ``n_nodes_ptr[k]`` up to ``n_nodes_ptr[k + 1]``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> forest = CrispForestClassifier(n_estimators=10, random_state=0).fit(X, y)
        >>> path, columns = forest.decision_path(X)
        >>> len(columns), path.shape[1] == int(columns[-1])
        (11, True)
        """
        leaves = self.leaf_indices(X)
        paths = [visited_nodes(tree.structure, reached) for tree, reached in zip(self.forest_, leaves.T, strict=True)]
        return sparse.hstack(paths, format="csr"), np.cumsum([0, *(path.shape[1] for path in paths)])

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """The mean of the trees' importances, with sum 1; see ``explain.feature_importances``."""
        check_is_fitted(self)
        from crisptree.explain import feature_importances

        try:
            each = [feature_importances(tree) for tree in self.forest_]
        except TypeError as error:  # hasattr is False for trees with split modules
            raise AttributeError(str(error)) from error
        mean = np.mean(each, axis=0)
        total = mean.sum()
        mean = mean / total if total > 0 else mean
        encoder = self.input_schema.encoder
        return mean if encoder is None else np.asarray(encoder.preprocessing_.by_input(mean))

    def get_depth(self) -> int:
        """Return the largest depth of a tree."""
        check_is_fitted(self)
        return max(tree.structure.depth for tree in self.forest_)

    def get_n_leaves(self) -> int:
        """Return the number of leaves of all trees.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> forest = CrispForestClassifier(n_estimators=10, random_state=0).fit(*load_iris(return_X_y=True))
        >>> forest.get_n_leaves() == sum(tree.get_n_leaves() for tree in forest)
        True
        """
        check_is_fitted(self)
        return sum(tree.structure.n_leaves for tree in self.forest_)

    def to_sklearn(self) -> Any:
        """Convert axis-aligned trees to a fitted random forest of scikit-learn; see ``export.sklearn_forest``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CrispForestClassifier(n_estimators=3, split="axis", random_state=0).fit(X, y)
        >>> forest = model.to_sklearn()
        >>> type(forest).__name__, bool((forest.predict(X) == model.predict(X)).all())
        ('RandomForestClassifier', True)
        """
        check_is_fitted(self)
        from crisptree.export import sklearn_forest

        return sklearn_forest(self)

    def report(
        self, path: str | PathLike[str], X: Any = None, y: Any = None, *, number: int | None = None, **options: Any
    ) -> Path:
        """Write an HTML report about one of the trees; see ``crisptree.report.write``.

        Parameters
        ----------
        path : str or path
            The file to write.
        X, y : array-like, default=None
            Rows and their targets.
        number : int, default=None
            Index of the tree; None takes the one whose predictions on X are closest to those of the forest.
        **options
            As in ``CrispTreeClassifier.report``.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> parameters = {"split": "oblique", "input_noise": 0.3, "l1": 0.0}
        >>> forest = CrispForestClassifier(n_estimators=3, max_depth=2, **parameters, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     forest.report(pathlib.Path(folder) / "iris.html", X, y).name
        'iris.html'
        """
        check_is_fitted(self)
        trees, facts = self.estimators_, [f"{len(self)} trees"]
        name, form = self.SCORE
        if X is not None:
            if number is None:
                predictions = self.predict(X)
                number = int(np.argmin([self._difference(tree.predict(X), predictions) for tree in trees]))
            if y is not None:
                facts.append(f"{name} {self.score(X, y):{form}}")
        out_of_bag = getattr(self, "oob_score_", np.nan)
        if np.isfinite(out_of_bag):
            facts.append(f"out of bag {out_of_bag:{form}}")
        number = check_tree_number(number or 0, len(self))
        title = f"Tree {number} of a forest ({', '.join(facts)})"
        return trees[number].report(path, X, y, **{"title": title} | options)

    def __sklearn_tags__(self) -> Any:
        return set_row_tags(super().__sklearn_tags__(), self.training_parameters())


class CrispForestClassifier(ProbabilisticClassifier, ForestClassifierParameters, ForestEstimator[CrispTreeClassifier]):
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
    best_params_, cv_results_, n_candidates_, image_shape_, encoder_, n_features_in_, feature_names_in_, history_
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
    TREE = CrispTreeClassifier
    SCORE = ("accuracy", ".2%")

    oob_decision_function_: npt.NDArray[np.float64]

    def _set_out_of_bag(self, out_of_bag: OutOfBag, kept: npt.NDArray[np.bool_]) -> None:
        self.oob_decision_function_ = np.full((len(kept), len(self.classes_)), np.nan)
        self.oob_decision_function_[kept] = out_of_bag.values

    def predict(self, X: MatrixLike) -> npt.NDArray[Any]:
        """Predict the class of the highest mean probability.  (n, n_features) → (n,)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> forest = CrispForestClassifier(n_estimators=10, random_state=0).fit(X, y)
        >>> forest.predict(X[[0, 60, 120]]).tolist()
        [0, 1, 2]
        """
        values = self._values(X)
        return self.classes_[self.forest_.target.predict(values)]

    def predict_proba(self, X: MatrixLike) -> npt.NDArray[np.float64]:
        """Predict the mean of the trees' class probabilities.  (n, n_features) → (n, n_classes)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> forest = CrispForestClassifier(n_estimators=10, random_state=0).fit(X, y)
        >>> forest.predict_proba(X).shape
        (150, 3)
        """
        return self._values(X)

    def soft_predict_proba(self, X: MatrixLike, steepness: float | None = None) -> npt.NDArray[np.float64]:
        """Predict class probabilities with the probabilistic trees, which visit every leaf."""
        check_is_fitted(self)
        return np.mean([tree.soft_predict_proba(X, steepness) for tree in self.estimators_], axis=0)

    def _difference(self, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
        return float(np.mean(one != other))


class CrispForestRegressor(GaussianRegressor, ForestRegressorParameters, ForestEstimator[CrispTreeRegressor]):
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
    best_params_, cv_results_, n_candidates_, best_iteration_, image_shape_, encoder_, n_features_in_,
    feature_names_in_, history_
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
    TREE = CrispTreeRegressor
    SCORE = ("R²", ".3f")

    oob_prediction_: Doubles

    def _set_out_of_bag(self, out_of_bag: OutOfBag, kept: npt.NDArray[np.bool_]) -> None:
        means = np.full((len(kept), self.n_outputs_), np.nan)
        means[kept] = out_of_bag.values[:, : self.n_outputs_]
        self.oob_prediction_ = squeeze_outputs(means)

    def predict(self, X: MatrixLike) -> Doubles:
        """Predict the mean of the trees' means.  (n, n_features) → (n,), or (n, n_outputs) for several outputs

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from crisptree import CrispForestRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> forest = CrispForestRegressor(n_estimators=5, max_depth=3, split="oblique", random_state=0).fit(X, y)
        >>> forest.predict(X).shape
        (442,)
        """
        return squeeze_outputs(self._values(X)[:, : self.n_outputs_])

    def _difference(self, one: Doubles, other: Doubles) -> float:
        return float(np.mean((one - other) ** 2))

    def soft_predict(self, X: MatrixLike, steepness: float | None = None) -> Doubles:
        """Predict the mean of the probabilistic trees, which visit every leaf."""
        check_is_fitted(self)
        return np.asarray(np.mean([tree.soft_predict(X, steepness) for tree in self.estimators_], axis=0))

    @np.errstate(under="ignore")  # the square of a tiny spread is 0
    def predict_std(self, X: MatrixLike) -> Doubles:
        """Predict the standard deviation of the mixture of the trees' normal distributions, shaped like ``predict``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from crisptree import CrispForestRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> forest = CrispForestRegressor(n_estimators=5, max_depth=3, split="oblique", random_state=0).fit(X, y)
        >>> bool((forest.predict_std(X) > 0).all())
        True
        """
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


def check_tree_number(number: Any, n_trees: int) -> int:
    """Return the index of a tree; negative ones count from the end."""
    try:
        return range(n_trees)[index(number)]
    except (IndexError, TypeError):
        raise IndexError(
            f"the number of a tree must be a whole one from 0 to {n_trees - 1}, or from -{n_trees} to -1 counted from "
            f"the end; got {number!r}."
        ) from None
