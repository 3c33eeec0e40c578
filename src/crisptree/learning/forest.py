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

from crisptree.blocks import n_threads
from crisptree.data.rows import ArrayRows, PickedRows
from crisptree.inference import CrispTree
from crisptree.learning.engines.cuda_graphs import n_streams, streams
from crisptree.learning.finetuning import TrainedTree
from crisptree.learning.fitting import (
    Work,
    fit_tree,
    kind_for,
    settled_tree,
    training_on,
    tuned_tree,
    unsettled_tree,
)
from crisptree.learning.growth import Request, TrainedStumps, found_together, grow_together, growing, single_leaf
from crisptree.learning.history import Ending, EpochRecord, Listener, iteration_of
from crisptree.learning.journal import current
from crisptree.learning.options import Spec
from crisptree.learning.samples import Samples
from crisptree.learning.stumps import Outcome
from crisptree.learning.task import Part, Problem, relative_weights
from crisptree.one_thread import workers

PAIRS_AT_ONCE = 2**24
"""So many pairs of a tree and one of its rows train at once, at about forty bytes each; further trees wait."""


class Bag(NamedTuple):
    """How often each row counts for one tree, 0 for those that it never sees, and the seed of its random numbers."""

    times: npt.NDArray[np.integer]
    seed: int

    def weight(self, rows: Part) -> npt.NDArray[np.float64]:
        """What the rows weigh for the tree.  (n,)"""
        return rows.weight * self.times


class FittedTree(NamedTuple):
    """A deterministic tree, the records of its finetuning, and how many of its epochs led to the tree."""

    tree: CrispTree
    history: list[EpochRecord]
    best_iteration: int


def fit_forest(
    spec: Spec, problem: Problem, bags: Sequence[Bag], *, on_epoch: Listener | None = None
) -> Iterator[FittedTree]:
    """Train a tree for every bag; they come in the order of the bags.

    Parameters
    ----------
    spec : Spec
        How, for all of them; seeds are those of the bags.
    problem : Problem
        On what; rows that judge, where there are some, judge every tree.
    bags : sequence of Bag
        Whose rows count how often.
    on_epoch : callable, optional
        Hears of the epochs of growth, all trees of a batch at once.
    """
    listener = Ending(on_epoch)
    if not _grows_together(spec, problem):
        yield from _one_by_one(spec, problem, bags)
        return
    kind = kind_for(spec, problem)
    with training_on(spec, kind, problem) as device:
        samples, validation = problem.on(device, spec.n_jobs, as_array=True)
        if not isinstance(samples.rows, ArrayRows):
            raise TypeError("trees grow together on an array of rows")
        held = spec.constraints.on(problem.scaling, device)
        for some in _batches(bags, len(samples)):
            works = [
                Work(
                    replace(spec, seed=bag.seed),
                    _samples_of(samples, problem.training, bag),
                    kind,
                    torch.Generator().manual_seed(bag.seed),
                    listener,
                    held,
                )
                for bag in some
            ]
            grown = _grown(works)
            yield from _completed(works, grown, problem, some, validation)
            if listener:
                return


def _grows_together(spec: Spec, problem: Problem) -> bool:
    """Whether growth is a training of stumps on an array of rows, which is what makes a batch."""
    linear = spec.split in ("oblique", "axis")
    return spec.grow == "greedy" and linear and not spec.shifts and isinstance(problem.training.X, np.ndarray)


def _batches(bags: Sequence[Bag], n_rows: int) -> Iterator[Sequence[Bag]]:
    at_once = max(1, PAIRS_AT_ONCE // n_rows)
    return (bags[start : start + at_once] for start in range(0, len(bags), at_once))


def _samples_of(samples: Samples, rows: Part, bag: Bag) -> Samples:
    """The rows of one tree, their features where they lie."""
    assert isinstance(samples.rows, ArrayRows)
    index = np.flatnonzero(bag.times)
    weight = relative_weights(bag.weight(rows)[index]).to(samples.device)
    here = torch.from_numpy(index).to(samples.device)
    return replace(samples, rows=PickedRows.of(samples.rows, here), y=samples.y[here], weight=weight)


def _grown(works: Sequence[Work]) -> list[TrainedTree]:
    """All trees grown side by side."""
    plan, limits = works[0].spec.growth, works[0].spec.limits
    finders = [
        TrainedStumps(
            work.samples, plan, limits, work.kind, work.generator, work.on_epoch, work.held, work.spec.n_drawn
        )
        for work in works
    ]

    def find_all(requests: dict[int, Request]) -> list[Outcome]:
        return found_together([finders[number] for number in requests], list(requests.values()))

    growths = [
        growing(single_leaf(work.samples, work.kind, work.generator), work.samples, limits, signs=work.signs)
        for work in works
    ]
    return [TrainedTree(tree, plan.final_steepness) for tree in grow_together(find_all, growths)]


def _completed(
    works: Sequence[Work],
    grown: Sequence[TrainedTree],
    problem: Problem,
    bags: Sequence[Bag],
    validation: Samples | None,
) -> Iterator[FittedTree]:
    """Every tree finetuned and settled, as many at once as there are cores.

    A device finetunes a few at once, while the host settles those that are done. A fit that keeps a journal takes one
    after the other, because that has one training at work.
    """
    device = works[0].samples.device
    threads = n_threads(works[0].spec.n_jobs)
    at_once = min(threads, len(works)) if current() is None else 1
    each = max(1, threads // (len(works) if current() is None else 1))
    if validation is not None:
        validation = replace(validation, n_jobs=each)

    def tuned(number: int) -> tuple[int, CrispTree, list[EpochRecord], int]:
        work, history = works[number], list[EpochRecord]()
        own = work._replace(
            source=replace(work.samples, n_jobs=each),
            on_epoch=work.on_epoch if work.on_epoch else Ending(history.append),
        )
        soft, _ = tuned_tree(own, grown[number], validation)
        return number, unsettled_tree(soft, own.spec, problem), history, iteration_of(soft.record, history)

    def settle(number: int, tree: CrispTree, history: list[EpochRecord], best_iteration: int) -> FittedTree:
        rows = problem.training
        own = replace(problem, training=replace(rows, weight=bags[number].weight(rows)))
        settled, _ = settled_tree(tree, replace(works[number].spec, n_jobs=each), own)
        return FittedTree(settled, history, best_iteration)

    numbers = range(len(works))
    with workers(at_once) as each_of:
        if device.type == "cpu":
            yield from each_of(lambda number: settle(*tuned(number)), numbers)
            return
        # Finetuning copies the rows of its tree.
        row_bytes = works[0].samples.n_features * works[0].samples.rows.dtype.itemsize
        copies = row_bytes * max(len(work.samples) for work in works)
        with streams(device, n_streams(device, len(works), copies) if current() is None else 1) as each_of_device:
            yield from each_of(lambda one: settle(*one), each_of_device(tuned, numbers))


def _one_by_one(spec: Spec, problem: Problem, bags: Sequence[Bag]) -> Iterator[FittedTree]:
    """Trees whose growth is no batch of stumps, each on a copy of its rows."""

    def fit(bag: Bag) -> FittedTree:
        rows, history = problem.training, list[EpochRecord]()
        index = np.flatnonzero(bag.times)
        own = Part(rows.X[index], rows.y[index], bag.weight(rows)[index])
        its = Problem(own, problem.scaling, problem.target, problem.validation)
        fitted = fit_tree(replace(spec, seed=bag.seed), its, on_epoch=history.append)
        return FittedTree(fitted.tree, history, iteration_of(fitted.soft.record, history))

    yield from map(fit, bags)
