"""Whole trees trained by L-BFGS in C++, many at once: the trees of folds, of random starts and of forests are one list.

``growth.py`` says in Python how a tree grows; here every stump and every stage of finetuning is a minimisation. Random
numbers are a function of the seed, the start, the leaf and the try, so that trees do not depend on each other or on the
number of threads.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from crisptree.data.rows import ArrayRows, SelectedRows
from crisptree.equations.annealing import SLOPE
from crisptree.learning.engines.native_engine import MIN_VALUES_FOR_THREADS, TRAINING_LEAF_PRIOR
from crisptree.learning.growth import LOST, TRIES
from crisptree.learning.history import EpochCallback, EpochRecord, StopTraining
from crisptree.learning.loop import TrainedTree, hard_score, make_divergence_error
from crisptree.learning.options import Plan, Spec, WeightConstraints
from crisptree.learning.samples import Samples
from crisptree.native import training
from crisptree.splits import ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.targets import Classes, Gaussians
from crisptree.threads import n_threads
from crisptree.tree import Tree


class TreeJob(NamedTuple):
    """Rows of one tree by their numbers in the samples, their weights, and what its random numbers follow from.

    ``tree`` is finetuned instead of growing one; with ``keeps_zeros`` weights that are zero stay so. ``y`` are its own
    numbers, by row of the samples.
    """

    rows: npt.NDArray[np.int64]
    weight: npt.NDArray[np.floating]
    seed: int
    start: int = 0
    tree: Tree | None = None
    keeps_zeros: bool = False
    y: npt.NDArray[np.floating] | None = None


class NativeTree(NamedTuple):
    """A tree before and after finetuning, its mean training score, the records of its stages and the weights there."""

    greedy: TrainedTree
    tuned: TrainedTree
    score: float
    records: list[EpochRecord]
    weights: list[float]


def supports(spec: Spec, samples: Any, constraints: WeightConstraints | None) -> bool:
    """Return True for an array of rows and hyperplanes that keep all of their features, where L-BFGS trains them."""
    if training is None or not isinstance(samples, Samples):
        return False
    if constraints is not None and constraints.removes_weights:
        return False
    is_array = isinstance(samples.rows, ArrayRows | SelectedRows) and samples.native_rows is not None
    return is_array and type(samples.target) in (Classes, Gaussians)


def make_job(samples: Samples, seed: int, start: int = 0) -> TreeJob:
    """Return the job of a tree that all rows train."""
    return TreeJob(np.arange(len(samples)), samples.weight.numpy(), seed, start)


def train_trees(
    spec: Spec,
    samples: Samples,
    jobs: Sequence[TreeJob],
    *,
    tunes: bool,
    constraints: WeightConstraints | None = None,
    on_epoch: EpochCallback | None = None,
    validation: Samples | None = None,
) -> list[NativeTree]:
    """Grow some trees, and finetune them if ``tunes``.

    Parameters
    ----------
    spec : Spec
        How each of them trains.
    samples : Samples
        The rows of all trees; their weights are those of the jobs.
    jobs : sequence of TreeJob
        The trees.
    tunes : bool
        Whether to finetune the trees; see ``Spec.is_whole_lbfgs``.
    constraints : WeightConstraints, optional
        Signs of the weights.
    on_epoch : callable, optional
        Called with the records of the first tree, all of whose training it may stop.
    validation : Samples, optional
        Rows on which the deterministic tree is scored after every stage of finetuning.
    """
    assert training is not None
    rows = samples.rows
    assert isinstance(rows, ArrayRows | SelectedRows)
    index = rows.index.numpy() if isinstance(rows, SelectedRows) else None
    reader = _Reader(spec, samples, validation)
    is_classification = type(samples.target) is Classes

    def place(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        placed = y if index is None else _scatter(y, index, len(rows.values))
        return placed if is_classification else np.ascontiguousarray(placed, dtype=np.float64)

    y = place(samples.y.numpy())
    options = _options(spec, constraints, tunes=tunes)
    n_values = sum(len(job.rows) for job in jobs) * samples.n_features
    results = training.train_trees(
        rows.values.numpy(),
        y if is_classification else None,
        None if is_classification else y,
        samples.target.n_values,
        [
            (
                one.rows if index is None else index[one.rows],
                *(one.weight, one.seed, one.start, options),
                None if one.tree is None else (*_arrays_of(one.tree), one.keeps_zeros),
                None if one.y is None or is_classification else place(one.y),
            )
            for one in jobs
        ],
        None if on_epoch is None else reader.listener(on_epoch),
        validation is not None,
        n_threads(spec.n_jobs) if n_values >= MIN_VALUES_FOR_THREADS else 1,
    )
    steepness = spec.growth.steepness_at(0)
    return [
        reader.tree(
            result,
            reader.heard if number == 0 else [],
            None if job.tree is None else TrainedTree(job.tree, steepness),
        )
        for number, (result, job) in enumerate(zip(results, jobs, strict=True))
    ]


def merge_growth(trees: Sequence[NativeTree]) -> list[EpochRecord]:
    """Merge the records of growth of some trees: of every level the first tries of all, then the second ones."""
    merged: dict[tuple[int, int], tuple[EpochRecord, float]] = {}
    for tree in trees:
        turns = Counter[int]()
        for record, weight in zip(tree.records, tree.weights, strict=True):
            if record.phase != "grow":
                continue
            key = record.level, turns[record.level]
            turns[record.level] += 1
            if key in merged:
                before, heavy = merged[key]
                loss = (before.loss * heavy + record.loss * weight) / (heavy + weight)
                record = replace(before, n_splits=before.n_splits + record.n_splits, loss=loss)
                weight += heavy
            merged[key] = record, weight
    return [merged[key][0] for key in sorted(merged)]


def _scatter(y: npt.NDArray[Any], index: npt.NDArray[np.int64], n_rows: int) -> npt.NDArray[Any]:
    """Return the y of selected rows at their places among all."""
    whole = np.zeros((n_rows, *y.shape[1:]), dtype=y.dtype)
    whole[index] = y
    return whole


def _arrays_of(tree: Tree) -> tuple[npt.NDArray[Any], ...]:
    """Children, weights, biases and leaf tables."""
    assert isinstance(tree.splits, ObliqueSplits)
    parts = (*tree.splits.hyperplanes(), tree.leaves)
    return tree.structure.left, tree.structure.right, *(part.detach().contiguous().numpy() for part in parts)


def _options(spec: Spec, constraints: WeightConstraints | None, *, tunes: bool) -> Any:
    assert training is not None
    limits, options = spec.limits, training.TreeOptions()
    options.set_rules(
        -1 if limits.max_depth is None else limits.max_depth,
        -1 if limits.max_leaf_nodes is None else limits.max_leaf_nodes,
        limits.min_samples_split,
        limits.min_samples_leaf,
        limits.min_weight_fraction_leaf,
        limits.min_impurity_decrease,
        TRIES,
        -1 if spec.n_drawn is None else spec.n_drawn,
        LOST if spec.has_linear_leaves else 0.0,
    )
    groups, signs = spec.growth.feature_groups, None if constraints is None else constraints.signs
    options.set_constraints(
        np.array(groups, dtype=np.int64).reshape(-1, 2) if groups else None, None if signs is None else signs.numpy()
    )
    options.set_growth(*_phase(spec.growth))
    if tunes and spec.finetuning.epochs:
        options.set_finetuning(*_phase(spec.finetuning))
    return options


def _phase(plan: Plan) -> tuple[Any, ...]:
    steepness = [plan.steepness_at(epoch) for epoch in range(plan.epochs)]
    objective = SLOPE * plan.input_noise**2, plan.l1, plan.l2, TRAINING_LEAF_PRIOR, plan.max_iterations, plan.tolerance
    return steepness, *objective, plan.leaf_prior, plan.has_penalties and plan.penalty_share == "rows"


class _Reader:
    """Makes trees and records of what the kernel gives."""

    def __init__(self, spec: Spec, samples: Samples, validation: Samples | None) -> None:
        self.spec, self.samples, self.validation = spec, samples, validation
        self.heard: list[EpochRecord] = []

    def listener(self, on_epoch: EpochCallback) -> Callable[[tuple[Any, ...]], bool]:
        """Return what the kernel calls with every stage; where it returns False, the training ends."""

        def hear(stage: tuple[Any, ...]) -> bool:
            self.heard.append(self.record(stage))
            try:
                on_epoch(self.heard[-1])
            except StopTraining:
                return False
            return True

        return hear

    def record(self, stage: tuple[Any, ...]) -> EpochRecord:
        is_growth, level, n_splits, number, steepness, log_likelihood, weight, tree = stage
        plan, limits = (self.spec.growth if is_growth else self.spec.finetuning), self.spec.limits
        n_levels = (None if limits.max_leaf_nodes else limits.max_depth) if is_growth else level
        score = None
        if tree is not None and self.validation is not None:
            score = hard_score(self.soft_tree(*tree), self.samples, self.validation)
        phase, loss = "grow" if is_growth else "finetune", -log_likelihood / weight
        return EpochRecord(phase, level, n_levels, n_splits, number + 1, plan.epochs, steepness, loss, score)

    def tree(self, result: Any, records: list[EpochRecord], begun: TrainedTree | None = None) -> NativeTree:
        """Make the trees of a result; one that somebody has heard of has records already."""
        stages = result.stages
        records = records or [self.record(stage) for stage in stages]
        weights = [stage[6] for stage in stages]
        greedy = begun or TrainedTree(self.soft_tree(*result.tree(0)), self.spec.growth.final_steepness)
        last = records[-1] if records else None
        if last is None or last.phase == "grow":
            return NativeTree(greedy, greedy, result.score, records, weights)
        tuned = TrainedTree(self.soft_tree(*result.tree(1)), last.steepness, last)
        if not (math.isfinite(last.loss) and np.isfinite(tuned.tree.leaves.numpy()).all()):
            raise make_divergence_error(
                last.loss, math.isfinite(last.loss), "finetuning", last.epoch - 1, last.steepness
            )
        return NativeTree(greedy, tuned, result.score, records, weights)

    def soft_tree(self, left: Any, right: Any, weight: Any, bias: Any, leaves: Any) -> Tree:
        splits = ObliqueSplits(torch.from_numpy(weight), torch.from_numpy(bias))
        return Tree(TreeStructure(left, right), splits, torch.from_numpy(leaves), self.samples.target.name)
