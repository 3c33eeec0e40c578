"""The steps of a fit, in order: samples, growth, finetuning, the crisp tree. Imported only when something trains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from sklearn.model_selection import train_test_split

from crisptree.baselines.growing import SEARCHES, grow_rival
from crisptree.baselines.non_greedy import non_greedy
from crisptree.blocks import n_threads, row_blocks
from crisptree.estimators.progress import recording
from crisptree.estimators.validation import TrainingData, holds_out
from crisptree.images import Windows
from crisptree.inference import CrispTree
from crisptree.inference.statistics import settled
from crisptree.learning.finetuning import finetune
from crisptree.learning.growing import Limits, grow, grow_balanced, single_leaf
from crisptree.learning.history import EpochRecord, Listener
from crisptree.learning.plan import Plan
from crisptree.learning.samples import Samples, WindowRows
from crisptree.learning.train import torch_threads
from crisptree.scaling import LARGEST, Scaling
from crisptree.splits import LINEAR, ObliqueSplits, SplitKind, kind_of
from crisptree.tree import Tree

if TYPE_CHECKING:
    from crisptree.estimators.classifier import CrispTreeClassifier

VALUES_FOR_THREADS = 2**22
"""Data of fewer values trains on one thread: two are no quicker there, and when another program holds one of the
cores they wait for each other a hundred times as long as they work."""

STEEPEST = 1e12

RATE, FEATURES_AT_FULL_RATE = 0.02, 64
"""What learning_rate="auto" means; see docs/results/defaults.md."""

SMALLEST_WEIGHT = 1e-30
"""Weights are taken relative to their mean; a lighter row would have none left in single precision."""

Held = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.float64]]


class Fitted(NamedTuple):
    """What a fit leaves behind."""

    greedy: CrispTree
    tree: CrispTree
    history: list[EpochRecord]
    nu: float | None


def fit_tree(
    estimator: CrispTreeClassifier,
    data: TrainingData,
    validation: tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]] | None,
    earlier: CrispTree | None,
    seed: int,
) -> Fitted:
    """Train a tree on checked data with the estimator's parameters."""
    with training_on(estimator.device, estimator.n_jobs, data.X.size, seed) as device:
        held_out: Held | None = None
        if validation is not None:
            held_out = (*validation, np.ones(len(validation[1])))
        elif holds_out(estimator):
            data, held_out = split_off(data, estimator.validation_fraction, seed)
        n_jobs, n_classes = estimator.n_jobs, len(data.classes)
        if earlier is None:
            scaling = Scaling.learn(data.X, data.weight, estimator.scale, n_jobs)
        else:
            scaling = earlier.statistics.scaling
        problem = Problem(
            data,
            scaling,
            samples_of(scaling, data.X, data.y, data.weight, n_classes, device, n_jobs),
            None if held_out is None else samples_of(scaling, *held_out, n_classes, device, n_jobs),
        )
        return trained(estimator, problem, earlier, seed)


@contextmanager
def training_on(device_name: str, n_jobs: int | None, n_values: int, seed: int) -> Iterator[torch.device]:
    """The device to train on; inside, torch is as training needs it, and afterwards as it was."""
    device = device_of(device_name)
    # Gradients are needed whatever the caller has set, and modules may draw random numbers of their own.
    with (
        torch.enable_grad(),
        torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
        torch_threads(threads_for(n_jobs, n_values)),
    ):
        torch.manual_seed(seed)
        yield device


@dataclass(frozen=True, eq=False)
class Problem:
    """What is trained on: the raw rows, how they were scaled, and the scaled ones on the training device."""

    data: TrainingData
    scaling: Scaling
    samples: Samples
    validation: Samples | None
    rows_per_epoch: int | None = None


def trained(estimator: Any, problem: Problem, earlier: CrispTree | None, seed: int) -> Fitted:
    """Grow a tree with an estimator's parameters, finetune it, and settle both on the raw rows."""
    samples, image_shape = problem.samples, problem.data.image_shape
    prior = estimator.leaf_prior / float(problem.data.weight.mean())
    phases = zip((estimator.epochs, estimator.finetune_epochs), rates_of(estimator, samples.n_features), strict=True)
    plan, finetuning = (
        plan_of(estimator, image_shape, epochs, rate, prior, problem.rows_per_epoch) for epochs, rate in phases
    )
    kind = kind_of(estimator.split, _input_shape(image_shape, samples.n_features))
    generator = torch.Generator().manual_seed(seed)
    with recording(estimator.verbose, estimator.callbacks) as recorder:
        greedy = _grown(estimator, earlier, samples, plan, kind, generator, recorder.record)
        tuned = _tuned(estimator, greedy, samples, finetuning, generator, recorder.record, problem.validation)
    steepness = plan.final_steepness if estimator.grow == "greedy" else plan.steepness_at(0)
    crisp_greedy = _crisp(greedy, steepness, problem, estimator)
    if tuned.tree is greedy:
        return Fitted(crisp_greedy, crisp_greedy, recorder.history, tuned.nu)
    crisp = _crisp(tuned.tree, tuned.steepness, problem, estimator)
    return Fitted(crisp_greedy, crisp, recorder.history, tuned.nu)


class _Tuned(NamedTuple):
    """The tree at the end of the second phase; ν where the phase had one."""

    tree: Tree
    steepness: float
    nu: float | None


def _tuned(
    estimator: Any,
    tree: Tree,
    samples: Samples,
    plan: Plan,
    generator: torch.Generator,
    hear: Listener,
    validation: Samples | None,
) -> _Tuned:
    keep_best = estimator.early_stopping
    if estimator.algorithm != "non_greedy":
        tuned = finetune(
            tree, samples, plan, generator=generator, on_epoch=hear, validation=validation, restore_best=keep_best
        )
        return _Tuned(tuned.tree, tuned.steepness, None)
    if plan.epochs == 0:
        return _Tuned(tree, plan.steepness_at(0), estimator.nu)
    best = non_greedy(
        tree,
        samples,
        plan,
        estimator.nu,
        generator=generator,
        on_epoch=hear,
        validation=validation,
        restore_best=keep_best,
    )
    return _Tuned(best.tree, plan.steepness_at(0), best.nu)


def rates_of(estimator: Any, n_features: int) -> tuple[float, float]:
    """The learning rates of growth and of finetuning.

    Adam moves all weights of a hyperplane by about as much, so what a step does to f(x) grows with their number. A
    split on one feature has one; the rivals' bound brings a scale of its own.
    """
    if estimator.learning_rate != "auto":
        return estimator.learning_rate, estimator.learning_rate
    shared = RATE * min(1.0, FEATURES_AT_FULL_RATE / n_features)
    growth_is_free = estimator.split == "axis" or estimator.grow in SEARCHES
    tuning_is_free = estimator.split == "axis" or estimator.algorithm == "non_greedy"
    return RATE if growth_is_free else shared, RATE if tuning_is_free else shared


def plan_of(
    estimator: Any,
    image_shape: tuple[int, ...] | None,
    epochs: int,
    learning_rate: float,
    leaf_prior: float,
    rows_per_epoch: int | None = None,
) -> Plan:
    """Every number of one phase."""
    plan = Plan(
        algorithm="em" if estimator.algorithm == "non_greedy" else estimator.algorithm,
        epochs=epochs,
        learning_rate=learning_rate,
        decay=estimator.learning_rate_decay,
        batch_size=min(estimator.batch_size, np.iinfo(np.int32).max),
        rows_per_epoch=rows_per_epoch,
        min_updates=estimator.min_updates,
        steepness=estimator.steepness,
        steepness_step=estimator.steepness_step,
        annealing=estimator.annealing,
        l1=estimator.l1,
        l2=estimator.l2,
        leaf_prior=leaf_prior,
        roughness=estimator.roughness,
        image_shape=image_shape,
        mass_threshold=estimator.mass_threshold,
    )
    if plan.final_steepness > STEEPEST:
        raise ValueError(
            f"`steepness` must stay below {STEEPEST:g}; {epochs} epochs of annealing={plan.annealing!r} with "
            f"steepness_step={plan.steepness_step:g} would take it to {plan.final_steepness:g}. Lower the step."
        )
    return plan


def _grown(
    estimator: Any,
    earlier: CrispTree | None,
    samples: Samples,
    plan: Plan,
    kind: SplitKind,
    generator: torch.Generator,
    hear: Listener,
) -> Tree:
    if estimator.grow == "balanced":
        return grow_balanced(samples, estimator.max_depth or 0, kind, generator)
    if earlier is None:
        start = single_leaf(samples, kind, generator)
    else:
        start = _taken_up(earlier, estimator.split, samples, kind, generator)
    limits = Limits(
        max_depth=estimator.max_depth,
        max_leaf_nodes=estimator.max_leaf_nodes,
        min_samples_split=estimator.min_samples_split,
        min_samples_leaf=estimator.min_samples_leaf,
        min_weight_fraction_leaf=estimator.min_weight_fraction_leaf,
        min_impurity_decrease=estimator.min_impurity_decrease,
    )
    if estimator.grow in SEARCHES:
        name, nu = estimator.grow, estimator.nu
        return grow_rival(name, start, samples, plan, limits, generator=generator, nu=nu, on_epoch=hear)
    return grow(start, samples, plan, limits, kind, generator=generator, on_epoch=hear)


def _taken_up(earlier: CrispTree, split: object, samples: Samples, kind: SplitKind, generator: torch.Generator) -> Tree:
    """The tree of an earlier fit, to be grown on with splits of the same kind."""
    try:
        tree = Tree.soft(earlier, samples.device, LINEAR.get(str(split), ObliqueSplits))
        fresh = single_leaf(samples, kind, generator).splits
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


def _crisp(tree: Tree, steepness: float, problem: Problem, estimator: Any) -> CrispTree:
    crisp, data = tree.crisp(problem.scaling, steepness), problem.data
    return settled(crisp, data.X, data.y, data.weight, estimator.leaf_prior, estimator.n_jobs)


def samples_of(
    scaling: Scaling,
    X: npt.NDArray[np.float32],
    y: npt.NDArray[np.int64],
    weight: npt.NDArray[np.float64],
    n_classes: int,
    device: torch.device,
    n_jobs: int | None,
) -> Samples:
    """Rows, scaled, with their labels and weights on the training device."""
    return weighed(_scaled(X, scaling, device, n_jobs), y, weight, n_classes)


def weighed(
    rows: torch.Tensor | WindowRows, y: npt.NDArray[np.int64], weight: npt.NDArray[np.float64], n_classes: int
) -> Samples:
    """Scaled rows with their labels and weights, on the rows' device."""
    relative = torch.from_numpy(np.maximum(weight / weight.mean(), SMALLEST_WEIGHT))
    return Samples(rows, torch.from_numpy(y).to(rows.device), relative.to(torch.float32).to(rows.device), n_classes)


def _scaled(X: npt.NDArray[np.float32], scaling: Scaling, device: torch.device, n_jobs: int | None) -> torch.Tensor:
    """The scaled rows on the device. They are scaled there, as ``Scaling.apply`` does: a core would take longer."""
    if device.type == "cpu":
        return torch.from_numpy(scaling.apply(X, n_jobs))
    rows = torch.tensor(X, device=device)
    center, factor = (torch.from_numpy(part).to(device) for part in (scaling.center, scaling.factor))
    for block in row_blocks(len(X)):
        rows[block] = ((rows[block] - center) * factor).clamp(-LARGEST, LARGEST)
    return rows


def split_off(data: TrainingData, fraction: float, seed: int) -> tuple[TrainingData, Held]:
    """Hold out a share of the rows, of every class alike where that can be done."""
    n_rows, counts = len(data.y), np.bincount(data.y)
    n_held = min(max(1, round(fraction * n_rows)), n_rows - 1)
    if n_rows < 2:
        raise ValueError(
            "a fit that holds rows out must have at least 2 rows; got n_samples = 1. "
            "Switch early_stopping off, and give nu a number for algorithm='non_greedy'."
        )
    alike = counts.min() >= 2 and len(counts) <= min(n_held, n_rows - n_held)
    kept, held = train_test_split(
        np.arange(n_rows), test_size=n_held, random_state=seed, stratify=data.y if alike else None
    )
    rest = replace(data, X=data.X[kept], y=data.y[kept], weight=data.weight[kept])
    return rest, (data.X[held], data.y[held], data.weight[held])


def _input_shape(image_shape: tuple[int, ...] | None, n_features: int) -> tuple[int, ...]:
    """What a split module is given for one row."""
    if image_shape is None:
        return (n_features,)
    height, width, *channels = image_shape
    return (channels[0] if channels else 1, height, width)


def device_of(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        raise ValueError(
            f"`device` must be 'auto', 'cpu' or a device that torch finds here; got {name!r}. "
            "Use 'auto' to take CUDA only where it is present."
        ) from error
    return device


def threads_for(n_jobs: int | None, n_values: int) -> int:
    """How many threads are worth while, ``n_jobs`` at most."""
    return n_threads(n_jobs) if n_values > VALUES_FOR_THREADS else 1


@torch.no_grad()
def soft_probabilities(
    tree: CrispTree, X: npt.NDArray[np.float32] | Windows, steepness: float | None
) -> npt.NDArray[np.float64]:
    """p(y∣x) of the probabilistic tree behind a crisp one."""
    soft, statistics = Tree.soft(tree), tree.statistics
    gamma = statistics.steepness if steepness is None else steepness
    blocks = (torch.from_numpy(statistics.scaling.apply(X[rows])) for rows in row_blocks(len(X)))
    logs = [soft.log_class_probabilities(block, gamma).double() for block in blocks]
    return np.asarray(torch.softmax(torch.cat(logs), dim=1).numpy())
