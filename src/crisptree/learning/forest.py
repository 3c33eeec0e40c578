"""Many trees on the same rows, each with weights and random numbers of its own: grown side by side, then finetuned.

The stumps of one level of all trees are one batch. Whole trees are finetuned several at a time, a core or a stream of a
device each. Features are not copied, but on a device for those: a tree's rows are numbers of rows. What a tree becomes
depends on its own rows and its seed alone: it is the tree that ``fit_tree`` makes of them, on the CPU bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from crisptree.data.rows import ArrayRows, PickedRows
from crisptree.inference import CrispTree
from crisptree.learning.engines.cuda_graphs import n_streams, streams
from crisptree.learning.finetuning import TrainedTree
from crisptree.learning.fitting import (
    TrainingContext,
    add_leaf_statistics,
    finetune_tree,
    fit_tree,
    resolve_split_kind,
    to_deterministic_tree,
    training_on,
)
from crisptree.learning.growth import Request, TrainedStumps, find_batched_stumps, grow_together, growing, single_leaf
from crisptree.learning.history import EpochCallback, EpochRecord, StoppableCallback, get_iteration
from crisptree.learning.options import Spec
from crisptree.learning.samples import Samples
from crisptree.learning.stumps import Outcome
from crisptree.learning.task import RowSet, TrainingTask, relative_weights
from crisptree.persistence.checkpoints import current
from crisptree.threads import n_threads, workers

PAIRS_AT_ONCE = 2**24
"""So many pairs of a tree and one of its rows train at once, at about forty bytes each; further trees wait."""


class Bag(NamedTuple):
    """How often each row counts for one tree, 0 for those that it never sees, and the seed of its random numbers."""

    times: npt.NDArray[np.integer]
    seed: int

    def weight(self, rows: RowSet) -> npt.NDArray[np.float64]:
        """What the rows weigh for the tree.  (n,)"""
        return rows.weight * self.times


class FittedTree(NamedTuple):
    """A deterministic tree, the records of its finetuning, and how many of its epochs led to the tree."""

    tree: CrispTree
    history: list[EpochRecord]
    best_iteration: int


def fit_forest(
    spec: Spec, task: TrainingTask, bags: Sequence[Bag], *, on_epoch: EpochCallback | None = None
) -> Iterator[FittedTree]:
    """Train a tree for every bag, in the order of the bags, with the seeds of the bags.

    Validation rows score every tree. ``on_epoch`` is called with the epochs of growth, all trees of a batch at once.
    """
    listener = StoppableCallback(on_epoch)
    if not _grows_together(spec, task):
        yield from _one_by_one(spec, task, bags)
        return
    kind = resolve_split_kind(spec, task)
    with training_on(spec, kind, task) as device:
        samples, validation = task.on(device, spec.n_jobs, as_array=True)
        if not isinstance(samples.rows, ArrayRows):
            raise TypeError("trees grow together on an array of rows")
        constraints = spec.constraints.on(task.scaling, device)
        for some in _batches(bags, len(samples)):
            contexts = [
                TrainingContext(
                    replace(spec, seed=bag.seed),
                    _samples_of(samples, task.training, bag),
                    kind,
                    torch.Generator().manual_seed(bag.seed),
                    listener,
                    constraints,
                )
                for bag in some
            ]
            grown = _grown(contexts)
            yield from _completed(contexts, grown, task, some, validation)
            if listener:
                return


def _grows_together(spec: Spec, task: TrainingTask) -> bool:
    """Whether growth is a training of stumps on an array of rows, which is what makes a batch."""
    linear = spec.split in ("oblique", "axis")
    return spec.grow == "greedy" and linear and not spec.shifts and isinstance(task.training.X, np.ndarray)


def _batches(bags: Sequence[Bag], n_rows: int) -> Iterator[Sequence[Bag]]:
    at_once = max(1, PAIRS_AT_ONCE // n_rows)
    return (bags[start : start + at_once] for start in range(0, len(bags), at_once))


def _samples_of(samples: Samples, rows: RowSet, bag: Bag) -> Samples:
    """The rows of one tree, their features where they lie."""
    assert isinstance(samples.rows, ArrayRows)
    index = np.flatnonzero(bag.times)
    weight = relative_weights(bag.weight(rows)[index]).to(samples.device)
    here = torch.from_numpy(index).to(samples.device)
    return replace(samples, rows=PickedRows.of(samples.rows, here), y=samples.y[here], weight=weight)


def _grown(contexts: Sequence[TrainingContext]) -> list[TrainedTree]:
    """All trees grown side by side."""
    plan, limits = contexts[0].spec.growth, contexts[0].spec.limits
    finders = [
        TrainedStumps(
            context.samples,
            plan,
            limits,
            context.kind,
            context.generator,
            context.on_epoch,
            context.constraints,
            context.spec.n_drawn,
        )
        for context in contexts
    ]

    def find_all(requests: dict[int, Request]) -> list[Outcome]:
        return find_batched_stumps([finders[number] for number in requests], list(requests.values()))

    growths = [
        growing(
            single_leaf(context.samples, context.kind, context.generator), context.samples, limits, signs=context.signs
        )
        for context in contexts
    ]
    return [TrainedTree(tree, plan.final_steepness) for tree in grow_together(find_all, growths)]


def _completed(
    contexts: Sequence[TrainingContext],
    grown: Sequence[TrainedTree],
    task: TrainingTask,
    bags: Sequence[Bag],
    validation: Samples | None,
) -> Iterator[FittedTree]:
    """Finetune every tree and add its leaf statistics, as many at once as there are cores.

    A device finetunes a few at once, while the host finalizes those that are done. A fit with checkpoints takes one
    after the other, because those hold one training at a time.
    """
    device = contexts[0].samples.device
    threads = n_threads(contexts[0].spec.n_jobs)
    at_once = min(threads, len(contexts)) if current() is None else 1
    each = max(1, threads // (len(contexts) if current() is None else 1))
    if validation is not None:
        validation = replace(validation, n_jobs=each)

    def tuned(number: int) -> tuple[int, CrispTree, list[EpochRecord], int]:
        context, history = contexts[number], list[EpochRecord]()
        own = context._replace(
            source=replace(context.samples, n_jobs=each),
            on_epoch=context.on_epoch if context.on_epoch else StoppableCallback(history.append),
        )
        soft, _ = finetune_tree(own, grown[number], validation)
        return number, to_deterministic_tree(soft, own.spec, task), history, get_iteration(soft.record, history)

    def finalize(number: int, tree: CrispTree, history: list[EpochRecord], best_iteration: int) -> FittedTree:
        rows = task.training
        own = replace(task, training=replace(rows, weight=bags[number].weight(rows)))
        tree, _ = add_leaf_statistics(tree, replace(contexts[number].spec, n_jobs=each), own)
        return FittedTree(tree, history, best_iteration)

    numbers = range(len(contexts))
    with workers(at_once) as each_of:
        if device.type == "cpu":
            yield from each_of(lambda number: finalize(*tuned(number)), numbers)
            return
        # Finetuning copies the rows of its tree.
        row_bytes = contexts[0].samples.n_features * contexts[0].samples.rows.dtype.itemsize
        copies = row_bytes * max(len(context.samples) for context in contexts)
        with streams(device, n_streams(device, len(contexts), copies) if current() is None else 1) as each_of_device:
            yield from each_of(lambda one: finalize(*one), each_of_device(tuned, numbers))


def _one_by_one(spec: Spec, task: TrainingTask, bags: Sequence[Bag]) -> Iterator[FittedTree]:
    """Trees whose growth is no batch of stumps, each on a copy of its rows."""

    def fit(bag: Bag) -> FittedTree:
        rows, history = task.training, list[EpochRecord]()
        index = np.flatnonzero(bag.times)
        own = RowSet(rows.X[index], rows.y[index], bag.weight(rows)[index])
        its = TrainingTask(own, task.scaling, task.target, task.validation)
        fitted = fit_tree(replace(spec, seed=bag.seed), its, on_epoch=history.append)
        return FittedTree(fitted.tree, history, get_iteration(fitted.soft.record, history))

    yield from map(fit, bags)
