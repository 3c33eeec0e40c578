"""From checked data and parameters to a problem and a spec, and to the tree. Imported only when something trains."""

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
from crisptree.inference import CrispTree, FlatTree
from crisptree.inference.finalization import SomeTree, record_ranges
from crisptree.learning.fitting import Fitted, device_of, fit_tree
from crisptree.learning.history import EpochRecord, get_iteration
from crisptree.learning.options import Spec
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.pipeline.monitoring import Checkpoints, hearing_trials, recording
from crisptree.pipeline.validation import (
    RowModel,
    TrainingData,
    are_constrained,
    check_fit,
    check_warm_start,
    draw_seed,
    holds_out,
)
from crisptree.selection.candidates import Trial
from crisptree.selection.evaluators import Evaluator, TreeEvaluator
from crisptree.selection.parameters import (
    disable_postprocessing,
    is_postprocessing_unresolved,
    postprocess,
    resolve_postprocessing,
    resolve_scale,
    retain_selected,
)
from crisptree.selection.search import Resolution, resolve
from crisptree.targets import Target
from crisptree.targets.base import TargetEncoding, hold_out
from crisptree.threads import ROWS_AT_ONCE, one_thread, row_blocks
from crisptree.tree import Tree

Trained = tuple[Fitted, list[EpochRecord]]

SPARSE_VALUES_AT_ONCE = 2**24
"""The soft tree sees whole rows: so many values of sparse ones are written down at a time."""


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
    """The checked rows of a fit, wherever they are: what differs between arrays, batches and process groups."""

    target: Target
    image_shape: tuple[int, ...] | None = None
    encoding: TargetEncoding
    is_sparse = False
    only_hyperplanes = True
    """Whether axis-aligned splits, which are found by sorting whole columns, are out of the question."""
    source: npt.NDArray[np.intp] | None = None
    """Which row a row is a copy of, where there are copies."""

    @abstractmethod
    def scaling(self, kind: str | None, n_jobs: int | None) -> Scaling:
        """How rows are scaled before training."""

    @abstractmethod
    def problem(self, scaling: Scaling, held: Any) -> TrainingTask:
        """The training on rows that are scaled so, with validation rows or None."""

    @abstractmethod
    def split_off(self, fraction: float, seed: int) -> tuple[Self, Any]:
        """Hold out a share of the rows for validation."""

    def device(self, name: str) -> str:
        """The device to train on, where a word like "auto" is to mean another than it would."""
        return name

    def selection_problem(self, problem: TrainingTask, held: Any, seed: int) -> TrainingTask | None:
        """Rows on which candidates are compared; None where another process compares them."""
        return problem

    def validation_part(self, held: Any, seed: int) -> RowSet | None:
        """Validation rows in memory; None where another process has them."""
        return held

    def with_ranges(self, tree: SomeTree, problem: TrainingTask) -> SomeTree:
        """The tree with the ranges of all features."""
        return problem.with_ranges(tree)


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

    def scaling(self, kind: str | None, n_jobs: int | None) -> Scaling:
        return learn_scaling(self.data.X, self.data.weight, kind, n_jobs)

    def problem(self, scaling: Scaling, held: RowSet | None) -> TrainingTask:
        return problem_of(self.data, scaling, held)

    def split_off(self, fraction: float, seed: int) -> tuple[Self, RowSet]:
        """Hold out a share of the rows, stratified by class where that can be done."""
        data = self.data
        if len(data.y) < 2:
            raise ValueError(
                "a fit that holds rows out must have at least 2 rows; got n_samples = 1. "
                "Switch early_stopping off, and give nu (for algorithm='non_greedy'), prune and shrinkage a number."
            )
        kept, held = hold_out(data.target.strata(data.y), fraction, seed, source=data.source)
        source = None if data.source is None else data.source[kept]
        rest = replace(data, X=data.X[kept], y=data.y[kept], weight=data.weight[kept], source=source)
        return replace(self, data=rest), RowSet(data.X[held], data.y[held], data.weight[held])

    def selection_problem(self, problem: TrainingTask, held: Any, seed: int) -> TrainingTask:
        return with_labels(problem)

    def validation_part(self, held: RowSet, seed: int) -> RowSet:
        return replace(held, y=self.target.hard.conform(held.y))

    def with_ranges(self, tree: SomeTree, problem: TrainingTask) -> SomeTree:
        return record_ranges(tree, self.data.X, self.data.missing_indicators)


def fit_array(
    estimator: RowModel,
    rows: tuple[Any, Any, Any],
    eval_set: Any,
    checkpoints: Checkpoints,
    earlier: EarlierFit | None = None,
    *,
    classes: TargetEncoding | None = None,
    source: npt.NDArray[np.intp] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> TrainedRows:
    """Train a tree on rows in memory, (X, y, sample_weight); set the input schema of the estimator.

    ``classes`` encodes all classes that there may ever be, where y may have fewer; ``source`` maps copies to the rows
    that they are copies of; ``changes`` take the place of parameters.
    """
    encoding = classes if earlier is None else earlier.encoding
    is_first = earlier is None
    parameters, data, held_out = check_fit(
        *(estimator, rows, eval_set, encoding), reset=is_first, is_part=is_first, changes=changes
    )
    if source is not None:  # rows of no weight have been left out
        data = replace(data, source=source if rows[2] is None else source[np.asarray(rows[2]) > 0])
    if earlier is not None:
        check_warm_start(parameters, earlier.tree.structure, held_out is not None)
    seed = draw_seed(parameters["random_state"])
    inputs = data.describe(held_out) | {"warm_start": earlier and earlier.tree, "device": device_for(parameters, data)}
    with checkpoints.kept(parameters, inputs, seed) as seed:
        return fit_rows(parameters, ArrayDataset(data), held_out, seed, earlier)


def fit_rows(
    parameters: Mapping[str, Any], data: TrainingDataset, validation: Any, seed: int, earlier: EarlierFit | None = None
) -> TrainedRows:
    """Train a tree on validated rows: select what is "auto", train, postprocess, and restore the units of y."""
    everything, explicit = data, validation
    fraction = parameters["validation_fraction"]
    if validation is None and holds_out(parameters):
        data, validation = data.split_off(fraction, seed)

    start, previous = None, None
    if earlier is not None:
        start, previous = earlier.tree, retain_selected(earlier.selected, parameters)
    resolution, problem = prepare(parameters, data, validation, TreeEvaluator, seed, start, previous)
    values = resolution.parameters
    values["device"] = data.device(values["device"])
    needs_rows = values["finetune_epochs"] or is_postprocessing_unresolved(values)
    if explicit is None and validation is not None and not needs_rows:
        # No epoch is scored after all: the rows that were held out for it train too.
        data, validation = everything, None
        problem = scaled_problem(parameters, data, None, values["scale"], start)
    if validation is None and is_postprocessing_unresolved(values):
        # Holding rows out for the last step alone costs too much: a first tree resolves its parameters.
        rest, held = data.split_off(fraction, seed)
        first = fit_rows(disable_postprocessing(values), rest, None, seed).fitted
        unit = rest.problem(problem.scaling, None).mean_weight
        values = resolve_postprocessing(first.tree, values, problem, rest.validation_part(held, seed), unit)
    held = None
    if validation is not None and is_postprocessing_unresolved(values):
        held = data.validation_part(validation, seed)
    fitted, history = fit_problem(values, problem, data.image_shape, seed, start, held)
    if data.image_shape is None:
        tree = everything.with_ranges(fitted.tree, problem)
        fitted = fitted._replace(tree=tree, greedy=tree if fitted.greedy is fitted.tree else fitted.greedy)
    fitted = restore_units(fitted, data.encoding)
    return TrainedRows(fitted, history, resolution.selected, resolution.trials, data.encoding)


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
    if parameters["split"] == "auto" and (data.only_hyperplanes or are_constrained(parameters)):
        parameters = {**parameters, "split": "oblique"}
    scale = resolve_scale(parameters, data.image_shape, is_sparse=data.is_sparse)
    problem = scaled_problem(parameters, data, validation, scale, earlier)
    resolution = resolve(
        *(parameters, problem, make_evaluator(parameters), seed),
        image_shape=data.image_shape,
        source=data.source,
        load_rows=lambda: data.selection_problem(problem, validation, seed),
        previous=previous,
        listen=lambda: hearing_trials(parameters["verbose"]),
    )
    selected_scale = resolution.parameters["scale"]
    if selected_scale != scale:
        return resolution, scaled_problem(parameters, data, validation, selected_scale, earlier)
    return resolution, problem


def scaled_problem(
    parameters: Mapping[str, Any], data: TrainingDataset, validation: Any, scale: str | None, earlier: CrispTree | None
) -> TrainingTask:
    """The training on rows with a scaling of some kind, or with that of an earlier tree."""
    if earlier is not None:
        return data.problem(earlier.statistics.scaling, validation)
    scaling = data.scaling(scale, parameters["n_jobs"])
    if parameters["max_shift"]:
        scaling = scaling.same_for_pixels(*(data.image_shape or ())[2:])
    return data.problem(scaling, validation)


def restore_units(fitted: Fitted, encoding: TargetEncoding) -> Fitted:
    """Return the trees that predict in the units of y."""
    tree = encoding.restore_units(fitted.tree)
    greedy = tree if fitted.greedy is fitted.tree else encoding.restore_units(fitted.greedy)
    return fitted._replace(tree=tree, greedy=greedy)


def device_for(parameters: Mapping[str, Any], data: TrainingData) -> str:
    """The same for rows whose scaling is not known yet."""
    return device_text(parameters, TrainingTask(data.part, Scaling.none(data.X.shape[1]), data.target))


def problem_of(data: TrainingData, scaling: Scaling, validation: RowSet | None) -> TrainingTask:
    """The training on checked rows; y of validation rows gets the form of the target."""
    target = data.target
    held = validation and replace(validation, y=target.conform(validation.y))
    return TrainingTask(data.part, scaling, target, held)


def with_labels(problem: TrainingTask) -> TrainingTask:
    """The problem with hard labels, by which parameters are selected and which train faster."""
    target = problem.target.hard
    if target is problem.target:
        return problem
    training, held = (
        part and replace(part, y=target.conform(part.y)) for part in (problem.training, problem.validation)
    )
    assert training is not None
    return TrainingTask(training, problem.scaling, target, held)


def fit_problem(
    parameters: Mapping[str, Any],
    problem: TrainingTask,
    image_shape: tuple[int, ...] | None,
    seed: int,
    earlier: CrispTree | None = None,
    held: RowSet | None = None,
) -> Trained:
    """Train a tree with an estimator's parameters, its progress shown and kept. ``held`` are validation rows."""
    spec = spec_of(parameters, problem, image_shape, seed)
    listens = (parameters["verbose"], parameters["callbacks"]) if problem.is_first else (0, None)
    with recording(*listens) as recorder:
        fitted = fit_tree(spec, problem, start=earlier, on_epoch=recorder.record)
    numbers = resolve_postprocessing(fitted.tree, parameters, problem, held, problem.mean_weight)

    def records() -> tuple[list[EpochRecord], int | None]:
        history = recorder.history
        return history, get_iteration(fitted.soft.record, history) if parameters["early_stopping"] else None

    history, best_iteration = problem.compute_once(records)
    return fitted._replace(tree=postprocess(fitted.tree, numbers), best_iteration=best_iteration), history


def spec_of(
    parameters: Mapping[str, Any], problem: TrainingTask, image_shape: tuple[int, ...] | None, seed: int
) -> Spec:
    """The spec of an estimator's parameters for a problem."""
    rows: dict[str, Any] = {
        "input_norm": problem.input_norm,
        "mean_weight": problem.mean_weight,
        "n_rows": problem.n_rows,
        "is_small_table": problem.is_small_table,
    }
    return Spec.of(parameters, **rows, image_shape=image_shape, seed=seed)


def device_text(parameters: Mapping[str, Any], problem: TrainingTask) -> str:
    """The device that a fit of a problem trains on, as a checkpoint knows it; all that "auto" may choose is linear."""
    split = "oblique" if parameters["split"] == "auto" else parameters["split"]
    return str(device_of(parameters["device"], problem, split))


@one_thread()
@torch.no_grad()
def soft_probabilities(tree: CrispTree, X: RawRows, steepness: float | None) -> npt.NDArray[np.float64]:
    """p(y∣x) of the probabilistic tree behind a crisp one."""
    if tree.is_linear:
        return _soft_linear(tree, X, steepness)
    soft, gamma = Tree.soft(tree), _steepness(tree, steepness)
    logs = [soft.log_class_probabilities(block, gamma).double() for block in _scaled_blocks(tree, X)]
    return np.asarray(torch.softmax(torch.cat(logs), dim=1).numpy())


@one_thread()
@torch.no_grad()
def soft_means(tree: CrispTree, X: RawRows, steepness: float | None) -> npt.NDArray[np.float64]:
    """E(y∣x) = Σ_ℓ m_ℓ μ_ℓ(x) of the probabilistic tree behind a crisp one of numbers, in the units of y."""
    if tree.is_linear:
        return np.asarray(tree.target.predict(tree.restore_units(_soft_linear(tree, X, steepness))))
    soft, gamma = Tree.soft(tree), _steepness(tree, steepness)
    means = torch.from_numpy(tree.target.predict(tree.restore_units(tree.statistics.soft_leaves)))
    paths = (soft.log_path_probabilities(block, gamma).double().exp() for block in _scaled_blocks(tree, X))
    return np.asarray(torch.cat([path @ means for path in paths]).numpy())


def _soft_linear(tree: CrispTree, X: RawRows, steepness: float | None) -> npt.NDArray[np.float64]:
    """Σ_ℓ μ_ℓ(x) times what the model of the leaf says, in the units of training."""
    assert isinstance(tree, FlatTree)
    soft, gamma, found, start = Tree.soft(tree), _steepness(tree, steepness), [], 0
    for block in _scaled_blocks(tree, X):
        paths, rows = soft.log_path_probabilities(block, gamma).double().exp().numpy(), X[start : start + len(block)]
        said = np.zeros((len(block), tree.n_outputs))
        for leaf in range(tree.structure.n_leaves):
            said += paths[:, [leaf]] * tree.scaled_values(np.full(len(block), leaf), rows)
        found.append(said)
        start += len(block)
    return np.concatenate(found)


def _steepness(tree: CrispTree, steepness: float | None) -> float:
    return tree.statistics.steepness if steepness is None else steepness


def _scaled_blocks(tree: CrispTree, X: RawRows) -> Iterator[Tensor]:
    at_once = max(1, SPARSE_VALUES_AT_ONCE // X.shape[1]) if isinstance(X, SparseRows) else ROWS_AT_ONCE
    pieces = (X[rows] for rows in row_blocks(len(X), at_once))
    dense = (piece.dense() if isinstance(piece, SparseRows) else piece for piece in pieces)
    return (torch.from_numpy(tree.statistics.scaling.apply(piece)) for piece in dense)
