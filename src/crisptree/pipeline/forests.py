"""The steps of a forest's fit: choices, bags, trees, and what the rows say that a tree has not seen.

Nothing here knows what y is. Imported only when something trains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.inference import CrispTree, route_rows
from crisptree.inference.finalization import inherit_ranges, record_ranges
from crisptree.inference.flat_tree import CrispForest
from crisptree.learning.fitting import Bag, FittedTree, fit_forest
from crisptree.learning.history import EpochRecord
from crisptree.learning.options import Spec
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.pipeline.bootstrap import Bagging, number_of
from crisptree.pipeline.monitoring import recording
from crisptree.pipeline.trees import ArrayDataset, prepare, spec_of
from crisptree.pipeline.validation import TrainingData
from crisptree.selection.candidates import CART_SPLITS, Trial
from crisptree.selection.evaluators import ForestEvaluator
from crisptree.selection.parameters import MIXED, postprocess
from crisptree.threads import row_blocks

Doubles = npt.NDArray[np.float64]
Finetunings = list[tuple[list[EpochRecord], int]]
"""Of every tree the records of finetuning, and the number of the epoch that was kept."""

STEP, MOST = 10, 100
"""n_estimators="auto" adds so many trees at a time, up to so many."""


class OutOfBag:
    """What trees say of rows that they have not seen."""

    def __init__(self, data: TrainingData, n_jobs: int | None) -> None:
        self.data, self.n_jobs = data, n_jobs
        self.sums = np.zeros((len(data.y), data.target.n_values))
        self.trees = np.zeros(len(data.y), dtype=np.int64)

    def add(self, tree: CrispTree, times: npt.NDArray[np.integer]) -> None:
        """One more tree, and how often it has seen each row."""
        unseen = np.flatnonzero(times == 0)
        for block in row_blocks(len(unseen)):
            here = unseen[block]
            X = self.data.X[here]
            self.sums[here] += tree.leaf_values(route_rows(tree, X, self.n_jobs), X)
        self.trees[unseen] += 1

    @property
    def values(self) -> Doubles:
        """The mean over the trees that have not seen a row; not a number where all have.  (n, n_outputs)"""
        with np.errstate(invalid="ignore"):
            return self.sums / self.trees[:, None]

    @property
    def scores(self) -> Doubles:
        """How good the answer is for every row; not a number where all trees have seen it.  (n,)"""
        found, known = np.full(len(self.trees), np.nan), np.flatnonzero(self.trees)
        if len(known):
            labels = self.data.target.hard.conform(self.data.y[known])
            found[known] = row_scores(self.data, self.values[known], labels)
        return found

    @property
    def score(self) -> float:
        """The weighted mean over the rows that some tree has not seen; not a number where there are none."""
        known = self.trees > 0
        return float(np.average(self.scores[known], weights=self.data.weight[known])) if known.any() else float("nan")


def row_scores(data: TrainingData, values: Doubles, y: npt.NDArray[Any]) -> Doubles:
    """How good what a forest says is for every row: for classes 1 or 0.  (n, n_outputs), (n, …) → (n,)"""
    predictions = data.encoding.scale_predictions(data.target.predict(values))
    return np.asarray(data.target.score_predictions(predictions, y), dtype=np.float64)


class TrainedForest(NamedTuple):
    """Trees, the records of their epochs, what they say of rows that they have not seen, and how they were chosen.

    ``best_iterations`` are the numbers of the finetuning epochs that early stopping has kept of the trees trained here.
    """

    trees: list[CrispTree]
    history: list[EpochRecord]
    out_of_bag: OutOfBag | None
    chosen: dict[str, Any]
    path: list[Trial]
    best_iterations: list[int]


def fit_forest_rows(
    parameters: Mapping[str, Any],
    data: TrainingData,
    validation: RowSet | None,
    earlier: CrispForest | None,
    chosen: dict[str, Any],
    seed: int,
) -> TrainedForest:
    """Train a forest on rows, choosing first what the parameters leave open.

    ``earlier`` are trees that there are already, and ``chosen`` what was chosen for them.
    """
    split = parameters["split"]
    if split == MIXED:
        parameters = {**parameters, "split": "oblique"}

    def draw_bags(rows: TrainingTask) -> Bagging:
        y, are_images = rows.training.y, data.image_shape is not None
        strata = rows.target.strata(y) if parameters["bootstrap"] == "balanced" else None
        return Bagging.of(parameters, len(y), seed, strata, are_images=are_images)

    def fit_trees(spec: Spec, max_features: Any, rows: TrainingTask, n_trees: int) -> list[CrispTree]:
        bagging = draw_bags(rows)
        bags = [Bag(bagging.times(number), bagging.tree_seed(number)) for number in range(n_trees)]
        spec = as_in_forest(spec, max_features, rows.training.X.shape[1])
        return [trained.tree for trained in fit_forest(spec, rows, bags)]

    tree, previous = (None, None) if earlier is None else (earlier.trees[0], chosen)
    (values, chosen, path), problem = prepare(
        *(parameters, ArrayDataset(data), validation, lambda own: ForestEvaluator(own, fit_trees)),
        *(seed, tree, previous),
    )
    bagging = draw_bags(problem)
    kinds = [values]
    if MIXED in (split, values["split"]):
        kinds = [values | {"split": "oblique"}, with_thresholds(values, parameters)]
    trees, history, judge, iterations = ForestTask(kinds, data, problem, bagging).fit([*(earlier or [])])
    return TrainedForest(trees, history, judge, chosen, path, iterations)


@dataclass(frozen=True, eq=False)
class ForestTask:
    """What a forest is made of.

    Parameters
    ----------
    kinds : sequence of mapping
        The estimator's parameters, with nothing left open: those of every tree, or of one kind of trees after another.
    data : TrainingData
        The rows.
    problem : TrainingTask
        The same, scaled.
    bagging : Bagging
        How rows are drawn.
    """

    kinds: Sequence[Mapping[str, Any]]
    data: TrainingData
    problem: TrainingTask
    bagging: Bagging

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Those that all kinds share can be read from the first."""
        return self.kinds[0]

    def fit(self, earlier: list[CrispTree]) -> tuple[list[CrispTree], list[EpochRecord], OutOfBag | None, list[int]]:
        """Train trees until there are as many as asked for, beside those that there are."""
        history: Finetunings = []
        trees = list(earlier)
        judge = OutOfBag(self.data, self.parameters["n_jobs"]) if self.bagging.leaves_rows_out else None
        for number, tree in enumerate(trees if judge is not None else []):
            assert judge is not None
            judge.add(tree, self.bagging.times(number))
        wanted = self.parameters["n_estimators"]
        with recording(self.parameters["verbose"], self.parameters["callbacks"]) as recorder:
            if wanted != "auto":
                trees += self._more(range(len(trees), wanted), judge, recorder.record, history)
            else:
                assert judge is not None
                trees += self._until_enough(len(trees), judge, recorder.record, history)
        records = [record for finetuning, _ in history for record in finetuning]
        return trees, [*recorder.history, *records], judge, [iteration for _, iteration in history]

    def _until_enough(
        self, begin: int, judge: OutOfBag, hear: Callable[[EpochRecord], None], history: Finetunings
    ) -> Iterator[CrispTree]:
        """Some trees at a time, until the last ones were no gain by more than its standard error."""
        before: Doubles | None = None
        while begin < MOST:
            yield from self._more(range(begin, begin + STEP), judge, hear, history)
            begin += STEP
            now = judge.scores
            if before is not None:
                gain = (now - before)[~np.isnan(before)]
                # Where no row is out of a bag, nothing tells whether more trees are a gain.
                if not len(gain) or gain.mean() <= gain.std() / np.sqrt(len(gain)):
                    return
            before = now

    def _more(
        self, numbers: range, judge: OutOfBag | None, hear: Callable[[EpochRecord], None], history: Finetunings
    ) -> Iterator[CrispTree]:
        if not numbers:
            return
        data = self.data
        first: CrispTree | None = None
        for bag, (trained, records, best_iteration) in self._trained(numbers, hear):
            tree = postprocess(trained, self.parameters)
            if data.image_shape is None:
                seen = record_ranges(tree, data.X, data.missing_indicators) if first is None else first
                first, tree = seen, seen if first is None else inherit_ranges(tree, seen)
            tree = data.encoding.restore_units(tree)
            if judge is not None:
                judge.add(tree, bag.times)
            history.append((records, best_iteration))
            yield tree

    def _trained(self, numbers: range, hear: Callable[[EpochRecord], None]) -> Iterator[tuple[Bag, FittedTree]]:
        """The trees of some numbers in their order, those of the first kind trained before those of the next."""
        bags = {n: Bag(self.bagging.times(n).astype(np.int32), self.bagging.tree_seed(n)) for n in numbers}
        kinds: list[Iterator[FittedTree]] = []
        for place, parameters in enumerate(self.kinds):
            spec = spec_of(parameters, self.problem, self.data.image_shape, self.bagging.seed)
            spec = as_in_forest(spec, parameters["max_features"], self.data.X.shape[1])
            own = [bag for number, bag in bags.items() if number % len(self.kinds) == place]
            trees = fit_forest(spec, self.problem, own, on_epoch=hear)
            kinds.append(trees if place == len(self.kinds) - 1 else iter(list(trees)))
        for number, bag in bags.items():
            tree = next(kinds[number % len(self.kinds)], None)
            if tree is None:  # a listener has ended the training
                return
            yield bag, tree


def with_thresholds(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The other kind of a mixed forest: thresholds of all features as CART finds them, until leaves are pure.

    ``given`` are the estimator's parameters, which may say how deep trees are and how many features a split may ask.
    """
    found = dict(values) | CART_SPLITS | {"grow": "axis_aligned", "finetune_epochs": 0}
    for name in ("max_depth", "max_features"):
        found[name] = None if given[name] == "auto" else given[name]
    return found


def as_in_forest(spec: Spec, max_features: Any, n_features: int) -> Spec:
    """The spec of a tree among many: thresholds are found a tree at a time, and splits have features drawn for them.

    "auto" lets hyperplanes have all features, which are averaged anyway, and gives a threshold the best of a few.
    """
    thresholds = spec.grow in ("axis_aligned", "cart")
    share = ("sqrt" if thresholds else None) if max_features == "auto" else max_features
    number = max(1, round(np.sqrt(n_features))) if share == "sqrt" else number_of(share, n_features)
    grow, n_drawn = "cart" if thresholds else spec.grow, None if number >= n_features else number
    return replace(spec, grow=grow, n_drawn=n_drawn, n_init=1)
