"""The fit of a tree by several processes, each with its own rows. Imported only when they train."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from crisptree.data.scaling import Scaling
from crisptree.data.validation import find_image_shape, is_sparse, needs_encoder, resolve_columns
from crisptree.distributed import MAX_SHARDS
from crisptree.encoding.containers import materialize
from crisptree.learning.checkpoint import keep_shared_checkpoints
from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.distributed.rows import FeatureStatistics, Shards, joined
from crisptree.learning.sources.shards import ShardedTask
from crisptree.learning.task import RowSet, TrainingTask
from crisptree.parameters.declaration import Parameter
from crisptree.pipeline import validation as checks
from crisptree.pipeline.capabilities import check_parameters
from crisptree.pipeline.checkpoints import Checkpoints, digest, told
from crisptree.pipeline.trees import Dataset, TrainedRows, fit_rows
from crisptree.pipeline.validation import RowModel
from crisptree.selection.folds import SAMPLE_ROWS
from crisptree.targets import Target
from crisptree.targets.base import TargetEncoding
from crisptree.targets.labels import check_sample_weight, check_total_weight, sum_weights
from crisptree.tensors import detach
from crisptree.threads import n_threads

OWN = ("n_jobs", "verbose", "callbacks", "random_state", "device")
"""Parameters that may differ between processes; the first one's seed, callbacks and line of progress count."""


class LocalRows(NamedTuple):
    """The rows of one process, y as it was passed, weights; names of columns and the image that a row is."""

    X: npt.NDArray[np.float32]
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]
    names: npt.NDArray[Any] | None
    image_shape: tuple[int, ...] | None


class ProcessGroupFit(NamedTuple):
    """What a fit by several processes has learned, the same in each."""

    trained: TrainedRows
    encoding: TargetEncoding
    n_features: int
    names: npt.NDArray[Any] | None
    image_shape: tuple[int, ...] | None


def fit_process_group(
    estimator: RowModel,
    rows: tuple[Any, Any, Any],
    validation: Any,
    checkpoints: Checkpoints,
    n_shards: int,
) -> ProcessGroupFit:
    """Train one tree on the rows of all processes, (X, y, sample_weight), and on their validation rows.

    The estimator takes up the schema of the columns.
    """
    parameters = estimator.training_parameters()
    group = ProcessGroup()
    group.agreed(lambda: _check(estimator.declared_parameters(), parameters, n_shards))
    _check_same(group, {**{name: told(value) for name, value in parameters.items()}, "shards": n_shards})
    # Processes of one machine share its cores.
    parameters["n_jobs"] = n_threads(parameters["n_jobs"], int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    seed = group.from_first(lambda: checks.draw_seed(parameters["random_state"]))
    given = group.agreed(lambda: _check_own_rows(estimator, *rows))
    names, image_shape = _agree_on_columns(group, given)
    # A process may have no rows to learn the schema from.
    schema = replace(estimator.input_schema, n_features=given.X.shape[1], image_shape=image_shape)
    estimator.set_input_schema(schema)
    parameters = resolve_columns(parameters, schema)
    encoding, shards = _encode(group, estimator.ENCODING, given, n_shards, parameters)
    held_out = _share_validation(group, estimator, validation, encoding, given, n_shards)
    known = _fingerprint(group, encoding, shards, held_out, parameters["device"])
    with _kept(group, checkpoints, parameters, known, seed) as seed:
        data = ShardDataset(group, shards, encoding, seed, image_shape)
        trained = fit_rows(parameters, data, held_out, None, {}, seed)
    return ProcessGroupFit(trained, encoding, given.X.shape[1], names, image_shape)


@dataclass(frozen=True, eq=False)
class ShardDataset(Dataset):
    """The rows of all processes of a group."""

    group: ProcessGroup
    shards: Shards
    encoding: TargetEncoding
    seed: int
    image_shape: tuple[int, ...] | None

    @property
    def target(self) -> Target:  # type: ignore[override]
        return self.encoding.target_of(self.encoding.no_rows())

    @cached_property
    def survey(self) -> FeatureStatistics:
        """Statistics of the features of all rows."""
        return FeatureStatistics.of(self.group, self.shards)

    def device(self, name: str) -> str:
        """The native steps are quicker than torch's, which CUDA would take here."""
        return "cpu" if name == "auto" else name

    def scaling(self, kind: str | None, n_jobs: int | None) -> Scaling:
        return self.survey.scaling(kind)

    def problem(self, scaling: Scaling, held: Shards | None) -> ShardedTask:
        group, survey = self.group, self.survey
        nothing = RowSet(np.zeros((0, survey.n_features), np.float32), self.encoding.no_rows(), np.zeros(0))
        sample = nothing
        if self.target.starts_at_node:
            sample = _everywhere(group, self.shards, survey.n_rows, self.seed)
        return ShardedTask(
            nothing,
            scaling,
            self.target,
            group=group,
            shards=self.shards,
            validation_shards=held,
            total_rows=survey.n_rows,
            row_weight=survey.mean_weight,
            sample=sample,
        )

    def split_off(self, fraction: float, seed: int) -> tuple[Self, Shards]:
        rest, held = self.shards.divided(fraction, seed)
        return replace(self, shards=rest), held

    def selection_problem(self, problem: TrainingTask, held: Shards | None, seed: int) -> TrainingTask | None:
        sample = _at_first(self.group, self.shards, self.survey.n_rows, seed)
        validation = None if held is None else self.validation_part(held, seed)
        return None if sample is None else TrainingTask(sample, problem.scaling, self.target, validation)

    def validation_part(self, held: Shards, seed: int) -> RowSet | None:
        return _at_first(self.group, held, self.survey.n_rows, seed)


def _check(declared: Mapping[str, Parameter], parameters: Mapping[str, Any], n_shards: Any) -> None:
    check_parameters(declared, parameters, rows="process group")
    if isinstance(n_shards, bool) or not isinstance(n_shards, int) or not 1 <= n_shards <= MAX_SHARDS:
        raise ValueError(f"`shards` must be a whole number from 1 to {MAX_SHARDS}; got {n_shards!r}.")


def _check_same(group: ProcessGroup, here: dict[str, Any]) -> None:
    everywhere = group.gather({name: value for name, value in here.items() if name not in OWN})
    for rank, there in enumerate(everywhere):
        names = [name for name in there if there[name] != everywhere[0][name]]
        if names:
            raise ValueError(
                f"all processes must fit with the same parameters; process {rank} differs from process 0 in "
                f"{', '.join(names)}."
            )


def _check_own_rows(estimator: RowModel, X: Any, y: Any, sample_weight: Any) -> LocalRows:
    """Check the rows of this process; there may be none."""
    parameters = estimator.training_parameters()
    X, y, sample_weight = materialize(detach(X)), detach(y), detach(sample_weight)
    if is_sparse(X):
        raise ValueError("X must be dense for a fit by several processes; got a sparse matrix. Use X.toarray().")
    if parameters["leaf_model"] == "constant" and needs_encoder(parameters["categorical_features"], X):
        raise ValueError(
            "X must be all finite numbers for a fit by several processes, because no process sees all values of a "
            "column; got a table with text, categories or holes. Encode it before by a TableEncoder that has seen all."
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
    rows = checks.check_training_rows(
        estimator, X, y, sample_weight, reset=True, multi_output=estimator.ENCODING.read(y).is_multi_output
    )
    y = estimator.ENCODING.check(rows.y)
    weight = check_sample_weight(sample_weight, rows.X)
    kept = weight > 0
    return LocalRows(rows.X[kept], y[kept], weight[kept], rows.schema.feature_names, rows.schema.image_shape)


def _encode(
    group: ProcessGroup, kind: type[TargetEncoding], given: LocalRows, n_shards: int, parameters: Mapping[str, Any]
) -> tuple[TargetEncoding, Shards]:
    """The encoding of the y of all processes, and the shards of this one with encoded y."""
    summaries = group.gather(kind.summarize(given.y))
    encoding = group.agreed(lambda: kind.merge(summaries))
    shards = Shards.of(RowSet(given.X, encoding.as_numbers(given.y), given.weight), group, n_shards)
    encoding = encoding.reduce(shards.parts, group, parameters)
    parts = []
    for part in shards.parts:
        y, weight = encoding.encode(part.y, part.weight)
        kept = slice(None) if (weight > 0).all() else weight > 0
        parts.append(RowSet(part.X[kept], y[kept], weight[kept]))
    if not group.total([float(len(part.y)) for part in parts]):
        raise ValueError("the weights must leave at least one row with a positive weight; got only zeros.")
    return encoding, Shards(parts, shards.first, shards.n_shards)


def _agree_on_columns(group: ProcessGroup, given: LocalRows) -> tuple[npt.NDArray[Any] | None, tuple[int, ...] | None]:
    """Names of columns and the image that a row is, as those processes have them that have rows."""
    everywhere = group.gather((len(given.y), given.X.shape[1], given.names, given.image_shape))
    widths = [width for _, width, _, _ in everywhere]
    if len(set(widths)) > 1:
        said = ", ".join(f"{width} in process {rank}" for rank, width in enumerate(widths[:8]))
        raise ValueError(f"all processes must have rows of as many features; got {said}{_more(widths)}.")
    if not sum(n for n, _, _, _ in everywhere):
        raise ValueError("the processes must have at least one row with a positive weight together; they have none.")
    texts = [None if names is None else list(names) for n, _, names, _ in everywhere if n]
    shapes = [shape for n, _, _, shape in everywhere if n]
    for what, values in (("names of columns", texts), ("image_shape of X", shapes)):
        if any(value != values[0] for value in values):
            raise ValueError(f"all processes must have the same {what}; got {values[:8]}.")
    return None if texts[0] is None else np.array(texts[0], dtype=object), shapes[0]


def _more(values: list[Any]) -> str:
    return ", …" if len(values) > 8 else ""


def _share_validation(
    group: ProcessGroup, estimator: RowModel, validation: Any, encoding: TargetEncoding, given: LocalRows, n_shards: int
) -> Shards | None:
    """The validation rows of all processes; some may have none."""
    if not any(group.gather(validation is not None)):
        return None

    def own() -> RowSet:
        if validation is None or not len(checks.validation_pair(validation)[1]):
            return RowSet(given.X[:0], encoding.no_rows(), np.zeros(0))
        return checks.check_validation(estimator, validation, encoding)

    part = group.agreed(own)
    if not group.total([float(len(part.y))]):
        raise ValueError("`validation` must have rows in some process; all are without.")
    return Shards.of(part, group, n_shards)


def _at_first(group: ProcessGroup, shards: Shards, n_rows: int, seed: int) -> RowSet | None:
    """Some rows of all shards, for the first process."""
    found = group.gather_first(shards.drawn(SAMPLE_ROWS, n_rows, seed) if shards.parts else None)
    return None if found is None else joined([part for part in found if part is not None])


def _everywhere(group: ProcessGroup, shards: Shards, n_rows: int, seed: int) -> RowSet:
    """The same rows for every process."""
    found = group.gather(shards.drawn(SAMPLE_ROWS, n_rows, seed) if shards.parts else None)
    return joined([part for part in found if part is not None])


def _fingerprint(
    group: ProcessGroup, encoding: TargetEncoding, shards: Shards, held_out: Shards | None, device: str
) -> dict[str, Any]:
    """What a checkpoint is of: checksums of all shards, the same for any number of processes."""

    def of(some: Shards) -> list[str]:
        return [text for texts in group.gather([digest(part) for part in some.parts]) for text in texts]

    known: dict[str, Any] = {"rows": of(shards), "classes": encoding.classes, "shards": shards.n_shards}
    known["device"] = "cpu" if device == "auto" else device
    return known | {"validation": None if held_out is None else of(held_out)}


@contextmanager
def _kept(
    group: ProcessGroup, checkpoints: Checkpoints, parameters: Mapping[str, Any], known: dict[str, Any], seed: int
) -> Iterator[int]:
    """Inside, the first process keeps trainings, if it has a folder; the seed of the fit."""
    with ExitStack() as stack:
        seed = group.from_first(lambda: stack.enter_context(checkpoints.kept(parameters, known, seed)))
        if group.from_first(lambda: checkpoints.folder is not None):
            stack.enter_context(keep_shared_checkpoints(group))
        yield seed
