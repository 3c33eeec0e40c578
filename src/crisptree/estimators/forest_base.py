"""What all forests can do once they are fitted, whatever their trees predict."""

from __future__ import annotations

from abc import abstractmethod
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state

from crisptree.distributed import check_alone
from crisptree.estimators import validation as checks
from crisptree.estimators.bags import Bagging
from crisptree.estimators.base import Checkpoints, KnowsColumns, TreeEstimator
from crisptree.estimators.capabilities import check_parameters, violations
from crisptree.estimators.constraints import by_number
from crisptree.estimators.fast_lane import is_plain
from crisptree.estimators.forest_checks import (
    check_bags,
    check_more_trees,
    check_same_rows,
    check_tree_number,
    digest_of,
)
from crisptree.estimators.forest_inspecting import InspectsForest
from crisptree.estimators.parameters import Parameter
from crisptree.inference.forest import CrispForest
from crisptree.selection.parameters import MIXED
from crisptree.typing import ArrayLike, MatrixLike

if TYPE_CHECKING:
    from crisptree.encoding.table_encoder import TableEncoder
    from crisptree.estimators.fitting_forest import OutOfBag
    from crisptree.learning.history import EpochRecord
    from crisptree.persistence.model_file import Sections
    from crisptree.selection.trials import Trial


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
