"""What the estimators of rows share, whatever they predict: the order of a fit, and the way of rows to their leaves."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted, check_random_state

from crisptree.distributed import check_alone
from crisptree.estimators import validation as checks
from crisptree.estimators.base import Checkpoints, TreeEstimator, fast_leaves
from crisptree.estimators.capabilities import check_capabilities, check_parameters, violations
from crisptree.estimators.constraints import by_number
from crisptree.estimators.parameters import RowParameters, check_argument
from crisptree.estimators.rules import true_or_false
from crisptree.estimators.validation import TrainingData
from crisptree.inference import route_rows
from crisptree.streams import Batches
from crisptree.structure import TreeStructure
from crisptree.targets.encoding import TargetEncoding
from crisptree.typing import MatrixLike

if TYPE_CHECKING:
    from crisptree.explain import MarginReport
    from crisptree.explain import Path as TreePath
    from crisptree.learning.task import Part
    from crisptree.selection.trials import Trial


@dataclass(frozen=True)
class Simplification:
    """What a simplification has saved and what it costs; ``print`` it for a text.

    Parameters
    ----------
    weights_before, weights_after : int
        Weights of all splits that are not zero.
    splits_before, splits_after : int
        Splits of the tree.
    score_before, score_after : float
        Accuracy on the validation rows; of numbers 1 − squared error / variance of y in training, about R².
    measure : str
        What the score is.
    """

    weights_before: int
    weights_after: int
    splits_before: int
    splits_after: int
    score_before: float
    score_after: float
    measure: str = "accuracy"

    def __str__(self) -> str:
        return (
            f"weights {self.weights_before:,} -> {self.weights_after:,}, splits {self.splits_before:,} -> "
            f"{self.splits_after:,}, {self.measure} on validation rows {self.score_before:.2%} -> "
            f"{self.score_after:.2%}"
        )


class RowEstimator(RowParameters, TreeEstimator):
    """An estimator of one tree for rows. What y is, its subclasses know."""

    FITTED = (*TreeEstimator.FITTED, "preprocessing_", "chosen_", "path_")

    chosen_: dict[str, Any]
    simplification_: Simplification
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

    def _html_repr(self) -> str:
        """What a notebook shows: the upper levels of the fitted tree, scikit-learn's own diagram folded under them."""
        diagram = str(estimator_html_repr(self))
        if "tree_" not in self.__dict__:
            return diagram
        from crisptree.export import html

        return f"{html(self)}<details><summary>Parameters</summary>{diagram}</details>"

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """How much of the information gain each feature brings, sum 1; see ``explain.feature_importances``."""
        check_is_fitted(self, "tree_")
        from crisptree.explain import feature_importances

        try:
            return feature_importances(self)
        except TypeError as error:  # so that hasattr says no for trees with modules
            raise AttributeError(str(error)) from error

    @property
    def sparsity_(self) -> float:
        """The share of weights that are exactly zero."""
        check_is_fitted(self, "tree_")
        from crisptree.explain import sparsity

        try:
            return sparsity(self.tree_)
        except TypeError as error:
            raise AttributeError(str(error)) from error

    def explain(self, x: Any, *, top: int = 5) -> TreePath:
        """The way of one row to its leaf, with what pushed it at every split; see ``explain.path``.

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

    def margin_report(self, X: Any, *, limits: Sequence[float] | None = None) -> MarginReport:
        """How many rows lie near a boundary of the tree; see ``explain.margin_report``."""
        from crisptree.explain import margin_report

        return margin_report(self, X) if limits is None else margin_report(self, X, limits=limits)

    def report(
        self,
        path: str | PathLike[str],
        X: Any = None,
        y: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        title: str | None = None,
        max_samples: int = 800,
        ids: Any = None,
        target: str | None = None,
    ) -> Path:
        """Write a page about the tree that any browser opens, without a network; see ``crisptree.report.write``.

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
        check_is_fitted(self, "tree_")
        from crisptree.report import write

        return write(
            self,
            path,
            X,
            y,
            feature_names=feature_names,
            class_names=class_names,
            title=title,
            max_samples=max_samples,
            ids=ids,
            target=target,
        )

    def simplified(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        max_terms: int | None = None,
        tolerance: float | None = None,
        validation: tuple[Any, Any] | None = None,
        epochs: int = 5,
    ) -> Self:
        """A new estimator with fewer weights and fewer splits that predicts nearly as well; this one stays as it is.

        Weights go first, by halves of the largest number that any split has. Each split keeps those with the largest
        |w_j| · spread_j, and after each stage all that is left is trained jointly for some epochs, zeros held at zero.
        Then subtrees that bring the least on the validation rows become leaves. Leaf tables are counted again on the
        rows of the refit, splits that part none of these are gone, and tables are shrunk as before; what a tolerance
        allows is measured without shrinkage. A tree from which nothing is taken away is returned as it was.

        Parameters
        ----------
        X, y : array-like
            Rows to refit on, usually those of the training.
        sample_weight : array-like of shape (n_samples,), default=None
            Their weights.
        max_terms : int, default=None
            The most weights that a split may keep, whatever that costs.
        tolerance : float, default=None
            How much accuracy, or R², on the validation rows may be lost by taking away more. None is 0.01, or, with
            ``max_terms``, takes nothing away but what that asks for.
        validation : (X, y), default=None
            Rows that judge, best such as the tree has never seen. None holds ``validation_fraction`` of X out of the
            refit; where the tree was trained on them, it looks better on them than it is, and less is taken away.
        epochs : int, default=5
            Epochs of the refit after each stage; the other numbers of the training are the estimator's.

        Returns
        -------
        estimator
            Fitted, of the same kind. Its ``simplification_`` says what was saved; its ``greedy_tree_`` is its
            ``tree_``.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispTreeClassifier
        >>> X = np.random.default_rng(0).normal(size=(600, 20))
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, X[:, 3] > X[:, 7])
        >>> small = model.simplified(X, X[:, 3] > X[:, 7], max_terms=2)
        >>> sorted(np.flatnonzero(small.feature_importances_).tolist())
        [3, 7]
        """
        check_is_fitted(self, "tree_")
        from crisptree.estimators.refitting import simplify_tree

        return simplify_tree(self, X, y, sample_weight, max_terms, tolerance, validation, epochs)

    def _check_updating(self, memory: float, grow: bool) -> bool:
        """Whether there is a tree to go on with."""
        check_alone("partial_fit")
        check_argument("memory", memory)
        true_or_false().check("grow", grow)
        if self.leaves == "linear":
            raise ValueError(
                "`leaves` must be 'constant' for partial_fit, because models in the leaves keep no counts that new "
                "rows could be added to; got 'linear'. Use fit with all rows."
            )
        return "tree_" in self.__dict__

    def _update(self, twin: Any, data: checks.TrainingData, memory: float, grow: bool) -> None:
        """Let a twin that is being fitted go on with new rows."""
        from crisptree.estimators.refitting import updated

        tree, history = updated(self, data, memory, grow)
        twin.tree_ = twin.greedy_tree_ = data.encoding.restore_units(tree)
        twin.history_ = [*self.history_, *history]


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
