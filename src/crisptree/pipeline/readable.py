"""Readable trees: the unrestricted tree is distilled into one of few leaves, short sums and round numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.inference import CrispTree, FlatTree, round_splits, route_rows
from crisptree.inference.finalization import empty_statistics
from crisptree.inference.flat_tree import SPARSE_LINEAR
from crisptree.inference.rounding import MAX_REROUTED
from crisptree.learning.alternating_splits import GrownSplits, SplitSearch, grow_sums
from crisptree.learning.fitting import Bootstrap, add_leaf_statistics, fit_forest, fit_tree
from crisptree.learning.options import Spec
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.learning.sparse_leaves import TargetRows, round_sparse_models, with_sparse_models
from crisptree.selection.candidates import LOSS_SHARE
from crisptree.selection.search import make_folds
from crisptree.structure import TreeStructure
from crisptree.targets import Target

MIN_PROBABILITY = 1e-3
"""Log losses count to here: the leaves of the candidates are not shrunk yet."""

SHARES_REROUTED, MAX_LOSS_BY_ROUNDING = (MAX_REROUTED, MAX_REROUTED / 8, 0.0), 0.002
"""Shares of the rows of a split that rounding may send to the other side, tried in turn, and what it may cost on the
training rows: accuracy less a share of the log loss, or R²."""

MAX_FOLDS = 3

SIZE_DIVISORS = (1, 2, 4)
"""Candidates have the most leaves that are allowed, half and a quarter of them."""

TEACHER_SHARE = 0.75
"""Share of the teacher's prediction in the target of a training row; the rest is y."""

BAGS = 10
"""Trees with the parameters of the unrestricted one, on bootstraps of the rows of a small table."""

MERIT_OF_FEWER_LEAVES = 0.001
"""Difference of merits up to which the tree of fewer leaves is selected."""

SYNTHETIC_ROWS, MAX_ROWS, SYNTHETIC_WEIGHT = 1, 5_000, 0.5
"""Synthetic rows per training row, as long as there are at most so many rows in all, and their weight."""

MakeSpec = Callable[[Mapping[str, Any], TrainingTask], Spec]


Predict = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float64]]


class Teacher(NamedTuple):
    """The unrestricted tree, and trees of the same kind on bootstraps, whose mean predicts more smoothly."""

    tree: FlatTree
    bagged: Sequence[FlatTree] = ()

    @classmethod
    def of(
        cls, tree: FlatTree, parameters: Mapping[str, Any], task: TrainingTask, make_spec: MakeSpec, seed: int
    ) -> Teacher:
        """Train the trees on bootstraps where this takes little time."""
        if not task.is_small_table:
            return cls(tree)
        generator, n_rows = np.random.default_rng(seed), len(task.training.y)
        counts = [np.bincount(generator.integers(n_rows, size=n_rows), minlength=n_rows) for _ in range(BAGS)]
        bags = [Bootstrap(own, seed + number) for number, own in enumerate(counts)]
        trees = [fitted.tree for fitted in fit_forest(make_spec(parameters, task), task, bags)]
        return cls(tree, [one for one in trees if isinstance(one, FlatTree)])

    @property
    def parts(self) -> list[Predict]:
        """Predictions of class probabilities, or of scaled y, by the tree and by the mean of the others."""
        functions: list[Predict] = [lambda X: _predict(self.tree, X)]
        if self.bagged:
            functions.append(lambda X: np.mean([_predict(tree, X) for tree in self.bagged], axis=0))
        return functions


def distil_readable(
    teacher: Teacher,
    parameters: Mapping[str, Any],
    limits: Mapping[str, Any],
    task: TrainingTask,
    make_spec: MakeSpec,
    seed: int,
    source: npt.NDArray[np.intp] | None = None,
) -> FlatTree:
    """Distil a tree into one of fewer leaves; how many is compared on held-out rows.

    ``parameters`` trained the teacher, and train those of the folds; ``limits`` are those of the readable tree.
    ``source`` is the row that each row is a copy of, so that no fold has copies of held-out rows.
    """
    merits: dict[int, list[float]] = {}
    folds, sizes = make_folds(task, seed, source)[:MAX_FOLDS], Limits.of(limits, teacher.tree.n_features).sizes
    for fold in folds:
        trained = fit_tree(make_spec(parameters, fold.task), fold.task).tree
        assert isinstance(trained, FlatTree)
        for size, tree in grow_readable(Teacher(trained), limits, fold.task, make_spec, sizes).items():
            merits.setdefault(size, []).append(_score(tree, TargetRows.of(fold.held_out, tree.target)))
    means = {size: np.mean(values) for size, values in merits.items() if len(values) == len(folds)}
    if means:
        best = max(means.values())
        sizes = [min(size for size, merit in means.items() if merit >= best - MERIT_OF_FEWER_LEAVES)]
    trees = grow_readable(teacher, limits, task, make_spec, [size for size in sizes if size > 1])
    return trees[max(trees)]


class Limits(NamedTuple):
    """Terms of a split and of a leaf, and the sizes of candidates."""

    split_terms: int
    leaf_terms: int
    sizes: list[int]

    @classmethod
    def of(cls, limits: Mapping[str, Any], n_features: int) -> Limits:
        given, most = limits["max_features_per_split"], limits["max_leaf_nodes"]
        terms = given or (1 if limits["split"] == "axis" else n_features)
        sizes = sorted({max(2, most // divisor) for divisor in SIZE_DIVISORS}, reverse=True)
        return cls(terms, terms if limits["leaf_model"] == SPARSE_LINEAR else 0, sizes)


def grow_readable(
    teacher: Teacher,
    limits: Mapping[str, Any],
    task: TrainingTask,
    make_spec: MakeSpec,
    sizes: Sequence[int],
) -> dict[int, FlatTree]:
    """Grow readable trees of several sizes, and one of a single leaf, to the teacher's predictions and y.

    A tree is grown to every part of the teacher, and of each size the one of the highest merit on the training rows is
    returned. Leaves have models of the mean of all parts.
    """
    tree, is_regression = teacher.tree, task.target.is_regression
    spec, own = make_spec(limits, task), Limits.of(limits, tree.n_features)
    parts = distil_parts(teacher, task.training, spec)
    whole, training = average_targets(parts), TargetRows.of(task.training, tree.target)

    def complete(grown: GrownSplits) -> FlatTree:
        counted = _count(_replace_splits(tree, grown, task), spec, task)
        return with_sparse_models(counted, whole, own.leaf_terms) if own.leaf_terms else counted

    found: dict[int, list[FlatTree]] = {}
    for rows in parts if sizes else ():
        search = SplitSearch.of(rows, spec.limits, own.split_terms, own.leaf_terms, is_regression=is_regression)
        for size, grown in grow_sums(search, sizes).items():
            found.setdefault(size, []).append(complete(grown))
    trees = {size: max(some, key=lambda one: _score(one, training)) for size, some in sorted(found.items())}
    return trees | {1: complete(GrownSplits(TreeStructure.single_leaf(), tree.weight[:0], tree.bias[:0]))}


def distil_parts(teacher: Teacher, rows: RowSet, spec: Spec) -> list[TargetRows]:
    """Return the rows with the targets of every part of the teacher."""
    groups = spec.growth.feature_groups
    return [distil_rows(teacher.tree.target, predict, rows, groups) for predict in teacher.parts]


def average_targets(parts: Sequence[TargetRows]) -> TargetRows:
    """Return the same rows with the mean of their targets."""
    return parts[0]._replace(y=np.mean([part.y for part in parts], axis=0))


def distil_rows(target: Target, predict: Predict, rows: RowSet, groups: Sequence[tuple[int, int]]) -> TargetRows:
    """Mix y with a teacher's predictions, and add synthetic rows, which mix the columns of two training rows each.

    ``groups`` are the features of one column of a table, such as those of a category, which stay together.
    """
    X, y, weight = TargetRows.of(rows, target)
    y = (1 - TEACHER_SHARE) * y + TEACHER_SHARE * predict(X)
    n_added = min(SYNTHETIC_ROWS * len(X), max(MAX_ROWS - len(X), 0))
    generator = np.random.default_rng(0)
    first, second = generator.integers(len(X), size=(2, n_added))
    is_first = generator.random((n_added, X.shape[1])) < 0.5
    for start, stop in groups:
        is_first[:, start:stop] = is_first[:, [start]]
    added = np.where(is_first, X[first], X[second])
    return TargetRows(
        np.concatenate([X, added]),
        np.concatenate([y, predict(added)]),
        np.concatenate([weight, SYNTHETIC_WEIGHT * weight[first]]),
    )


def _predict(tree: FlatTree, X: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Predict class probabilities, or scaled y.  (n, n_outputs)"""
    tables = tree.scaled_values(route_rows(tree, X), X)
    return np.asarray(tree.target.predict(tables) if tree.target.is_regression else tables)


def _replace_splits(tree: FlatTree, grown: GrownSplits, task: TrainingTask) -> FlatTree:
    """Return a tree with other splits and constant leaves, which waits for its leaf statistics."""
    statistics = empty_statistics(
        grown.structure,
        tree.statistics.scaling,
        np.zeros((grown.structure.n_leaves, tree.n_values)),
        tree.statistics.steepness,
        task.target.n_statistics,
    )
    return FlatTree(
        grown.structure,
        statistics.soft_leaves,
        statistics,
        target_name=tree.target_name,
        weight=grown.weight,
        bias=grown.bias,
    )


def count_rounded(
    tree: FlatTree, teacher: Teacher | None, limits: Mapping[str, Any], spec: Spec, task: TrainingTask
) -> FlatTree:
    """Round the splits of a tree, and give it the leaf statistics and leaf models of the rows that reach them then.

    Fewer rows may change sides where those that do cost more than ``MAX_LOSS_BY_ROUNDING``.
    """
    rows, leaf_terms = task.training, Limits.of(limits, tree.n_features).leaf_terms if tree.is_linear else 0
    assert isinstance(rows.X, np.ndarray)
    distilled = None
    if leaf_terms and teacher is not None:
        distilled = average_targets(distil_parts(teacher, rows, spec))
    scored = TargetRows.of(rows, tree.target)
    least = _score(tree, scored) - MAX_LOSS_BY_ROUNDING
    counted = tree
    for max_rerouted in SHARES_REROUTED:
        rounded = add_leaf_statistics(round_splits(tree, rows.X, rows.weight, max_rerouted), spec, task)[0]
        assert isinstance(rounded, FlatTree)
        counted = with_sparse_models(rounded, distilled, leaf_terms) if distilled is not None else rounded
        if _score(counted, scored) >= least:
            break
    return counted


def round_leaves(tree: CrispTree, task: TrainingTask) -> CrispTree:
    """Round linear leaves in the units of y; constant ones stay."""
    if not isinstance(tree, FlatTree) or not tree.is_linear:
        return tree
    return round_sparse_models(tree, TargetRows.of(task.training, task.target))


def _count(tree: FlatTree, spec: Spec, task: TrainingTask) -> FlatTree:
    counted = add_leaf_statistics(tree, spec, task)[0]
    assert isinstance(counted, FlatTree)
    return replace(counted, statistics=replace(counted.statistics, soft_leaves=counted.leaves))


def _score(tree: FlatTree, rows: TargetRows) -> float:
    """Score rows: accuracy less a share of the log loss, or 1 − the squared error of scaled y."""
    X, y, weight = rows
    outputs = _predict(tree, X)
    if tree.target.is_regression:
        scores = 1 - ((outputs - y) ** 2).mean(axis=1)
    else:
        accuracy = y[np.arange(len(y)), outputs.argmax(axis=1)]
        scores = accuracy + LOSS_SHARE * (y * np.log(np.maximum(outputs, MIN_PROBABILITY))).sum(axis=1)
    return float(np.average(scores, weights=weight))
