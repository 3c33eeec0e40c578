"""The fit of a tree, the same for arrays, batches and process groups: select, train, finalise. Imports torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.data.raw_rows import Scaling, SparseRows
from crisptree.data.rows import RawRows, learn_scaling
from crisptree.inference import CrispTree, FlatTree, round_splits
from crisptree.inference.finalization import (
    SomeTree,
    add_prior_statistics,
    inherit_ranges,
    record_ranges,
    sum_statistics,
)
from crisptree.learning.fitting import Fitted, fit_tree, resolve_device, update_tree
from crisptree.learning.history import EpochRecord
from crisptree.learning.options import Spec
from crisptree.learning.samples import RowSet, TrainingTask, get_iteration
from crisptree.pipeline.monitoring import Checkpoints, display_trials, record_epochs
from crisptree.pipeline.validation import (
    RowModel,
    TrainingData,
    check_fit,
    check_order,
    check_warm_start,
    draw_seed,
    holds_out,
    requires_hyperplanes,
)
from crisptree.selection.candidates import Trial
from crisptree.selection.evaluators import Evaluator, TreeEvaluator
from crisptree.selection.parameters import (
    apply_selected,
    disable_postprocessing,
    is_postprocessing_unresolved,
    order,
    postprocess,
    resolve_postprocessing,
    resolve_scale,
    retain_selected,
)
from crisptree.selection.search import Resolution, resolve
from crisptree.targets.base import Target, TargetEncoding, hold_out
from crisptree.threads import ROWS_AT_ONCE, one_thread, row_blocks
from crisptree.tree import Tree

Trained = tuple[Fitted, list[EpochRecord]]

SPARSE_VALUES_AT_ONCE = 2**24
"""Values of sparse rows that are made dense at a time for the probabilistic tree."""


UNRESTRICTED: dict[str, Any] = {"max_features_per_split": None, "max_leaf_nodes": None, "leaf_model": "auto"}
"""Limits of readable trees that do not hold for the tree from which they are distilled."""


class TrainedRows(NamedTuple):
    """A tree, the records of its epochs, the selected parameters, all candidates, and the encoding of y."""

    fitted: Fitted
    history: list[EpochRecord]
    selected: dict[str, Any]
    trials: list[Trial]
    encoding: TargetEncoding


class EarlierFit(NamedTuple):
    """What a warm start continues: the tree, the encoding of its y, and the parameters selected for it."""

    tree: CrispTree
    encoding: TargetEncoding
    selected: dict[str, Any]


class TrainingDataset(ABC):
    """Validated rows of a fit: everything that differs between arrays, batches and process groups."""

    target: Target
    image_shape: tuple[int, ...] | None = None
    encoding: TargetEncoding
    is_sparse = False
    only_hyperplanes = True
    """True if axis-aligned splits, which need whole sorted columns, are not available."""
    source: npt.NDArray[np.intp] | None = None
    """Index of the row that each row is a copy of; None without copies."""

    @abstractmethod
    def learn_scaling(self, kind: str | None, n_jobs: int | None) -> Scaling:
        """Learn the scaling of the features."""

    @abstractmethod
    def make_task(self, scaling: Scaling, held_out: Any) -> TrainingTask:
        """Make the training task of scaled rows, with validation rows or None."""

    @abstractmethod
    def split_off(self, fraction: float, seed: int) -> tuple[Self, Any]:
        """Hold out a share of the rows for validation."""

    def device(self, name: str) -> str:
        """Resolve the device where "auto" has a meaning of its own."""
        return name

    def make_selection_task(self, task: TrainingTask, held_out: Any, seed: int) -> TrainingTask | None:
        """Return the task on which candidates are compared; None where another process compares them."""
        return task

    def load_validation(self, held_out: Any, seed: int) -> RowSet | None:
        """Return the validation rows in memory; None where another process has them."""
        return held_out

    def with_ranges(self, tree: SomeTree, task: TrainingTask) -> SomeTree:
        """Record the ranges of all features."""
        return task.with_ranges(tree)


@dataclass(frozen=True, eq=False)
class ArrayDataset(TrainingDataset):
    """Rows in memory."""

    data: TrainingData

    @property
    def target(self) -> Target:  # type: ignore[override]
        return self.data.target

    @property
    def image_shape(self) -> tuple[int, ...] | None:  # type: ignore[override]
        return self.data.image_shape

    @property
    def encoding(self) -> TargetEncoding:  # type: ignore[override]
        return self.data.encoding

    @property
    def source(self) -> npt.NDArray[np.intp] | None:  # type: ignore[override]
        return self.data.source

    @property
    def is_sparse(self) -> bool:  # type: ignore[override]
        return isinstance(self.data.X, SparseRows)

    @property
    def only_hyperplanes(self) -> bool:  # type: ignore[override]
        return self.is_sparse or not self.target.has_axis_splits

    def learn_scaling(self, kind: str | None, n_jobs: int | None) -> Scaling:
        return learn_scaling(self.data.X, self.data.weight, kind, n_jobs)

    def make_task(self, scaling: Scaling, held_out: RowSet | None) -> TrainingTask:
        training, target = self.data.part, self.target
        held_out = held_out and replace(held_out, y=target.conform(held_out.y))
        return TrainingTask(training, scaling, target, held_out)

    def describe(self, parameters: Mapping[str, Any], held_out: RowSet | None, start: Any) -> dict[str, Any]:
        """Return the inputs of a fit for a checkpoint's fingerprint; ``start`` are the trees of a warm start."""
        task = TrainingTask(self.data.part, Scaling.none(self.data.X.shape[1]), self.target)  # not learned yet
        own = {"warm_start": start, "device": describe_device(parameters, task)}
        return self.data.describe(held_out) | own

    def split_off(self, fraction: float, seed: int) -> tuple[Self, RowSet]:
        """Hold out a share of the rows, stratified by class where possible."""
        data = self.data
        if len(data.y) < 2:
            raise ValueError(
                "a fit that holds rows out must have at least 2 rows; got n_samples = 1. "
                "Switch early_stopping off, and give ccp_alpha and shrinkage a number."
            )
        kept, held_out = hold_out(data.target.strata(data.y), fraction, seed, source=data.source)
        source = None if data.source is None else data.source[kept]
        rest = replace(data, X=data.X[kept], y=data.y[kept], weight=data.weight[kept], source=source)
        return replace(self, data=rest), data.part.select(held_out)

    def make_selection_task(self, task: TrainingTask, held_out: Any, seed: int) -> TrainingTask:
        return harden(task)

    def load_validation(self, held_out: RowSet, seed: int) -> RowSet:
        return replace(held_out, y=self.target.hard.conform(held_out.y))

    def with_ranges(self, tree: SomeTree, task: TrainingTask) -> SomeTree:
        return record_ranges(tree, self.data.X, self.data.missing_indicators)


def fit_array(
    estimator: RowModel,
    rows: tuple[Any, Any, Any],
    eval_set: Any,
    checkpoints: Checkpoints,
    earlier: EarlierFit | None = None,
    *,
    source: npt.NDArray[np.intp] | None = None,
    classes: TargetEncoding | None = None,
) -> TrainedRows:
    """Train a tree on rows in memory, (X, y, sample_weight); set the input schema of the estimator.

    ``source`` maps copies to the rows that they are copies of; ``classes`` encodes y where it may lack classes.
    """
    encoding = classes if earlier is None else earlier.encoding
    parameters, data, held_out = check_fit(*(estimator, rows, eval_set, encoding), reset=earlier is None)
    if source is not None:  # rows of no weight have been left out
        data = replace(data, source=source if rows[2] is None else source[np.asarray(rows[2]) > 0])
    if earlier is not None:
        check_warm_start(parameters, earlier.tree.structure, held_out is not None)
    seed = draw_seed(parameters["random_state"])
    dataset = ArrayDataset(data)
    inputs = dataset.describe(parameters, held_out, earlier and earlier.tree)
    with checkpoints.keep(parameters, inputs, seed) as seed:
        return fit_rows(parameters, dataset, held_out, seed, earlier)


def fit_rows(
    parameters: Mapping[str, Any], data: TrainingDataset, validation: Any, seed: int, earlier: EarlierFit | None = None
) -> TrainedRows:
    """Train a tree on validated rows: select what is "auto", train, postprocess, and restore the units of y."""
    everything, explicit = data, validation
    fraction = parameters["validation_fraction"]
    if validation is None and holds_out(parameters):
        data, validation = data.split_off(fraction, seed)

    restricted, parameters = parameters, relax_limits(parameters, data)
    start, previous = None, None
    if earlier is not None:
        start, previous = earlier.tree, retain_selected(earlier.selected, parameters)
    resolution, task = prepare(parameters, data, validation, TreeEvaluator, seed, start, previous)
    values = resolution.parameters
    values["device"] = data.device(values["device"])
    limits = None
    if parameters is not restricted:  # those of the tree that is distilled from the trained one
        split = "oblique" if restricted["split"] == "auto" else restricted["split"]
        limits = values | {name: restricted[name] for name in (*UNRESTRICTED, "min_samples_leaf")} | {"split": split}
    needs_rows = values["finetune_epochs"] or is_postprocessing_unresolved(values)
    if explicit is None and validation is not None and not needs_rows:
        # No epoch is scored after all: the rows that were held_out out for it train too.
        data, validation = everything, None
        task = make_scaled_task(parameters, data, None, values["scale"], start)
    if validation is None and is_postprocessing_unresolved(values):
        # Holding rows out for the last step alone costs too much: a first tree resolves its parameters.
        rest, held_out = data.split_off(fraction, seed)
        first = fit_rows(disable_postprocessing(limits or values), rest, None, seed).fitted
        unit = rest.make_task(task.scaling, None).mean_weight
        values = resolve_postprocessing(first.tree, values, task, rest.load_validation(held_out, seed), unit)
    held_out = None
    if validation is not None and is_postprocessing_unresolved(values):
        held_out = data.load_validation(validation, seed)
    fitted, history = fit_task(values, task, data.image_shape, seed, start, held_out, data.source, limits)
    if data.image_shape is None:
        tree = everything.with_ranges(fitted.tree, task)
        fitted = fitted._replace(tree=tree, greedy=tree if fitted.greedy is fitted.tree else fitted.greedy)
    fitted = restore_units(fitted, data.encoding)
    if values.get("round_splits"):
        from crisptree.pipeline.readable import round_leaves  # not on the path of other fits

        tree = round_leaves(fitted.tree, task)
        fitted = fitted._replace(tree=tree, greedy=tree)
    selected = dict(resolution.selected)
    if limits:
        selected = {name: value for name, value in selected.items() if name not in UNRESTRICTED}
    return TrainedRows(fitted, history, selected, resolution.trials, data.encoding)


def relax_limits(parameters: Mapping[str, Any], data: TrainingDataset) -> Mapping[str, Any]:
    """Return the parameters of the tree from which a readable one is distilled; the same for all other trees.

    It is distilled from arrays, without other constraints than the number of terms and leaves.
    """
    is_readable = parameters.get("round_splits") and parameters["max_leaf_nodes"] is not None
    is_constrained = parameters.get("monotonic_cst") is not None or parameters.get("interaction_cst") is not None
    is_plain = isinstance(data, ArrayDataset) and not data.is_sparse
    if not is_readable or is_constrained or not is_plain or parameters["split"] not in ("auto", "oblique", "axis"):
        return parameters
    return {**parameters, **UNRESTRICTED}


def prepare(
    parameters: Mapping[str, Any],
    data: TrainingDataset,
    validation: Any,
    make_evaluator: Callable[[Mapping[str, Any]], Evaluator],
    seed: int,
    earlier: CrispTree | None,
    previous: Mapping[str, Any] | None,
) -> tuple[Resolution, TrainingTask]:
    """Scale rows and resolve "auto" for a tree or a forest; in a process group one process selects for all.

    ``earlier`` is a tree whose scaling is kept, and ``previous`` what was selected for it.
    """
    check_order(parameters, data.target)
    if parameters["split"] == "auto" and (data.only_hyperplanes or requires_hyperplanes(parameters)):
        parameters = {**parameters, "split": "oblique"}
    scale = resolve_scale(parameters, data.image_shape, is_sparse=data.is_sparse)
    task = make_scaled_task(parameters, data, validation, scale, earlier)
    resolution = resolve(
        *(parameters, task, make_evaluator(parameters), seed),
        image_shape=data.image_shape,
        source=data.source,
        load_rows=lambda: data.make_selection_task(task, validation, seed),
        previous=previous,
        listen=lambda: display_trials(parameters["verbose"]),
    )
    selected_scale = resolution.parameters["scale"]
    if selected_scale != scale:
        return resolution, make_scaled_task(parameters, data, validation, selected_scale, earlier)
    return resolution, task


def make_scaled_task(
    parameters: Mapping[str, Any], data: TrainingDataset, validation: Any, scale: str | None, earlier: CrispTree | None
) -> TrainingTask:
    """Make the training task with a scaling of this kind, or with that of an earlier tree."""
    if earlier is not None:
        return data.make_task(earlier.statistics.scaling, validation)
    scaling = data.learn_scaling(scale, parameters["n_jobs"])
    if parameters["max_shift"]:
        scaling = scaling.share_between_pixels(*(data.image_shape or ())[2:])
    return data.make_task(scaling, validation)


def restore_units(fitted: Fitted, encoding: TargetEncoding) -> Fitted:
    """Return the trees that predict in the units of y."""
    tree = encoding.restore_units(fitted.tree)
    greedy = tree if fitted.greedy is fitted.tree else encoding.restore_units(fitted.greedy)
    return fitted._replace(tree=tree, greedy=greedy)


def harden(task: TrainingTask) -> TrainingTask:
    """Replace soft labels by hard ones, on which candidates are compared and which train faster."""
    target = task.target.hard
    if target is task.target:
        return task
    training, held_out = (part and replace(part, y=target.conform(part.y)) for part in (task.training, task.validation))
    assert training is not None
    return TrainingTask(training, task.scaling, target, held_out)


def fit_task(
    parameters: Mapping[str, Any],
    task: TrainingTask,
    image_shape: tuple[int, ...] | None,
    seed: int,
    earlier: CrispTree | None = None,
    held_out: RowSet | None = None,
    source: npt.NDArray[np.intp] | None = None,
    limits: Mapping[str, Any] | None = None,
) -> Trained:
    """Train and postprocess a tree with resolved parameters; ``held_out`` rows resolve the postprocessing.

    ``limits`` are those of a readable tree, into which the trained one is distilled.
    """
    spec = spec_of(parameters, task, image_shape, seed)
    listeners = (parameters["verbose"], parameters["callbacks"]) if task.is_first else (0, None)
    with record_epochs(*listeners) as recorder:
        fitted = fit_tree(spec, task, start=earlier, on_epoch=recorder.record)
    if parameters.get("round_splits"):
        fitted = round_fitted(fitted, parameters, limits, task, seed, source)
    values = resolve_postprocessing(fitted.tree, parameters, task, held_out, task.mean_weight)

    def records() -> tuple[list[EpochRecord], int | None]:
        history = recorder.history
        return history, get_iteration(fitted.soft.record, history) if parameters["early_stopping"] else None

    history, best_iteration = task.compute_once(records)
    greedy = fitted.greedy if fitted.greedy is fitted.tree else order(fitted.greedy, parameters)
    return Fitted(greedy, postprocess(fitted.tree, values), fitted.soft, best_iteration), history


def update_fitted_tree(
    estimator: RowModel, earlier: EarlierFit, rows: tuple[Any, Any, Any], decay: float
) -> tuple[CrispTree, list[EpochRecord]]:
    """Train a fitted tree on new rows, (X, y, sample_weight); see ``partial_fit`` of its estimator."""
    parameters, data, _ = check_fit(estimator, rows, None, earlier.encoding, reset=False)
    values = apply_selected(parameters, earlier.selected, data.image_shape, is_sparse=isinstance(data.X, SparseRows))
    # L-BFGS does not add leaf statistics of earlier rows; the growth options of the first fit have had their effect.
    values |= {"grow": "greedy", "early_stopping": False, "optimizer": "adam"}
    part, before = data.part, earlier.tree
    task = TrainingTask(part, before.statistics.scaling, data.target)
    spec = spec_of(values, task, data.image_shape, draw_seed(parameters["random_state"]))
    with record_epochs(values["verbose"], values["callbacks"]) as recorder:
        tree = update_tree(before, spec, task, decay=decay, on_epoch=recorder.record)
    if values.get("round_splits"):
        assert isinstance(tree, FlatTree)
        assert isinstance(part.X, np.ndarray)
        tree = round_splits(tree, part.X, part.weight)
    sums = sum_statistics(tree, part.X, part.y, part.weight, spec.n_jobs, task.target)
    tree = add_prior_statistics(tree, sums, before, decay, spec.leaf_prior)
    if before.statistics.lowest is not None:
        tree = inherit_ranges(record_ranges(tree, data.X, data.missing_indicators), before, and_own=True)
    return data.encoding.restore_units(tree), recorder.history


def round_fitted(
    fitted: Fitted,
    parameters: Mapping[str, Any],
    limits: Mapping[str, Any] | None,
    task: TrainingTask,
    seed: int,
    source: npt.NDArray[np.intp] | None,
) -> Fitted:
    """Distil the trained tree into one within the limits, round its splits and count its leaves anew."""
    from crisptree.pipeline.readable import count_rounded, distil_readable  # not on the path of other fits

    assert isinstance(fitted.tree, FlatTree)

    def make_spec(values: Mapping[str, Any], part: TrainingTask) -> Spec:
        return spec_of(values, part, None, seed)

    tree, teacher = fitted.tree, None
    if limits is not None:
        teacher, tree = tree, distil_readable(tree, parameters, limits, task, make_spec, seed, source)
    limits = limits or parameters
    tree = count_rounded(tree, teacher, limits, make_spec(limits, task), task)
    return fitted._replace(tree=tree, greedy=tree)


def spec_of(parameters: Mapping[str, Any], task: TrainingTask, image_shape: tuple[int, ...] | None, seed: int) -> Spec:
    """Make the spec of an estimator's parameters for a task."""
    rows: dict[str, Any] = {
        "input_norm": task.input_norm,
        "mean_weight": task.mean_weight,
        "n_rows": task.n_rows,
        "is_small_table": task.is_small_table,
    }
    return Spec.of(parameters, **rows, image_shape=image_shape, seed=seed)


def describe_device(parameters: Mapping[str, Any], task: TrainingTask) -> str:
    """Resolve the device of a fit, for a checkpoint's fingerprint; all that split="auto" may select is linear."""
    split = "oblique" if parameters["split"] == "auto" else parameters["split"]
    return str(resolve_device(parameters["device"], task, split))


@one_thread()
@torch.no_grad()
def soft_probabilities(tree: CrispTree, X: RawRows, steepness: float | None) -> npt.NDArray[np.float64]:
    """Predict p(y∣x) by the probabilistic tree.  (n, n_classes)"""
    if tree.is_linear:
        return _soft_linear(tree, X, steepness)
    soft, gamma = Tree.soft(tree), _steepness(tree, steepness)
    logs = [soft.log_class_probabilities(block, gamma).double() for block in _scaled_blocks(tree, X)]
    return np.asarray(torch.softmax(torch.cat(logs), dim=1).numpy())


@one_thread()
@torch.no_grad()
def soft_means(tree: CrispTree, X: RawRows, steepness: float | None) -> npt.NDArray[np.float64]:
    """Predict E(y∣x) = Σ_ℓ m_ℓ μ_ℓ(x) by the probabilistic regression tree, in the units of y."""
    if tree.is_linear:
        return np.asarray(tree.target.predict(tree.restore_units(_soft_linear(tree, X, steepness))))
    soft, gamma = Tree.soft(tree), _steepness(tree, steepness)
    means = torch.from_numpy(tree.target.predict(tree.restore_units(tree.statistics.soft_leaves)))
    paths = (soft.log_path_probabilities(block, gamma).double().exp() for block in _scaled_blocks(tree, X))
    return np.asarray(torch.cat([path @ means for path in paths]).numpy())


def _soft_linear(tree: CrispTree, X: RawRows, steepness: float | None) -> npt.NDArray[np.float64]:
    """Compute Σ_ℓ μ_ℓ(x) times the prediction of the linear model of leaf ℓ, in the units of training."""
    assert isinstance(tree, FlatTree)
    soft, gamma, blocks, start = Tree.soft(tree), _steepness(tree, steepness), [], 0
    for scaled in _scaled_blocks(tree, X):
        paths, rows = soft.log_path_probabilities(scaled, gamma).double().exp().numpy(), X[start : start + len(scaled)]
        values = np.zeros((len(scaled), tree.n_values))
        for leaf in range(tree.structure.n_leaves):
            values += paths[:, [leaf]] * tree.scaled_values(np.full(len(scaled), leaf), rows)
        blocks.append(values)
        start += len(scaled)
    return np.concatenate(blocks)


def _steepness(tree: CrispTree, steepness: float | None) -> float:
    return tree.statistics.steepness if steepness is None else steepness


def _scaled_blocks(tree: CrispTree, X: RawRows) -> Iterator[Tensor]:
    at_once = max(1, SPARSE_VALUES_AT_ONCE // X.shape[1]) if isinstance(X, SparseRows) else ROWS_AT_ONCE
    pieces = (X[rows] for rows in row_blocks(len(X), at_once))
    dense = (piece.dense() if isinstance(piece, SparseRows) else piece for piece in pieces)
    return (torch.from_numpy(tree.statistics.scaling.apply(piece)) for piece in dense)
