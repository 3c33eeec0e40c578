"""What all estimators of one tree can do once they are fitted."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from crisptree.encoding.containers import materialize, reorder_columns
from crisptree.estimators.arguments import check_argument
from crisptree.inference import CrispTree
from crisptree.inference.pruning import PruningPath, cost_complexity_path, prune, truncate
from crisptree.targets.encoding import TargetEncoding

if TYPE_CHECKING:
    from crisptree.encoding.table_encoder import TableEncoder
    from crisptree.learning.history import EpochRecord
    from crisptree.persistence.model_file import Sections


class KnowsColumns:
    """An estimator that remembers what the columns of its training were called, and what y was."""

    ENCODING: ClassVar[type[TargetEncoding]]
    """What y is; nothing else in an estimator depends on it."""

    def _fitted_encoding(self, tree: CrispTree) -> TargetEncoding:
        """The encoding of y that a tree of this estimator was trained with."""
        return self.ENCODING.of_fitted(self.__dict__, tree)

    def _keep_encoding(self, encoding: TargetEncoding) -> None:
        self.__dict__.update(encoding.attributes)

    def in_training_order(self, X: Any) -> Any:
        """X in memory; a DataFrame whose columns have labels that are no text in the order of training."""
        return reorder_columns(materialize(X), self.__dict__.get("column_labels_"))


class TreeEstimator(KnowsColumns, BaseEstimator):
    """A fitted tree, and the one before finetuning."""

    FITTED: ClassVar[tuple[str, ...]] = ("tree_", "greedy_tree_", "history_", "best_iteration_", "classes_")
    """What a fit leaves behind, and the next one forgets first."""

    tree_: CrispTree
    greedy_tree_: CrispTree
    image_shape_: tuple[int, ...] | None
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]
    encoder_: TableEncoder
    history_: list[EpochRecord]
    best_iteration_: int
    target_name_: str
    column_labels_: list[Any]

    @contextmanager
    def _fitting(self) -> Iterator[Self]:
        """A twin to fit. What it has learned becomes this estimator's own in one moment, and nothing does if it fails.

        Until then this one answers as before, whether the fit is interrupted or other threads ask it meanwhile. Every
        public method that trains runs in here, and so does every call of torch that it makes: on one thread, see there.
        """
        from crisptree.one_thread import one_thread

        twin = copy.copy(self)
        # What underflows in training is 0, as it should be: probabilities far below the largest, and scaled values.
        with one_thread(), np.errstate(under="ignore"):
            yield twin
        own = {name: value for name, value in self.__dict__.items() if not _is_learned(name)}
        self.__dict__ = own | {name: value for name, value in twin.__dict__.items() if _is_learned(name)}

    def _forget(self) -> None:
        """Let go of what an earlier fit has left."""
        for name in self.FITTED:
            self.__dict__.pop(name, None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tree_")

    def greedy(self) -> Self:
        """The fitted estimator as it was before finetuning: it predicts with ``greedy_tree_``."""
        check_is_fitted(self, "tree_")
        twin = copy.copy(self)
        twin.tree_ = self.greedy_tree_
        return twin

    def cut(self, depth: int) -> Self:
        """The fitted estimator with its trees cut at a depth, their leaf tables counted on the training rows.

        Where there is a ``warm_start``, the next ``fit`` of what is returned finetunes the cut ``greedy_tree_``.
        """
        check_is_fitted(self, "tree_")
        check_argument("depth", depth)
        twin = copy.copy(self)
        twin.max_depth = int(depth)
        twin.tree_, twin.greedy_tree_ = (
            truncate(tree, depth, self.leaf_prior) for tree in (self.tree_, self.greedy_tree_)
        )
        return twin

    def ccp_path(self) -> PruningPath:
        """The prices of a leaf at which ``pruned`` takes splits away, and the leaves that are left.

        Returns
        -------
        PruningPath
            Its ``alphas`` are in nats of impurity for each training row, its ``leaves`` whole numbers.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from crisptree import CrispTreeClassifier
        >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(*load_iris(return_X_y=True))
        >>> path = model.ccp_path()
        >>> path.leaves.tolist()
        [3, 2, 1]
        >>> model.pruned(path.alphas[1]).get_n_leaves()
        2
        """
        check_is_fitted(self, "tree_")
        return cost_complexity_path(self.tree_)

    def pruned(self, alpha: float) -> Self:
        """The fitted estimator with the smallest tree of least impurity plus ``alpha`` times the number of leaves.

        Leaf tables are counted on the training rows, and shrunk if they were before; ``greedy_tree_`` stays as it is.
        """
        check_is_fitted(self, "tree_")
        check_argument("alpha", alpha)
        twin = copy.copy(self)
        twin.tree_ = prune(self.tree_, alpha, self.leaf_prior)
        return twin

    @property
    def shrinkage_(self) -> float:
        """How strongly the tables of ``tree_`` are shrunk: λ, also where ``shrinkage="auto"`` chose it."""
        check_is_fitted(self, "tree_")
        return self.tree_.statistics.shrinkage or 0.0

    def get_depth(self) -> int:
        """The largest number of splits that a row may visit."""
        check_is_fitted(self, "tree_")
        return self.tree_.structure.depth

    def get_n_leaves(self) -> int:
        """The number of leaves."""
        check_is_fitted(self, "tree_")
        return self.tree_.structure.n_leaves

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted estimator to a file that ``crisptree.load`` reads."""
        check_is_fitted(self, "tree_")
        from crisptree.estimators.loading import save

        save(self, path)

    def _sections(self) -> Sections:
        """All that a file keeps of it, for other forms than our own."""
        check_is_fitted(self, "tree_")
        from crisptree.estimators.loading import sections_of

        return sections_of(self)


class Checkpoints(NamedTuple):
    """Where a fit keeps what it has done, every so many seconds, and whether it goes on from what is there."""

    folder: str | PathLike[str] | None = None
    every: float = 60.0
    resume: bool = False

    @contextmanager
    def kept(self, parameters: Mapping[str, Any], data: Mapping[str, Any], seed: int) -> Iterator[int]:
        """Inside, trainings are kept, if there is a folder; the seed of the fit, which may be that of a checkpoint."""
        every = self.every
        if isinstance(every, bool) or not isinstance(every, int | float) or not 0 <= every < float("inf"):
            raise ValueError(f"`checkpoint_every` must be seconds, 0 or more; got {every!r}.")
        check_argument("resume", self.resume)
        if self.folder is None:
            if self.resume:
                raise ValueError("`resume` must come with `checkpoint`, the folder to go on from; got none.")
            yield seed
            return
        from crisptree.estimators.checkpoints import keeping_checkpoints

        with keeping_checkpoints(self.folder, every, self.resume, parameters, data, seed) as own_seed:
            yield own_seed


def _is_learned(name: str) -> bool:
    """Whether an attribute comes from a fit, by scikit-learn's rule for names."""
    return name.endswith("_") and not name.startswith("_")
