"""The fit of a tree by a process group, each process with its own rows. Imports torch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from crisptree.data.raw_rows import Scaling
from crisptree.data.validation import InputSchema, find_image_shape, is_sparse, needs_encoder, resolve_columns
from crisptree.encoding.containers import materialize
from crisptree.learning.process_group import (
    FeatureStatistics,
    ProcessGroup,
    ShardedTask,
    Shards,
    keep_shared_checkpoints,
)
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.pipeline.forests import LOCAL_PARAMETERS, Workers
from crisptree.pipeline.monitoring import Checkpoints, describe_value, digest
from crisptree.pipeline.trees import TrainedRows, TrainingDataset, fit_rows
from crisptree.pipeline.validation import (
    RowModel,
    check_parameters,
    check_training_rows,
    check_validation,
    draw_seed,
    validation_pair,
)
from crisptree.selection.search import SAMPLE_ROWS
from crisptree.targets import Target
from crisptree.targets.base import TargetEncoding, check_sample_weight, check_total_weight, detach, sum_weights
from crisptree.threads import n_threads

MAX_SHARDS = 4096
"""The sum of so many integers of at most 50 bits fits into 63 bits."""


class LocalRows(NamedTuple):
    """Validated rows of one process with unencoded y, weights, column names and image shape."""

    X: npt.NDArray[np.float32]
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]
    names: npt.NDArray[Any] | None
    image_shape: tuple[int, ...] | None


def gather_rows(
    estimator: RowModel, rows: tuple[Any, Any, Any], eval_set: Any, checkpoints: Checkpoints
) -> tuple[tuple[Any, Any, Any], Any, Workers]:
    """Give every process the rows (X, y, sample_weight) of all, and the validation rows, for a forest.

    A tree of a forest draws from all rows, and trees are independent: the processes share the trees.
    """
    group, parameters = ProcessGroup(), estimator.training_parameters()
    _check_same(group, {name: describe_value(value) for name, value in parameters.items()})

    def read() -> tuple[list[Any], list[Any] | None]:
        if checkpoints.folder is not None:
            raise ValueError("`checkpoint` must be None for a forest by several processes; fit it in a single process.")
        pair = None if eval_set is None else [detach(part) for part in validation_pair(eval_set)]
        return [materialize(detach(part)) for part in rows], pair

    everywhere = group.gather(group.run_on_all(read))
    X, y, weight = (_concatenate(parts) for parts in zip(*(own for own, _ in everywhere), strict=True))
    pairs = [pair for _, pair in everywhere if pair is not None]
    validation = tuple(_concatenate(parts) for parts in zip(*pairs, strict=True)) if pairs else None
    return (X, y, weight), validation, Workers(group)


def _concatenate(parts: Sequence[Any]) -> Any:
    """Concatenate the rows of all processes: DataFrames, sparse matrices, or anything that becomes an array."""
    missing = [part is None for part in parts]
    if any(missing):
        if not all(missing):
            raise ValueError("all processes must give y and sample_weight, or none; some gave None.")
        return None
    if hasattr(parts[0], "iloc"):
        import pandas
        from pandas.api.types import union_categoricals

        rows = pandas.concat(parts, ignore_index=True)
        for name in getattr(rows, "columns", ()):
            if all(isinstance(part[name].dtype, pandas.CategoricalDtype) for part in parts):
                rows[name] = union_categoricals([part[name] for part in parts], ignore_order=True)
        return rows
    return sparse.vstack(parts, format="csr") if is_sparse(parts[0]) else np.concatenate([*map(np.asarray, parts)])


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
    _check_same(group, {**{name: describe_value(value) for name, value in parameters.items()}, "shards": n_shards})
    # Processes of one machine share its cores.
    parameters["n_jobs"] = n_threads(parameters["n_jobs"], int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    seed = group.from_first(lambda: draw_seed(parameters["random_state"]))
    local = group.run_on_all(lambda: _check_local_rows(estimator, *rows))
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


@dataclass(frozen=True, eq=False)
class ShardDataset(TrainingDataset):
    """The rows of all processes of a group."""

    group: ProcessGroup
    shards: Shards
    encoding: TargetEncoding
    seed: int
    image_shape: tuple[int, ...] | None

    @property
    def target(self) -> Target:  # type: ignore[override]
        return self.encoding.target_of(self.encoding.make_empty())

    @cached_property
    def statistics(self) -> FeatureStatistics:
        """Statistics of the features of all rows."""
        return FeatureStatistics.of(self.group, self.shards)

    def device(self, name: str) -> str:
        """Resolve "auto" to the CPU, whose native engine is faster here than torch on CUDA."""
        return "cpu" if name == "auto" else name

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

    def split_off(self, fraction: float, seed: int) -> tuple[Self, Shards]:
        rest, held_out = self.shards.split_off(fraction, seed)
        return replace(self, shards=rest), held_out

    def make_selection_task(self, task: TrainingTask, held_out: Shards | None, seed: int) -> TrainingTask | None:
        sample = _sample_on_first(self.group, self.shards, self.statistics.n_rows, seed)
        validation = None if held_out is None else self.load_validation(held_out, seed)
        return None if sample is None else TrainingTask(sample, task.scaling, self.target, validation)

    def load_validation(self, held_out: Shards, seed: int) -> RowSet | None:
        return _sample_on_first(self.group, held_out, self.statistics.n_rows, seed)


def _check(estimator: RowModel, parameters: Mapping[str, Any], n_shards: Any) -> None:
    check_parameters(estimator.declared_parameters(), parameters, rows="process group")
    if isinstance(n_shards, bool) or not isinstance(n_shards, int) or not 1 <= n_shards <= MAX_SHARDS:
        raise ValueError(f"`shards` must be a whole number from 1 to {MAX_SHARDS}; got {n_shards!r}.")


def _check_same(group: ProcessGroup, own: dict[str, Any]) -> None:
    everywhere = group.gather({name: value for name, value in own.items() if name not in LOCAL_PARAMETERS})
    for rank, other in enumerate(everywhere):
        names = [name for name in other if other[name] != everywhere[0][name]]
        if names:
            raise ValueError(
                f"all processes must fit with the same parameters; process {rank} differs from process 0 in "
                f"{', '.join(names)}."
            )


def _check_local_rows(estimator: RowModel, X: Any, y: Any, sample_weight: Any) -> LocalRows:
    """Validate the rows of this process; there may be none."""
    parameters = estimator.training_parameters()
    X, y, sample_weight = materialize(detach(X)), detach(y), detach(sample_weight)
    if is_sparse(X):
        raise ValueError("X must be dense for a fit by several processes; got a sparse matrix. Use X.toarray().")
    if parameters["leaf_model"] in ("auto", "constant") and needs_encoder(parameters["categorical_features"], X):
        raise ValueError(
            "X must be all finite numbers for a fit by several processes, because no process sees all values of a "
            "column; got a table with text, categories or missing values. Encode it first, "
            "by a TableEncoder fitted on all rows."
        )
    if y is None or estimator.ENCODING.read(y).classes is not None:
        raise ValueError("y must be class labels, (n_samples,), or numbers for a fit by several processes.")
    n_rows = len(np.asarray(y))
    if sample_weight is not None:  # of all processes alike, so that none may rescale its own
        check_total_weight(sum_weights(np.asarray(sample_weight, dtype=np.float64)))
    if sample_weight is not None and n_rows and not np.any(np.asarray(sample_weight) > 0):
        X, y, sample_weight, n_rows = X[:0], y[:0], None, 0
    if not n_rows:
        none = np.asarray(X, dtype=np.float32)
        shape = find_image_shape(none, parameters["image_shape"])
        none = none.reshape(0, int(np.prod(none.shape[1:], dtype=np.int64)))
        return LocalRows(none, np.asarray(y), np.zeros(0), None, shape)
    rows = check_training_rows(
        estimator, X, y, sample_weight, reset=True, multi_output=estimator.ENCODING.read(y).is_multi_output
    )
    y = estimator.ENCODING.check(rows.y)
    weight = check_sample_weight(sample_weight, rows.X)
    kept = weight > 0
    return LocalRows(rows.X[kept], y[kept], weight[kept], rows.schema.feature_names, rows.schema.image_shape)


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
    everywhere = group.gather((len(local.y), local.X.shape[1], local.names, local.image_shape))
    widths = [width for _, width, _, _ in everywhere]
    if len(set(widths)) > 1:
        texts = ", ".join(f"{width} in process {rank}" for rank, width in enumerate(widths[:8]))
        more = ", …" if len(widths) > 8 else ""
        raise ValueError(f"all processes must have rows of as many features; got {texts}{more}.")
    if not sum(n for n, _, _, _ in everywhere):
        raise ValueError("the process group must have at least one row with a positive weight; it has none.")
    labels = [None if names is None else list(names) for n, _, names, _ in everywhere if n]
    shapes = [shape for n, _, _, shape in everywhere if n]
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
