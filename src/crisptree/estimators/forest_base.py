"""What all forests can do once they are fitted, whatever their trees predict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state

from crisptree.distributed import check_alone
from crisptree.estimators import validation as checks
from crisptree.estimators.bagging import (
    Bagging,
    check_bags,
    check_more_trees,
    check_same_rows,
    check_tree_number,
    digest_of,
)
from crisptree.estimators.base import Checkpoints, KnowsColumns, TreeEstimator, is_plain
from crisptree.estimators.capabilities import check_parameters, violations
from crisptree.estimators.constraints import by_number
from crisptree.estimators.parameters import Parameter
from crisptree.estimators.row_estimator import visited
from crisptree.inference.forest import CrispForest
from crisptree.selection.parameters import MIXED
from crisptree.typing import ArrayLike, MatrixLike

if TYPE_CHECKING:
    from crisptree.encoding.table_encoder import TableEncoder
    from crisptree.estimators.fitting_forest import OutOfBag
    from crisptree.explain import ForestPath
    from crisptree.learning.history import EpochRecord
    from crisptree.persistence.model_file import Sections
    from crisptree.selection.trials import Trial


ROWS_AT_ONCE = 1024
"""Rows of a table of proximities that are counted at a time."""


class InspectsForest(ABC):
    """What is asked of fitted trees that answer together."""

    SCORE: ClassVar[tuple[str, str]]
    """What ``score`` measures, and how it is written."""

    forest_: CrispForest

    if TYPE_CHECKING:

        @property
        def estimators_(self) -> list[Any]: ...
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...
        def __len__(self) -> int: ...

    @abstractmethod
    def predict(self, X: MatrixLike) -> npt.NDArray[Any]:
        """What the forest answers."""

    @abstractmethod
    def apply(self, X: MatrixLike) -> npt.NDArray[np.int64]:
        """The leaf of every row in every tree."""

    @abstractmethod
    def _difference(self, one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float:
        """How far two predictions are apart."""

    def proximity(self, X: MatrixLike, Y: MatrixLike | None = None) -> npt.NDArray[np.float64]:
        """The share of trees in which two rows end in the same leaf.  (n, n_features), (m, n_features) → (n, m)

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        Y : array-like of shape (m_samples, n_features), default=None
            Rows to hold them against; None holds X against itself.
        """
        here = self.apply(X)
        there = here if Y is None else self.apply(Y)
        shares = np.empty((len(here), len(there)))
        for start in range(0, len(here), ROWS_AT_ONCE):
            rows = here[start : start + ROWS_AT_ONCE]
            same = np.zeros((len(rows), len(there)), dtype=np.int32)
            for tree in range(here.shape[1]):
                same += rows[:, tree, None] == there[None, :, tree]
            shares[start : start + len(rows)] = same / here.shape[1]
        return shares

    def decision_path(self, X: MatrixLike) -> tuple[sparse.csr_matrix, npt.NDArray[np.int64]]:
        """Which nodes every row visits in all trees, as scikit-learn's forests say it.

        Returns
        -------
        indicator : sparse matrix of shape (n, n_nodes)
            Columns are the splits and then the leaves of the first tree, then those of the second, and so on.
        n_nodes_ptr : ndarray of shape (n_trees + 1,)
            The columns of tree k are those from ``n_nodes_ptr[k]`` up to ``n_nodes_ptr[k + 1]``.
        """
        structures = [tree.structure for tree in self.forest_] if "forest_" in self.__dict__ else []
        paths = [visited(shape, leaves) for shape, leaves in zip(structures, self.apply(X).T, strict=True)]
        return sparse.hstack(paths, format="csr"), np.cumsum([0, *(path.shape[1] for path in paths)])

    @property
    def feature_importances_(self) -> npt.NDArray[np.float64]:
        """The mean of the trees' importances, sum 1; see ``explain.feature_importances``."""
        check_is_fitted(self, "forest_")
        from crisptree.explain import feature_importances

        try:
            each = [feature_importances(tree) for tree in self.forest_]
        except TypeError as error:  # so that hasattr says no for trees with modules
            raise AttributeError(str(error)) from error
        mean = np.mean(each, axis=0)
        total = mean.sum()
        mean = mean / total if total > 0 else mean
        encoder = self.__dict__.get("encoder_")
        return mean if encoder is None else np.asarray(encoder.preprocessing_.by_input(mean))

    def get_depth(self) -> int:
        """The largest number of splits that a row may visit in a tree."""
        check_is_fitted(self, "forest_")
        return max(tree.structure.depth for tree in self.forest_)

    def get_n_leaves(self) -> int:
        """The number of leaves of all trees together."""
        check_is_fitted(self, "forest_")
        return sum(tree.structure.n_leaves for tree in self.forest_)

    def report(
        self, path: str | PathLike[str], X: Any = None, y: Any = None, *, number: int | None = None, **options: Any
    ) -> Path:
        """Write a page about one of the trees, with the forest's scores in its title; see ``crisptree.report.write``.

        Parameters
        ----------
        path : str or path
            The file to write.
        X, y : array-like, default=None
            Rows and their classes, or numbers.
        number : int, default=None
            Which tree; None takes the one that answers most as the forest does on X, or the first.
        **options
            As the ``report`` of one tree takes them.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> given = {"split": "oblique", "input_noise": 0.3, "l1": 0.0}
        >>> forest = CrispForestClassifier(n_estimators=3, max_depth=2, **given, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     forest.report(pathlib.Path(folder) / "iris.html", X, y).name
        'iris.html'
        """
        check_is_fitted(self, "forest_")
        trees, said = self.estimators_, [f"{len(self)} trees"]
        name, form = self.SCORE
        if X is not None:
            if number is None:
                answers = self.predict(X)
                number = int(np.argmin([self._difference(tree.predict(X), answers) for tree in trees]))
            if y is not None:
                said.append(f"{name} {self.score(X, y):{form}}")
        out_of_bag = getattr(self, "oob_score_", np.nan)
        if np.isfinite(out_of_bag):
            said.append(f"out of bag {out_of_bag:{form}}")
        number = check_tree_number(number or 0, len(self))
        title = f"Tree {number} of a forest ({', '.join(said)})"
        return trees[number].report(path, X, y, **{"title": title} | options)

    def explain(self, x: Any, *, top: int = 5) -> ForestPath:
        """Explain the prediction of one row by the paths through all trees; see ``explain.explain_forest``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispForestClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> given = {"split": "oblique", "input_noise": 0.3, "l1": 0.0}
        >>> forest = CrispForestClassifier(n_estimators=3, max_depth=2, **given, random_state=0).fit(X, y)
        >>> said = forest.explain(X.iloc[0], top=1)
        >>> said.n_for, len(said.paths)
        (3, 3)
        """
        from crisptree.explain import explain_forest

        return explain_forest(self, x, top=top)


class ForestEstimator(InspectsForest, KnowsColumns, BaseEstimator):
    """Fitted trees that answer together."""

    FITTED: ClassVar[tuple[str, ...]] = (
        *("forest_", "history_", "chosen_", "path_", "seed_", "n_rows_", "rows_digest_", "bags_", "preprocessing_"),
        *("best_iteration_", "oob_score_"),
    )
    """What a fit leaves behind, and the next one forgets first."""

    forest_: CrispForest
    image_shape_: tuple[int, ...] | None
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]
    encoder_: TableEncoder
    history_: list[EpochRecord]
    chosen_: dict[str, Any]
    path_: list[Trial]
    best_iteration_: npt.NDArray[np.int64]
    oob_score_: float
    seed_: int
    n_rows_: int
    rows_digest_: str
    bags_: str

    if TYPE_CHECKING:
        PARAMETERS: ClassVar[dict[str, Parameter]]
        max_depth: Any
        categorical: Any
        random_state: Any
        n_jobs: int | None
        warm_start: bool

    _fitting = TreeEstimator._fitting
    _forget = TreeEstimator._forget

    @abstractmethod
    def _take_up_unseen(self, judge: OutOfBag, kept: npt.NDArray[np.bool_]) -> None:
        """Keep what trees say of rows that they have not seen; ``kept`` are the rows with some weight."""

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        validation: tuple[MatrixLike, ArrayLike] | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        resume: bool = False,
    ) -> Self:
        """Draw rows for every tree, grow all of them together and finetune each.

        The estimator is as it was if any of it fails.

        Parameters
        ----------
        X, y : array-like
            Rows and classes or numbers, as the ``fit`` of one tree takes them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, beside how often a tree has drawn them. A row of weight zero is left out.
        validation : (X, y), default=None
            Rows that judge choices and, with ``early_stopping``, every epoch of finetuning.
        checkpoint, checkpoint_every, resume
            As the ``fit`` of one tree takes them: a folder in which the fit keeps what it has done. Such a fit
            finetunes one tree after the other.
        """
        checkpoints = Checkpoints(checkpoint, checkpoint_every, resume)
        check_alone("a forest")
        with self._fitting() as twin:
            parameters = self.get_params(deep=False)
            check_parameters(self.PARAMETERS, parameters, is_forest=True, has_validation=validation is not None)
            earlier = self.__dict__.get("forest_") if self.warm_start else None
            encoding = None if earlier is None else self._fitted_encoding(earlier.trees[0])
            data = checks.check_training_data(twin, X, y, sample_weight, encoding, reset=earlier is None)
            twin.image_shape_ = data.image_shape
            held_out = None
            if validation is not None:
                held_out = checks.check_validation(twin, validation, data.encoding, may_be_soft=True)
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            rows = digest_of(data)
            if earlier is not None:
                check_more_trees(
                    *(parameters, len(earlier), self.n_rows_, len(data.y)),
                    has_models=any(tree.is_linear for tree in self.forest_),
                )
                check_same_rows(self.__dict__.get("rows_digest_", rows), rows)
                seed = self.seed_
            bagging = Bagging.of(parameters, len(data.y), seed, None, are_images=data.image_shape is not None)
            before = bagging.kind if earlier is None else self.__dict__.get("bags_", bagging.kind)
            check_bags(before, bagging, parameters["n_estimators"])
            chosen = self.__dict__.get("chosen_", {})
            from crisptree.estimators.fitting import device_for
            from crisptree.estimators.fitting_forest import fit_forest_rows

            parameters = by_number(parameters, twin)
            given = {"X": data.X, "y": data.y, "sample_weight": data.weight, "classes": data.encoding.classes}
            given |= {"image_shape of X": data.image_shape, "validation": held_out, "warm_start": [*(earlier or [])]}
            given["device"] = device_for(parameters, data)
            with checkpoints.kept(parameters, given, seed) as seed:
                trained = fit_forest_rows(parameters, data, held_out, earlier, chosen, seed)
            twin._forget()
            twin._keep_encoding(data.encoding)
            twin.seed_, twin.n_rows_, twin.rows_digest_, twin.bags_ = seed, len(data.y), rows, bagging.kind
            twin.forest_, twin.history_ = CrispForest.of(trained.trees), trained.history
            twin.chosen_, twin.path_ = trained.chosen, trained.path
            if parameters["early_stopping"]:
                twin.best_iteration_ = np.array(trained.best_iterations)
            if trained.out_of_bag is not None:
                twin.oob_score_ = trained.out_of_bag.score
                twin._take_up_unseen(trained.out_of_bag, checks.kept_rows(self, y, sample_weight, len(data.y)))
        return self

    def _as_tree(self, kind: type[Any], number: int) -> Any:
        """One of the trees as a fitted estimator of that kind."""
        tree = self.forest_.trees[check_tree_number(number, len(self.forest_))]
        own = {name: getattr(self, name) for name in kind.PARAMETERS}
        if self.max_depth == "auto":
            own["max_depth"] = None
        if isinstance(self.split, str) and self.split == MIXED:
            own["split"] = "auto"  # what a tree of either kind may have been made with
        one = kind(**own | {"warm_start": False, "random_state": None})
        one.tree_ = one.greedy_tree_ = tree
        one.history_ = []
        for name, value in self.__dict__.items():
            is_own = name in ForestEstimator.FITTED and name != "preprocessing_"  # which all trees share
            if name.endswith("_") and not is_own and not name.startswith("oob_"):
                one.__dict__[name] = value
        return one

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")

    def __len__(self) -> int:
        """How many trees there are."""
        check_is_fitted(self, "forest_")
        return len(self.forest_)

    @abstractmethod
    def tree(self, number: int) -> Any:
        """One of the trees as an estimator of its own."""

    @property
    def estimators_(self) -> list[Any]:
        """All trees as estimators of their own, which predict, draw and explain themselves."""
        check_is_fitted(self, "forest_")
        return [self.tree(number) for number in range(len(self.forest_))]

    def _values(self, X: MatrixLike) -> npt.NDArray[np.float64]:
        """The mean of what the leaves of every row say.  (n, n_outputs)"""
        known = self.__dict__
        if "forest_" in known and is_plain(X, known["forest_"].n_features, known):
            finite = not get_config()["assume_finite"]
            values = known["forest_"].values(X, self.n_jobs, check_finite=finite)
            if values is not None:
                return values
        check_is_fitted(self, "forest_")
        values = self.forest_.values(checks.check_rows(self, X), self.n_jobs)
        assert values is not None  # only a check for finite values can fail
        return values

    def apply(self, X: MatrixLike) -> npt.NDArray[np.int64]:
        """The number of the leaf that every row reaches in every tree.  (n, n_features) → (n, n_trees)"""
        check_is_fitted(self, "forest_")
        leaves = self.forest_.leaves(checks.check_rows(self, X), self.n_jobs)
        assert leaves is not None
        return leaves

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted forest to a file that ``crisptree.load`` reads."""
        check_is_fitted(self, "forest_")
        from crisptree.estimators.loading import save

        save(self, path)

    def _sections(self) -> Sections:
        """All that a file keeps of it, for other forms than our own."""
        check_is_fitted(self, "forest_")
        from crisptree.estimators.loading import sections_of

        return sections_of(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        takes = self.categorical is not None
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = takes
        tags.input_tags.sparse = not any(violations(self.get_params(deep=False), rows="sparse"))
        return tags
