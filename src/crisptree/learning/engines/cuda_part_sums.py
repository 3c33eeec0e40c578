"""The CUDA engine for process groups: gradients of parts of the rows, added up in units before the splits move."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crisptree.learning.engines.base import Parts, PartStep
from crisptree.learning.engines.cuda_build import build_kernels, kernels
from crisptree.learning.engines.cuda_engine import (
    MAX_LAUNCHES,
    CudaEngine,
    CudaWorkspace,
    StumpWorkspace,
    TreeWorkspace,
)
from crisptree.learning.engines.cuda_graphs import capture_graph, launching, on_device
from crisptree.learning.engines.torch_engine import OUT_OF_BOUNDS, scaled_units
from crisptree.learning.options import EpochSettings, Plan
from crisptree.learning.samples import Samples


class PartWorkspace(CudaWorkspace):
    """Gradients of parts of the rows, which are added up in units before the splits move."""

    sums_in_units = True
    likelihood_part: Any
    part_counts: Tensor

    def set_parts(self, parts: Parts) -> None:
        """Allocate memory for sums over parts."""
        self.gradient, self.bias_gradient = self.weight, self.bias  # not used: ``sums`` are
        self.sums = torch.zeros(self.n_splits, self.n_features + 2, dtype=torch.int64, device=self.device)
        self.number = torch.zeros((), dtype=torch.int64, device=self.device)
        self.units = self.numbers(parts.units)
        self.scaled_units = torch.empty_like(self.units)

    def begin_parts(self, steepness: float) -> None:
        self.remember()
        self.scaled_units.copy_(scaled_units(self.units, steepness))
        self.number.zero_()

    @abstractmethod
    def add(self, step: int) -> None:
        """Add the gradients of a step to ``sums``."""

    @abstractmethod
    def counts_by_part(self) -> Tensor:
        """Sum the leaf counts of the epoch.  (n_parts, n_leaves, …)"""

    def add_in_units(
        self,
        gradient: Tensor,
        bias_gradient: Tensor,
        n_splits: int,
        tables: tuple[Tensor, Tensor, Tensor],
        first: int = 0,
        n_parts: int = 0,
    ) -> None:
        """Add gradients of tasks, whose splits and ranges stand in tables, or of parts of a tree, to ``sums``."""
        kernels.add_in_units[(n_splits, -(-(self.n_features + 1) // kernels.FEATURES_AT_ONCE))](
            gradient,
            bias_gradient,
            self.moving,
            self.sums,
            self.scaled_units,
            *tables,
            first,
            n_parts,
            self.n_features,
            IS_TREE=n_parts > 0,
            FEATURES=kernels.FEATURES_AT_ONCE,
            TASKS=kernels.PARTS_AT_ONCE,
        )


class PartStumpWorkspace(StumpWorkspace, PartWorkspace):
    """Tasks whose rows are of one stump and one part."""

    def __init__(
        self, state: Any, samples: Samples, plan: Plan, fresh: bool, parts: Parts, steps: list[PartStep]
    ) -> None:
        self.n_parts = max(len(parts), 1)
        super().__init__(state, samples, plan, fresh, steps)
        self.set_parts(parts)
        self.tasks[3].zero_()  # what is first in its step: here ``move_sums`` counts steps
        self.likelihood_part = self.task_part
        self.part_counts = self.counts.new_zeros(2, self.n_splits * self.n_parts * self.width)
        # Of every split of a step the range of its tasks: those of its parts follow each other.
        tables: list[list[np.ndarray[Any, Any]]] = [[], [], []]
        self.step_splits = []
        for (update, *_), (_, n_tasks, *_) in zip(self.schedule, self.layout, strict=True):
            number = -(-update.lengths // kernels.ROWS_PER_TASK)
            groups, cells = np.unique(update.active // self.n_parts, return_index=True)
            start = (np.cumsum(number) - number)[cells]
            self.step_splits.append((sum(map(len, tables[0])), len(groups)))
            for table, values in zip(tables, (groups, start, np.append(start, n_tasks)[1:]), strict=True):
                table.append(values)
        splits, starts, ends = (self.numbers(np.concatenate(table), torch.long) for table in tables)
        self.step_tables = splits, starts, ends

    def add(self, step: int) -> None:
        self.launch_tasks(*self.layout[step][:2])
        first, number = self.step_splits[step]
        self.add_in_units(self.task_gradient, self.task_bias_gradient, number, self.step_tables, first)

    def counts_by_part(self) -> Tensor:
        if len(self.log_likelihood):
            self.launch_counts(self.part_counts)
        return self.part_counts.reshape(2, self.n_splits, self.n_parts, -1).permute(2, 0, 1, 3).flatten(2)


class PartTreeWorkspace(TreeWorkspace, PartWorkspace):
    """Products of every part by itself, all of one shape: what a part adds does not depend on the others."""

    multiple = 1

    def __init__(
        self, state: Any, samples: Samples, plan: Plan, fresh: bool, parts: Parts, steps: list[PartStep]
    ) -> None:
        self.n_parts = max(len(parts), 1)
        super().__init__(state, samples, plan, fresh, steps)
        self.set_parts(parts)
        lanes_at_once = max(1, self.most_rows // parts.n_shards)
        positions, present, part = [np.zeros(0, np.int64)], [np.zeros(0, bool)], [np.zeros(0, np.int64)]
        self.pieces: list[list[tuple[int, int, Tensor]]] = []
        n_positions = piece = 0
        for update, _, _, _, longest in steps:
            pieces, own = [], self.numbers(update.active)
            for first in range(0, longest if len(own) else 0, lanes_at_once):
                lanes = np.arange(first, min(first + lanes_at_once, longest))
                last = update.lengths[:, None] - 1  # a part with fewer rows repeats its last one, without weight
                positions.append((update.begin[:, None] + np.minimum(lanes, last)).ravel())
                present.append((lanes <= last).ravel())
                part.append(np.repeat(update.active, len(lanes)))
                piece = max(piece, len(positions[-1]))
                pieces.append((n_positions, n_positions + len(positions[-1]), own))
                n_positions += len(positions[-1])
            self.pieces.append(pieces)
        self.positions, self.present = self.numbers(np.concatenate(positions)), self.numbers(np.concatenate(present))
        self.likelihood_part = np.concatenate(part)
        self.part_counts = self.counts.new_zeros(self.n_parts, *self.counts.shape)
        self.places, self.order = torch.empty_like(self.positions), torch.arange(n_positions, device=self.device)
        y = self.leaves.y
        self.y, self.row_weights = y.new_empty(n_positions, *y.shape[1:]), self.empty(n_positions)
        self.allocate(max(piece, 1), n_positions)

    @staticmethod
    def copies(n_values: int) -> bool:
        return False

    def begin(self, settings: EpochSettings, order: Tensor, leaves: Tensor) -> None:
        self.places.copy_(order[self.positions])
        super().begin(settings, self.order, leaves)
        self.y.copy_(self.leaves.y[self.places])
        self.row_weights.copy_(self.samples.weight[self.places] * self.present)
        self.part_counts.zero_()
        self.log_likelihood.zero_()

    def add(self, step: int) -> None:
        for begin, end, part in self.pieces[step]:
            rows, shape = end - begin, (len(part), (end - begin) // len(part), -1)
            torch.index_select(self.rows, 0, self.places[begin:end], out=self.x[:rows])
            x = self.x[:rows].view(shape)
            torch.bmm(x, self.products.expand(len(part), -1, -1), out=self.scores[:rows].view(shape))
            self._route(step, begin, rows)
            residual = self.residual[:rows].view(shape)
            unused = part, part, part
            self.add_in_units(residual.mT @ x, residual.sum(dim=1), self.n_splits, unused, n_parts=len(part))
            h = self.nodes[:rows, self.n_slots :].view(shape)
            self.part_counts.index_add_(0, part, h.mT @ self.adds[:rows].view(shape))

    def counts_by_part(self) -> Tensor:
        return self.part_counts


LAUNCHES_PER_STEP = 40
MOVE = -1
"""Number of the graph that moves the splits, beside those of the steps."""


class CudaPartSums(CudaEngine):
    """The same kernels with gradients of parts of the rows, which are added up before the splits move."""

    workspace: PartWorkspace

    def __init__(
        self, state: Any, samples: Samples, plan: Plan, parts: Parts, steps: list[PartStep], *, fresh: bool
    ) -> None:
        self.state, self.samples, self.plan, self.parts, self.part_steps = state, samples, plan, parts, steps
        kind = PartTreeWorkspace if state.is_whole_tree else PartStumpWorkspace
        self.workspace = kind(state, samples, plan, fresh, parts, steps)
        build_kernels(self.workspace.kernel_key)
        self.sums, self.n_epochs, self.graph = self.workspace.sums, 0, None
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}
        self.weights: Any = None

    def begin_parts(self, settings: EpochSettings, order: Tensor) -> None:
        with torch.no_grad(), on_device(self.samples.device):
            if self.weights is None:
                part = np.searchsorted(self.parts.cuts, order.cpu().numpy(), side="right") - 1
                weight = self.samples.weight[order].double().cpu().numpy()
                self.weights = np.bincount(part, weights=weight, minlength=self.workspace.n_parts)
            self.workspace.begin(settings, order, self.state.leaves)
            self.workspace.begin_parts(settings.steepness)
            self.n_epochs += 1

    def run(self, take_steps: Callable[[], None], *, is_local: bool) -> None:
        with torch.no_grad(), on_device(self.samples.device):
            n_launches = LAUNCHES_PER_STEP * len(self.part_steps)
            is_short = self.samples.device.type == "cuda" and n_launches <= MAX_LAUNCHES
            if is_short and self.n_epochs == 2 and self.plan.epochs > 2:  # the first epoch has compiled the kernels
                if is_local:
                    self.graph = capture_graph(take_steps)
                else:
                    self._record_steps()
            if self.graph is not None:
                self.graph.replay()
            elif self.graphs:
                take_steps()
            else:
                with launching:
                    take_steps()

    def _record_steps(self) -> None:
        """Capture every step as two graphs, between which processes communicate."""
        self.graphs[MOVE] = capture_graph(self.workspace.move_splits)
        pool = self.graphs[MOVE].pool()  # graphs that never run at the same time share their memory
        for number, step in enumerate(self.part_steps):
            if len(step.update.active):
                self.graphs[number] = capture_graph(partial(self.workspace.add, number), pool)

    def add(self, step: int) -> None:
        self._run(step, partial(self.workspace.add, step))

    def move(self) -> None:
        self._run(MOVE, self.workspace.move_splits)

    def _run(self, graph: int, launch: Callable[[], None]) -> None:
        if graph in self.graphs:
            self.graphs[graph].replay()
        else:
            launch()

    def is_in_bounds(self) -> bool:
        return int(self.workspace.number) < OUT_OF_BOUNDS

    def part_results(self) -> tuple[Any, Any]:
        workspace = self.workspace
        with on_device(self.samples.device):
            counts = workspace.counts_by_part().double().cpu().numpy()
        likelihood = workspace.log_likelihood.double().cpu().numpy()
        found = np.bincount(workspace.likelihood_part, weights=likelihood, minlength=workspace.n_parts)
        return counts, np.stack([found, self.weights], axis=1)
