"""What the estimators of rows share, whatever they predict: the order of a fit, and the way of rows to their leaves."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, check_random_state

from crisptree.estimators import validation as checks
from crisptree.estimators.base import Checkpoints, TreeEstimator
from crisptree.estimators.capabilities import check_capabilities, check_parameters, violations
from crisptree.estimators.constraints import by_number
from crisptree.estimators.fast_lane import fast_leaves
from crisptree.estimators.parameters import RowParameters
from crisptree.estimators.validation import TrainingData
from crisptree.inference import route_rows
from crisptree.streams import Batches
from crisptree.structure import TreeStructure
from crisptree.targets.encoding import TargetEncoding
from crisptree.typing import MatrixLike

if TYPE_CHECKING:
    from crisptree.learning.task import Part
    from crisptree.selection.trials import Trial


class RowEstimator(RowParameters, TreeEstimator):
    """An estimator of one tree for rows. What y is, its subclasses know."""

    FITTED = (*TreeEstimator.FITTED, "preprocessing_", "chosen_", "path_")

    chosen_: dict[str, Any]
    path_: list[Trial]

    def _fit_rows(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        validation: Any,
        checkpoints: Checkpoints,
        encoding: TargetEncoding | None = None,
        source: npt.NDArray[np.intp] | None = None,
    ) -> Self:
        """Fit: check, select, train; the estimator is as it was if any of it fails.

        ``encoding`` has all classes that there may ever be, where y may have fewer; ``source`` says which row a row
        is a copy of.
        """
        with self._fitting() as twin:
            parameters = self.get_params(deep=False)
            check_parameters(self.PARAMETERS, parameters)
            earlier = self.__dict__.get("greedy_tree_") if self.warm_start else None
            chosen = self.__dict__.get("chosen_", {})
            if earlier is not None:
                encoding = self._fitted_encoding(earlier)
            data = checks.check_training_data(
                *(twin, X, y, sample_weight, encoding), reset=earlier is None, is_part=earlier is None
            )
            if source is not None:  # rows of no weight have been left out
                data = replace(data, source=source if sample_weight is None else source[np.asarray(sample_weight) > 0])
            twin.image_shape_ = data.image_shape
            held_out = None
            if validation is not None:
                held_out = checks.check_validation(twin, validation, data.encoding, may_be_soft=True)
            if earlier is not None:
                checks.check_warm_start(parameters, earlier.structure, held_out is not None)
            parameters = by_number(parameters, twin)
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            from crisptree.estimators.fitting import ArrayDataset, device_for, fit_rows

            given = {"X": data.X, "y": data.y, "sample_weight": data.weight, "classes": data.encoding.classes}
            given |= {"image_shape of X": data.image_shape, "validation": held_out, "warm_start": earlier}
            given["device"] = device_for(parameters, data)
            with checkpoints.kept(parameters, given, seed) as seed:
                trained = fit_rows(parameters, ArrayDataset(data), held_out, earlier, chosen, seed)
            twin._forget()
            fitted, twin.history_, twin.chosen_, twin.path_ = trained
            twin._keep_encoding(data.encoding)
            twin.greedy_tree_, twin.tree_ = fitted.greedy, fitted.tree
            if fitted.best_iteration is not None:
                twin.best_iteration_ = fitted.best_iteration
            if fitted.nu is not None:
                twin.nu_ = fitted.nu
        return self

    def _more_rows(self, X: Any, y: Any, sample_weight: Any) -> TrainingData:
        """Check rows that the fitted tree is to be trained on further."""
        twin, encoding = copy.copy(self), self._fitted_encoding(self.tree_)
        twin.image_shape = self.image_shape_  # rows may be flat where those of the fit were images
        return checks.check_training_data(twin, X, y, sample_weight, encoding, reset=False, is_part=True)

    def _fit_batches(self, batches: Batches, sample_weight: Any, validation: Any, checkpoints: Checkpoints) -> Self:
        """A fit on rows that are read in batches, pass after pass."""
        if sample_weight is not None:
            raise ValueError(
                "`sample_weight` must be None for rows in batches; weights are the third part of a batch, (X, y, "
                "weight)."
            )
        with self._fitting() as twin:
            parameters = self.get_params(deep=False)
            check_parameters(self.PARAMETERS, parameters)
            check_capabilities(parameters, rows="batches", has_validation=validation is not None)
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            from crisptree.estimators.streaming import fit_batches

            def check_held(encoding: TargetEncoding, n_features: int) -> Part:
                twin.n_features_in_, twin.image_shape_ = n_features, None
                checks.remember(twin, "feature_names_in_", batches.columns)
                return checks.check_validation(twin, validation, encoding, may_be_soft=True)

            given = None if validation is None else check_held
            found = fit_batches(parameters, batches, seed, checkpoints, self.ENCODING, given)
            twin._take_up_found(*found, batches.columns)
        return self

    def _fit_together(self, rows: Any, validation: Any, checkpoints: Checkpoints, *how: Any) -> Self:
        """A fit by all processes of the group, each with its own rows."""
        from crisptree.estimators.together import fit_together

        with self._fitting() as twin:
            found = fit_together(copy.copy(self), rows, validation, checkpoints, *how)
            twin._take_up_found(*found)
        return self

    def _take_up_found(
        self, found: Any, encoding: TargetEncoding, n_features: int, names: Any, image_shape: Any = None
    ) -> None:
        """Keep what was learned of rows that were not all here."""
        self._forget()
        for name in ("encoder_", "feature_names_in_", "nu_"):
            self.__dict__.pop(name, None)
        self.image_shape_, self.n_features_in_ = image_shape, n_features
        self._keep_encoding(encoding)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        fitted, self.history_, self.chosen_, self.path_ = found
        self.greedy_tree_, self.tree_ = fitted.greedy, fitted.tree
        if fitted.best_iteration is not None:
            self.best_iteration_ = fitted.best_iteration

    def apply(self, X: MatrixLike) -> npt.NDArray[np.int64]:
        """The number of the leaf that every row reaches.  (n, n_features) → (n,)"""
        known = self.__dict__
        has_names = "feature_names_in_" in known or "encoder_" in known
        leaves = fast_leaves(known.get("tree_"), X, self.n_jobs, has_names=has_names)
        if leaves is not None:
            return leaves
        check_is_fitted(self, "tree_")
        return route_rows(self.tree_, checks.check_rows(self, X), self.n_jobs)

    def _values(self, X: MatrixLike) -> npt.NDArray[np.float64]:
        """What the leaves say of every row, by their linear models if they have some.  (n, n_values)"""
        if not (self.__sklearn_is_fitted__() and self.tree_.is_linear):
            return self.tree_.leaf_values(self.apply(X))
        rows = checks.check_rows(self, X)
        return self.tree_.leaf_values(route_rows(self.tree_, rows, self.n_jobs), rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        takes = self.categorical is not None
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = takes
        tags.input_tags.sparse = not any(violations(self.get_params(deep=False), rows="sparse"))
        return tags

    def decision_path(self, X: MatrixLike) -> sparse.csr_matrix:
        """Which nodes every row visits: a sparse (n, n_nodes) indicator, columns are the splits, then the leaves."""
        leaves = self.apply(X)
        return visited(self.tree_.structure, leaves)


def visited(structure: TreeStructure, leaves: npt.NDArray[np.int64]) -> sparse.csr_matrix:
    """The nodes on the ways to some leaves, splits before leaves.  (n,) → (n, n_nodes)"""
    reached, which = np.unique(leaves, return_inverse=True)
    ways = [structure.nodes_to(leaf) for leaf in reached.tolist()]
    lengths = np.array([len(way) for way in ways], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths[which])])
    begins = (np.cumsum(lengths) - lengths)[which]  # of every row's way, where all ways stand after each other
    places = np.arange(starts[-1]) + np.repeat(begins - starts[:-1], lengths[which])
    columns = np.concatenate([np.zeros(0, dtype=np.int64), *ways]).astype(np.int64)[places]
    return sparse.csr_matrix((np.ones(len(columns), dtype=bool), columns, starts), (len(which), structure.n_nodes))
