"""The only way to train trees: grow, finetune, make them deterministic, add leaf statistics; one tree or many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree import native
from crisptree.data.rows import ArrayRows, SelectedRows
from crisptree.inference import CrispTree, FlatTree
from crisptree.inference.finalization import (
    Nodes,
    finalize_from,
    find_dead_splits,
    select_nodes,
)
from crisptree.learning import native_trees
from crisptree.learning.cart import fit_cart
from crisptree.learning.engines.cuda_build import KernelKey, kernels, start_building
from crisptree.learning.engines.cuda_engine import LEAVES
from crisptree.learning.engines.cuda_graphs import n_streams, streams
from crisptree.learning.growth import (
    Outcome,
    Request,
    TrainedStumps,
    find_batched_stumps,
    grow,
    grow_by_requests,
    grow_side_by_side,
    single_leaf,
)
from crisptree.learning.history import EpochCallback, EpochRecord, StopTraining
from crisptree.learning.linear_leaves import compute_residuals, with_models
from crisptree.learning.loop import ALGORITHMS, TrainedTree, finetune, hard_score
from crisptree.learning.options import Spec, WeightConstraints, constrain_start
from crisptree.learning.samples import (
    RowSet,
    RowSource,
    Samples,
    Shifts,
    Source,
    StoppableCallback,
    SummedTask,
    TrainingTask,
    get_iteration,
    relative_weights,
)
from crisptree.splits import LINEAR, ObliqueSplits, SplitKind, resolve_kind
from crisptree.splits.module import seed_torch
from crisptree.structure import TreeStructure
from crisptree.targets import Classes, Gaussians
from crisptree.threads import limit_trainings, n_threads, workers
from crisptree.tree import Tree

MAX_VALUES_FOR_CPU = 200_000
"""Rows × features below which a fit of hyperplanes is sooner done on the CPU than on CUDA, its first one by far: there
kernels are built for a device once, which takes seconds; see docs/results/training-speed.md."""


class Fitted(NamedTuple):
    """Result of a training: the greedy tree, the finetuned one, and the latter as a probabilistic tree.

    ``best_iteration`` is the number of the finetuning epoch that early stopping has kept; see ``get_iteration``.
    """

    greedy: CrispTree
    tree: CrispTree
    soft: TrainedTree
    best_iteration: int | None = None


def fit_tree(
    spec: Spec,
    task: TrainingTask,
    *,
    start: CrispTree | None = None,
    on_epoch: EpochCallback | None = None,
) -> Fitted:
    """Train a tree by a spec on the rows of a task.

    ``start`` is a tree to continue from, on the task's own scale. ``on_epoch`` is called with a record of every epoch.
    """
    kind = resolve_split_kind(spec, task)
    with prepare_training(spec, kind, task) as device:
        shifts = Shifts(spec.shifts, spec.image_shape) if spec.shifts and spec.image_shape is not None else None
        if device.type == "cuda" and kernels is not None and type(task.target) in LEAVES and spec.has_kernels:
            shape, fresh = task.training.X.shape, ALGORITHMS[spec.algorithm].fresh_responsibilities
            start_building(device, KernelKey.of(device, task.target, shape[1], spec.growth, torch.float32, fresh=fresh))
        samples, validation = task.on(device, spec.n_jobs, shifts)
        generator = torch.Generator().manual_seed(spec.seed)
        callback, constraints = task.make_callback(on_epoch), spec.constraints.on(task.scaling, device)
        context = TrainingContext(spec, samples, kind, generator, callback, constraints)

        def train(context: TrainingContext) -> Training:
            greedy = grow_tree(context, start)
            return greedy, finetune_tree(context, greedy, validation)

        if start is None and spec.grow == "cart" and not spec.finetuning.epochs:
            greedy = tuned = _fit_cart(context, None)  # which has no random start
        elif start is None and spec.is_whole_lbfgs and native_trees.supports(spec, samples, constraints):
            greedy, tuned = _train_natively(context, validation)
        elif spec.n_init == 1 or start is not None:
            greedy, tuned = train(context)
        else:
            greedy, tuned = _train_from_starts(train, context)
        # The host has nothing else to do; processes of a group finalize one tree after the other.
        is_side_by_side = device.type == "cuda" and not isinstance(task, SummedTask)
        several = [tuned] if tuned.tree is greedy.tree else [tuned, greedy]
        with workers(len(several) if is_side_by_side else 1) as each_of:
            (tree, soft), *others = each_of(lambda one: finalize_tree(one, spec, task), several)
        return Fitted(others[0][0] if others else tree, tree, soft)


Training = tuple[TrainedTree, TrainedTree]
"""The greedy and the finetuned tree."""


def _train_natively(context: TrainingContext, validation: Samples | None) -> Training:
    """Train from all random starts at once; the tree with the highest training score, the first one of equals.

    The callback is called for the first start only, which it may stop.
    """
    spec, samples = context.spec, context.samples
    job = native_trees.make_job(samples, context.draw_seed())
    jobs = [job._replace(start=start) for start in range(spec.n_init)]
    if spec.grow == "cart":
        jobs = [job._replace(tree=_fit_cart(context, None).tree, keeps_zeros=spec.split == "axis")]
    trees = native_trees.train_trees(
        spec,
        _replace_by_residuals(spec, samples),
        jobs,
        tunes=True,
        constraints=context.constraints,
        on_epoch=context.on_epoch,
        validation=validation,
    )
    best = trees[0] if context.on_epoch else max(trees, key=lambda tree: tree.score)
    return best.greedy, best.tuned


def _replace_by_residuals(spec: Spec, samples: Source) -> Source:
    """Return the rows with the y that growth sees."""
    return compute_residuals(samples, spec.row_weight) if spec.grows_on_residuals else samples


def _train_from_starts(train: Callable[[TrainingContext], Training], context: TrainingContext) -> Training:
    """Train from several random starts and return the tree with the highest training score, the first one of equals.

    The callback is called for the first start only, which it may stop.
    """
    first = train(context)
    if context.on_epoch:
        return first
    threads = limit_trainings(n_threads(context.spec.n_jobs))
    samples = context.samples if threads == 1 else replace(context.samples, n_jobs=1)
    seed = int(torch.randint(2**62, (), generator=context.generator))

    def run(number: int) -> tuple[float, Training]:
        generator = torch.Generator().manual_seed(seed + number)
        trained = train(context._replace(source=samples, generator=generator, on_epoch=StoppableCallback(None)))
        return hard_score(trained[1].tree, samples, samples), trained

    with workers(min(threads, context.spec.n_init - 1)) as each_of:
        others = list(each_of(run, range(1, context.spec.n_init)))
    score, best = max(others, key=lambda one: one[0])
    return best if score > hard_score(first[1].tree, samples, samples) else first


def finetune_tree(
    context: TrainingContext, greedy: TrainedTree, validation: RowSource | None, prior_counts: Tensor | None = None
) -> TrainedTree:
    """Finetune a grown tree unless growth was stopped; ``prior_counts`` are leaf statistics of earlier rows."""
    spec, zeros = context.spec, None
    if (spec.split == "axis" and spec.grow == "cart") or context.holds_zeros:
        zeros = greedy.tree.splits.parameters["weight"] == 0
    if context.on_epoch:
        return greedy
    plan, tree = spec.finetuning, greedy.tree
    common: dict[str, Any] = {"generator": context.generator, "on_epoch": context.on_epoch}
    common |= {"validation": validation, "patience": spec.patience, "zeros": zeros, "signs": context.signs}
    common |= {"leaf_penalty": spec.leaf_penalty, "row_weight": spec.row_weight, "trains_models": spec.trains_models}
    best = finetune(tree, context.source, plan, prior_counts=prior_counts, **common)
    best = greedy if best.tree is tree else best  # with the γ that it was grown with
    if zeros is None and context.constraints is not None and context.constraints.removes_weights:
        best = _thin(context, best, common)
    return best


def resolve_split_kind(spec: Spec, task: TrainingTask) -> SplitKind:
    """Return the kind of splits that grow; modules are tried here."""
    return resolve_kind(_get_growth_split(spec), spec.input_shape or (task.training.X.shape[1],))


def finalize_tree(soft: TrainedTree, spec: Spec, task: TrainingTask) -> tuple[CrispTree, TrainedTree]:
    """Make a tree deterministic and add statistics of the training rows; return it and the soft tree.

    Splits that separate no training rows are removed from both.
    """
    tree, left = add_leaf_statistics(to_deterministic_tree(soft, spec, task), spec, task)
    return tree, soft if left is None else soft._replace(tree=soft.tree.select_nodes(*left))


def to_deterministic_tree(soft: TrainedTree, spec: Spec, task: TrainingTask) -> CrispTree:
    """Return the deterministic tree behind a soft one, before any row has been counted."""
    return soft.tree.absorb_noise(spec.growth.input_noise, soft.steepness).crisp(task.scaling, soft.steepness)


def add_leaf_statistics(tree: CrispTree, spec: Spec, task: TrainingTask) -> tuple[CrispTree, Nodes | None]:
    """Add leaf tables and statistics of the training rows; return the tree, and what is left of it where it is cut."""
    tree = finalize_from(tree, task.sum_statistics(tree, spec.n_jobs), spec.leaf_prior)
    dead, to_right = find_dead_splits(tree)
    left = None
    if len(dead):
        left = tree.structure.splice(dead, to_right)
        tree = select_nodes(tree, *left, spec.leaf_prior)
    if spec.leaf_penalty is not None and isinstance(tree, FlatTree):
        tree = with_models(tree, task, spec.leaf_penalty, spec.n_jobs, of_branches=spec.has_branch_models)
    return tree, left


class TrainingContext(NamedTuple):
    """State that the phases of a training share."""

    spec: Spec
    source: RowSource
    kind: SplitKind
    generator: torch.Generator
    on_epoch: StoppableCallback
    constraints: WeightConstraints | None

    def draw_seed(self) -> int:
        """Draw a seed for random numbers of the kernel."""
        return int(torch.randint(2**62, (), generator=self.generator))

    @property
    def samples(self) -> Samples:
        """The rows in memory; some growers need all of them at once."""
        if not isinstance(self.source, Samples):
            raise TypeError(f"grow={self.spec.grow!r} and algorithm={self.spec.algorithm!r} need all rows in memory.")
        return self.source

    @property
    def signs(self) -> Tensor | None:
        return None if self.constraints is None else self.constraints.signs

    @property
    def holds_zeros(self) -> bool:
        """True if growth has selected the non-zero weights of each split."""
        if self.spec.grow == "balanced":
            return False
        draws = self.spec.n_drawn is not None and self.spec.split == "oblique" and self.spec.grow == "greedy"
        return draws or (self.constraints is not None and self.constraints.removes_weights)


def _get_growth_split(spec: Spec) -> Any:
    """Return the kind of split of growth: CART and user functions make hyperplanes, also of one feature each."""
    return "oblique" if spec.grow == "cart" or callable(spec.grow) else spec.split


def _begin(context: TrainingContext, start: CrispTree | None) -> Tree:
    """Return a single leaf, or the tree of a previous fit, to be grown on with splits of the same kind."""
    if start is None:
        return single_leaf(context.source, context.kind, context.generator)
    split = _get_growth_split(context.spec)
    try:
        tree = Tree.soft(start, context.samples.device, LINEAR.get(str(split), ObliqueSplits))
        fresh = single_leaf(context.samples, context.kind, context.generator).splits
        if {name: value.shape[1:] for name, value in fresh.parameters.items()} != {
            name: value.shape[1:] for name, value in tree.splits.parameters.items()
        }:
            raise ValueError("the splits have other parameters.")
    except ValueError as error:
        raise ValueError(
            f"`warm_start` must continue with the same kind of split; the fitted tree cannot grow further with "
            f"split={split!r}: {error} Use a new estimator."
        ) from error
    return tree


def _grow_greedily(context: TrainingContext, start: CrispTree | None) -> TrainedTree:
    spec, plan = context.spec, context.spec.growth
    samples = _replace_by_residuals(spec, context.source)
    if start is None and spec.grows_by_lbfgs and native_trees.supports(spec, samples, context.constraints):
        assert isinstance(samples, Samples)
        job = native_trees.make_job(samples, context.draw_seed())
        common: dict[str, Any] = {"constraints": context.constraints, "on_epoch": context.on_epoch}
        return native_trees.train_trees(spec, samples, [job], tunes=False, **common)[0].greedy
    tree = grow(
        _begin(context, start),
        samples,
        plan,
        spec.limits,
        context.kind,
        generator=context.generator,
        on_epoch=context.on_epoch,
        constraints=context.constraints,
        n_drawn=spec.n_drawn,
        holds_on=spec.has_linear_leaves,
    )
    return TrainedTree(tree, plan.final_steepness)


def grow_balanced(
    samples: Samples,
    depth: int,
    kind: SplitKind,
    generator: torch.Generator,
    constraints: WeightConstraints | None = None,
) -> Tree:
    """Make a random complete tree: every split passes through the mean of the samples, every leaf table is random."""
    structure = TreeStructure.balanced(depth)
    tables = samples.target.random_tables(structure.n_leaves, generator)
    centers = samples.mean().expand(structure.n_splits, -1)
    splits = constrain_start(kind.initial(centers, generator), centers, constraints, is_sparse=samples.is_sparse)
    return Tree(structure, splits, tables.to(samples.weight), samples.target.name)


def _grow_complete(context: TrainingContext, start: CrispTree | None) -> TrainedTree:
    depth = context.spec.limits.max_depth or 0
    tree = grow_balanced(context.samples, depth, context.kind, context.generator, context.constraints)
    return TrainedTree(tree, context.spec.growth.steepness_at(0))


def _fit_cart(context: TrainingContext, start: CrispTree | None) -> TrainedTree:
    spec = context.spec
    rows = _replace_by_residuals(spec, context.source)
    tree = rows.grow_in_memory(lambda samples: fit_cart(samples, spec.limits, spec.n_drawn_by_cart, spec.seed))
    return TrainedTree(tree, spec.growth.steepness_at(0))


GROWERS: dict[str, Callable[[TrainingContext, CrispTree | None], TrainedTree]] = {
    "greedy": _grow_greedily,
    "balanced": _grow_complete,
    "cart": _fit_cart,
}


def grow_tree(context: TrainingContext, start: CrispTree | None) -> TrainedTree:
    """Grow a tree by the spec's method, a key of ``GROWERS`` or a function of one's own."""
    grow = context.spec.grow
    if callable(grow):
        return TrainedTree(grow(context, _begin(context, start)), context.spec.growth.steepness_at(0))
    return GROWERS[grow](context, start)


def _thin(context: TrainingContext, before: TrainedTree, common: dict[str, Any]) -> TrainedTree:
    """Set weights to zero that the constraints forbid, and finetune the others."""
    assert context.constraints is not None
    splits, zeros = context.constraints.thin(before.tree.splits, context.samples.mean())
    thinner = replace(before.tree, splits=splits)
    trained = finetune(thinner, context.samples, context.spec.finetuning.later_half, **common | {"zeros": zeros})
    return trained._replace(record=trained.record or before.record)


@contextmanager
def prepare_training(spec: Spec, kind: SplitKind, task: TrainingTask) -> Iterator[torch.device]:
    """Provide the device to train on, with gradients enabled and torch seeded inside the block."""
    device = resolve_device(spec.device, task, spec.split, has_kernels=spec.has_kernels)
    with ExitStack() as stack:
        stack.enter_context(torch.enable_grad())  # whatever the caller has set
        if kind.is_random:
            stack.enter_context(seed_torch(spec.seed, device))
        yield device


def _is_faster_on_cuda(task: TrainingTask, split: Any, has_kernels: bool) -> bool:
    """Modules do; of hyperplanes those that have kernels there, and few rows are done sooner on the CPU.

    Without kernels numbers stay on the CPU, whose native steps know all of it; classes go there even so.
    """
    X = task.training.X
    if task.is_sparse or native.training is None or str(split) not in LINEAR:
        return not task.is_sparse
    few = isinstance(X, np.ndarray) and task.n_rows * X.shape[1] < MAX_VALUES_FOR_CPU
    return not few and (type(task.target) is Classes or (type(task.target) is Gaussians and has_kernels))


def prepare_device(name: str) -> None:
    """Begin to prepare for kernels on a device that is named, while the host prepares the rows."""
    if str(name).startswith("cuda") and torch.cuda.is_available():
        with suppress(RuntimeError):  # ``resolve_device`` says what is wrong
            start_building(torch.device(name))


def resolve_device(
    name: str,
    task: TrainingTask | None = None,
    split: Any = "oblique",
    *,
    has_kernels: bool = True,
) -> torch.device:
    """Resolve the name of a device, which must exist; "auto" is the faster one for the task."""
    if name == "auto":
        gains = task is None or _is_faster_on_cuda(task, split, has_kernels)
        return torch.device("cuda" if gains and torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        raise ValueError(
            f"`device` must be 'auto', 'cpu' or a device that torch finds here; got {name!r}. "
            "Use 'auto' to take CUDA only where it is present."
        ) from error
    return device


def update_tree(
    tree: CrispTree, spec: Spec, task: TrainingTask, *, decay: float, on_epoch: EpochCallback | None = None
) -> CrispTree:
    """Finetune the splits and leaves of a tree on new rows, which are on its scale; leaves are yet to be counted.

    Training starts at the middle γ. In every epoch earlier leaf statistics are added, times ``decay``, to those of the
    new rows. As no old rows are left to hold the splits, their rate is multiplied by the share of the new rows.
    """
    kind, weight = resolve_split_kind(spec, task), task.training.weight
    with prepare_training(spec, kind, task) as device:
        samples, _ = task.on(device, spec.n_jobs)
        old = decay * tree.statistics.node_counts[tree.structure.n_splits :]
        share = weight.sum() / (task.target.weight(old).sum() + weight.sum())
        plan = spec.finetuning.later_half
        spec = replace(spec, finetuning=replace(plan, learning_rate=plan.learning_rate * float(share)))
        generator, constraints = torch.Generator().manual_seed(spec.seed), spec.constraints.on(task.scaling, device)
        context = TrainingContext(spec, samples, kind, generator, StoppableCallback(on_epoch), constraints)
        # The steepness of the earlier training, which stays where nothing is finetuned.
        start = TrainedTree(_begin(context, tree), tree.statistics.steepness)
        prior_counts = torch.from_numpy(old / weight.mean()).to(start.tree.leaves)
        return to_deterministic_tree(finetune_tree(context, start, None, prior_counts), spec, task)


MIN_VALUES_FOR_WORKERS = 2**18
"""Rows × features × trees from which CART and leaf statistics of several trees are computed side by side: below, Python
takes most of their time, and its threads wait for each other."""

MAX_PAIRS_AT_ONCE = 2**24
"""Maximum number of (tree, row) pairs in training at once, at about forty bytes each; further trees wait."""


class Bootstrap(NamedTuple):
    """Factor on the weight of each row for one tree, 0 for those that it never sees, and the seed of its randomness."""

    counts: npt.NDArray[np.integer | np.floating]
    seed: int

    def weight(self, rows: RowSet) -> npt.NDArray[np.float64]:
        """Return weights of the rows for the tree.  (n,)"""
        return rows.weight * self.counts


class FittedTree(NamedTuple):
    """A deterministic tree, the records of its finetuning, and how many of its epochs led to the tree."""

    tree: CrispTree
    history: list[EpochRecord]
    best_iteration: int


def fit_forest(
    spec: Spec, task: TrainingTask, bootstraps: Sequence[Bootstrap], *, on_epoch: EpochCallback | None = None
) -> Iterator[FittedTree]:
    """Train a tree for every bootstrap, in the order of the bootstraps, with the seeds of the bootstraps.

    Validation rows score every tree. ``on_epoch`` is called with the epochs of growth, all trees of a batch at once.
    """
    callback = StoppableCallback(on_epoch)
    is_array = isinstance(task.training.X, np.ndarray)
    is_stumps = spec.grow == "greedy" and spec.split in ("oblique", "axis") and not spec.shifts
    if not (is_array and (is_stumps or spec.grow == "cart")):
        yield from _fit_one_by_one(spec, task, bootstraps)
        return
    kind = resolve_split_kind(spec, task)
    with prepare_training(spec, kind, task) as device:
        samples, validation = task.on(device, spec.n_jobs, as_array=True)
        if not isinstance(samples.rows, ArrayRows):
            raise TypeError("trees grow together on an array of rows")
        if spec.grow == "cart" and not spec.finetuning.epochs:
            yield from _fit_cart_forest(spec, task, bootstraps, samples)
            return
        constraints = spec.constraints.on(task.scaling, device)
        if spec.is_whole_lbfgs and native_trees.supports(spec, samples, constraints):
            yield from _fit_native_forest(spec, task, bootstraps, samples, validation, callback, constraints)
            return
        if not is_stumps:
            yield from _fit_one_by_one(spec, task, bootstraps)
            return
        for some in _split_into_batches(bootstraps, len(samples)):
            contexts = [
                TrainingContext(
                    replace(spec, seed=bootstrap.seed),
                    _select_samples(samples, task.training, bootstrap),
                    kind,
                    torch.Generator().manual_seed(bootstrap.seed),
                    callback,
                    constraints,
                )
                for bootstrap in some
            ]
            grown = _grow_trees(contexts)
            yield from _complete_trees(contexts, grown, task, some, validation)
            if callback:
                return


def _count_workers(spec: Spec, samples: Samples, n_trees: int) -> int:
    """Return how many trees are trained or counted side by side."""
    is_large = len(samples) * samples.n_features * n_trees >= MIN_VALUES_FOR_WORKERS
    return min(limit_trainings(n_threads(spec.n_jobs)) if is_large else 1, n_trees)


def _fit_cart_forest(
    spec: Spec, task: TrainingTask, bootstraps: Sequence[Bootstrap], samples: Samples
) -> Iterator[FittedTree]:
    """Search the thresholds of all trees, which are not finetuned."""
    rows, alone = task.training, spec if len(bootstraps) == 1 else replace(spec, n_jobs=1)

    def fit(bootstrap: Bootstrap) -> FittedTree:
        own = _replace_by_residuals(spec, _select_samples(samples, rows, bootstrap))
        tree = fit_cart(own, spec.limits, spec.n_drawn_by_cart, bootstrap.seed)
        counted = replace(task, training=replace(rows, weight=bootstrap.weight(rows)))
        return FittedTree(finalize_tree(TrainedTree(tree, spec.growth.steepness_at(0)), alone, counted)[0], [], 0)

    with workers(_count_workers(spec, samples, len(bootstraps))) as each_of:
        yield from each_of(fit, bootstraps)


def _fit_native_forest(
    spec: Spec,
    task: TrainingTask,
    bootstraps: Sequence[Bootstrap],
    samples: Samples,
    validation: Samples | None,
    callback: StoppableCallback,
    constraints: WeightConstraints | None,
) -> Iterator[FittedTree]:
    """Train all trees as one work list; where the callback stops growth at a level, they end above it."""
    rows = task.training
    single_threaded = spec if len(bootstraps) == 1 else replace(spec, n_jobs=1)
    common: dict[str, Any] = {"constraints": constraints, "validation": validation}

    def begin(bootstrap: Bootstrap) -> native_trees.TreeJob:
        own = _select_samples(samples, rows, bootstrap)
        grown, weight = _replace_by_residuals(spec, own), own.weight.numpy()
        job = native_trees.TreeJob(np.flatnonzero(bootstrap.counts), weight, bootstrap.seed)
        if grown is not own:
            y = np.zeros_like(samples.y.numpy())
            y[job.rows] = grown.y.numpy()
            job = job._replace(y=y)
        if spec.grow == "cart":
            tree = fit_cart(grown, spec.limits, spec.n_drawn_by_cart, bootstrap.seed)
            job = job._replace(tree=tree, keeps_zeros=spec.split == "axis")
        return job

    def finalize(tree: native_trees.NativeTree, bootstrap: Bootstrap) -> FittedTree:
        own = replace(task, training=replace(rows, weight=bootstrap.weight(rows)))
        history = [record for record in tree.records if record.phase == "finetune"]
        crisp, _ = finalize_tree(tree.tuned, single_threaded, own)
        return FittedTree(crisp, history, get_iteration(tree.tuned.record, history))

    with workers(_count_workers(spec, samples, len(bootstraps))) as each_of:
        jobs = list(each_of(begin, bootstraps))
        trees = native_trees.train_trees(spec, samples, jobs, tunes=True, **common)
        try:
            for record in native_trees.merge_growth(trees):
                callback(record)
        except StopTraining:
            spec = replace(spec, limits=replace(spec.limits, max_depth=record.level - 1))
            trees = native_trees.train_trees(spec, samples, jobs, tunes=False, constraints=constraints)
        yield from each_of(lambda pair: finalize(*pair), zip(trees, bootstraps, strict=True))


def _split_into_batches(bootstraps: Sequence[Bootstrap], n_rows: int) -> Iterator[Sequence[Bootstrap]]:
    at_once = max(1, MAX_PAIRS_AT_ONCE // n_rows)
    return (bootstraps[start : start + at_once] for start in range(0, len(bootstraps), at_once))


def _select_samples(samples: Samples, rows: RowSet, bootstrap: Bootstrap) -> Samples:
    """Select the rows of one tree, without a copy of their features."""
    assert isinstance(samples.rows, ArrayRows)
    index = np.flatnonzero(bootstrap.counts)
    weight = relative_weights(bootstrap.weight(rows)[index]).to(samples.device)
    here = torch.from_numpy(index).to(samples.device)
    return replace(samples, rows=SelectedRows.of(samples.rows, here), y=samples.y[here], weight=weight)


def _grow_trees(contexts: Sequence[TrainingContext]) -> list[TrainedTree]:
    """Grow all trees side by side."""
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
        grow_by_requests(
            single_leaf(context.samples, context.kind, context.generator), context.samples, limits, signs=context.signs
        )
        for context in contexts
    ]
    return [TrainedTree(tree, plan.final_steepness) for tree in grow_side_by_side(find_all, growths)]


def _complete_trees(
    contexts: Sequence[TrainingContext],
    grown: Sequence[TrainedTree],
    task: TrainingTask,
    bootstraps: Sequence[Bootstrap],
    validation: Samples | None,
) -> Iterator[FittedTree]:
    """Finetune every tree and add its leaf statistics, as many at once as there are cores.

    A device finetunes a few at once, while the host finalizes those that are done. A fit with checkpoints takes one
    after the other, because those hold one training at a time.
    """
    device = contexts[0].samples.device
    threads = n_threads(contexts[0].spec.n_jobs)
    at_once = limit_trainings(min(threads, len(contexts)))
    each = threads // at_once
    if validation is not None:
        validation = replace(validation, n_jobs=each)

    def tune(number: int) -> tuple[int, CrispTree, list[EpochRecord], int]:
        context, history = contexts[number], list[EpochRecord]()
        own = context._replace(
            source=replace(context.samples, n_jobs=each),
            on_epoch=context.on_epoch if context.on_epoch else StoppableCallback(history.append),
        )
        soft = finetune_tree(own, grown[number], validation)
        return number, to_deterministic_tree(soft, own.spec, task), history, get_iteration(soft.record, history)

    def finalize(number: int, tree: CrispTree, history: list[EpochRecord], best_iteration: int) -> FittedTree:
        rows = task.training
        own = replace(task, training=replace(rows, weight=bootstraps[number].weight(rows)))
        tree, _ = add_leaf_statistics(tree, replace(contexts[number].spec, n_jobs=each), own)
        return FittedTree(tree, history, best_iteration)

    numbers = range(len(contexts))
    with workers(at_once) as each_of:
        if device.type == "cpu":
            yield from each_of(lambda number: finalize(*tune(number)), numbers)
            return
        # Finetuning copies the rows of its tree.
        row_bytes = contexts[0].samples.n_features * contexts[0].samples.rows.dtype.itemsize
        copies = row_bytes * max(len(context.samples) for context in contexts)
        n_at_once = limit_trainings(n_streams(device, len(contexts), copies))
        with streams(device, n_at_once) as each_of_device:
            yield from each_of(lambda one: finalize(*one), each_of_device(tune, numbers))


def _fit_one_by_one(spec: Spec, task: TrainingTask, bootstraps: Sequence[Bootstrap]) -> Iterator[FittedTree]:
    """Train one tree after the other, each on a copy of its rows: their growth is not a batch of stumps."""

    def fit(bootstrap: Bootstrap) -> FittedTree:
        rows, history = task.training, list[EpochRecord]()
        index = np.flatnonzero(bootstrap.counts)
        own = RowSet(rows.X[index], rows.y[index], bootstrap.weight(rows)[index])
        its = TrainingTask(own, task.scaling, task.target, task.validation)
        fitted = fit_tree(replace(spec, seed=bootstrap.seed), its, on_epoch=history.append)
        return FittedTree(fitted.tree, history, get_iteration(fitted.soft.record, history))

    yield from map(fit, bootstraps)
