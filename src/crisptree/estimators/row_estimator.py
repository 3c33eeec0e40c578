"""Base of the classification and the regression tree: the fit of rows, routing to leaves, refits and reports."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from crisptree.data.batches import Batches, as_batches
from crisptree.data.validation import InputSchema, resolve_columns, split_encoded
from crisptree.distributed import check_single_process, is_distributed
from crisptree.encoding.containers import are_batches
from crisptree.estimators.base import TreeEstimator, fast_leaves, set_row_tags, training_context
from crisptree.inference import route_rows
from crisptree.inference.flat_tree import LINEAR_LEAVES
from crisptree.parameters.estimators import PAPER, RowParameters, check_argument
from crisptree.parameters.training import true_or_false
from crisptree.pipeline import validation as checks
from crisptree.pipeline.monitoring import Checkpoints
from crisptree.pipeline.validation import check_capabilities, check_parameters
from crisptree.structure import TreeStructure
from crisptree.targets.base import TargetEncoding
from crisptree.typing import ArrayLike, BatchesLike, MatrixLike

if TYPE_CHECKING:
    from crisptree.encoding.preprocessing import Preprocessing
    from crisptree.explain import MarginReport
    from crisptree.explain import Path as TreePath
    from crisptree.learning.samples import RowSet
    from crisptree.pipeline.refitting import Refit, Simplification
    from crisptree.pipeline.trees import TrainedRows
    from crisptree.selection.candidates import Trial


class RowEstimator(RowParameters, TreeEstimator):
    """Base of the estimators of one tree for rows; ``ENCODING`` of a subclass is what depends on y."""

    best_params_: dict[str, Any]
    cv_results_: list[Trial]
    nu_: float
    simplification_: Simplification

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Make an estimator with the paper's training: EM, Adam with batches of 1000 rows, γ = 1 + 0.1 per epoch.

        There is no regularisation. One value is not the paper's: ``mass_threshold`` stays at 1e-3, which has the
        accuracy of exact steps in a fraction of the time (docs/results/training-speed.md);
        ``paper(mass_threshold=0)`` takes exact steps.

        Examples
        --------
        >>> from crisptree import CrispTreeClassifier
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

        In an initialised process group of torch, all processes train one tree, each with its own rows; see
        docs/many-processes.md.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, converted to float32. A DataFrame, a table of pyarrow, any other table with ``__arrow_c_stream__`` or
            a dictionary of columns may hold text, categories and missing values; see ``categorical_features``. Also
            images (n_samples, height, width[, channels]); a scipy.sparse matrix, which stays sparse (docs/sparse.md);
            or, without y, batches that are read again in every epoch, for data that do not fit into memory:
            ``Batches``, a function that begins a pass, a dataset or loader of torch (docs/streams.md).
        y : array-like of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_outputs)
            Classification: labels (numbers, strings, booleans, NumPy's dates or bytes), or a float matrix of
            probabilities, where a row counts as one row of every class with that weight; its columns are the classes
            0, 1, … or those of a DataFrame (docs/distill.md). Regression: finite numbers.
        sample_weight : array-like of shape (n_samples,), default=None
            A weight of 2 equals the row twice, a weight of 0 equals leaving it out.
        eval_set : (X, y), default=None
            Validation set used for model selection and early stopping; a list of one pair is accepted. Arrays if X
            are batches, and then scored after every epoch with ``early_stopping`` only.
        checkpoint : path, default=None
            Folder for checkpoints of the fit; see docs/endurance.md.
        checkpoint_every : float, default=60.0
            Seconds between two checkpoints; 0 writes one after every epoch.
        resume : bool, default=False
            Continue from the checkpoint in the folder, if there is one. The tree is bit for bit that of an
            uninterrupted fit. Data, parameters and versions must be the same.
        shards : int, default=8
            In a process group only: number of parts of all rows. The tree depends on it, but not on the number of
            processes, which should not be larger.
        """
        checkpoints = Checkpoints(checkpoint, checkpoint_every, resume)
        data, encoded_by = split_encoded(X)
        if is_distributed():
            return self._fit_process_group((data, y, sample_weight), eval_set, checkpoints, shards, encoded_by)
        if are_batches(data):
            return self._fit_batches(as_batches(data, y), sample_weight, eval_set, checkpoints, encoded_by)
        return self._fit_rows(data, y, sample_weight, eval_set, checkpoints, encoded_by=encoded_by)

    def _fit_rows(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        eval_set: Any,
        checkpoints: Checkpoints,
        encoding: TargetEncoding | None = None,
        source: npt.NDArray[np.intp] | None = None,
        encoded_by: Preprocessing | None = None,
        leaf_model: str | None = None,
    ) -> Self:
        """Fit rows in memory.

        ``encoding`` has all classes that there may ever be, where y may have fewer; ``source`` maps copies to the rows
        that they are copies of; ``encoded_by`` is the preprocessing of rows that are encoded already; ``leaf_model``
        takes the place of the parameter.
        """
        with self._fitting(encoded_by=encoded_by) as twin:
            parameters = self.training_parameters()
            parameters |= {} if leaf_model is None else {"leaf_model": leaf_model}
            check_parameters(self.declared_parameters(), parameters)
            earlier = getattr(self, "greedy_tree_", None) if self.warm_start else None
            if earlier is not None:
                encoding = self._fitted_encoding(earlier)
                twin.set_input_schema(self.input_schema)
            data = checks.check_training_data(
                *(twin, X, y, sample_weight, encoding), reset=earlier is None, is_part=earlier is None
            )
            if source is not None:  # rows of no weight have been left out
                data = replace(data, source=source if sample_weight is None else source[np.asarray(sample_weight) > 0])
            held_out = None
            if eval_set is not None:
                held_out = checks.check_validation(twin, eval_set, data.encoding, may_be_soft=True)
            if earlier is not None:
                checks.check_warm_start(parameters, earlier.structure, held_out is not None)
            parameters = resolve_columns(parameters, twin.input_schema)
            seed = checks.draw_seed(self.random_state)
            from crisptree.pipeline.trees import ArrayDataset, device_for, fit_rows

            inputs = data.describe(held_out) | {"warm_start": earlier, "device": device_for(parameters, data)}
            with checkpoints.kept(parameters, inputs, seed) as seed:
                selected = getattr(self, "best_params_", {})
                trained = fit_rows(parameters, ArrayDataset(data), held_out, earlier, selected, seed)
            twin._set_trained(trained, data.encoding)
        return self

    def _set_trained(self, trained: TrainedRows, encoding: TargetEncoding) -> None:
        """Set the fitted attributes of a training."""
        self._set_encoding(encoding)
        self._set_fitted(trained.fitted)
        self.history_, self.best_params_, self.cv_results_ = trained.history, trained.chosen, trained.path
        if trained.fitted.nu is not None:
            self.nu_ = trained.fitted.nu

    def _set_refit(self, refit: Refit) -> None:
        """Set the fitted attributes of a tree that was trained further."""
        self.tree_ = self.greedy_tree_ = refit.tree
        self.history_ = [*self.history_, *refit.history]

    def _check_more_rows(self, X: Any, y: Any, sample_weight: Any) -> checks.TrainingData:
        """Check rows that the fitted tree is to be trained on further."""
        twin, encoding = copy.copy(self), self._fitted_encoding(self.tree_)
        twin.image_shape = self.image_shape_  # rows may be flat where those of the fit were images
        return checks.check_training_data(twin, X, y, sample_weight, encoding, reset=False, is_part=True)

    def _fit_batches(
        self,
        batches: Batches,
        sample_weight: Any,
        eval_set: Any,
        checkpoints: Checkpoints,
        encoded_by: Preprocessing | None,
    ) -> Self:
        """Fit rows that are read in batches, in several passes."""
        if sample_weight is not None:
            raise ValueError(
                "`sample_weight` must be None for rows in batches; weights are the third part of a batch, (X, y, "
                "weight)."
            )
        with self._fitting(encoded_by=encoded_by) as twin:
            parameters = self.training_parameters()
            check_parameters(self.declared_parameters(), parameters)
            check_capabilities(parameters, rows="batches", has_validation=eval_set is not None)
            names = None if batches.columns is None else np.array(batches.columns, dtype=object)
            from crisptree.pipeline.batches import fit_batches

            def check_eval_set(encoding: TargetEncoding, n_features: int) -> RowSet:
                twin.set_input_schema(InputSchema(n_features, names, encoded_by=encoded_by))
                return checks.check_validation(twin, eval_set, encoding, may_be_soft=True)

            seed = checks.draw_seed(self.random_state)
            trained, encoding, n_features = fit_batches(
                *(parameters, batches, seed, checkpoints, self.ENCODING), None if eval_set is None else check_eval_set
            )
            twin.set_input_schema(InputSchema(n_features, names, encoded_by=encoded_by))
            twin._set_trained(trained, encoding)
        return self

    def _fit_process_group(
        self, rows: Any, eval_set: Any, checkpoints: Checkpoints, shards: int, encoded_by: Preprocessing | None
    ) -> Self:
        """Fit the rows of all processes of the group."""
        from crisptree.pipeline.process_groups import fit_process_group

        with self._fitting(encoded_by=encoded_by) as twin:
            fit = fit_process_group(twin, rows, eval_set, checkpoints, shards)
            twin.set_input_schema(
                InputSchema(fit.n_features, fit.names, image_shape=fit.image_shape, encoded_by=encoded_by)
            )
            twin._set_trained(fit.trained, fit.encoding)
        return self

    def _partial_fit(
        self, rows: tuple[Any, Any, Any], memory: float, grow: bool, encoding: TargetEncoding | None = None
    ) -> Self:
        """Fit the first rows, (X, y, sample_weight), or train the fitted tree on further ones."""
        if not self.__sklearn_is_fitted__():
            return self._fit_rows(*rows, None, Checkpoints(), encoding, leaf_model="constant")
        with self._fitting(anew=False) as twin:
            data = self._check_more_rows(*rows)
            from crisptree.pipeline.refitting import update_fitted_tree

            parameters = resolve_columns(self.training_parameters(), self.input_schema)
            selected = getattr(self, "best_params_", {})
            twin._set_refit(update_fitted_tree(self.tree_, parameters, selected, data, memory, grow))
        return self

    def apply(self, X: MatrixLike) -> npt.NDArray[np.int64]:
        """Return the leaf index of every row.  (n, n_features) → (n,)"""
        has_names = hasattr(self, "feature_names_in_") or hasattr(self, "encoder_")
        leaves = fast_leaves(getattr(self, "tree_", None), X, self.n_jobs, has_names=has_names)
        if leaves is not None:
            return leaves
        check_is_fitted(self)
        return route_rows(self.tree_, self.check_rows(X), self.n_jobs)

    def _values(self, X: MatrixLike) -> npt.NDArray[np.float64]:
        """Return the values of every row's leaf, or of its linear model.  (n, n_values)"""
        if not (self.__sklearn_is_fitted__() and self.tree_.is_linear):
            return self.tree_.leaf_values(self.apply(X))
        rows = self.check_rows(X)
        return self.tree_.leaf_values(route_rows(self.tree_, rows, self.n_jobs), rows)

    def __sklearn_tags__(self) -> Any:
        return set_row_tags(super().__sklearn_tags__(), self.training_parameters())

    def decision_path(self, X: MatrixLike) -> sparse.csr_matrix:
        """Return the nodes that every row visits: a sparse (n, n_nodes) indicator, splits first, then leaves."""
        leaves = self.apply(X)
        return visited_nodes(self.tree_.structure, leaves)

    def _html_repr(self) -> str:
        """Render the upper levels of the fitted tree for a notebook, with scikit-learn's diagram folded below."""
        diagram = str(estimator_html_repr(self))
        if not self.__sklearn_is_fitted__():
            return diagram
        from crisptree.export import html

        return f"{html(self)}<details><summary>Parameters</summary>{diagram}</details>"

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
    def sparsity_(self) -> float:
        """Share of the weights that are exactly zero."""
        check_is_fitted(self)
        from crisptree.explain import sparsity

        try:
            return sparsity(self.tree_)
        except TypeError as error:
            raise AttributeError(str(error)) from error

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

    def margin_report(self, X: Any, *, limits: Sequence[float] | None = None) -> MarginReport:
        """Count the rows near a decision boundary of the tree; see ``explain.margin_report``."""
        from crisptree.explain import margin_report

        return margin_report(self, X) if limits is None else margin_report(self, X, limits=limits)

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

    def simplify(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        max_terms: int | None = None,
        tolerance: float | None = None,
        eval_set: tuple[Any, Any] | None = None,
        epochs: int = 5,
    ) -> Self:
        """Return a new estimator with fewer weights and splits and nearly the same score.

        Weights are pruned first, halving the largest number of weights of a split in each stage. A split keeps those
        with the largest |w_j| · spread_j, and after each stage the remaining weights are finetuned jointly. Then the
        subtrees that contribute least on the validation rows become leaves. Leaf tables are computed on the rows of
        the refit and shrunk as before; the tolerance applies to scores without shrinkage.

        Parameters
        ----------
        X, y : array-like
            Rows to refit on, usually those of the training.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        max_terms : int, default=None
            Maximum number of weights of a split, whatever the loss of score.
        tolerance : float, default=None
            Acceptable loss of accuracy or R² on the validation rows. None is 0.01, or, with ``max_terms``, allows no
            pruning beyond it.
        eval_set : (X, y), default=None
            Validation rows, preferably ones that the tree was not trained on. None holds ``validation_fraction`` of X
            out of the refit; the scores of rows that the tree was trained on are optimistic, so less is pruned.
        epochs : int, default=5
            Epochs of the refit after each stage; other training options are those of the estimator.

        Returns
        -------
        estimator
            Fitted, of the same class. Its ``simplification_`` describes what was pruned; its ``greedy_tree_`` is its
            ``tree_``.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispTreeClassifier
        >>> X = np.random.default_rng(0).normal(size=(600, 20))
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(X, X[:, 3] > X[:, 7])
        >>> small = model.simplify(X, X[:, 3] > X[:, 7], max_terms=2)
        >>> sorted(np.flatnonzero(small.feature_importances_).tolist())
        [3, 7]
        """
        check_is_fitted(self)
        for name, value in (("max_terms", max_terms), ("tolerance", tolerance), ("epochs", epochs)):
            check_argument(name, value)
        from crisptree.pipeline.refitting import check_simplifiable, simplify_tree

        tree, twin = check_simplifiable(self.tree_), copy.copy(self)
        with training_context():
            data = self._check_more_rows(X, y, sample_weight)
            held_out = None if eval_set is None else checks.check_validation(self, eval_set, data.encoding)
            parameters = resolve_columns(self.training_parameters(), self.input_schema)
            selected = getattr(self, "best_params_", {})
            refit, twin.simplification_ = simplify_tree(
                *(tree, parameters, selected, data, held_out), max_terms, tolerance, epochs
            )
        twin._set_refit(refit)
        return twin

    def _check_updating(self, memory: float, grow: bool) -> None:
        """Check the arguments of ``partial_fit``."""
        check_single_process("partial_fit")
        check_argument("memory", memory)
        true_or_false().check("grow", grow)
        if self.leaf_model in LINEAR_LEAVES or getattr(getattr(self, "tree_", None), "is_linear", False):
            raise ValueError(
                "`leaf_model` must be 'constant' for partial_fit, because linear leaves keep no counts that new rows "
                f"could be added to; got {self.leaf_model!r}. Use fit with all rows, or leaf_model='constant'."
            )


def visited_nodes(structure: TreeStructure, leaves: npt.NDArray[np.int64]) -> sparse.csr_matrix:
    """Indicate the nodes on the paths to leaves, splits before leaves.  (n,) → (n, n_nodes)"""
    distinct, which = np.unique(leaves, return_inverse=True)
    paths = [structure.nodes_to(leaf) for leaf in distinct.tolist()]
    lengths = np.array([len(path) for path in paths], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths[which])])
    offsets = (np.cumsum(lengths) - lengths)[which]  # of every row's path in the concatenation of all paths
    positions = np.arange(starts[-1]) + np.repeat(offsets - starts[:-1], lengths[which])
    columns = np.concatenate([np.zeros(0, dtype=np.int64), *paths]).astype(np.int64)[positions]
    return sparse.csr_matrix((np.ones(len(columns), dtype=bool), columns, starts), (len(which), structure.n_nodes))
