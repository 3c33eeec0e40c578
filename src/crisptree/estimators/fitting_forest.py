"""The steps of a forest's fit: choices, bags, trees, and what the rows say that a tree has not seen.

Nothing here knows what y is. Imported only when something trains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from crisptree.blocks import row_blocks
from crisptree.estimators.bags import Bagging, number_of
from crisptree.estimators.choices import closed, is_open, scale_of
from crisptree.estimators.constraints import are_constrained
from crisptree.estimators.finishing import finished
from crisptree.estimators.fitting import problem_of, spec_of, with_labels
from crisptree.estimators.progress import hearing_trials, recording
from crisptree.estimators.soft_labels import likeliest
from crisptree.estimators.validation import TrainingData
from crisptree.inference import CrispTree, route_rows
from crisptree.inference.forest import CrispForest
from crisptree.inference.ranges import carried_over, with_ranges
from crisptree.learning.choosing import Trial
from crisptree.learning.forest import Bag, fit_forest
from crisptree.learning.history import EpochRecord
from crisptree.learning.problem import Part, Problem
from crisptree.learning.spec import Spec
from crisptree.rows.base import learned_scaling
from crisptree.rows.sparse import SparseRows
from crisptree.targets import Target

Doubles = npt.NDArray[np.float64]

DEPTH = 10
"""What max_depth="auto" means for hyperplanes; thresholds go on until leaves are pure."""

STEP, MOST = 10, 100
"""n_estimators="auto" adds so many trees at a time, up to so many."""


class OutOfBag:
    """What trees say of rows that they have not seen."""

    def __init__(self, rows: Part, n_outputs: int, n_jobs: int | None) -> None:
        self.rows, self.n_jobs = rows, n_jobs
        self.sums = np.zeros((len(rows.y), n_outputs))
        self.trees = np.zeros(len(rows.y), dtype=np.int64)

    def add(self, tree: CrispTree, times: npt.NDArray[np.integer]) -> None:
        """One more tree, and how often it has seen each row."""
        unseen = np.flatnonzero(times == 0)
        for block in row_blocks(len(unseen)):
            here = unseen[block]
            X = self.rows.X[here]
            self.sums[here] += tree.leaf_values(route_rows(tree, X, self.n_jobs), X)
        self.trees[unseen] += 1

    @property
    def values(self) -> Doubles:
        """The mean over the trees that have not seen a row; not a number where all have.  (n, n_outputs)"""
        with np.errstate(invalid="ignore"):
            return self.sums / self.trees[:, None]

    def scores(self, target: Target) -> tuple[Doubles, Doubles]:
        """How good the answer is for every row that some tree has not seen, and what the row weighs."""
        known = np.flatnonzero(self.trees)
        return row_scores(target, self.values[known], self.rows.y[known]), self.rows.weight[known]


def row_scores(target: Target, values: Doubles, y: npt.NDArray[Any]) -> Doubles:
    """How good what a forest says is for every row: for classes 1 or 0.  (n, n_outputs), (n,) → (n,)"""
    parts = (torch.from_numpy(part) for part in (values, np.arange(len(values)), y))
    return np.asarray(target.score(*parts).double().numpy())


class TrainedForest(NamedTuple):
    """Trees, the records of their epochs, what they say of rows that they have not seen, and how they were chosen."""

    trees: list[CrispTree]
    history: list[EpochRecord]
    out_of_bag: OutOfBag
    bagging: Bagging
    target: Target
    chosen: dict[str, Any]
    path: list[Trial]


def fit_classes(
    parameters: Mapping[str, Any],
    data: TrainingData,
    validation: Part | None,
    earlier: CrispForest | None,
    chosen: dict[str, Any],
    seed: int,
) -> TrainedForest:
    """Train a forest of classes, or of probabilities of classes, choosing first what the parameters leave open.

    ``earlier`` are trees that there are already, and ``chosen`` what was chosen for them.
    """
    from crisptree.estimators.forest_choices import choose_for_forest

    is_sparse, n_jobs = isinstance(data.X, SparseRows), parameters["n_jobs"]
    if parameters["split"] == "auto" and (data.y.ndim == 2 or is_sparse or are_constrained(parameters)):
        parameters = {**parameters, "split": "oblique"}

    def scaled(scale: str | None) -> Problem:
        if earlier is not None:
            return problem_of(data, earlier.trees[0].statistics.scaling, validation)
        scaling = learned_scaling(data.X, data.weight, scale, n_jobs)
        if parameters["shifts"]:
            scaling = scaling.same_for_pixels(*(data.image_shape or ())[2:])
        return problem_of(data, scaling, validation)

    scale = scale_of(parameters, data.image_shape, is_sparse=is_sparse)
    problem, path = scaled(scale), list[Trial]()
    if earlier is None and is_open(parameters):
        with hearing_trials(parameters["verbose"]) as on_trial:
            chosen, path = choose_for_forest(parameters, with_labels(problem), data.image_shape, seed, on_trial)
    values = closed(with_depth(parameters), chosen, data.image_shape, is_sparse=is_sparse)
    if values["scale"] != scale:
        problem = scaled(values["scale"])
    n_rows = len(data.y)
    labels = likeliest(data.part).y if parameters["bootstrap"] == "balanced" else None
    bagging = Bagging(n_rows, number_of(parameters["max_samples"], n_rows), parameters["bootstrap"], seed, labels)
    task = ForestTask(values, problem, data.image_shape, bagging, data.holes)
    trees, history, judge = task.fit([] if earlier is None else list(earlier.trees))
    return TrainedForest(trees, history, judge, bagging, problem.target, chosen, path)


@dataclass(frozen=True, eq=False)
class ForestTask:
    """What a forest is made of.

    Parameters
    ----------
    parameters : mapping
        The estimator's, with nothing left open.
    problem : Problem
        Rows, how they are scaled, and what y is.
    image_shape : tuple of int or None
        The image that a row is.
    bagging : Bagging
        How rows are drawn.
    holes : mapping
        Features whose values may be missing; see ``with_ranges``.
    """

    parameters: Mapping[str, Any]
    problem: Problem
    image_shape: tuple[int, ...] | None
    bagging: Bagging
    holes: Mapping[int, int]

    def fit(self, earlier: list[CrispTree]) -> tuple[list[CrispTree], list[EpochRecord], OutOfBag]:
        """Train trees until there are as many as asked for, beside those that there are."""
        history: list[EpochRecord] = []
        trees = list(earlier)
        judge = OutOfBag(self.problem.training, self.problem.target.n_values, self.parameters["n_jobs"])
        if self.bagging.leaves_rows_out:
            for number, tree in enumerate(trees):
                judge.add(tree, self.bagging.times(number))
        wanted = self.parameters["n_estimators"]
        with recording(self.parameters["verbose"], self.parameters["callbacks"]) as recorder:
            if wanted != "auto":
                trees += self._more(range(len(trees), wanted), judge, recorder.record, history)
            else:
                trees += self._until_enough(len(trees), judge, recorder.record, history)
        return trees, [*recorder.history, *history], judge

    def _until_enough(
        self, begin: int, judge: OutOfBag, hear: Callable[[EpochRecord], None], history: list[EpochRecord]
    ) -> Iterator[CrispTree]:
        """Some trees at a time, until the last ones were no gain by more than its standard error."""
        before: Doubles | None = None
        while begin < MOST:
            yield from self._more(range(begin, begin + STEP), judge, hear, history)
            begin += STEP
            known = judge.trees > 0
            now = np.full(len(known), np.nan)
            now[known] = judge.scores(self.problem.target)[0]
            if before is not None:
                both = ~np.isnan(before)
                gain = now[both] - before[both]
                if gain.mean() <= gain.std() / np.sqrt(max(len(gain), 1)):
                    return
            before = now

    def _more(
        self, numbers: range, judge: OutOfBag, hear: Callable[[EpochRecord], None], history: list[EpochRecord]
    ) -> Iterator[CrispTree]:
        if not numbers:
            return
        spec = spec_of(self.parameters, self.problem, self.image_shape, self.bagging.seed)
        spec = as_in_forest(spec, self.parameters["max_features"], self.problem.training.X.shape[1])
        bags = [Bag(self.bagging.times(number).astype(np.int32), self.bagging.tree_seed(number)) for number in numbers]
        first: CrispTree | None = None
        for bag, (trained, records) in zip(bags, fit_forest(spec, self.problem, bags, on_epoch=hear), strict=False):
            tree = finished(trained, self.parameters)
            if self.image_shape is None:
                seen = with_ranges(tree, self.problem.training.X, self.holes) if first is None else first
                first, tree = seen, seen if first is None else carried_over(tree, seen)
            if self.bagging.leaves_rows_out:
                judge.add(tree, bag.times)
            history += records
            yield tree


def with_depth(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with a number in place of the depth "auto", that of hyperplanes."""
    return dict(parameters) | ({"max_depth": DEPTH} if parameters["max_depth"] == "auto" else {})


def as_in_forest(spec: Spec, max_features: Any, n_features: int) -> Spec:
    """The spec of a tree among many: thresholds are found a tree at a time, and splits have features drawn for them.

    "auto" lets hyperplanes have all features, which are averaged anyway, and gives a threshold the best of a few.
    """
    thresholds = spec.grow == "axis_aligned"
    share = ("sqrt" if thresholds else None) if max_features == "auto" else max_features
    number = max(1, round(np.sqrt(n_features))) if share == "sqrt" else number_of(share, n_features)
    return replace(spec, grow="cart" if thresholds else spec.grow, n_drawn=None if number >= n_features else number)
