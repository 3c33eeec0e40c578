"""Bases of all estimators, and of those of one tree."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeGuard

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from crisptree.data.raw_rows import SparseRows
from crisptree.data.validation import InputSchema, check_rows
from crisptree.encoding.containers import materialize, reorder_columns
from crisptree.estimators.loading import GREEDY, TREE, ReadTrees, register, sections_of
from crisptree.inference import CrispTree, FlatTree
from crisptree.inference import flat_tree as routing
from crisptree.inference.finalization import PruningPath, cost_complexity_path
from crisptree.inference.finalization import prune as prune_tree
from crisptree.inference.finalization import truncate as truncate_tree
from crisptree.parameters.estimators import check_argument
from crisptree.persistence.model_file import ModelFile, ModelFileError, Sections, write
from crisptree.pipeline.validation import violations
from crisptree.targets.base import TargetEncoding

if TYPE_CHECKING:
    from crisptree.encoding.preprocessing import Preprocessing
    from crisptree.encoding.table_encoder import TableEncoder
    from crisptree.learning.fitting import Fitted as FittedTrees
    from crisptree.learning.history import EpochRecord


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
    def _fitting(self, *, anew: bool = True, encoded_by: Preprocessing | None = None) -> Iterator[Self]:
        """Provide a copy to fit, whose fitted attributes replace those of this estimator atomically at the end.

        Until then this one predicts as before: if the fit fails or is interrupted, and for other threads. ``anew``
        drops the fitted attributes of the copy first; ``encoded_by`` is the preprocessing of rows that were encoded
        before the fit. Every public method that trains runs in here.
        """
        twin = copy.copy(self)
        if anew:
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
        )

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
        """Write the fitted estimator to a file that ``crisptree.load`` reads."""
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
    tags.input_tags.sparse = not any(violations(parameters, rows="sparse"))
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
        """Return the fitted estimator before finetuning, which predicts with ``greedy_tree_``."""
        check_is_fitted(self)
        twin = copy.copy(self)
        twin.tree_ = self.greedy_tree_
        return twin

    def truncate(self, depth: int) -> Self:
        """Return the fitted estimator with its trees truncated at a depth, with leaf tables of the training rows.

        With ``warm_start``, its next ``fit`` finetunes the truncated ``greedy_tree_``.
        """
        check_is_fitted(self)
        check_argument("depth", depth)
        twin = copy.copy(self)
        twin.max_depth = int(depth)
        twin.tree_, twin.greedy_tree_ = (
            truncate_tree(tree, depth, self._leaf_prior) for tree in (self.tree_, self.greedy_tree_)
        )
        return twin

    def ccp_path(self) -> PruningPath:
        """Compute the path of minimal cost-complexity pruning.

        Returns
        -------
        PruningPath
            Its ``alphas`` are in nats of impurity per training row; ``leaves`` are the numbers of leaves.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(*load_iris(return_X_y=True))
        >>> path = model.ccp_path()
        >>> path.leaves.tolist()
        [3, 2, 1]
        >>> model.prune(path.alphas[1]).get_n_leaves()
        2
        """
        check_is_fitted(self)
        return cost_complexity_path(self.tree_)

    def prune(self, alpha: float) -> Self:
        """Return the estimator with the smallest tree of minimal impurity plus ``alpha`` times the number of leaves.

        Leaf tables are those of the training rows, shrunk if they were before; ``greedy_tree_`` is not pruned.
        """
        check_is_fitted(self)
        check_argument("alpha", alpha)
        twin = copy.copy(self)
        twin.tree_ = prune_tree(self.tree_, alpha, self._leaf_prior)
        return twin

    @property
    def shrinkage_(self) -> float:
        """The shrinkage λ of the leaf tables of ``tree_``, given or selected by "auto"."""
        check_is_fitted(self)
        return self.tree_.statistics.shrinkage or 0.0

    def get_depth(self) -> int:
        """Return the depth of the tree."""
        check_is_fitted(self)
        return self.tree_.structure.depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self)
        return self.tree_.structure.n_leaves


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
