"""The CUDA engine: a few fused kernels per step, an epoch recorded once as a graph and then replayed.

``TorchEngine`` is the definition. There hundreds of small launches make a step; here an epoch is one launch. A
tree is dense on this device: products of a batch with all splits are quicker there than finding the few that matter.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from crisptree.data.rows import ArrayRows
from crisptree.equations.annealing import SLOPE
from crisptree.equations.leaves import LOG_TWO_PI
from crisptree.learning.engines.base import (
    LossWeights,
    PartStep,
    PendingEpoch,
    TrainState,
    penalty_shares,
)
from crisptree.learning.engines.cuda_build import (
    CONSTANTS,
    KernelKey,
    block_of,
    build_kernels,
    kernels,
    overlap_options,
    row_block_of,
    tasks_per_count,
    triton_works,
)
from crisptree.learning.engines.cuda_graphs import beside, capture_graph, launching, on_device, rejoin
from crisptree.learning.options import EpochSettings, Plan
from crisptree.learning.samples import ROWS_AT_ONCE, Samples
from crisptree.splits import ObliqueSplits
from crisptree.targets import Classes, Gaussians, Target


class CudaLeaves(Protocol):
    """The leaves of a state; ``n_outputs`` is 0 for classes, and selects the code of the kernels."""

    n_outputs: int
    y: Tensor

    def __init__(self, state: TrainState, samples: Samples) -> None: ...

    def tables(self, leaves: Tensor) -> Tensor:
        """Leaf tables in the layout of the kernels."""


class CudaClasses:
    """Distributions over classes; for a tree their logarithms."""

    n_outputs = 0

    def __init__(self, state: TrainState, samples: Samples) -> None:
        self.y, self.is_whole_tree = samples.y, state.is_whole_tree

    def tables(self, leaves: Tensor) -> Tensor:
        return leaves.log() if self.is_whole_tree else leaves


class CudaGaussians:
    """Normal distributions of regression leaves: m, 1 / 2v and the log of the highest density.

    Those of a stump follow each other; those of a tree stand leaf beside leaf, as the lanes of a kernel read them.
    """

    def __init__(self, state: TrainState, samples: Samples) -> None:
        self.y, self.is_whole_tree = samples.y.to(samples.rows.dtype).contiguous(), state.is_whole_tree
        self.n_outputs = self.y.shape[1]

    def tables(self, leaves: Tensor) -> Tensor:
        mean, variance = leaves.double().reshape(len(leaves), -1, 2, self.n_outputs).unbind(dim=2)
        peaks = -0.5 * (variance.log() + LOG_TWO_PI).sum(dim=-1, keepdim=True)
        forms = torch.cat([mean, 0.5 / variance, peaks], dim=-1).to(leaves.dtype)
        return forms[:, 0].T.contiguous() if self.is_whole_tree else forms.reshape(len(leaves), -1)


LEAVES: dict[type[Target], type[CudaLeaves]] = {Classes: CudaClasses, Gaussians: CudaGaussians}
"""By the exact class of the target; subclasses may differ."""


PIECES_PER_COUNT = 16
"""Pieces of an epoch whose leaf counts are summed by one product: those of a single one take as long as a step."""

VALUES_AT_ONCE = 2**26
"""A batch goes through a tree in pieces of about this many values."""


class CudaWorkspace(ABC):
    """Memory at fixed addresses, which CUDA graphs need, and the launches of an epoch."""

    n_launches: int
    gradient: Tensor
    bias_gradient: Tensor
    log_likelihood: Tensor

    n_parts = 1
    sums_in_units = False
    multiple = 1
    """Of how many splits products are taken: a multiple of this number, of which the last ones may be zero."""

    def __init__(
        self, state: TrainState, samples: Samples, plan: Plan, fresh: bool, steps: Sequence[PartStep] | None = None
    ) -> None:
        self.samples, self.plan, self.fresh = samples, plan, fresh
        self.device, self.dtype = samples.device, samples.rows.dtype
        weight, bias = (state.splits.parameters[name].detach() for name in ("weight", "bias"))
        self.n_splits, self.n_features = weight.shape
        copies = 1 if fresh else 2
        self.n_slots = -(-self.n_splits // self.multiple) * self.multiple
        self.both_weights = weight.new_zeros(copies, self.n_slots, self.n_features)  # now, and before the epoch
        self.both_weights[:, : self.n_splits] = weight
        self.both_biases = bias.repeat(copies, 1)
        self.weight, self.bias = self.both_weights[0, : self.n_splits], self.both_biases[0]
        self.before_weight, self.before_bias = self.both_weights[-1, : self.n_splits], self.both_biases[-1]
        # The state's own parameters are these from now on, so that nothing needs copying after an epoch.
        state.splits.parameters["weight"].data, state.splits.parameters["bias"].data = self.weight, self.bias
        self.adam = [torch.zeros_like(part) for part in (weight, weight, bias, bias)]
        self.steps = torch.zeros(self.n_splits, dtype=torch.int32, device=self.device)
        self.moving = torch.zeros_like(self.steps)
        self.sums, self.number = torch.zeros(2, dtype=torch.int64, device=self.device)  # gradients of parts
        self.scaled_units = torch.zeros((), dtype=torch.float64, device=self.device)
        n_taken = int(state.groups.count_taken(plan).sum()) if steps is None else len(samples)
        self.leaves = LEAVES[type(samples.target)](state, samples)
        y = self.leaves.y
        self.rows: Tensor
        self.reads_in_place = isinstance(samples.rows, ArrayRows) and not self.copies(n_taken * self.n_features)
        if isinstance(samples.rows, ArrayRows) and self.reads_in_place:
            self.rows, self.y, self.row_weights = samples.rows.values, y, samples.weight
            self.order = self.empty(n_taken, dtype=torch.long)
        else:  # the rows of an epoch are copied, in its order
            self.rows = self.empty(n_taken, self.n_features)
            self.y, self.row_weights = y.new_empty(n_taken, *y.shape[1:]), samples.weight.new_empty(n_taken)
            self.order = torch.arange(n_taken, device=self.device)
        numbers = (
            *plan.settings_at(0),
            plan.l1,
            plan.l2,
            plan.spatial_penalty,
            plan.mass_threshold,
            SLOPE * plan.input_noise**2,
        )
        self.settings = torch.tensor(numbers, dtype=self.dtype, device=self.device)
        self.shares = penalty_shares(state, plan).to(self.settings)
        self.steepness = self.empty(self.n_splits)
        self.is_spatial = bool(plan.spatial_penalty and plan.image_shape is not None)
        self.penalty_gradient = torch.empty_like(self.weight) if self.is_spatial else self.weight
        self.width = samples.target.n_statistics
        self.block = block_of(self.width)
        self.counts = state.leaves.new_zeros(len(state.leaves), state.n_stumps * self.width)
        self.found = torch.zeros(2, dtype=torch.float64, device=self.device)
        self.leaf_tables = torch.empty_like(state.leaves)
        self.tables = torch.empty_like(self.leaves.tables(state.leaves))
        if steps is None:
            loss_weights = LossWeights(samples, state.groups, plan)
            self.schedule = [(update, *loss_weights(update)) for update in state.groups.schedule(plan)]
        else:
            self.schedule = [step[:3] for step in steps]
        self.zeros = state.zeros
        self.row_block, self.overlap = row_block_of(self.n_features), overlap_options(self.device)
        self.blocks = -(-self.n_features // kernels.FEATURES_AT_ONCE)

    @staticmethod
    def copies(n_values: int) -> bool:
        """Return True if the rows of an epoch, so many values, are copied even where the kernels can read them."""
        return False

    def begin(self, settings: EpochSettings, order: Tensor, leaves: Tensor) -> None:
        self.settings[: len(settings)] = torch.tensor(settings, dtype=self.dtype, device=self.device)
        self.leaf_tables.copy_(leaves)
        taken = len(order)  # of a level of stumps fewer rows than there is memory for
        if self.reads_in_place:
            self.order[:taken].copy_(order)
            return
        if isinstance(self.samples.rows, ArrayRows):
            torch.index_select(self.samples.rows.values, 0, order, out=self.rows[:taken])
            torch.index_select(self.leaves.y, 0, order, out=self.y[:taken])
            torch.index_select(self.samples.weight, 0, order, out=self.row_weights[:taken])
            return
        for copies, some in zip(self.rows[:taken].split(ROWS_AT_ONCE), order.split(ROWS_AT_ONCE), strict=True):
            copies.copy_(self.samples.batch(some))
        self.y[:taken].copy_(self.leaves.y[order])
        self.row_weights[:taken].copy_(self.samples.weight[order])

    def remember(self) -> None:
        """Prepare an epoch: copy the parameters and tables that its responsibilities come from."""
        self.damp()
        self.moving.zero_()
        self.tables.copy_(self.leaves.tables(self.leaf_tables))
        if not self.fresh:
            self.before_weight.copy_(self.weight)
            self.before_bias.copy_(self.bias)

    def damp(self) -> None:
        """Compute the steepness of every split under noise on the inputs."""
        kernels.damp[(self.n_splits,)](
            self.weight, self.settings, self.steepness, self.n_features, FEATURES=self.row_block
        )

    def penalize(self) -> None:
        """Compute the gradient of the spatial penalty."""
        if self.is_spatial:
            assert self.plan.image_shape is not None
            height, width = self.plan.image_shape[:2]
            line = self.n_features // height
            kernels.laplacian_gradient[(self.n_splits, self.blocks)](
                self.weight,
                self.penalty_gradient,
                self.settings,
                self.shares,
                height,
                line,
                line // width,
                self.n_features,
                FEATURES=kernels.FEATURES_AT_ONCE,
            )

    def move_splits(self) -> None:
        """Take a step of all splits that rows have reached, with penalties, and compute their steepness."""
        self.penalize()
        kernels.move_splits[(self.n_splits,)](
            self.weight,
            self.bias,
            *self.adam,
            self.steps,
            self.moving,
            self.gradient,
            self.bias_gradient,
            self.sums,
            self.scaled_units,
            self.number,
            self.penalty_gradient,
            self.steepness,
            self.settings,
            self.shares,
            self.n_features,
            SPATIAL=self.is_spatial,
            IN_UNITS=self.sums_in_units,
            FEATURES=self.row_block,
        )
        if self.zeros is not None:
            self.weight.masked_fill_(self.zeros, 0.0)
            self.damp()

    @abstractmethod
    def launch(self) -> None:
        """Launch all steps of one epoch, in order."""

    @property
    def kernel_key(self) -> KernelKey:
        """Return what the code of the kernels depends on."""
        key = KernelKey.of(self.device, self.samples.target, self.n_features, self.plan, self.dtype, fresh=self.fresh)
        return key._replace(y=self.y.dtype)

    def empty(self, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        return torch.empty(shape, dtype=dtype or self.dtype, device=self.device)

    def numbers(self, values: Any, dtype: torch.dtype | None = None) -> Tensor:
        return torch.as_tensor(np.asarray(values), dtype=dtype, device=self.device)


class StumpWorkspace(CudaWorkspace):
    """A task is a few rows of one stump; the tasks of a step run side by side."""

    def __init__(
        self, state: TrainState, samples: Samples, plan: Plan, fresh: bool, steps: Sequence[PartStep] | None = None
    ) -> None:
        super().__init__(state, samples, plan, fresh, steps)
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
        cell = np.concatenate(groups)
        self.task_part = cell % self.n_parts
        self.tasks = (
            self.numbers(cell // self.n_parts),
            self.numbers(np.concatenate(begins)),
            self.numbers(np.concatenate(rows)),
            self.numbers(np.concatenate(firsts), torch.int32),
            self.numbers(np.concatenate(in_loss), self.dtype),
            self.numbers(np.concatenate(in_counts), self.dtype),
        )
        self.active = self.numbers(np.concatenate([update.active for update, *_ in self.schedule]))
        self.slots = self.numbers(np.concatenate(slots))
        self.by_cell = self.numbers(np.argsort(cell, kind="stable"))
        sizes = np.bincount(cell, minlength=self.n_splits * self.n_parts)
        self.cell_start = self.numbers(np.append(0, np.cumsum(sizes)))
        most = max(number for _, number, *_ in self.layout)
        self.task_gradient, self.task_bias_gradient = self.empty(most, self.n_features), self.empty(most)
        self.task_pull = self.empty(most)
        self.task_counts = self.empty(n_tasks, 2, self.width)
        self.log_likelihood = self.empty(n_tasks)
        self.n_launches = 2 * len(self.layout)

    def launch(self) -> None:
        self.remember()
        for first_task, n_tasks, n_active, first_active, first_slot in self.layout:
            self.launch_tasks(first_task, n_tasks)
            self.penalize()
            self.move_active(n_active, first_active, first_slot)
            if self.zeros is not None:
                self.weight.masked_fill_(self.zeros, 0.0)
        self.launch_counts(self.counts)

    def launch_tasks(self, first_task: int, n_tasks: int) -> None:
        """Compute gradients, leaf counts and log-likelihoods of the tasks of a step."""
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
            self.settings,
            *self.tasks,
            self.steps,
            self.task_gradient,
            self.task_bias_gradient,
            self.task_pull,
            self.task_counts,
            self.log_likelihood,
            first_task,
            self.n_features,
            self.width,
            self.n_splits * self.width,
            FRESH=self.fresh,
            OUTPUTS=self.leaves.n_outputs,
            WIDTH=self.block,
            FEATURES=self.row_block,
            **self.overlap,
            **CONSTANTS["stump_tasks"],
        )

    def move_active(self, n_active: int, first_active: int, first_slot: int) -> None:
        """Apply the gradients of a step's tasks to its stumps."""
        kernels.move_stumps[(n_active, self.blocks)](
            self.weight,
            self.bias,
            *self.adam,
            self.steps,
            self.task_gradient,
            self.task_bias_gradient,
            self.task_pull,
            self.penalty_gradient,
            self.active,
            self.slots,
            self.settings,
            self.shares,
            first_active,
            first_slot,
            self.n_features,
            SPATIAL=self.is_spatial,
            **self.overlap,
            **CONSTANTS["move_stumps"],
        )

    def launch_counts(self, counts: Tensor) -> None:
        """Sum the leaf counts of the epoch.  (2, n_splits · n_parts · width)"""
        n_cells = self.n_splits * self.n_parts
        kernels.stump_counts[(n_cells, 2)](
            self.task_counts,
            self.by_cell,
            self.cell_start,
            counts,
            self.width,
            n_cells * self.width,
            WIDTH=self.block,
            TASKS=tasks_per_count(self.block),
        )


class TreeWorkspace(CudaWorkspace):
    """Scores of all splits by cuBLAS; one kernel routes the rows through the tree."""

    multiple = 8

    def __init__(
        self, state: TrainState, samples: Samples, plan: Plan, fresh: bool, steps: Sequence[PartStep] | None = None
    ) -> None:
        super().__init__(state, samples, plan, fresh, steps)
        structure = state.structure
        self.n_leaves = structure.n_leaves
        self.level_start = self.numbers(np.cumsum([0, *(len(level) for level in structure.levels)]), torch.int32)
        by_level = np.concatenate(structure.levels)
        self.level_splits = self.numbers(by_level, torch.int64)
        self.left, self.right = (
            self.numbers(nodes + np.where(nodes < self.n_splits, 0, self.n_slots - self.n_splits), torch.int64)
            for nodes in (structure.left_nodes[by_level], structure.right_nodes[by_level])
        )
        self.n_levels = len(structure.levels)
        self.in_loss, self.in_counts = (
            self.numbers([line[0] if len(line) else 0.0 for line in lines], self.dtype)
            for lines in ([step[1] for step in self.schedule], [step[2] for step in self.schedule])
        )
        self.gradient, self.bias_gradient = self.empty(self.n_slots, self.n_features), self.empty(self.n_slots)
        self.before_steepness = torch.empty_like(self.steepness)
        self.most_rows = max(1, VALUES_AT_ONCE // max(self.n_features, 2 * self.n_splits + 1, self.width))
        if steps is None:
            longest = max(int(update.lengths[0]) for update, *_ in self.schedule)
            self.allocate(min(longest, self.most_rows), len(self.order), PIECES_PER_COUNT)
            self.n_launches = 8 * len(list(self._pieces()))

    def allocate(self, piece: int, n_positions: int, n_pieces: int = 1) -> None:
        """Allocate memory for pieces of so many rows, whose leaf counts are summed together, and for an epoch."""
        self.piece, held = piece, piece * max(1, min(n_pieces, self.most_rows // piece))
        self.x = self.empty(piece if self.reads_in_place else 0, self.n_features)
        self.products = self.both_weights.reshape(-1, self.n_features).T
        self.scores = self.empty(piece, self.products.shape[1])
        self.nodes, self.adds = self.empty(held, self.n_slots + self.n_leaves), self.empty(held, self.width)
        self.residual = self.empty(piece, self.n_slots).zero_()
        self.ones = torch.ones_like(self.residual[:, 0])
        self.log_likelihood = self.empty(n_positions)

    @staticmethod
    def copies(n_values: int) -> bool:
        return n_values <= MAX_VALUES_OF_COPY

    def remember(self) -> None:
        super().remember()
        self.before_steepness.copy_(self.steepness)

    def launch(self) -> None:
        self.remember()
        self.counts.zero_()
        self.log_likelihood.zero_()
        held = 0
        for step, begin, end, is_first, is_last in self._pieces():
            rows = end - begin
            scores, residual = self.scores[:rows], self.residual[:rows]
            if self.reads_in_place:
                x = torch.index_select(self.rows, 0, self.order[begin:end], out=self.x[:rows])
            else:
                x = self.rows[begin:end]
            torch.mm(x, self.products, out=scores)
            if held + rows > len(self.nodes):
                self._count(held)
                held = 0
            self._route(step, begin, rows, held)
            held += rows
            with beside(self.device):
                self.bias_gradient.addmv_(residual.T, self.ones[:rows], beta=int(not is_first))
            self.gradient.addmm_(residual.T, x, beta=int(not is_first))
            rejoin(self.device)
            if is_last:
                self.move_splits()
        self._count(held)

    def _count(self, rows: int) -> None:
        """Add the leaf counts of some rows."""
        self.counts.addmm_(self.nodes[:rows, self.n_slots :].T, self.adds[:rows])

    def _pieces(self) -> Iterator[tuple[int, int, int, bool, bool]]:
        """List every piece of a batch: its step, begin and end, whether it is the first and the last of the step."""
        for step, (update, *_) in enumerate(self.schedule):
            begin, end = int(update.begin[0]), int(update.end[0])
            for place in range(begin, end, self.piece):
                stop = min(place + self.piece, end)
                yield step, place, stop, place == begin, stop == end

    def _route(self, step: int, begin: int, rows: int, held: int = 0) -> None:
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
            self.nodes[held:],
            self.residual,
            self.adds[held:],
            self.log_likelihood,
            self.moving,
            begin,
            step,
            0 if self.fresh else self.n_slots,
            self.scores.shape[1],
            self.n_slots,
            self.n_leaves,
            self.n_levels,
            self.width,
            OUTPUTS=self.leaves.n_outputs,
            WIDTH=self.block,
            **CONSTANTS["route"],
        )


MAX_VALUES_OF_COPY = 2**28
"""The rows of an epoch of finetuning are copied in its order if they have so many values at most: the steps of an epoch
then need not look for them one by one."""

MAX_LAUNCHES = 50_000
"""Launches above which an epoch is not recorded, because the graph would be larger than the data."""

MAX_COPY_SHARE = 0.5
"""Windows of an epoch may take so much of the device's free memory; more of them train with torch's steps."""

MAX_STATISTICS = 4096
"""A kernel holds the counts of several tasks at once: as many as there are classes, or two for every output."""


def _copies_fit(state: TrainState, samples: Samples, plan: Plan) -> bool:
    """Return True if the windows of an epoch fit on the device."""
    # Of the whole device and of what torch holds of it, not of what is free: a fit must not depend on those before it.
    _, total = torch.cuda.mem_get_info(samples.device)
    free = total - torch.cuda.memory_allocated(samples.device)
    values = int(state.groups.count_taken(plan).sum()) * samples.n_features
    return values * samples.rows.dtype.itemsize < MAX_COPY_SHARE * free


class _Launched(threading.local):
    """Kinds of epochs that this thread has launched: it may capture the next ones of a kind at once.

    The first launch makes the handles of cuBLAS, which every thread has for itself, and loads kernels.
    """

    def __init__(self) -> None:
        self.kinds: set[Any] = set()


_launched = _Launched()


class CudaEngine:
    """The same steps as ``TorchEngine``, on the same parameters in place."""

    @staticmethod
    def supports(state: TrainState, samples: Samples, plan: Plan) -> bool:
        """Return True for hyperplanes on CUDA, if Triton works and an epoch's windows fit into memory.

        Their weights must be free to have any sign, and l1 must shrink them one by one.
        """
        rows = samples.rows
        return (
            isinstance(state.splits, ObliqueSplits)
            and state.signs is None
            and not plan.shrinks_groups
            and type(samples.target) in LEAVES
            and samples.device.type == "cuda"
            and rows.dtype in (torch.float32, torch.float64)
            and rows.arrays[0].is_contiguous()
            and samples.target.n_statistics <= MAX_STATISTICS
            and (isinstance(rows, ArrayRows) or _copies_fit(state, samples, plan))
            and triton_works(samples.device)
        )

    def __init__(self, state: TrainState, samples: Samples, plan: Plan, *, fresh: bool) -> None:
        self.state, self.samples, self.plan = state, samples, plan
        workspace = TreeWorkspace if state.is_whole_tree else StumpWorkspace
        self.workspace: CudaWorkspace = workspace(state, samples, plan, fresh)
        build_kernels(self.workspace.kernel_key)
        self.total_weight = float(samples.weight[state.groups.rows].double().sum())
        self.graph: torch.cuda.CUDAGraph | None = None
        own = self.workspace
        stream = torch.cuda.current_stream(own.device) if own.device.type == "cuda" else None
        shape = (own.n_slots, plan.batch_size, len(samples)) if state.is_whole_tree else None  # of matrix products
        self.kind = type(own), own.kernel_key, shape, own.reads_in_place, own.zeros is None, stream

    def epoch(self, settings: EpochSettings, order: Tensor) -> PendingEpoch:
        with torch.no_grad(), on_device(self.samples.device):
            self.workspace.begin(settings, order, self.state.leaves)
            if self.graph is None and self.plan.epochs > 1 and self.kind in _launched.kinds:
                self._record()
            if self.graph is not None:
                self.graph.replay()
            else:
                with launching:
                    self._launch()
                _launched.kinds.add(self.kind)
        return PendingEpoch(self.workspace.counts, self._read)

    def _read(self) -> tuple[float, bool]:
        log_likelihood, checksum = self.workspace.found.tolist()
        return -log_likelihood / self.total_weight, math.isfinite(checksum)

    def optimizer_state(self) -> dict[str, Tensor]:
        workspace = self.workspace
        names = ("mean.weight", "square.weight", "mean.bias", "square.bias", "steps", "moving")
        return dict(zip(names, (*workspace.adam, workspace.steps, workspace.moving), strict=True))

    def _record(self) -> None:
        if self.samples.device.type == "cuda" and self.workspace.n_launches <= MAX_LAUNCHES:
            self.graph = capture_graph(self._launch)

    def _launch(self) -> None:
        workspace = self.workspace
        workspace.launch()
        torch.sum(workspace.log_likelihood, dim=0, dtype=torch.float64, out=workspace.found[0])
        # A weight that is infinite or not a number spoils the sum of all: one number to read instead of two.
        torch.sum(workspace.weight.sum(dim=1) + workspace.bias, dim=0, dtype=torch.float64, out=workspace.found[1])
