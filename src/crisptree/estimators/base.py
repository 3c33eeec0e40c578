"""Bases of the estimators: of all of them, of those of one tree, and of the trees for rows."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeGuard

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from crisptree.data.batches import as_batches
from crisptree.data.raw_rows import SparseRows
from crisptree.data.validation import InputSchema, check_rows
from crisptree.encoding.containers import are_batches, materialize, reorder_columns, split_encoded
from crisptree.estimators.loading import GREEDY, TREE, ReadTrees, register, sections_of
from crisptree.estimators.selected import PaperProtocol, SelectionResults
from crisptree.inference import CrispTree, FlatTree, route_rows, visited_nodes
from crisptree.inference import flat_tree as routing
from crisptree.inference.finalization import PruningPath, cost_complexity_path
from crisptree.inference.finalization import prune as prune_tree
from crisptree.inference.finalization import truncate as truncate_tree
from crisptree.parameters.estimators import RowParameters, check_argument
from crisptree.persistence.model_file import ModelFile, ModelFileError, Sections, write
from crisptree.pipeline import validation as checks
from crisptree.pipeline.monitoring import Checkpoints
from crisptree.targets.base import TargetEncoding
from crisptree.threads import check_single_process, is_distributed
from crisptree.typing import ArrayLike, BatchesLike, MatrixLike

if TYPE_CHECKING:
    from crisptree.encoding.preprocessing import Preprocessing
    from crisptree.encoding.table_encoder import TableEncoder
    from crisptree.explain import Path as TreePath
    from crisptree.learning.fitting import Fitted as FittedTrees
    from crisptree.learning.history import EpochRecord
    from crisptree.pipeline.trees import TrainedRows


class Estimator(BaseEstimator, ABC):
    """Base of all estimators: schema of the training rows, atomic fits, model files."""

    ENCODING: ClassVar[type[TargetEncoding]]
    """Encoding of y; nothing else in an estimator depends on what y is."""

    MODEL: ClassVar[str]
    """Fitted attribute that holds the trees."""

    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]
    image_shape_: tuple[int, ...] | None
    column_labels_: list[Any]
    target_name_: str
    encoder_: TableEncoder
    preprocessing_: Preprocessing
    history_: list[EpochRecord]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        register(cls)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self.MODEL)

    @contextmanager
    def _fitting(self, encoded_by: Preprocessing | None = None) -> Iterator[Self]:
        """Provide a copy to fit, whose fitted attributes replace those of this estimator atomically at the end.

        Until then this one predicts as before: if the fit fails or is interrupted, and for other threads.
        ``encoded_by`` is the preprocessing of rows that were encoded before the fit. Every public method that trains
        runs in here.
        """
        twin = copy.copy(self)
        for name in self._fitted_attributes():
            delattr(twin, name)
        if encoded_by is not None:
            twin.preprocessing_ = encoded_by
        with training_context():
            yield twin
        fitted = twin._fitted_attributes()
        self.__dict__ = {name: value for name, value in vars(self).items() if not _is_fitted(name)} | fitted

    def _fitted_attributes(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if _is_fitted(name)}

    def _fitted_encoding(self, tree: CrispTree) -> TargetEncoding:
        """Return the encoding of y that a tree of this estimator was trained with."""
        return self.ENCODING.of_fitted(vars(self), tree)

    def _set_encoding(self, encoding: TargetEncoding) -> None:
        """Set the fitted attributes that describe y."""
        for name, value in encoding.attributes.items():
            setattr(self, name, value)

    def in_training_order(self, X: Any) -> Any:
        """Return X in memory; columns of a DataFrame whose labels are not strings in the order of training."""
        return reorder_columns(materialize(X), self.input_schema.column_labels)

    @property
    def input_schema(self) -> InputSchema:
        """Columns of the training rows."""
        return InputSchema(
            getattr(self, "n_features_in_", 0),
            getattr(self, "feature_names_in_", None),
            getattr(self, "column_labels_", None),
            getattr(self, "image_shape_", None),
            getattr(self, "encoder_", None),
            getattr(self, "preprocessing_", None),
            getattr(self, "target_name_", None),
            self._feature_means if self._fills_missing() else None,
        )

    def _fills_missing(self) -> bool:
        """Return True if missing numbers in rows to predict are filled: not in images, nor in numbers as they are."""
        is_fitted = self.__sklearn_is_fitted__() and not hasattr(self, "encoder_")
        return is_fitted and self.image_shape_ is None and getattr(self, "categorical_features", None) is not None

    def _feature_means(self) -> npt.NDArray[np.float64]:
        """Return the means of the features in training.  (n_features,)"""
        return np.mean([tree.statistics.scaling.mean for tree in self._named_trees().values()], axis=0)

    def set_input_schema(self, schema: InputSchema) -> None:
        """Set the fitted attributes that describe the columns of the training rows."""
        self.n_features_in_, self.image_shape_ = schema.n_features, schema.image_shape
        learned = {
            "feature_names_in_": schema.feature_names,
            "column_labels_": schema.column_labels,
            "encoder_": schema.encoder,
            "preprocessing_": schema.encoded_by,
            "target_name_": schema.target_name,
        }
        for name, value in learned.items():
            if value is not None:
                setattr(self, name, value)
            elif hasattr(self, name):
                delattr(self, name)

    def with_input_schema(self, **changes: Any) -> Self:
        """Return a copy of the fitted estimator with other columns; ``changes`` are fields of ``InputSchema``."""
        twin = copy.copy(self)
        twin.set_input_schema(replace(self.input_schema, **changes))
        return twin

    def check_rows(self, X: Any) -> npt.NDArray[np.float32] | SparseRows:
        """Validate rows for prediction: finite float32 numbers with the columns of the training."""
        rows = check_rows(X, self.input_schema, self)
        if isinstance(rows, SparseRows) and not isinstance(getattr(self, "tree_", None), FlatTree | None):
            raise ValueError(
                "X must be dense for a tree whose splits are modules, which see whole rows; got sparse rows. "
                "Give X.toarray(), a part of the rows at a time where there are many."
            )
        return rows

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator to a file that ``crisptree.load`` reads.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier, load
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(pathlib.Path(folder) / "iris.crisp")
        ...     restored = load(pathlib.Path(folder) / "iris.crisp")
        >>> bool((restored.predict(X) == model.predict(X)).all())
        True
        """
        write(path, self._sections())

    def _sections(self) -> Sections:
        """Return the sections of the model file."""
        check_is_fitted(self)
        return sections_of(self)

    @abstractmethod
    def _named_trees(self) -> dict[str, CrispTree]:
        """Return all trees by the names of their sections in a model file."""

    def _extra_header(self) -> dict[str, Any]:
        """Return the header entries of this class of estimators."""
        return {}

    @abstractmethod
    def _restore_trees(self, file: ModelFile, read: ReadTrees) -> CrispTree:
        """Restore the trees of a model file; return one of those that predict rows."""


def set_row_tags(tags: Any, parameters: Mapping[str, Any]) -> Any:
    """Set the input tags of scikit-learn for an estimator of rows with these parameters."""
    takes_tables = parameters["categorical_features"] is not None
    tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = takes_tables
    tags.input_tags.sparse = not any(checks.violations(parameters, rows="sparse"))
    return tags


@contextmanager
def training_context() -> Iterator[None]:
    """Run torch on one thread and ignore underflow, which correctly rounds tiny probabilities to 0."""
    from crisptree.threads import one_thread

    with one_thread(), np.errstate(under="ignore"):
        yield


class TreeEstimator(Estimator):
    """Base of the estimators of one tree, which also store the tree before finetuning."""

    MODEL = "tree_"

    tree_: CrispTree
    greedy_tree_: CrispTree
    best_iteration_: int

    def _set_fitted(self, fitted: FittedTrees) -> None:
        """Set the fitted attributes of a trained tree."""
        self.tree_, self.greedy_tree_ = fitted.tree, fitted.greedy
        if fitted.best_iteration is not None:
            self.best_iteration_ = fitted.best_iteration

    def _named_trees(self) -> dict[str, CrispTree]:
        return {TREE: self.tree_, GREEDY: self.greedy_tree_}

    def _restore_trees(self, file: ModelFile, read: ReadTrees) -> CrispTree:
        trees = read([TREE, *([GREEDY] if GREEDY in file.sections else [])])
        self.tree_, self.greedy_tree_ = trees[TREE], trees.get(GREEDY, trees[TREE])
        if self.greedy_tree_.n_features != self.tree_.n_features:
            raise ModelFileError(f"{file.path} holds two trees for rows of different widths, which is invalid.")
        return self.tree_

    @property
    def _leaf_prior(self) -> float:
        prior: float = self.flat_parameters()["leaf_prior"]
        return prior

    def before_finetuning(self) -> Self:
        """Return the fitted estimator before finetuning, which predicts with ``greedy_tree_``.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> model = CrispTreeClassifier(split="oblique", max_depth=4, image_shape=(8, 8), random_state=0).fit(X, y)
        >>> bool(model.before_finetuning().score(X, y) < model.score(X, y))
        True
        """
        check_is_fitted(self)
        twin = copy.copy(self)
        twin.tree_ = self.greedy_tree_
        return twin

    def truncate(self, depth: int) -> Self:
        """Return the fitted estimator with its trees truncated at a depth, with leaf tables of the training rows.

        With ``warm_start``, its next ``fit`` finetunes the truncated ``greedy_tree_``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(*load_iris(return_X_y=True))
        >>> model.get_n_leaves(), model.truncate(1).get_n_leaves()
        (3, 2)
        """
        check_is_fitted(self)
        check_argument("depth", depth)
        twin = copy.copy(self)
        twin.max_depth = int(depth)
        twin.tree_, twin.greedy_tree_ = (
            truncate_tree(tree, depth, self._leaf_prior) for tree in (self.tree_, self.greedy_tree_)
        )
        return twin

    def cost_complexity_pruning_path(
        self, X: Any = None, y: Any = None, sample_weight: ArrayLike | None = None
    ) -> PruningPath:
        """Compute the path of minimal cost-complexity pruning.

        Parameters
        ----------
        X, y, sample_weight : array-like, default=None
            Rows on which a clone is fitted without pruning first, as in scikit-learn. Without them it is the path of
            the fitted tree.

        Returns
        -------
        PruningPath
            Its ``ccp_alphas`` and ``impurities`` are in nats per training row, in regression in shares of the variance
            of y; ``n_leaves`` are the numbers of leaves.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(*load_iris(return_X_y=True))
        >>> path = model.cost_complexity_pruning_path()
        >>> path.n_leaves.tolist()
        [3, 2, 1]
        >>> model.prune(path.ccp_alphas[1]).get_n_leaves()
        2
        """
        if X is not None:
            return clone(self).set_params(ccp_alpha=None).fit(X, y, sample_weight).cost_complexity_pruning_path()
        check_is_fitted(self)
        return cost_complexity_path(self.tree_)

    def prune(self, alpha: float) -> Self:
        """Return the estimator with the smallest tree of minimal impurity plus ``alpha`` times the number of leaves.

        Leaf tables are those of the training rows, shrunk if they were before; ``greedy_tree_`` is not pruned.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(*load_iris(return_X_y=True))
        >>> model.prune(0.0).get_n_leaves(), model.prune(10.0).get_n_leaves()
        (3, 1)
        """
        check_is_fitted(self)
        check_argument("alpha", alpha)
        twin = copy.copy(self)
        twin.tree_ = prune_tree(self.tree_, alpha, self._leaf_prior)
        return twin

    @property
    def evals_result_(self) -> dict[str, dict[str, list[float]]]:
        """Curves of finetuning by data set and metric, as in LightGBM; empty where ``history_`` is.

        ``training`` has the loss of every epoch, ``validation`` the score of the deterministic tree on the rows of
        ``eval_set``, or on those that ``early_stopping`` holds out: the accuracy, or for regression 1 − squared error
        / variance of y in training. Entry ``best_iteration_ - 1`` is the epoch that early stopping has kept.
        """
        check_is_fitted(self)
        tuned = [record for record in self.history_ if record.phase == "finetune"]
        scores = [record.validation_score for record in tuned if record.validation_score is not None]
        metric = "r2" if self.tree_.target.is_regression else "accuracy"
        return {"training": {"loss": [record.loss for record in tuned]}} | (
            {"validation": {metric: scores}} if scores else {}
        )

    @property
    def shrinkage_(self) -> float:
        """The shrinkage λ of the leaf tables of ``tree_``, given or selected by "auto"."""
        check_is_fitted(self)
        return self.tree_.statistics.shrinkage or 0.0

    def get_depth(self) -> int:
        """Return the depth of the tree.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> CrispTreeClassifier(max_depth=2, random_state=0).fit(*load_iris(return_X_y=True)).get_depth()
        2
        """
        check_is_fitted(self)
        return self.tree_.structure.depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> CrispTreeClassifier(max_depth=2, random_state=0).fit(*load_iris(return_X_y=True)).get_n_leaves()
        3
        """
        check_is_fitted(self)
        return self.tree_.structure.n_leaves


class RowEstimator(RowParameters, PaperProtocol, SelectionResults, TreeEstimator):
    """Base of the estimators of one tree for rows; ``ENCODING`` of a subclass is what depends on y."""

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

        In an initialised process group of torch, all processes train one tree, each with its own rows; see
        docs/guide/large-data.md.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, converted to float32. A DataFrame, a table of pyarrow, any other table with ``__arrow_c_stream__`` or
            a dictionary of columns may hold text, categories and missing values; see ``categorical_features``. Also
            images (n_samples, height, width[, channels]); a scipy.sparse matrix, which stays sparse; or, without y,
            batches that are read again in every epoch, for data that do not fit into memory: ``Batches``, a
            function that begins a pass, a dataset or loader of torch (docs/guide/large-data.md).
        y : array-like of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_outputs)
            Classification: labels (numbers, strings, booleans, NumPy's dates or bytes), or a float matrix of
            probabilities, where a row counts as one row of every class with that weight; its columns are the classes
            0, 1, … or those of a DataFrame (docs/guide/model-selection.md). Regression: finite numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 equals the row twice, a weight of 0 equals leaving it out.
        eval_set : (X, y), default=None
            Validation set used for model selection and early stopping; a list of one pair is accepted. Arrays if X
            are batches, and then scored after every epoch with ``early_stopping`` only.
        checkpoint : path, default=None
            Folder for checkpoints of the fit; see docs/guide/large-data.md.
        checkpoint_every : float, default=60.0
            Seconds between two checkpoints; 0 writes one after every epoch.
        resume : bool, default=False
            Continue from the checkpoint in the folder, if there is one. The tree is bit for bit that of an
            uninterrupted fit. Data, parameters and versions must be the same.
        shards : int, default=8
            In a process group only: number of parts of all rows. The tree depends on it, but not on the number of
            processes, which should not be larger.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.model_selection import train_test_split
        >>> from crisptree import CrispTreeClassifier
        >>> X, X_valid, y, y_valid = train_test_split(*load_iris(return_X_y=True), random_state=0)
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y, eval_set=(X_valid, y_valid))
        >>> bool(model.score(X_valid, y_valid) > 0.9)
        True
        """
        checkpoints = Checkpoints(checkpoint, checkpoint_every, resume)
        data, encoded_by = split_encoded(X)
        if not is_distributed() and not are_batches(data):
            self._fit_array((data, y, sample_weight), eval_set, checkpoints, encoded_by=encoded_by)
            if self.verbose:
                self._show_cost_of_limits(X, y, sample_weight)
            return self
        with self._fitting(encoded_by=encoded_by) as twin:
            if is_distributed():
                from crisptree.pipeline.trees import fit_process_group

                trained = fit_process_group(twin, (data, y, sample_weight), eval_set, checkpoints, shards)
            else:
                from crisptree.pipeline.batches import fit_batches

                trained = fit_batches(twin, as_batches(data, y), sample_weight, eval_set, checkpoints)
            twin._set_trained(trained)
        return self

    def _show_cost_of_limits(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Print what limits of the tree cost, for estimators that have such."""

    def _fit_array(
        self,
        rows: tuple[Any, Any, Any],
        eval_set: Any,
        checkpoints: Checkpoints,
        encoded_by: Preprocessing | None = None,
        source: npt.NDArray[np.intp] | None = None,
    ) -> Self:
        """Fit rows in memory, (X, y, sample_weight), which ``encoded_by`` has encoded; see ``fit_array``."""
        with self._fitting(encoded_by=encoded_by) as twin:
            from crisptree.pipeline.trees import WarmStart, fit_array

            earlier = getattr(self, "greedy_tree_", None) if self.warm_start else None
            if earlier is not None:
                earlier = WarmStart(earlier, self._fitted_encoding(earlier), getattr(self, "best_params_", {}))
                twin.set_input_schema(self.input_schema)
            twin._set_trained(fit_array(twin, rows, eval_set, checkpoints, earlier, source=source))
        return self

    def _partial_fit(self, rows: tuple[Any, Any, Any], decay: float, encoding: TargetEncoding | None = None) -> Self:
        """Fit the first rows, (X, y, sample_weight), or update the fitted tree with further ones.

        ``encoding`` is that of all classes; a regressor has none before its first rows.
        """
        check_single_process("partial_fit")
        check_argument("decay", decay)
        if self.leaf_model not in ("auto", "constant") or getattr(getattr(self, "tree_", None), "is_linear", False):
            raise ValueError(
                "`leaf_model` must be 'constant' for partial_fit, because linear leaves keep no counts that new rows "
                f"could be added to; got {self.leaf_model!r}. Use fit with all rows, or leaf_model='constant'."
            )
        if not self.__sklearn_is_fitted__():
            with self._fitting() as twin:
                from crisptree.pipeline.trees import fit_array

                twin.leaf_model = "constant"
                twin._set_trained(fit_array(twin, rows, None, Checkpoints(), classes=encoding))
            return self
        with training_context():
            from crisptree.pipeline.trees import WarmStart, update_fitted_tree

            twin, tree = copy.copy(self), self.tree_
            twin.leaf_model, twin.image_shape = "constant", self.image_shape_  # rows may be flat where images were not
            earlier = WarmStart(tree, encoding or self._fitted_encoding(tree), getattr(self, "best_params_", {}))
            tree, history = update_fitted_tree(twin, earlier, rows, decay)
        self.tree_ = self.greedy_tree_ = tree
        self.history_ = [*getattr(self, "history_", []), *history]
        return self

    def _set_trained(self, trained: TrainedRows) -> None:
        """Set the fitted attributes of a training."""
        self._set_encoding(trained.encoding)
        self._set_fitted(trained.fitted)
        self.history_, self.best_params_, self.cv_results_ = trained.history, trained.selected, trained.trials

    def leaf_indices(self, X: MatrixLike) -> npt.NDArray[np.int64]:
        """Return the leaf index of every row.  (n, n_features) → (n,)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        >>> leaf = model.leaf_indices(X)
        >>> leaf.shape, sorted(set(leaf.tolist()))
        ((150,), [0, 1, 2])
        """
        has_names = hasattr(self, "feature_names_in_") or hasattr(self, "encoder_")
        leaves = fast_leaves(getattr(self, "tree_", None), X, self.n_jobs, has_names=has_names)
        if leaves is not None:
            return leaves
        check_is_fitted(self)
        return route_rows(self.tree_, self.check_rows(X), self.n_jobs)

    def apply(self, X: MatrixLike) -> npt.NDArray[np.int64]:
        """Return the node in which every row ends: its column in ``decision_path``.  (n, n_features) → (n,)

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        >>> sorted(set(model.apply(X).tolist()))  # nodes 0 and 1 are the splits
        [2, 3, 4]
        """
        leaves = self.leaf_indices(X)  # raises NotFittedError
        return self.tree_.structure.n_splits + leaves

    def _values(self, X: MatrixLike) -> npt.NDArray[np.float64]:
        """Return the values of every row's leaf, or of its linear model.  (n, n_values)"""
        if not (self.__sklearn_is_fitted__() and self.tree_.is_linear):
            return self.tree_.leaf_values(self.leaf_indices(X))
        rows = self.check_rows(X)
        return self.tree_.leaf_values(route_rows(self.tree_, rows, self.n_jobs), rows)

    def _soft_input(self, X: MatrixLike, steepness: float | None) -> tuple[CrispTree, Any, float | None]:
        """Check the input of a prediction by the probabilistic tree."""
        check_is_fitted(self)
        rows = self.check_rows(X)
        if steepness is not None:
            check_argument("steepness", steepness)
        return self.tree_, rows, steepness

    def __sklearn_tags__(self) -> Any:
        return set_row_tags(super().__sklearn_tags__(), self.training_parameters())

    def decision_path(self, X: MatrixLike) -> sparse.csr_matrix:
        """Return the nodes that every row visits: a sparse (n, n_nodes) indicator, splits first, then leaves.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> path = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y).decision_path(X)
        >>> path.shape, int(path.sum(axis=1).max())  # two splits and a leaf
        ((150, 5), 3)
        """
        leaves = self.leaf_indices(X)
        return visited_nodes(self.tree_.structure, leaves)

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """Share of the information gain of each feature; see ``explain.feature_importances``."""
        check_is_fitted(self)
        from crisptree.explain import feature_importances

        try:
            return feature_importances(self)
        except TypeError as error:  # hasattr is False for trees with split modules
            raise AttributeError(str(error)) from error

    @property
    def max_features_(self) -> int:
        """Number of features that the search of a split considers: all features of the tree."""
        check_is_fitted(self)
        return self.tree_.n_features

    def explain(self, x: Any, *, top: int = 5) -> TreePath:
        """Explain the decision path of one row; see ``explain.path``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        >>> print(model.explain(X.iloc[0], top=1).steps[0].pushes[0].name)
        petal length (cm)
        """
        from crisptree.explain import path

        return path(self, x, top=top)

    def to_sklearn(self) -> Any:
        """Convert an axis-aligned tree to a fitted decision tree of scikit-learn; see ``export.sklearn_tree``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> parameters = {"split": "axis", "leaf_model": "constant", "max_depth": 2, "random_state": 0}
        >>> model = CrispTreeClassifier(**parameters).fit(X, y)
        >>> tree = model.to_sklearn()
        >>> type(tree).__name__, bool((tree.predict(X) == model.predict(X)).all())
        ('DecisionTreeClassifier', True)
        """
        check_is_fitted(self)
        from crisptree.export import sklearn_tree

        return sklearn_tree(self)

    def report(self, path: str | PathLike[str], X: Any = None, y: Any = None, **options: Any) -> Path:
        """Write an HTML report about the tree; options are those of ``crisptree.report.write``.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.report(pathlib.Path(folder) / "iris.html", X, y).name
        'iris.html'
        """
        check_is_fitted(self)
        from crisptree.report import write

        return write(self, path, X, y, **options)


def _is_fitted(name: str) -> bool:
    """Return True for the name of a fitted attribute, by scikit-learn's rule."""
    return name.endswith("_") and not name.startswith("_")


def fast_leaves(tree: CrispTree | None, X: Any, n_jobs: int | None, *, has_names: bool) -> npt.NDArray[np.int64] | None:
    """Route a plain array of the right width and check it for finite values in the same pass.

    Return None for other inputs and failed checks; the generic path then raises scikit-learn's errors.
    """
    if not isinstance(tree, FlatTree) or has_names or not is_plain(X, tree.n_features):
        return None
    check_finite = not get_config()["assume_finite"]
    return routing.route_array(tree, X, n_jobs=n_jobs, check_finite=check_finite)


def is_plain(X: Any, n_features: int) -> TypeGuard[npt.NDArray[np.floating[Any]]]:
    """Return True for rows of floats or bytes of the right width, at least one."""
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype not in routing.TYPES:
        return False
    return X.shape[1] == n_features and len(X) > 0
