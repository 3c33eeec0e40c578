"""The only way to train a tree: grow, finetune, make it deterministic, add leaf statistics; or update it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree import native
from crisptree.baselines.cart import fit_cart
from crisptree.baselines.growth import SEARCHES, grow_baseline
from crisptree.baselines.non_greedy import train_non_greedy
from crisptree.inference import CrispTree, FlatTree
from crisptree.inference.pruning import find_dead_splits, select_nodes
from crisptree.inference.statistics import add_prior_counts, finalize, finalize_from
from crisptree.learning.constraints import Held
from crisptree.learning.finetuning import TrainedTree, finetune
from crisptree.learning.growth import grow, grow_balanced, single_leaf
from crisptree.learning.history import Ending, Listener
from crisptree.learning.linear_leaves import left_over, with_models
from crisptree.learning.options import Spec
from crisptree.learning.samples import Samples
from crisptree.learning.sources.base import SummedRows
from crisptree.learning.task import Problem, Shifts
from crisptree.splits import LINEAR, ObliqueSplits, SplitKind, kind_of
from crisptree.splits.module import seeded
from crisptree.structure import TreeStructure
from crisptree.targets import Classes, Gaussians
from crisptree.tree import Tree

SEARCHED = (*SEARCHES, "cart")
"""Ways of growing that look for hyperplanes and train none."""

FEW_VALUES = 200_000
"""Rows × features below which a fit of hyperplanes is sooner done on the CPU than on CUDA, its first one by far: there
kernels are built for a device once, which takes seconds; see docs/results/training-speed.md."""

Rows = Samples | SummedRows

Start = CrispTree | TrainedTree | None
"""Where a training begins: an earlier fit, a tree that is still soft, or nothing."""


Nodes = tuple[TreeStructure, npt.NDArray[np.int64]]
"""A shape, and which node of a larger tree each of its nodes was."""


class Fitted(NamedTuple):
    """What a training leaves behind: the greedy tree, the finetuned one, the latter while it is soft, the baseline's ν.

    ``best_iteration`` is the number of the finetuning epoch that early stopping has kept; see ``iteration_of``.
    """

    greedy: CrispTree
    tree: CrispTree
    soft: TrainedTree
    nu: float | None
    best_iteration: int | None = None


def fit_tree(
    spec: Spec,
    problem: Problem,
    *,
    start: Start = None,
    zeros: Tensor | None = None,
    generator: torch.Generator | None = None,
    on_epoch: Listener | None = None,
) -> Fitted:
    """Train a tree.

    Parameters
    ----------
    spec : Spec
        How.
    problem : Problem
        On what.
    start : CrispTree or TrainedTree, optional
        A tree to grow on from, on the problem's own scale; ``grow="keep"`` leaves its structure as it is.
    zeros : Tensor of shape (n_splits, n_features), bool, optional
        Weights of hyperplanes that are zero and stay so.
    generator : torch.Generator, optional
        Where random numbers come from, if not from the spec's seed.
    on_epoch : callable, optional
        Called with a record of every epoch.
    """
    kind = kind_for(spec, problem)
    with training_on(spec, kind, problem) as device:
        shifts = Shifts(spec.shifts, spec.image_shape) if spec.shifts and spec.image_shape is not None else None
        samples, validation = problem.on(device, spec.n_jobs, shifts)
        generator = generator or torch.Generator().manual_seed(spec.seed)
        ended = problem.listener(on_epoch)
        held = spec.constraints.on(problem.scaling, device)
        work = Work(spec, samples, kind, generator, ended, held)
        return completed(work, GROWERS[spec.grow](work, start), problem, validation, zeros)


def completed(
    work: Work, greedy: TrainedTree, problem: Problem, validation: Rows | None, zeros: Tensor | None = None
) -> Fitted:
    """A grown tree finetuned, made crisp and settled."""
    spec = work.spec
    tuned, nu = tuned_tree(work, greedy, validation, zeros)
    tree, soft = crisp_tree(tuned, spec, problem)
    is_new = tuned.tree is not greedy.tree and spec.grow != "keep"
    return Fitted(crisp_tree(greedy, spec, problem)[0] if is_new else tree, tree, soft, nu)


def tuned_tree(
    work: Work, greedy: TrainedTree, validation: Rows | None, zeros: Tensor | None = None
) -> tuple[TrainedTree, float | None]:
    """A grown tree finetuned, unless its growth was stopped; and the baseline's ν."""
    spec = work.spec
    if (spec.split == "axis" and spec.grow in SEARCHED) or (zeros is None and work.holds_zeros):
        zeros = greedy.tree.splits.parameters["weight"] == 0
    return (greedy, spec.nu) if work.on_epoch else _tuned(work, greedy, validation, zeros)


def kind_for(spec: Spec, problem: Problem) -> SplitKind:
    """The kind of splits that grow; modules are tried here."""
    return kind_of(_grown_split(spec), spec.input_shape or (problem.training.X.shape[1],))


def crisp_tree(soft: TrainedTree, spec: Spec, problem: Problem) -> tuple[CrispTree, TrainedTree]:
    """The deterministic tree behind a soft one, with tables and statistics from the training rows, and the soft one.

    Splits that part none of the training rows are in neither of them.
    """
    tree, left = settled_tree(unsettled_tree(soft, spec, problem), spec, problem)
    return tree, soft if left is None else soft._replace(tree=soft.tree.reduced(*left))


def unsettled_tree(soft: TrainedTree, spec: Spec, problem: Problem) -> CrispTree:
    """The deterministic tree behind a soft one, before any row has been counted."""
    return soft.damped(spec.growth.input_noise).crisp(problem.scaling, soft.steepness)


def settled_tree(tree: CrispTree, spec: Spec, problem: Problem) -> tuple[CrispTree, Nodes | None]:
    """The tree with tables and statistics from the training rows; the shape and nodes that are left, where not all."""
    tree = finalize_from(tree, problem.counted(tree, spec.n_jobs), spec.leaf_prior)
    dead, to_right = find_dead_splits(tree)
    left = None
    if len(dead):
        left = tree.structure.spliced(dead, to_right)
        tree = select_nodes(tree, *left, spec.leaf_prior)
    if spec.leaf_penalty is not None and isinstance(tree, FlatTree):
        tree = with_models(tree, problem, spec.leaf_penalty, spec.n_jobs)
    return tree, left


class Work(NamedTuple):
    """What the phases of a training share."""

    spec: Spec
    source: Rows
    kind: SplitKind
    generator: torch.Generator
    on_epoch: Ending
    held: Held | None

    @property
    def samples(self) -> Samples:
        """The rows in memory; some ways of growing need all of them at once."""
        if not isinstance(self.source, Samples):
            raise TypeError(f"grow={self.spec.grow!r} and algorithm={self.spec.algorithm!r} need all rows in memory.")
        return self.source

    @property
    def signs(self) -> Tensor | None:
        return None if self.held is None else self.held.signs

    @property
    def holds_zeros(self) -> bool:
        """Whether growth has chosen the weights that each split may have."""
        if self.spec.grow == "balanced":
            return False
        draws = self.spec.n_drawn is not None and self.spec.split == "oblique" and self.spec.grow == "greedy"
        return draws or (self.held is not None and self.held.chooses)


def _grown_split(spec: Spec) -> Any:
    """What grows: a search finds hyperplanes, be they of one feature each."""
    return "oblique" if spec.grow in SEARCHED else spec.split


def _begin(work: Work, start: Start) -> Tree:
    if isinstance(start, TrainedTree):
        return start.tree
    if start is not None:
        return _taken_up(start, work)
    return single_leaf(work.source, work.kind, work.generator)


def _taken_up(earlier: CrispTree, work: Work) -> Tree:
    """The tree of an earlier fit, to be grown on with splits of the same kind."""
    split = _grown_split(work.spec)
    try:
        tree = Tree.soft(earlier, work.samples.device, LINEAR.get(str(split), ObliqueSplits))
        fresh = single_leaf(work.samples, work.kind, work.generator).splits
        if {name: value.shape[1:] for name, value in fresh.parameters.items()} != {
            name: value.shape[1:] for name, value in tree.splits.parameters.items()
        }:
            raise ValueError("the splits have other parameters.")
    except ValueError as error:
        raise ValueError(
            f"`warm_start` must go on with the same kind of split; the tree that is there cannot grow on with "
            f"split={split!r}: {error} Use a new estimator."
        ) from error
    return tree


def _greedily(work: Work, start: Start) -> TrainedTree:
    spec, plan = work.spec, work.spec.growth
    tree = grow(
        _begin(work, start),
        work.source if spec.leaf_penalty is None else left_over(work.samples, spec.row_weight),
        plan,
        spec.limits,
        work.kind,
        generator=work.generator,
        on_epoch=work.on_epoch,
        held=work.held,
        n_drawn=spec.n_drawn,
        holds_on=spec.leaf_penalty is not None,
    )
    return TrainedTree(tree, plan.final_steepness)


def _balanced(work: Work, start: Start) -> TrainedTree:
    tree = grow_balanced(work.samples, work.spec.limits.max_depth or 0, work.kind, work.generator, work.held)
    return TrainedTree(tree, work.spec.growth.steepness_at(0))


def _kept(work: Work, start: Start) -> TrainedTree:
    return TrainedTree(_begin(work, start), work.spec.finetuning.steepness_at(0))


def _baseline(work: Work, start: Start) -> TrainedTree:
    spec, plan = work.spec, work.spec.growth
    tree = grow_baseline(
        spec.grow,
        _begin(work, start),
        work.samples,
        plan,
        spec.limits,
        generator=work.generator,
        nu=spec.nu,
        on_epoch=work.on_epoch,
    )
    return TrainedTree(tree, plan.steepness_at(0))


def _cart(work: Work, start: Start) -> TrainedTree:
    spec = work.spec
    tree = fit_cart(work.samples, spec.limits, spec.n_drawn, spec.seed)
    return TrainedTree(tree, spec.growth.steepness_at(0))


GROWERS: dict[str, Callable[[Work, Start], TrainedTree]] = {
    "greedy": _greedily,
    "balanced": _balanced,
    "keep": _kept,
    "cart": _cart,
    **dict.fromkeys(SEARCHES, _baseline),
}


def _tuned(
    work: Work, greedy: TrainedTree, validation: Rows | None, zeros: Tensor | None
) -> tuple[TrainedTree, float | None]:
    spec, plan, tree = work.spec, work.spec.finetuning, greedy.tree
    common: dict[str, Any] = {
        "generator": work.generator,
        "on_epoch": work.on_epoch,
        "validation": validation,
        "patience": spec.patience,
    }
    if spec.algorithm != "non_greedy":
        common |= {"zeros": zeros, "signs": work.signs, "leaf_penalty": spec.leaf_penalty}
        common["row_weight"] = spec.row_weight
        best = finetune(tree, work.source, plan, **common)
        best = greedy if best.tree is tree else best  # with the γ that it was grown with
        if zeros is None and work.held is not None and work.held.chooses:
            best = _thinned(work, best, common)
        return best, None
    if plan.epochs == 0:
        return greedy, spec.nu
    result = train_non_greedy(tree, work.samples, plan, spec.nu, **common)
    return TrainedTree(result.tree, plan.steepness_at(0), result.record), result.nu


def _thinned(work: Work, before: TrainedTree, common: dict[str, Any]) -> TrainedTree:
    """The tree with the weights that may stay, trained on."""
    assert work.held is not None
    splits, zeros = work.held.thinned(before.tree.splits, work.samples.mean())
    thinner = replace(before.tree, splits=splits)
    trained = finetune(thinner, work.samples, work.spec.finetuning.later_half, **common | {"zeros": zeros})
    return trained._replace(record=trained.record or before.record)


@contextmanager
def training_on(spec: Spec, kind: SplitKind, problem: Problem) -> Iterator[torch.device]:
    """The device to train on; inside, torch is as training needs it, and afterwards as it was."""
    device = device_of(spec.device, problem, spec.split, has_kernels=spec.has_kernels)
    with ExitStack() as stack:
        stack.enter_context(torch.enable_grad())  # whatever the caller has set
        if kind.draws:
            stack.enter_context(seeded(spec.seed, device))
        yield device


def _gains_on_cuda(problem: Problem, split: Any, has_kernels: bool) -> bool:
    """Modules do; of hyperplanes those that have kernels there, and few rows are done sooner on the CPU.

    Without kernels numbers stay on the CPU, whose native steps know all of it; classes go there even so.
    """
    X = problem.training.X
    if problem.is_sparse or native.training is None or str(split) not in LINEAR:
        return not problem.is_sparse
    few = isinstance(X, np.ndarray) and problem.n_rows * X.shape[1] < FEW_VALUES
    return not few and (type(problem.target) is Classes or (type(problem.target) is Gaussians and has_kernels))


def device_of(
    name: str,
    problem: Problem | None = None,
    split: Any = "oblique",
    *,
    has_kernels: bool = True,
) -> torch.device:
    """The device behind a name, if it is there; "auto" is the one that is quicker for the problem."""
    if name == "auto":
        gains = problem is None or _gains_on_cuda(problem, split, has_kernels)
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
    earlier: CrispTree, spec: Spec, problem: Problem, *, memory: float, grows: bool, on_epoch: Listener | None = None
) -> CrispTree:
    """The tree after some new rows.

    All splits and leaves are finetuned on the new rows, from the middle γ on. What the leaves have counted before stays
    with them: in every epoch it is added, times ``memory``, to what the new rows say. Of the splits no old row is left
    to speak, so they move the slower the fewer the new rows are: by their share of all the learning rate is multiplied.

    Parameters
    ----------
    earlier : CrispTree
        Settled on its rows.
    spec : Spec
        How, with ``grow="keep"``.
    problem : Problem
        The new rows, on the scale of the earlier tree.
    memory : float
        What an old row counts beside a new one.
    grows : bool
        Whether leaves that the new rows show to be mixed may be split.
    on_epoch : callable, optional
        Called with a record of every epoch.
    """
    kind, rows = kind_for(spec, problem), problem.training
    with training_on(spec, kind, problem) as device:
        samples, _ = problem.on(device, spec.n_jobs)
        held = spec.constraints.on(problem.scaling, device)
        work = Work(spec, samples, kind, torch.Generator().manual_seed(spec.seed), Ending(on_epoch), held)
        soft = GROWERS["keep"](work, earlier)
        old = memory * earlier.statistics.node_counts[earlier.structure.n_splits :]
        before, now = problem.target.weight(old).sum(), rows.weight.sum()
        plan = spec.finetuning.later_half
        plan = replace(plan, learning_rate=plan.learning_rate * float(now / (before + now)))
        zeros = soft.tree.splits.parameters["weight"] == 0 if work.holds_zeros else None
        remembered = torch.from_numpy(old / rows.weight.mean()).to(soft.tree.leaves)
        tuned = finetune(
            soft.tree,
            samples,
            plan,
            generator=work.generator,
            on_epoch=work.on_epoch,
            zeros=zeros,
            signs=work.signs,
            remembered=remembered,
        )
        tuned = soft._replace(steepness=earlier.statistics.steepness) if tuned.tree is soft.tree else tuned
        if grows and not work.on_epoch:
            tuned = tuned._replace(tree=GROWERS["greedy"](work, tuned).tree)
        tree = unsettled_tree(tuned, spec, problem)
    tree = finalize(tree, rows.X, rows.y, rows.weight, spec.leaf_prior, spec.n_jobs, problem.target)
    return add_prior_counts(tree, earlier, memory, spec.leaf_prior)
