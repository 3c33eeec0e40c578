"""The fit of a tree, the same for arrays, batches and process groups: select, train, finalise. Imports torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.data.raw_rows import Scaling, SparseRows
from crisptree.data.rows import learn_scaling
from crisptree.data.validation import InputSchema, resolve_columns
from crisptree.inference import CrispTree, FlatTree, round_splits
from crisptree.inference.finalization import (
    SomeTree,
    add_prior_statistics,
    inherit_ranges,
    record_ranges,
    sum_statistics,
)
from crisptree.inference.flat_tree import has_linear_leaves
from crisptree.learning.fitting import Fitted, fit_tree, prepare_device, resolve_device, update_tree
from crisptree.learning.history import EpochRecord
from crisptree.learning.options import Spec
from crisptree.learning.process_group import (
    FeatureStatistics,
    ProcessGroup,
    ShardedTask,
    Shards,
    keep_shared_checkpoints,
)
from crisptree.learning.samples import RowSet, TrainingTask, get_iteration
from crisptree.pipeline.monitoring import Checkpoints, describe_value, digest, display_trials, record_epochs
from crisptree.pipeline.validation import (
    LocalRows,
    RowModel,
    TrainingData,
    check_fit,
    check_local_rows,
    check_order,
    check_parameters,
    check_same_parameters,
    check_validation,
    check_warm_start,
    draw_seed,
    holds_out,
    requires_hyperplanes,
    validation_pair,
)
from crisptree.selection.candidates import (
    TRIAL_SHRINKAGE,
    Trial,
    apply_selected,
    disable_postprocessing,
    is_auto,
    is_postprocessing_unresolved,
    order,
    postprocess,
    resolve_postprocessing,
    resolve_scale,
    retain_selected,
)
from crisptree.selection.evaluators import Evaluator, TreeEvaluator
from crisptree.selection.search import SAMPLE_ROWS, Resolution, resolve
from crisptree.targets.base import Target, TargetEncoding, hold_out

Trained = tuple[Fitted, list[EpochRecord]]

MAX_SHARDS = 4096
"""The sum of so many integers of at most 50 bits fits into 63 bits."""


UNRESTRICTED: dict[str, Any] = {"max_features_per_split": None, "max_leaf_nodes": None, "leaf_model": "auto"}
"""Limits of readable trees that do not hold for the tree from which they are distilled."""


class TrainedRows(NamedTuple):
    """A tree, the records of its epochs, the selected parameters, all candidates, and the encoding of y."""

    fitted: Fitted
    history: list[EpochRecord]
    selected: dict[str, Any]
    trials: list[Trial]
    encoding: TargetEncoding


class WarmStart(NamedTuple):
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
    def split_off(self, fraction: float, seed: int) -> tuple[TrainingDataset, Any]:
        """Hold out a share of the rows for validation."""

    def adapt(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the resolved parameters as these rows train them."""
        return parameters

    def make_selection_task(self, task: TrainingTask, held_out: Any, seed: int) -> TrainingTask | None:
        """Return the task on which candidates are compared; None where another process compares them."""
        return task

    def load_validation(self, held_out: Any, seed: int) -> RowSet | None:
        """Return the validation rows in memory; None where another process has them."""
        return held_out

    def with_ranges(self, tree: SomeTree, task: TrainingTask) -> SomeTree:
        """Record the ranges of all features."""
        return task.with_ranges(tree)


class ArrayDataset(TrainingDataset):
    """Rows in memory."""

    def __init__(self, data: TrainingData) -> None:
        self.data, self.target, self.encoding = data, data.target, data.encoding
        self.image_shape, self.source = data.image_shape, data.source
        self.is_sparse = isinstance(data.X, SparseRows)
        self.only_hyperplanes = self.is_sparse or not self.target.has_axis_splits

    def learn_scaling(self, kind: str | None, n_jobs: int | None) -> Scaling:
        return learn_scaling(self.data.X, self.data.weight, kind, n_jobs)

    def make_task(self, scaling: Scaling, held_out: RowSet | None) -> TrainingTask:
        training, target = self.data.rows, self.target
        held_out = held_out and replace(held_out, y=target.conform(held_out.y))
        return TrainingTask(training, scaling, target, held_out)

    def describe(self, parameters: Mapping[str, Any], held_out: RowSet | None, start: Any) -> dict[str, Any]:
        """Return the inputs of a fit for a checkpoint's fingerprint; ``start`` are the trees of a warm start."""
        task = TrainingTask(self.data.rows, Scaling.none(self.data.X.shape[1]), self.target)  # not learned yet
        own = {"warm_start": start, "device": describe_device(parameters, task)}
        return self.data.describe(held_out) | own

    def split_off(self, fraction: float, seed: int) -> tuple[ArrayDataset, RowSet]:
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
        return ArrayDataset(rest), data.rows.select(held_out)

    def make_selection_task(self, task: TrainingTask, held_out: Any, seed: int) -> TrainingTask:
        return harden(task)

    def load_validation(self, held_out: RowSet, seed: int) -> RowSet:
        return replace(held_out, y=self.target.hard.conform(held_out.y))

    def with_ranges(self, tree: SomeTree, task: TrainingTask) -> SomeTree:
        return record_ranges(tree, self.data.X, self.data.missing_indicators)


@dataclass(frozen=True, eq=False)
class ShardDataset(TrainingDataset):
    """The rows of all processes of a group."""

    group: ProcessGroup
    shards: Shards
    encoding: TargetEncoding
    seed: int
    image_shape: tuple[int, ...] | None
    only_hyperplanes = False

    @property
    def target(self) -> Target:  # type: ignore[override]
        return self.encoding.target_of(self.encoding.make_empty())

    @cached_property
    def statistics(self) -> FeatureStatistics:
        """Statistics of the features of all rows."""
        return FeatureStatistics.of(self.group, self.shards)

    def adapt(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Train on the CPU by default, whose native engine is faster here; search thresholds, as candidates do."""
        is_searched = parameters["split"] == "axis" and parameters["grow"] == "greedy"
        own: dict[str, Any] = {"grow": "cart", "finetune_epochs": 0} if is_searched else {}
        return parameters | own | ({"device": "cpu"} if parameters["device"] == "auto" else {})

    def learn_scaling(self, kind: str | None, n_jobs: int | None) -> Scaling:
        return self.statistics.scaling(kind)

    def make_task(self, scaling: Scaling, held_out: Shards | None) -> ShardedTask:
        group, features = self.group, self.statistics
        no_rows = RowSet(np.zeros((0, features.n_features), np.float32), self.encoding.make_empty(), np.zeros(0))
        sample = no_rows
        if self.target.starts_at_node:
            sample = _sample_everywhere(group, self.shards, features.n_rows, self.seed)
        return ShardedTask(
            no_rows,
            scaling,
            self.target,
            group=group,
            shards=self.shards,
            validation_shards=held_out,
            total_rows=features.n_rows,
            row_weight=features.mean_weight,
            sample=sample,
        )

    def split_off(self, fraction: float, seed: int) -> tuple[ShardDataset, Shards]:
        rest, held_out = self.shards.split_off(fraction, seed)
        return replace(self, shards=rest), held_out

    def make_selection_task(self, task: TrainingTask, held_out: Shards | None, seed: int) -> TrainingTask | None:
        sample = _sample_on_first(self.group, self.shards, self.statistics.n_rows, seed)
        validation = None if held_out is None else self.load_validation(held_out, seed)
        return None if sample is None else TrainingTask(sample, task.scaling, self.target, validation)

    def load_validation(self, held_out: Shards, seed: int) -> RowSet | None:
        return _sample_on_first(self.group, held_out, self.statistics.n_rows, seed)


def fit_array(
    estimator: RowModel,
    rows: tuple[Any, Any, Any],
    eval_set: Any,
    checkpoints: Checkpoints,
    warm_start: WarmStart | None = None,
    *,
    source: npt.NDArray[np.intp] | None = None,
    classes: TargetEncoding | None = None,
) -> TrainedRows:
    """Train a tree on rows in memory, (X, y, sample_weight); set the input schema of the estimator.

    ``source`` maps copies to the rows that they are copies of; ``classes`` encodes y where it may lack classes.
    """
    encoding = classes if warm_start is None else warm_start.encoding
    parameters, data, held_out = check_fit(*(estimator, rows, eval_set, encoding), reset=warm_start is None)
    if source is not None:  # rows of no weight have been left out
        data = replace(data, source=source if rows[2] is None else source[np.asarray(rows[2]) > 0])
    if warm_start is not None:
        check_warm_start(parameters, warm_start.tree.structure, held_out is not None)
    prepare_device(parameters["device"])
    seed = draw_seed(parameters["random_state"])
    dataset = ArrayDataset(data)
    inputs = dataset.describe(parameters, held_out, warm_start and warm_start.tree)
    with checkpoints.keep(parameters, inputs, seed) as seed:
        return fit_rows(parameters, dataset, held_out, seed, warm_start)


def fit_process_group(
    estimator: RowModel,
    rows: tuple[Any, Any, Any],
    validation: Any,
    checkpoints: Checkpoints,
    n_shards: int,
) -> TrainedRows:
    """Train one tree on the rows (X, y, sample_weight) of all processes; set the input schema of the estimator."""
    parameters = estimator.training_parameters()
    group = ProcessGroup()
    group.run_on_all(lambda: _check(estimator, parameters, n_shards))
    check_same_parameters(
        group, {**{name: describe_value(value) for name, value in parameters.items()}, "shards": n_shards}
    )
    parameters["n_jobs"] = group.share_threads(parameters["n_jobs"])
    seed = group.from_first(lambda: draw_seed(parameters["random_state"]))
    local = group.run_on_all(lambda: check_local_rows(estimator, *rows))
    names, image_shape = _agree_on_columns(group, local)
    # A process may have no rows to learn the schema from.
    schema = replace(estimator.input_schema, n_features=local.X.shape[1], image_shape=image_shape)
    estimator.set_input_schema(schema)
    parameters = resolve_columns(parameters, schema)
    encoding, shards = _encode(group, estimator.ENCODING, local, n_shards, parameters)
    held_out = _share_validation(group, estimator, validation, encoding, local, n_shards)
    inputs = _fingerprint(group, encoding, shards, held_out, parameters["device"])
    with _keep_checkpoints(group, checkpoints, parameters, inputs, seed) as seed:
        data = ShardDataset(group, shards, encoding, seed, image_shape)
        trained = fit_rows(parameters, data, held_out, seed)
    # The same schema in every process, whatever its own rows have.
    estimator.set_input_schema(
        InputSchema(local.X.shape[1], names, image_shape=image_shape, encoded_by=schema.encoded_by)
    )
    return trained


def _check(estimator: RowModel, parameters: Mapping[str, Any], n_shards: Any) -> None:
    check_parameters(estimator.declared_parameters(), parameters, rows="process group")
    if isinstance(n_shards, bool) or not isinstance(n_shards, int) or not 1 <= n_shards <= MAX_SHARDS:
        raise ValueError(f"`shards` must be a whole number from 1 to {MAX_SHARDS}; got {n_shards!r}.")


def _encode(
    group: ProcessGroup, kind: type[TargetEncoding], local: LocalRows, n_shards: int, parameters: Mapping[str, Any]
) -> tuple[TargetEncoding, Shards]:
    """Learn the encoding of the y of all processes; return it with the shards of this process, y encoded."""
    summaries = group.gather(kind.summarize(local.y))
    encoding = group.run_on_all(lambda: kind.merge(summaries))
    shards = Shards.of(RowSet(local.X, encoding.to_numeric(local.y), local.weight), group, n_shards)
    encoding = encoding.reduce(shards.parts, group, parameters)
    y, weight = encoding.encode(shards.rows.y, shards.rows.weight)
    shards = replace(shards, rows=RowSet(shards.rows.X, y, weight)).select(weight > 0)
    if not group.total([float(len(shards.rows.y))]):
        raise ValueError("the weights must leave at least one row with a positive weight; got only zeros.")
    return encoding, shards


def _agree_on_columns(group: ProcessGroup, local: LocalRows) -> tuple[npt.NDArray[Any] | None, tuple[int, ...] | None]:
    """Return the column names and image shape of the processes that have rows, which must be the same."""
    gathered = group.gather((len(local.y), local.X.shape[1], local.names, local.image_shape))
    widths = [width for _, width, _, _ in gathered]
    if len(set(widths)) > 1:
        texts = ", ".join(f"{width} in process {rank}" for rank, width in enumerate(widths[:8]))
        more = ", …" if len(widths) > 8 else ""
        raise ValueError(f"all processes must have rows of as many features; got {texts}{more}.")
    if not sum(n for n, _, _, _ in gathered):
        raise ValueError("the process group must have at least one row with a positive weight; it has none.")
    labels = [None if names is None else list(names) for n, _, names, _ in gathered if n]
    shapes = [shape for n, _, _, shape in gathered if n]
    for what, values in (("names of columns", labels), ("image_shape of X", shapes)):
        if any(value != values[0] for value in values):
            raise ValueError(f"all processes must have the same {what}; got {values[:8]}.")
    return None if labels[0] is None else np.array(labels[0], dtype=object), shapes[0]


def _share_validation(
    group: ProcessGroup, estimator: RowModel, validation: Any, encoding: TargetEncoding, local: LocalRows, n_shards: int
) -> Shards | None:
    """Distribute the validation rows of all processes; some may have none."""
    if not any(group.gather(validation is not None)):
        return None

    def own() -> RowSet:
        if validation is None or not len(validation_pair(validation)[1]):
            return RowSet(local.X[:0], encoding.make_empty(), np.zeros(0))
        return check_validation(estimator, validation, encoding)

    part = group.run_on_all(own)
    if not group.total([float(len(part.y))]):
        raise ValueError("`eval_set` must have rows in some process; all are without.")
    return Shards.of(part, group, n_shards)


def _sample_on_first(group: ProcessGroup, shards: Shards, n_rows: int, seed: int) -> RowSet | None:
    """Sample rows of all shards on rank 0; None on other ranks."""
    parts = group.gather_first(shards.sample(SAMPLE_ROWS, n_rows, seed) if shards.parts else None)
    return None if parts is None else RowSet.concatenate([part for part in parts if part is not None])


def _sample_everywhere(group: ProcessGroup, shards: Shards, n_rows: int, seed: int) -> RowSet:
    """Sample rows of all shards, the same on every rank."""
    parts = group.gather(shards.sample(SAMPLE_ROWS, n_rows, seed) if shards.parts else None)
    return RowSet.concatenate([part for part in parts if part is not None])


def _fingerprint(
    group: ProcessGroup, encoding: TargetEncoding, shards: Shards, held_out: Shards | None, device: str
) -> dict[str, Any]:
    """Describe the data of a checkpoint by checksums of all shards, the same for any number of processes."""

    def of(some: Shards) -> list[str]:
        return [text for texts in group.gather([digest(part) for part in some.parts]) for text in texts]

    inputs: dict[str, Any] = {"rows": of(shards), "classes": encoding.classes, "shards": shards.n_shards}
    inputs["device"] = "cpu" if device == "auto" else device
    return inputs | {"validation": None if held_out is None else of(held_out)}


@contextmanager
def _keep_checkpoints(
    group: ProcessGroup, checkpoints: Checkpoints, parameters: Mapping[str, Any], inputs: dict[str, Any], seed: int
) -> Iterator[int]:
    """Write checkpoints inside on rank 0, if it has a folder; provide the seed of the fit."""
    with ExitStack() as stack:
        seed = group.from_first(lambda: stack.enter_context(checkpoints.keep(parameters, inputs, seed)))
        if group.from_first(lambda: checkpoints.folder is not None):
            stack.enter_context(keep_shared_checkpoints(group))
        yield seed


def fit_rows(
    parameters: Mapping[str, Any],
    data: TrainingDataset,
    validation: Any,
    seed: int,
    warm_start: WarmStart | None = None,
) -> TrainedRows:
    """Train a tree on validated rows: select what is "auto", train, postprocess, and restore the units of y."""
    full_data, explicit = data, validation
    fraction = parameters["validation_fraction"]
    if validation is None and holds_out(parameters):
        data, validation = data.split_off(fraction, seed)

    restricted, parameters = parameters, relax_limits(parameters, data)
    start, previous = None, None
    if warm_start is not None:
        start, previous = warm_start.tree, retain_selected(warm_start.selected, parameters)
    resolution, task = prepare(parameters, data, validation, TreeEvaluator, seed, start, previous)
    values = data.adapt(resolution.parameters)
    limits = None
    if parameters is not restricted:  # those of the tree that is distilled from the trained one
        split = "oblique" if restricted["split"] == "auto" else restricted["split"]
        limits = values | {name: restricted[name] for name in (*UNRESTRICTED, "min_samples_leaf")} | {"split": split}
        if is_auto(restricted, "shrinkage") and has_linear_leaves(values) and not data.target.is_regression:
            # Selected for leaves with models of all features, where tables are not used.
            values = values | {"shrinkage": TRIAL_SHRINKAGE * task.mean_weight}
    needs_rows = values["finetune_epochs"] or is_postprocessing_unresolved(values)
    if explicit is None and validation is not None and not needs_rows:
        # No epoch is scored after all: the rows that were held out for it train too.
        data, validation = full_data, None
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
        tree = full_data.with_ranges(fitted.tree, task)
        fitted = fitted._replace(tree=tree, greedy=tree if fitted.greedy is fitted.tree else fitted.greedy)
    fitted = restore_units(fitted, data.encoding)
    if values.get("round_splits"):
        from crisptree.pipeline.readable import round_leaves  # not on the path of other fits

        tree = round_leaves(fitted.tree, task)
        fitted = fitted._replace(tree=tree, greedy=tree)
    selected = dict(resolution.selected)
    if limits:
        selected = {name: values.get(name) if name == "shrinkage" else value for name, value in selected.items()}
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
    start: CrispTree | None,
    previous: Mapping[str, Any] | None,
) -> tuple[Resolution, TrainingTask]:
    """Scale rows and resolve "auto" for a tree or a forest; in a process group one process selects for all.

    ``start`` is a tree whose scaling is kept, and ``previous`` what was selected for it.
    """
    check_order(parameters, data.target)
    if parameters["split"] == "auto" and (data.only_hyperplanes or requires_hyperplanes(parameters)):
        parameters = {**parameters, "split": "oblique"}
    scale = resolve_scale(parameters, data.image_shape, is_sparse=data.is_sparse)
    task = make_scaled_task(parameters, data, validation, scale, start)
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
        return resolution, make_scaled_task(parameters, data, validation, selected_scale, start)
    return resolution, task


def make_scaled_task(
    parameters: Mapping[str, Any], data: TrainingDataset, validation: Any, scale: str | None, start: CrispTree | None
) -> TrainingTask:
    """Make the training task with a scaling of this kind, or with that of a previous tree."""
    if start is not None:
        return data.make_task(start.statistics.scaling, validation)
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
    start: CrispTree | None = None,
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
        fitted = fit_tree(spec, task, start=start, on_epoch=recorder.record)
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
    estimator: RowModel, fitted: WarmStart, rows: tuple[Any, Any, Any], decay: float
) -> tuple[CrispTree, list[EpochRecord]]:
    """Train a fitted tree on new rows, (X, y, sample_weight); see ``partial_fit`` of its estimator."""
    parameters, data, _ = check_fit(estimator, rows, None, fitted.encoding, reset=False)
    values = apply_selected(parameters, fitted.selected, data.image_shape, is_sparse=isinstance(data.X, SparseRows))
    # L-BFGS does not add leaf statistics of previous rows; the growth options of the first fit have had their effect.
    values |= {"grow": "greedy", "early_stopping": False, "optimizer": "adam"}
    new_rows, before = data.rows, fitted.tree
    task = TrainingTask(new_rows, before.statistics.scaling, data.target)
    spec = spec_of(values, task, data.image_shape, draw_seed(parameters["random_state"]))
    with record_epochs(values["verbose"], values["callbacks"]) as recorder:
        tree = update_tree(before, spec, task, decay=decay, on_epoch=recorder.record)
    if values.get("round_splits"):
        assert isinstance(tree, FlatTree)
        assert isinstance(new_rows.X, np.ndarray)
        tree = round_splits(tree, new_rows.X, new_rows.weight)
    sums = sum_statistics(tree, new_rows.X, new_rows.y, new_rows.weight, spec.n_jobs, task.target)
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
    from crisptree.pipeline.readable import Teacher, count_rounded, distil_readable  # not on the path of other fits

    assert isinstance(fitted.tree, FlatTree)

    def make_spec(values: Mapping[str, Any], part: TrainingTask) -> Spec:
        return spec_of(values, part, None, seed)

    tree, teacher = fitted.tree, None
    if limits is not None:
        teacher = Teacher.of(tree, parameters, task, make_spec, seed)
        tree = distil_readable(teacher, parameters, limits, task, make_spec, seed, source)
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
