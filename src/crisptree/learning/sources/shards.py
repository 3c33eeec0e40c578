"""Rows of a process group: shards, moving rows to them, sums over all of them, and training steps.

Gradients come from the engines of a single process, which keep those of every shard apart (``PartSums``); their sum
over all shards is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.data.raw_rows import MIN_SPREAD, SCALES, Scaling
from crisptree.data.rows import ArrayRows, UnscaledRows
from crisptree.inference import CrispTree
from crisptree.inference.finalization import SomeTree, SufficientStatistics, record_ranges, sum_statistics
from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.engines.base import (
    DivergenceError,
    Doubles,
    EpochResult,
    Integers,
    Parts,
    PartStep,
    TrainState,
    all_finite,
)
from crisptree.learning.history import EpochCallback, EpochRecord, StopTraining
from crisptree.learning.loop import PART_SUMS
from crisptree.learning.options import EpochSettings, Plan
from crisptree.learning.samples import (
    Groups,
    Result,
    RowSet,
    Samples,
    StoppableCallback,
    TrainingTask,
    Update,
    scale_samples,
)
from crisptree.learning.sources.base import Side, SummedRows, group_leaves, side_sums, split_sides
from crisptree.learning.stumps import SummedLevel
from crisptree.splits import AbstractSplits
from crisptree.threads import row_blocks
from crisptree.tree import Tree

GRADIENT_BITS = 40
"""Bits of a gradient of γ · the largest value of a feature · the largest weight of a row."""


@dataclass(frozen=True, eq=False)
class Shards:
    """The shards of one process, numbered from ``first`` among the ``n_shards`` of all processes; some have no rows.

    They are contiguous parts of ``rows``, from ``cuts[i]`` to ``cuts[i + 1]``.
    """

    rows: RowSet
    cuts: Integers
    first: int
    n_shards: int

    @property
    def numbers(self) -> range:
        """The numbers of the shards."""
        return range(self.first, self.first + len(self.cuts) - 1)

    @property
    def parts(self) -> list[RowSet]:
        """The rows of every shard."""
        return [self.rows.select(slice(begin, end)) for begin, end in pairwise(self.cuts)]

    def select(self, is_kept: npt.NDArray[np.bool_]) -> Shards:
        """Keep some rows of every shard."""
        if is_kept.all():
            return self
        cuts = np.concatenate([[0], np.cumsum(is_kept)])[self.cuts]
        return replace(self, rows=self.rows.select(is_kept), cuts=cuts)

    @classmethod
    def of(cls, part: RowSet, group: ProcessGroup, n_shards: int) -> Shards:
        """Distribute rows to shards, where all rows are those of process 0, then those of process 1, and so on.

        Shard s has the rows N·s // S to N·(s + 1) // S, and process r the shards S·r // R to S·(r + 1) // R. Where
        processes have about as many rows each, few have to move.
        """
        counts = np.array(group.gather(len(part.y)))
        starts, n = np.concatenate([[0], np.cumsum(counts)]), int(counts.sum())
        lows = [n * (n_shards * rank // group.size) // n_shards for rank in range(group.size + 1)]
        part = move_rows(part, group, starts, np.array(lows))
        first, last = (n_shards * rank // group.size for rank in (group.rank, group.rank + 1))
        low = lows[group.rank]
        return cls(part, np.array([n * shard // n_shards - low for shard in range(first, last + 1)]), first, n_shards)

    def sample(self, most: int, n_rows: int, seed: int) -> RowSet:
        """Sample about ``most`` of the ``n_rows`` rows of all shards, and return those of the shards here."""
        found = []
        for number, part in zip(self.numbers, self.parts, strict=True):
            n = len(part.y)
            some = n if n_rows <= most else -(-most * n // n_rows)
            chosen = np.random.default_rng([seed, number, 1]).permutation(n)[:some]
            found.append(part.select(np.sort(chosen)))
        return RowSet.concatenate(found)

    def split_off(self, share: float, seed: int) -> tuple[Shards, Shards]:
        """Split off a share of held-out rows, drawn in every shard separately."""
        sizes = zip(self.numbers, np.diff(self.cuts), strict=True)
        drawn = [np.random.default_rng([seed, number]).random(size) < share for number, size in sizes]
        is_held = np.concatenate([np.zeros(0, bool), *drawn])
        return self.select(~is_held), self.select(is_held)


def move_rows(part: RowSet, group: ProcessGroup, starts: npt.NDArray[np.int64], lows: npt.NDArray[np.int64]) -> RowSet:
    """Move rows so that process r, which has starts[r] to starts[r + 1] of all, gets lows[r] to lows[r + 1]."""
    if np.array_equal(starts, lows):
        return part

    def common(mine: npt.NDArray[np.int64], theirs: npt.NDArray[np.int64]) -> list[int]:
        low, high = mine[group.rank], mine[group.rank + 1]
        return [int(max(0, min(high, theirs[r + 1]) - max(low, theirs[r]))) for r in range(group.size)]

    to, come = common(starts, lows), common(lows, starts)
    arrays: tuple[Any, ...] = (part.X, part.y, part.weight)
    return RowSet(*(group.exchange(values, to, come) for values in arrays))


class FeatureStatistics(NamedTuple):
    """Mean, spread and number of rows of a dataset over all processes."""

    n_rows: int
    mean_weight: float
    mean: npt.NDArray[np.float64]
    spread: npt.NDArray[np.float64]
    varies: npt.NDArray[np.bool_]

    @property
    def n_features(self) -> int:
        return len(self.mean)

    def scaling(self, kind: str | None) -> Scaling:
        """Scaling of the features, as ``Scaling.learn`` defines it."""
        return Scaling(*SCALES[kind](self.mean, self.spread, self.varies), self.mean, self.spread)

    @classmethod
    def of(cls, group: ProcessGroup, shards: Shards) -> FeatureStatistics:
        """Compute the statistics in two passes: ranges first, then mean and spread."""
        parts = [part for part in shards.parts if len(part.y)]
        n_rows, weight = group.total([(len(part.y), part.weight.sum()) for part in parts], (2,))
        n = shards.rows.X.shape[1]
        ends = np.full((2, n), -np.inf)
        for part in parts:
            X: Any = part.X
            ends = np.maximum(ends, np.stack([-X.min(axis=0), X.max(axis=0)]).astype(np.float64))
        low, high = group.maximum(ends)
        low = -low
        varies = high - low > MIN_SPREAD
        middle, half = low / 2 + high / 2, np.where(varies, high / 2 - low / 2, 1.0)
        first, second = group.total([_moments(part, middle, half) for part in parts], (2, n)) / weight
        spread = half * np.sqrt(np.maximum(second - first**2, 0.0))
        varies &= spread > MIN_SPREAD
        return cls(int(n_rows), float(weight / n_rows), middle + half * first, spread, varies)


def _moments(part: RowSet, middle: npt.NDArray[np.float64], half: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Σ w u and Σ w u² of the scaled features, without matrix products, whose bits depend on the threads."""
    sums, X = np.zeros((2, len(middle))), cast(Any, part.X)
    for rows in row_blocks(len(part.y), 1024):
        unit = (X[rows] - middle) / half
        weighted = unit * part.weight[rows][:, None]
        sums += weighted.sum(axis=0), (weighted * unit).sum(axis=0)
    return sums


@dataclass(frozen=True, eq=False, kw_only=True)
class ShardedTask(TrainingTask):
    """A training by all processes of a group. ``training`` has no rows; they are in the shards of all processes.

    ``total_rows`` and ``row_weight`` are the number of rows in all processes and their mean weight. ``sample`` are some
    of all rows, the same in every process, on which stumps of regression trees search for a start.
    """

    group: ProcessGroup
    shards: Shards
    validation_shards: Shards | None
    total_rows: int
    row_weight: float
    sample: RowSet | None

    is_small_table: ClassVar[bool] = False

    @property
    def n_rows(self) -> int:
        return self.total_rows

    @property
    def mean_weight(self) -> float:
        return self.row_weight

    @property
    def is_first(self) -> bool:  # type: ignore[override]
        return self.group.is_first

    def compute_once(self, function: Callable[[], Result]) -> Result:
        return self.group.from_first(function)

    def listener(self, on_epoch: EpochCallback | None) -> GroupCallback:
        return GroupCallback(self.group, on_epoch)

    def on(self, device: torch.device, n_jobs: int | None, shifts: Any = None, **options: Any) -> tuple[Any, Any]:
        sample = None if self.sample is None else self.samples(self.sample, device, n_jobs)

        def rows(shards: Shards, sample: Samples | None) -> ShardedRows:
            own = self.samples(shards.rows, device, n_jobs)
            return ShardedRows(self.group, own, shards.cuts, shards.first, shards.n_shards, sample)

        return rows(self.shards, sample), None if self.validation_shards is None else rows(self.validation_shards, None)

    def samples(self, part: RowSet, device: torch.device, n_jobs: int | None) -> Samples:
        """Return some rows on the training device."""
        return scale_samples(part, self, self.mean_weight, device, n_jobs)

    def sum_statistics(self, tree: CrispTree, n_jobs: int | None) -> SufficientStatistics:
        structure, target = tree.structure, self.target
        parts = [part for part in self.shards.parts if len(part.y)]
        found = [sum_statistics(tree, part.X, part.y, part.weight, n_jobs, target) for part in parts]
        leaves = self.group.total([one.leaves for one in found], (structure.n_leaves, target.n_statistics))
        return SufficientStatistics(leaves, self.group.total([one.moments for one in found], (structure.n_splits, 3)))

    def with_ranges(self, tree: SomeTree) -> SomeTree:
        """Return the tree with the smallest and largest values of all rows, and whether they are whole numbers."""
        n = len(tree.statistics.scaling.center)
        # The maximum over all processes of minus the smallest, the largest, and whether some value is not whole.
        mine = np.concatenate([np.full(2 * n, -np.inf), np.zeros(n)])
        for part in self.shards.parts:
            if len(part.y):
                seen = record_ranges(tree, part.X).statistics
                assert seen.lowest is not None
                assert seen.highest is not None
                assert seen.whole is not None
                mine = np.maximum(mine, np.concatenate([-seen.lowest, seen.highest, 1.0 - seen.whole]))
        low, high, broken = self.group.maximum(mine).reshape(3, n)
        ranges = {"lowest": 0.0 - low, "highest": high + 0.0, "whole": (broken == 0).astype(np.uint8)}
        return replace(tree, statistics=replace(tree.statistics, **ranges))


class GroupCallback(StoppableCallback):
    """Call the callback in the first process; if it asks to stop, or fails, all processes do."""

    def __init__(self, group: ProcessGroup, callback: EpochCallback | None) -> None:
        super().__init__(callback)
        self.group = group

    def __call__(self, record: EpochRecord) -> None:
        self.is_stopped = self.group.from_first(lambda: self._goes_on(record)) is False
        if self.is_stopped:
            raise StopTraining(record)

    def _goes_on(self, record: EpochRecord) -> bool:
        try:
            super().__call__(record)
        except StopTraining:
            return False
        return True


class ShardedRows(SummedRows):
    """The rows of all processes, of which this one has some shards, contiguous parts of ``rows``."""

    def __init__(
        self,
        group: ProcessGroup,
        rows: Samples,
        cuts: Integers,
        first: int,
        n_shards: int,
        sample: Samples | None = None,
    ) -> None:
        super().__init__(_part(rows, 0, 0), sample)
        self.group, self.rows, self.cuts, self.first, self.n_shards = group, rows, cuts, first, n_shards
        self.samples = [_part(rows, begin, end) for begin, end in pairwise(cuts)]
        self.n_rows = int(self.group.total([float(len(rows))]))

    def __len__(self) -> int:
        return self.n_rows

    def hard_counts(self, tree: Tree) -> Tensor:
        parts = [samples.hard_counts(tree).double() for samples in self.samples]
        shape = tree.structure.n_leaves, self.target.n_statistics
        return torch.from_numpy(self.group.total(parts, shape))

    @torch.no_grad()
    def sides(self, tree: Tree, leaves: list[int], splits: AbstractSplits | None) -> tuple[Side, Side]:
        n = self.target.n_statistics
        parts = [side_sums(samples, group_leaves(tree, samples, leaves), splits) for samples in self.samples]
        return split_sides(self.group.total(parts, (2, len(leaves), n + 1 + self.n_features)), n)

    def score(self, tree: Tree, tables: Tensor) -> float:
        found = []
        for samples in self.samples:
            weight = float(samples.weight.double().sum())
            found.append((weight * samples.score(tree, tables) if weight else 0.0, weight))
        right, everything = self.group.total(found, (2,))
        return float(right / everything)

    def make_engine(self, state: TrainState, plan: Plan, generator: torch.Generator, *, fresh: bool) -> ShardedEngine:
        if isinstance(state, SummedLevel):
            tree, leaves = state.open.tree, state.open.leaves
            own = [group_leaves(tree, samples, leaves) for samples in self.samples]
        else:
            own = [Groups.everything(len(samples), samples.device) for samples in self.samples]
        own = [replace(groups, rows=groups.rows + int(cut)) for groups, cut in zip(own, self.cuts, strict=False)]
        groups = ShardedGroups.of(own, state.n_stumps, self.n_shards, self.first, self.group)
        return ShardedEngine(state, groups, self.rows, self.parts, plan, self.group, generator, fresh=fresh)

    @cached_property
    def parts(self) -> Parts:
        """The shards here, and the units of gradients by the largest feature values and weight of all rows."""
        n = self.n_features
        largest = np.zeros(n + 1)
        for rows in self.rows.pieces() if len(self.rows) else ():
            values = self.rows.batch(rows).abs().amax(dim=0).double().cpu().numpy()
            largest[:n] = np.maximum(largest[:n], values)
            largest[n] = max(largest[n], float(self.rows.weight[rows].max()))
        largest = self.group.maximum(largest)
        return Parts(self.cuts, gradient_units(largest[:n], float(largest[n])), self.n_shards)


def _part(samples: Samples, begin: int, end: int) -> Samples:
    """Contiguous rows as a view."""
    some, rows = slice(begin, end), samples.rows
    if isinstance(rows, UnscaledRows):
        part: ArrayRows | UnscaledRows = UnscaledRows(rows.values[some], rows.scaling)
    else:
        assert isinstance(rows, ArrayRows)
        part = ArrayRows(rows.values[some])
    return replace(samples, rows=part, y=samples.y[some], weight=samples.weight[some])


def gradient_units(largest: Doubles, heaviest: float) -> Doubles:
    """Return the unit of the gradient of every weight, and of the bias, for γ from 1 to 2.  (n_features + 1,)

    A row adds at most γ x w to a gradient, where w is its weight relative to the mean of its batch, so that the sum of
    a batch is at most γ max|x| times the largest relative weight. Units leave room for 2¹⁰ times as much.
    """
    bounds = np.append(largest, 1.0) * max(heaviest, 1.0)
    _, exponent = np.frexp(bounds)
    return np.where(bounds > 0, np.ldexp(1.0, np.maximum(exponent - GRADIENT_BITS, -1000)), 1.0)


class ShardedGroups:
    """The rows of every group in the shards of this process, and the ``sizes`` (n_shards, n_groups) in all shards.

    A group may have no rows in a shard. ``own`` are numbers of this process's rows, by shard; ``first`` is the number
    of its first shard.
    """

    def __init__(self, own: list[Groups], sizes: Integers, first: int) -> None:
        self.own, self.sizes, self.first = own, sizes, first
        self.all = Groups(torch.zeros(0, dtype=torch.long), torch.from_numpy(sizes.sum(axis=0)))

    @classmethod
    def of(cls, own: list[Groups], n_groups: int, n_shards: int, first: int, group: ProcessGroup) -> ShardedGroups:
        """Gather the sizes of the groups of all processes."""
        sizes = np.zeros((n_shards, n_groups), dtype=np.int64)
        for number, groups in enumerate(own, start=first):
            sizes[number] = groups.host_sizes
        group.reduce(torch.from_numpy(sizes))
        return cls(own, sizes, first)

    def ranges(self, active: Integers, batch: Integers, n_batches: Integers) -> tuple[Integers, Integers]:
        """Return where a batch of every active group begins and ends among its rows in every shard.  Two (n_shards, a)

        The remainder of a division goes to another batch in every shard, so that batches are of one size.
        """
        sizes, n_shards = self.sizes[:, active], len(self.sizes)
        offset = np.arange(n_shards)[:, None] * n_batches // n_shards
        return (batch * sizes + offset) // n_batches, ((batch + 1) * sizes + offset) // n_batches

    def mean_weight(self, samples: Samples, group: ProcessGroup) -> Doubles:
        """Mean weight of every group's rows in all shards.  (n_groups,)"""
        n_groups = self.sizes.shape[1]
        none = torch.zeros(n_groups, dtype=torch.float64, device=samples.device)
        weights = [none.index_add(0, own.group, samples.weight[own.rows].double()) for own in self.own]
        return group.total(weights, (n_groups,)) / self.sizes.sum(axis=0)

    def steps(self, plan: Plan, mean_weight: Doubles) -> list[PartStep]:
        """Return the steps of every epoch, whose positions are those of ``order``."""
        share, here = 1 / self.all.passes(plan), slice(self.first, self.first + len(self.own))
        n_rows = np.cumsum([0, *(len(own.rows) for own in self.own)])
        starts = [np.cumsum(own.host_sizes) - own.host_sizes + n for own, n in zip(self.own, n_rows, strict=False)]
        begins = np.array(starts, dtype=np.int64).reshape(-1, self.sizes.shape[1])
        steps = []
        for active, batch, n_batches in self.all.iter_steps(plan):
            begin, end = self.ranges(active, batch, n_batches)
            lengths = end - begin
            in_loss = 1 / (mean_weight[active] * np.maximum(lengths.sum(axis=0), 1))
            place, part = np.nonzero(lengths[here].T)
            group, first = active[place], begin[here][part, place]
            start = begins[part, group] + first
            update = Update(group * max(len(self.own), 1) + part, start, start + lengths[here][part, place])
            moves = None if len(active) == self.sizes.shape[1] else torch.from_numpy(active)
            steps.append(PartStep(update, in_loss[place], share[group], moves, int(lengths.max())))
        return steps

    def order(self, plan: Plan, seed: int, device: torch.device) -> Tensor:
        """Return the rows of every shard, group after group, each group's in an order of the seed and the shard."""
        rows = torch.cat([torch.zeros(0, dtype=torch.long, device=device), *(own.rows for own in self.own)])
        if self.all.n_batches(plan).max() == 1 or not len(rows):
            return rows  # one batch holds them all: their order means nothing
        n_groups, keys = self.sizes.shape[1], []
        for place, own in enumerate(self.own):
            number = self.first + place
            if device.type == "cpu":
                random = torch.from_numpy(np.random.default_rng([seed, number]).random(len(own.rows)))
            else:
                state = int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0] >> np.uint64(1))
                generator = torch.Generator(device).manual_seed(state)
                random = torch.rand(len(own.rows), dtype=torch.float64, device=device, generator=generator)
            keys.append(random + own.group + place * n_groups)
        key = torch.cat(keys)
        if device.type == "cpu":
            return rows[torch.from_numpy(np.argsort(key.numpy()))]  # several times faster than torch's sort
        return rows[torch.argsort(key)]


class ShardedEngine:
    """Training steps whose gradients are the sum over all shards."""

    def __init__(
        self,
        state: Any,
        groups: ShardedGroups,
        samples: Samples,
        parts: Parts,
        plan: Plan,
        group: ProcessGroup,
        generator: torch.Generator,
        *,
        fresh: bool,
    ) -> None:
        self.state, self.groups, self.plan, self.group, self.generator = state, groups, plan, group, generator
        self.device, self.shape = samples.device, (len(state.leaves), state.n_stumps * samples.target.n_statistics)
        self.steps = groups.steps(plan, groups.mean_weight(samples, group))
        kind = next(kind for kind in PART_SUMS if kind.supports(state, samples, plan))
        self.engine = kind(state, samples, plan, parts, self.steps, fresh=fresh)

    def optimizer_state(self) -> dict[str, Tensor]:
        return self.engine.optimizer_state()

    def epoch(self, settings: EpochSettings, order: Tensor) -> EpochResult:
        """Take all steps; the order of the rows is drawn here."""
        seed, engine = int(torch.randint(2**62, (), generator=self.generator)), self.engine
        engine.begin_parts(settings, self.groups.order(self.plan, seed, self.device))
        engine.run(self._take_steps, is_local=not self.group.communicates)
        if not engine.is_in_bounds():
            raise DivergenceError(
                "gradients must stay within 2^10 times the largest value of their feature (steepness "
                f"{settings.steepness:g}), and be numbers; some did not. Lower learning_rate, steepness_step or the "
                "weights of heavy rows, or train with scale='feature'."
            )
        counts, likelihoods = engine.part_results()
        total = self.group.total(list(counts), self.shape)
        log_likelihood, weight = self.group.total(list(likelihoods), (2,))
        result = torch.from_numpy(total).to(self.state.leaves)
        return EpochResult(result, float(-log_likelihood / weight), all_finite(self.state.splits))

    def _take_steps(self) -> None:
        for number, step in enumerate(self.steps):
            if len(step.update.active):
                self.engine.add(number)
            self.group.reduce_rows(self.engine.sums, None if self.state.is_whole_tree else step.moves)
            self.engine.move()
