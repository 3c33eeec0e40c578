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
from sklearn.utils.validation import check_random_state

from crisptree.blocks import n_threads
from crisptree.data.scaling import Scaling
from crisptree.distributed import MOST_SHARDS
from crisptree.estimators import validation as checks
from crisptree.estimators.base import Checkpoints
from crisptree.estimators.checkpoints import digest, told
from crisptree.estimators.consistency import check_parameters
from crisptree.estimators.constraints import by_number
from crisptree.estimators.fitting import Dataset, TrainedRows, fit_rows
from crisptree.estimators.images import image_shape_of
from crisptree.estimators.numbers import NumberScale, check_unscaled_numbers, check_validation_numbers
from crisptree.estimators.together_answers import Agreed, Given, agreed_classes, agreed_numbers
from crisptree.estimators.weights import check_total_weight, sum_weights
from crisptree.learning.distributed.group import ProcessGroup
from crisptree.learning.distributed.journal import keeping_together
from crisptree.learning.distributed.rows import Shards, Survey, joined
from crisptree.learning.sources.shards import ShardedProblem
from crisptree.learning.task import Part, Problem
from crisptree.selection.folds import SAMPLE_ROWS
from crisptree.targets import Target
from crisptree.tensors import detach

ONLY: dict[str, tuple[Any, ...]] = {
    "split": ("auto", "oblique"),
    "grow": ("greedy",),
    "algorithm": ("likelihood", "em", "alternating"),
    "leaves": ("constant",),
    "shifts": (0,),
    "warm_start": (False,),
}
"""What several processes can do together."""

BECAUSE = {
    "split": "thresholds are found by sorting whole columns, and gradients of modules have no units known before",
    "grow": "other trees are found by looking at all rows at once",
    "algorithm": "the rivals' steps look at all rows at once",
    "leaves": "the model of a leaf is fitted to all of its rows at once",
    "shifts": "no process knows how the others have shifted their images",
    "warm_start": "processes might go on from different trees",
}
"""Why they cannot do more."""

OWN = ("n_jobs", "verbose", "callbacks", "random_state", "device")
"""Parameters that may differ between processes; the first one's seed, callbacks and line of progress count."""


class Together(NamedTuple):
    """What a fit by several processes leaves behind, the same in each; ``labels`` are classes, or how many numbers."""

    trained: TrainedRows
    labels: Any
    n_features: int
    names: npt.NDArray[Any] | None
    image_shape: tuple[int, ...] | None


def fit_together(
    estimator: Any,
    rows: tuple[Any, Any, Any],
    validation: Any,
    checkpoints: Checkpoints,
    n_shards: int,
    *,
    has_numbers: bool = False,
) -> Together:
    """Train one tree on the rows of all processes: (X, y, sample_weight), and rows that judge it."""
    parameters = estimator.get_params(deep=False)
    group = ProcessGroup()
    group.agreed(lambda: _check(estimator.PARAMETERS, parameters, n_shards))
    _check_same(group, {**{name: told(value) for name, value in parameters.items()}, "shards": n_shards})
    # Processes of one machine share its cores.
    parameters["n_jobs"] = n_threads(parameters["n_jobs"], int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    seed = group.from_first(lambda: int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max)))
    given = group.agreed(lambda: _own_rows(estimator, *rows, has_numbers=has_numbers))
    names, image_shape = _agree_on_columns(group, given)
    estimator.n_features_in_, estimator.image_shape_ = given.X.shape[1], image_shape  # a process may have no rows
    parameters = by_number(parameters, estimator)
    answers = (agreed_numbers if has_numbers else agreed_classes)(group, given, n_shards, parameters)
    judges = _judges(group, estimator, validation, answers, given, n_shards)
    known = _fingerprint(group, answers, judges, n_shards, parameters["device"])
    with _kept(group, checkpoints, parameters, known, seed) as seed:
        data = ShardDataset(group, answers, seed, image_shape)
        trained = fit_rows(parameters, data, judges, None, {}, seed)
    return Together(trained, answers.labels, given.X.shape[1], names, image_shape)


@dataclass(frozen=True, eq=False)
class ShardDataset(Dataset):
    """The rows of all processes of a group."""

    group: ProcessGroup
    answers: Agreed
    seed: int
    image_shape: tuple[int, ...] | None

    @property
    def target(self) -> Target:  # type: ignore[override]
        return self.answers.target

    @property
    def y_scale(self) -> NumberScale | None:  # type: ignore[override]
        return self.answers.scale

    @cached_property
    def survey(self) -> Survey:
        """Statistics of the features of all rows."""
        return Survey.of(self.group, self.answers.shards)

    def device(self, name: str) -> str:
        """The native steps are quicker than torch's, which CUDA would take here."""
        return "cpu" if name == "auto" else name

    def scaling(self, kind: str | None, n_jobs: int | None) -> Scaling:
        return self.survey.scaling(kind)

    def problem(self, scaling: Scaling, held: Shards | None) -> ShardedProblem:
        group, answers, survey = self.group, self.answers, self.survey
        nothing = Part(np.zeros((0, survey.n_features), np.float32), answers.no_labels, np.zeros(0))
        sample = nothing
        if self.target.starts_at_node:
            sample = _everywhere(group, answers.shards, survey.n_rows, self.seed)
        return ShardedProblem(
            nothing,
            scaling,
            self.target,
            group=group,
            shards=answers.shards,
            held=held,
            total_rows=survey.n_rows,
            row_weight=survey.mean_weight,
            sample=sample,
        )

    def split_off(self, fraction: float, seed: int) -> tuple[Self, Shards]:
        rest, held = self.answers.shards.divided(fraction, seed)
        return replace(self, answers=replace(self.answers, shards=rest)), held

    def selection_problem(self, problem: Problem, held: Shards | None, seed: int) -> Problem | None:
        sample = _at_first(self.group, self.answers.shards, self.survey.n_rows, seed)
        validation = None if held is None else self.validation_part(held, seed)
        return None if sample is None else Problem(sample, problem.scaling, self.target, validation)

    def validation_part(self, held: Shards, seed: int) -> Part | None:
        return _at_first(self.group, held, self.survey.n_rows, seed)


def _check(declared: Any, parameters: Mapping[str, Any], n_shards: Any) -> None:
    check_parameters(declared, parameters)
    if isinstance(n_shards, bool) or not isinstance(n_shards, int) or not 1 <= n_shards <= MOST_SHARDS:
        raise ValueError(f"`shards` must be a whole number from 1 to {MOST_SHARDS}; got {n_shards!r}.")
    for name, allowed in ONLY.items():
        if callable(parameters[name]) or parameters[name] not in allowed:
            words = " or ".join(map(repr, allowed))
            raise ValueError(
                f"`{name}` must be {words} for a fit by several processes, because {BECAUSE[name]}; got "
                f"{parameters[name]!r}."
            )


def _check_same(group: ProcessGroup, here: dict[str, Any]) -> None:
    everywhere = group.gather({name: value for name, value in here.items() if name not in OWN})
    for rank, there in enumerate(everywhere):
        names = [name for name in there if there[name] != everywhere[0][name]]
        if names:
            raise ValueError(
                f"all processes must fit with the same parameters; process {rank} differs from process 0 in "
                f"{', '.join(names)}."
            )


def _own_rows(estimator: Any, X: Any, y: Any, sample_weight: Any, *, has_numbers: bool) -> Given:
    """The rows of this process, checked; there may be none."""
    from crisptree.encoding.containers import materialize
    from crisptree.estimators.sparse_rows import is_sparse
    from crisptree.estimators.table_rows import needs_encoder

    X, y, sample_weight = materialize(detach(X)), detach(y), detach(sample_weight)
    if is_sparse(X):
        raise ValueError("X must be dense for a fit by several processes; got a sparse matrix. Use X.toarray().")
    if estimator.leaves == "constant" and needs_encoder(estimator.categorical, X):
        raise ValueError(
            "X must be all finite numbers for a fit by several processes, because no process sees all values of a "
            "column; got a table with text, categories or holes. Encode it before by a TableEncoder that has seen all."
        )
    if y is None or (np.asarray(y).ndim != 1 and not has_numbers):
        what = "numbers" if has_numbers else "class labels, (n_samples,),"
        raise ValueError(f"y must be {what} for a fit by several processes.")
    n_rows = len(np.asarray(y))
    if sample_weight is not None:  # of all processes alike, so that none may rescale its own
        check_total_weight(sum_weights(np.asarray(sample_weight, dtype=np.float64)))
    if sample_weight is not None and n_rows and not np.any(np.asarray(sample_weight) > 0):
        X, y, sample_weight, n_rows = X[:0], y[:0], None, 0
    if not n_rows:
        none = np.asarray(X, dtype=np.float32)
        shape = image_shape_of(none, estimator.image_shape)
        none = none.reshape(0, int(np.prod(none.shape[1:], dtype=np.int64)))
        return Given(none, np.asarray(y), np.zeros(0), None, shape)
    if has_numbers:
        data = check_unscaled_numbers(estimator, X, y, sample_weight)
        return Given(data.X, data.y, data.weight, estimator.__dict__.get("feature_names_in_"), data.image_shape)
    balanced, estimator.class_weight = estimator.class_weight, None  # by the classes of all processes, later
    try:
        data = checks.check_training_data(estimator, X, y, sample_weight)
    finally:
        estimator.class_weight = balanced
    assert data.classes is not None
    names = estimator.__dict__.get("feature_names_in_")
    return Given(data.X, data.classes[data.y], data.weight, names, data.image_shape)


def _agree_on_columns(group: ProcessGroup, given: Given) -> tuple[npt.NDArray[Any] | None, tuple[int, ...] | None]:
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


def _judges(
    group: ProcessGroup, estimator: Any, validation: Any, answers: Agreed, given: Given, n_shards: int
) -> Shards | None:
    """The validation rows of all processes; some may have none."""
    if not any(group.gather(validation is not None)):
        return None

    def own() -> Part:
        if validation is None or not len(checks.validation_pair(validation)[1]):
            return Part(given.X[:0], answers.no_labels, np.zeros(0))
        if answers.scale is not None:
            return check_validation_numbers(estimator, validation, answers.scale).part
        return checks.check_validation(estimator, validation, answers.labels).part

    part = group.agreed(own)
    if not group.total([float(len(part.y))]):
        raise ValueError("`validation` must have rows in some process; all are without.")
    return Shards.of(part, group, n_shards)


def _at_first(group: ProcessGroup, shards: Shards, n_rows: int, seed: int) -> Part | None:
    """Some rows of all shards, for the first process."""
    found = group.gather_first(shards.drawn(SAMPLE_ROWS, n_rows, seed) if shards.parts else None)
    return None if found is None else joined([part for part in found if part is not None])


def _everywhere(group: ProcessGroup, shards: Shards, n_rows: int, seed: int) -> Part:
    """The same rows for every process."""
    found = group.gather(shards.drawn(SAMPLE_ROWS, n_rows, seed) if shards.parts else None)
    return joined([part for part in found if part is not None])


def _fingerprint(
    group: ProcessGroup, answers: Agreed, judges: Shards | None, n_shards: int, device: str
) -> dict[str, Any]:
    """What a checkpoint is of: checksums of all shards, the same for any number of processes."""

    def of(some: Shards) -> list[str]:
        return [text for texts in group.gather([digest(part) for part in some.parts]) for text in texts]

    known = {"rows": of(answers.shards), "classes": answers.labels, "shards": n_shards}
    known["device"] = "cpu" if device == "auto" else device
    return known | {"validation": None if judges is None else of(judges)}


@contextmanager
def _kept(
    group: ProcessGroup, checkpoints: Checkpoints, parameters: Mapping[str, Any], known: dict[str, Any], seed: int
) -> Iterator[int]:
    """Inside, the first process keeps trainings, if it has a folder; the seed of the fit."""
    with ExitStack() as stack:
        seed = group.from_first(lambda: stack.enter_context(checkpoints.kept(parameters, known, seed)))
        if group.from_first(lambda: checkpoints.folder is not None):
            stack.enter_context(keeping_together(group))
        yield seed
