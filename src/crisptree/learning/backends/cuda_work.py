"""What an epoch on CUDA launches, and the memory it works in: for a batch of stumps, and for a whole tree."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from crisptree.data.rows import ArrayRows
from crisptree.equations.noise import SLOPE
from crisptree.learning.backends.base import Trainee, Weighing, penalty_shares
from crisptree.learning.backends.cuda_leaves import LEAVES
from crisptree.learning.plan import Pace, Plan
from crisptree.learning.samples import ROWS_AT_ONCE, Samples

kernels: Any
updates: Any
try:
    kernels, updates = (
        import_module(f"crisptree.learning.backends.{name}") for name in ("cuda_kernels", "cuda_updates")
    )
except ImportError:  # Triton comes with torch on the systems that have CUDA
    kernels = updates = None

VALUES_AT_ONCE = 2**26
"""A batch goes through a tree in pieces of about this many values."""


class Work(ABC):
    """Memory that stays in one place, so that a recorded graph finds it, and the launches of an epoch."""

    n_launches: int
    gradient: Tensor
    bias_gradient: Tensor
    log_likelihood: Tensor

    def __init__(self, trainee: Trainee, samples: Samples, plan: Plan, fresh: bool) -> None:
        self.samples, self.plan, self.fresh = samples, plan, fresh
        self.device, self.dtype = samples.device, samples.rows.dtype
        weight, bias = (trainee.splits.parameters[name].detach() for name in ("weight", "bias"))
        self.n_splits, self.n_features = weight.shape
        copies = 1 if fresh else 2
        self.both_weights = weight.repeat(copies, 1, 1)  # now, and before the epoch
        self.both_biases = bias.repeat(copies, 1)
        self.weight, self.bias = self.both_weights[0], self.both_biases[0]
        self.before_weight, self.before_bias = self.both_weights[-1], self.both_biases[-1]
        # The trainee's own parameters are these from now on, so that nothing needs copying after an epoch.
        trainee.splits.parameters["weight"].data, trainee.splits.parameters["bias"].data = self.weight, self.bias
        self.adam = [torch.zeros_like(part) for part in (weight, weight, bias, bias)]
        self.steps = torch.zeros(self.n_splits, dtype=torch.int32, device=self.device)
        self.moving = torch.ones_like(self.steps)
        n_taken = int(trainee.groups.taken(plan).sum())
        self.leaves = LEAVES[type(samples.target)](trainee, samples)
        y = self.leaves.y
        self.rows: Tensor
        self.reads_in_place = isinstance(samples.rows, ArrayRows)
        if isinstance(samples.rows, ArrayRows):
            self.rows, self.y, self.row_weights = samples.rows.values, y, samples.weight
            self.order = trainee.groups.rows.new_empty(n_taken)
        else:  # the kernels read an array: the rows of an epoch are copied, in its order
            self.rows = self.empty(n_taken, self.n_features)
            self.y, self.row_weights = y.new_empty(n_taken, *y.shape[1:]), samples.weight.new_empty(n_taken)
            self.order = torch.arange(n_taken, device=self.device)
        numbers = (*plan.pace(0), plan.l1, plan.l2, plan.roughness, plan.mass_threshold, SLOPE * plan.input_noise**2)
        self.settings = torch.tensor(numbers, dtype=self.dtype, device=self.device)
        self.shares = penalty_shares(trainee, plan).to(self.settings)
        self.steepness, self.before_steepness = self.empty(self.n_splits), self.empty(self.n_splits)
        self.pull = torch.zeros_like(self.steepness)
        self.width = samples.target.n_statistics
        self.block = 1 << (self.width - 1).bit_length()
        self.counts = trainee.leaves.new_zeros(len(trainee.leaves), trainee.n_places * self.width)
        self.found = torch.zeros(2, dtype=torch.float64, device=self.device)
        self.given = torch.empty_like(trainee.leaves)
        self.tables = torch.empty_like(self.leaves.tables(trainee.leaves))
        weighing = Weighing(samples, trainee.groups, plan)
        self.schedule = [(update, *weighing(update)) for update in trainee.groups.schedule(plan)]
        self.zeros = trainee.zeros
        self.blocks = -(-self.n_features // kernels.FEATURES_AT_ONCE)

    def begin(self, pace: Pace, order: Tensor, leaves: Tensor) -> None:
        self.settings[: len(pace)] = torch.tensor(pace, dtype=self.dtype, device=self.device)
        self.steepness.fill_(pace.steepness)
        self.before_steepness.fill_(pace.steepness)
        self.given.copy_(leaves)
        if self.reads_in_place:
            self.order.copy_(order)
            return
        for copies, some in zip(self.rows.split(ROWS_AT_ONCE), order.split(ROWS_AT_ONCE), strict=True):
            copies.copy_(self.samples.batch(some))
        self.y.copy_(self.leaves.y[order])
        self.row_weights.copy_(self.samples.weight[order])

    def remember(self) -> None:
        """Responsibilities of this epoch come from the parameters as they are now, and from the tables given."""
        self.tables.copy_(self.leaves.tables(self.given))
        if not self.fresh:
            self.before_weight.copy_(self.weight)
            self.before_bias.copy_(self.bias)
            self.damp(self.before_steepness)

    def damp(self, steepness: Tensor) -> None:
        """The steepness of every split as it is now, under noise on the inputs."""
        if self.plan.input_noise:
            features = kernels.FEATURES_AT_ONCE
            updates.damp[(self.n_splits,)](self.weight, self.settings, steepness, self.n_features, FEATURES=features)

    def move(
        self, number: int, splits: Tensor, slots: Tensor, first_split: int, first_slot: int, slots_at_once: int
    ) -> None:
        """Penalties and Adam for ``number`` splits, each with the gradients in its slots."""
        grid = (number, self.blocks)
        where = (splits, slots, self.settings, self.shares, first_split, first_slot)
        if self.plan.input_noise:
            updates.noise_pull[(number,)](
                self.gradient,
                self.bias_gradient,
                self.weight,
                self.bias,
                self.steepness,
                self.pull,
                splits,
                slots,
                self.settings,
                first_split,
                first_slot,
                self.n_features,
                FEATURES=kernels.FEATURES_AT_ONCE,
            )
        if self.plan.roughness and self.plan.image_shape is not None:
            height, width = self.plan.image_shape[:2]
            line = self.n_features // height
            image = (height, line, line // width)
            updates.add_roughness[grid](
                self.gradient, self.weight, *where, *image, self.n_features, FEATURES=kernels.FEATURES_AT_ONCE
            )
        updates.adam[grid](
            self.weight,
            self.bias,
            *self.adam,
            self.steps,
            self.moving,
            self.gradient,
            self.bias_gradient,
            self.pull,
            *where,
            self.n_features,
            FEATURES=kernels.FEATURES_AT_ONCE,
            TASKS=slots_at_once,
        )

    @abstractmethod
    def launch(self) -> None:
        """All steps of one epoch, in order."""

    def empty(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        return torch.empty(shape, dtype=dtype or self.dtype, device=self.device)

    def numbers(self, values: Any, dtype: torch.dtype | None = None) -> Tensor:
        return torch.as_tensor(np.asarray(values), dtype=dtype, device=self.device)


class StumpWork(Work):
    """A task is a few rows of one stump; the tasks of a step run side by side."""

    def __init__(self, trainee: Trainee, samples: Samples, plan: Plan, fresh: bool) -> None:
        super().__init__(trainee, samples, plan, fresh)
        groups, begins, rows, firsts, in_loss, in_counts, self.layout, slots = [], [], [], [], [], [], [], []
        n_tasks = n_active = 0
        for update, loss, share in self.schedule:
            number = -(-update.lengths // kernels.ROWS_PER_TASK)
            start = np.cumsum(number) - number
            within = np.arange(number.sum()) - np.repeat(start, number)
            groups.append(np.repeat(update.active, number))
            begins.append(np.repeat(update.begin, number) + within * kernels.ROWS_PER_TASK)
            rows.append(np.minimum(np.repeat(update.end, number) - begins[-1], kernels.ROWS_PER_TASK))
            firsts.append(within == 0)
            in_loss.append(np.repeat(loss, number))
            in_counts.append(np.repeat(share, number))
            slots.append(np.append(start, number.sum()))
            # of each step: its first task, how many tasks and groups it has, where its groups and slots are listed
            self.layout.append((n_tasks, len(groups[-1]), len(number), n_active, n_active + len(slots) - 1))
            n_tasks, n_active = n_tasks + len(groups[-1]), n_active + len(number)
        group = np.concatenate(groups)
        self.tasks = (
            self.numbers(group),
            self.numbers(np.concatenate(begins)),
            self.numbers(np.concatenate(rows)),
            self.numbers(np.concatenate(firsts), torch.int32),
            self.numbers(np.concatenate(in_loss), self.dtype),
            self.numbers(np.concatenate(in_counts), self.dtype),
        )
        self.active = self.numbers(np.concatenate([update.active for update, *_ in self.schedule]))
        self.slots = self.numbers(np.concatenate(slots))
        self.by_group = self.numbers(np.argsort(group, kind="stable"))
        self.group_start = self.numbers(np.append(0, np.cumsum(np.bincount(group, minlength=self.n_splits))))
        most = max(number for _, number, *_ in self.layout)
        self.gradient, self.bias_gradient = self.empty(most, self.n_features), self.empty(most)
        self.task_counts = self.empty(n_tasks, 2, self.width)
        self.log_likelihood = self.empty(n_tasks)
        self.n_launches = 4 * len(self.layout)
        self.row_block = min(kernels.FEATURES_OF_ROWS, 1 << max(4, (self.n_features - 1).bit_length()))

    def launch(self) -> None:
        self.remember()
        n_cells = self.n_splits * self.width
        for first_task, n_tasks, n_active, first_active, first_slot in self.layout:
            self.damp(self.steepness)
            kernels.stump_tasks[(n_tasks,)](
                self.rows,
                self.y,
                self.row_weights,
                self.order,
                self.weight,
                self.bias,
                self.before_weight,
                self.before_bias,
                self.tables,
                self.steepness,
                self.steepness if self.fresh else self.before_steepness,
                *self.tasks,
                self.steps,
                self.gradient,
                self.bias_gradient,
                self.task_counts,
                self.log_likelihood,
                first_task,
                self.n_features,
                self.width,
                n_cells,
                OUTPUTS=self.leaves.n_outputs,
                WIDTH=self.block,
                ROWS=kernels.ROWS_PER_TASK,
                FEATURES=self.row_block,
                num_warps=8,
            )
            self.move(n_active, self.active, self.slots, first_active, first_slot, kernels.TASKS_AT_ONCE)
            if self.zeros is not None:
                self.weight.masked_fill_(self.zeros, 0.0)
        kernels.stump_counts[(self.n_splits, 2)](
            self.task_counts,
            self.by_group,
            self.group_start,
            self.counts,
            self.width,
            n_cells,
            WIDTH=self.block,
            TASKS=kernels.TASKS_AT_ONCE,
        )


class TreeWork(Work):
    """Products with all splits by the device's own library; one kernel routes the rows through the tree."""

    def __init__(self, trainee: Trainee, samples: Samples, plan: Plan, fresh: bool) -> None:
        super().__init__(trainee, samples, plan, fresh)
        structure = trainee.structure
        self.n_leaves = structure.n_leaves
        self.level_start = self.numbers(np.cumsum([0, *(len(level) for level in structure.levels)]), torch.int32)
        self.level_splits = self.numbers(np.concatenate(structure.levels), torch.int64)
        self.n_levels = len(structure.levels)
        self.left, self.right = (
            self.numbers(nodes, torch.int64) for nodes in (structure.left_nodes, structure.right_nodes)
        )
        self.in_loss, self.in_counts = (
            self.numbers(np.concatenate([line[place] for line in self.schedule]), self.dtype) for place in (1, 2)
        )
        longest = max(int(update.lengths[0]) for update, *_ in self.schedule)
        self.piece = max(1, min(longest, VALUES_AT_ONCE // max(self.n_features, 2 * self.n_splits + 1, self.width)))
        self.x = self.empty(self.piece, self.n_features)
        self.scores = self.empty(self.piece, len(self.both_weights) * self.n_splits)
        self.nodes = self.empty(self.piece, self.n_splits + self.n_leaves)
        self.residual = self.empty(self.piece, self.n_splits)
        self.adds = self.empty(self.piece, self.width)
        self.gradient, self.bias_gradient = torch.empty_like(self.weight), torch.empty_like(self.bias)
        self.log_likelihood = self.empty(len(self.order))
        self.every_split = self.numbers(np.arange(self.n_splits + 1))
        self.n_launches = 14 * len(list(self._pieces()))

    def launch(self) -> None:
        self.remember()
        self.counts.zero_()
        self.log_likelihood.zero_()
        products = self.both_weights.reshape(-1, self.n_features).T
        for step, begin, end, is_first, is_last in self._pieces():
            rows = end - begin
            x, scores, residual = self.x[:rows], self.scores[:rows], self.residual[:rows]
            torch.index_select(self.rows, 0, self.order[begin:end], out=x)
            torch.mm(x, products, out=scores)
            if is_first:
                self.damp(self.steepness)
                self.moving.zero_()
                self.gradient.zero_()
                self.bias_gradient.zero_()
            self._route(step, begin, rows)
            self.gradient.addmm_(residual.T, x)
            self.bias_gradient.add_(residual.sum(dim=0))
            self.counts.addmm_(self.nodes[:rows, self.n_splits :].T, self.adds[:rows])
            if is_last:
                self.steps.add_(self.moving)
                self.move(self.n_splits, self.every_split, self.every_split, 0, 0, 1)
                if self.zeros is not None:
                    self.weight.masked_fill_(self.zeros, 0.0)

    def _pieces(self) -> Iterator[tuple[int, int, int, bool, bool]]:
        """Of every piece of a batch: the step, its begin and end, whether it is the step's first and its last."""
        for step, (update, *_) in enumerate(self.schedule):
            begin, end = int(update.begin[0]), int(update.end[0])
            for place in range(begin, end, self.piece):
                stop = min(place + self.piece, end)
                yield step, place, stop, place == begin, stop == end

    def _route(self, step: int, begin: int, rows: int) -> None:
        kernels.route[(rows,)](
            self.scores,
            self.bias,
            self.before_bias,
            self.order,
            self.y,
            self.row_weights,
            self.tables,
            self.settings,
            self.steepness,
            self.steepness if self.fresh else self.before_steepness,
            self.in_loss,
            self.in_counts,
            self.level_start,
            self.level_splits,
            self.left,
            self.right,
            self.nodes,
            self.residual,
            self.adds,
            self.log_likelihood,
            self.moving,
            begin,
            step,
            0 if self.fresh else self.n_splits,
            self.scores.shape[1],
            self.n_splits,
            self.n_leaves,
            self.n_levels,
            self.width,
            OUTPUTS=self.leaves.n_outputs,
            WIDTH=self.block,
            NODES=kernels.NODES_AT_ONCE,
        )
