"""The fit of a classifier by several processes, each with its own rows. Imported only when they train."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_random_state

from crisptree.blocks import CORES
from crisptree.distributed import MOST_SHARDS
from crisptree.estimators import validation as checks
from crisptree.estimators.base import Checkpoints
from crisptree.estimators.checkpoints import digest, told
from crisptree.estimators.choices import choose, closed, is_open, scale_of
from crisptree.estimators.consistency import check_parameters
from crisptree.estimators.constraints import are_constrained, by_number
from crisptree.estimators.finishing import finished, is_judged
from crisptree.estimators.fitting import TrainedRows
from crisptree.estimators.images import image_shape_of
from crisptree.estimators.progress import hearing_trials, recording
from crisptree.estimators.surveys import ROWS_TO_CHOOSE_BY, class_weights
from crisptree.estimators.validation import holds_out
from crisptree.labels import class_numbers, label_type
from crisptree.learning.fitting import Fitted
from crisptree.learning.problem import Part, Problem
from crisptree.learning.sharded.fitting import fit_shards
from crisptree.learning.sharded.journal import keeping_together
from crisptree.learning.sharded.rows import Shards, joined
from crisptree.learning.sharded.survey import Survey
from crisptree.learning.sharded.team import Team
from crisptree.learning.spec import Spec
from crisptree.targets import Classes

ONLY: dict[str, tuple[Any, ...]] = {
    "split": ("auto", "oblique"),
    "grow": ("greedy",),
    "algorithm": ("likelihood", "em", "alternating"),
    "leaves": ("constant",),
    "reanneal": (0,),
    "shifts": (0,),
    "warm_start": (False,),
}
"""What several processes can do together."""

OWN = ("n_jobs", "verbose", "callbacks", "random_state", "device")
"""Parameters that may differ between processes; the first one's seed, callbacks and line of progress count."""

SUMS = ("exact", "plain")


class Together(NamedTuple):
    """What a fit by several processes leaves behind, the same in each."""

    trained: TrainedRows
    classes: npt.NDArray[Any]
    n_features: int
    names: npt.NDArray[Any] | None
    image_shape: tuple[int, ...] | None


class Given(NamedTuple):
    """What one process is given: rows, labels and weights, with names of columns and the image that a row is."""

    X: npt.NDArray[np.float32]
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]
    names: npt.NDArray[Any] | None
    image_shape: tuple[int, ...] | None


def fit_together(
    estimator: Any,
    rows: tuple[Any, Any, Any],
    validation: Any,
    checkpoints: Checkpoints,
    n_shards: int,
    sums: str,
) -> Together:
    """Train one tree on the rows of all processes: (X, y, sample_weight), and rows that judge it."""
    parameters = estimator.get_params(deep=False)
    team = Team(exact=sums != "plain")
    team.agreed(lambda: _check(estimator.PARAMETERS, parameters, n_shards, sums))
    _check_same(team, {**{name: told(value) for name, value in parameters.items()}, "shards": n_shards, "sums": sums})
    if parameters["n_jobs"] is None:  # processes of one machine share its cores
        parameters["n_jobs"] = max(1, CORES // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    seed = team.by_first(lambda: int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max)))
    given = team.agreed(lambda: _own_rows(estimator, *rows))
    names, image_shape = _agree_on_columns(team, given)
    estimator.n_features_in_, estimator.image_shape_ = given.X.shape[1], image_shape  # a process may have no rows
    parameters = by_number(parameters, estimator)
    classes, part = _agree_on_classes(team, given)
    judges = _judges(team, estimator, validation, classes, given, n_shards)
    shards = _weighted(team, Shards.of(part, team, n_shards), classes, parameters["class_weight"])
    known = _fingerprint(team, shards, judges, classes, n_shards, sums)
    with _kept(team, checkpoints, parameters, known, seed) as seed:
        trained = _trained(team, parameters, shards, judges, len(classes), image_shape, seed)
    return Together(trained, classes, given.X.shape[1], names, image_shape)


def _trained(
    team: Team,
    parameters: dict[str, Any],
    shards: Shards,
    judges: Shards | None,
    n_classes: int,
    image_shape: tuple[int, ...] | None,
    seed: int,
) -> TrainedRows:
    """Choose what is open, then train."""
    if judges is None and holds_out(parameters):
        shards, judges = shards.divided(parameters["validation_fraction"], seed)
    survey = Survey.of(team, shards)
    target = Classes(n_classes)
    parameters = {**parameters, "split": "oblique"}
    chosen: dict[str, Any] = {}
    path: list[Any] = []
    if is_open(parameters):
        scaling = survey.scaling(scale_of(parameters, image_shape))
        sample = _at_first(team, shards, survey.n_rows, seed)
        held = None if judges is None else _at_first(team, judges, survey.n_rows, seed)

        def choice() -> tuple[dict[str, Any], list[Any]]:
            assert sample is not None
            with hearing_trials(parameters["verbose"]) as on_trial:
                problem = Problem(sample, scaling, target, held)
                return choose(parameters, problem, image_shape, seed, None, on_trial)

        chosen, path = team.by_first(choice)
    values = closed(parameters, chosen, image_shape)
    if values["device"] == "auto":  # the native steps are quicker than torch's, which CUDA would take here
        values["device"] = "cpu"
    spec = Spec.of(values, reach=survey.n_features, mean_weight=survey.mean_weight, image_shape=image_shape, seed=seed)
    nothing = Part(np.zeros((0, survey.n_features), np.float32), np.zeros(0, np.int64), np.zeros(0))
    problem = Problem(nothing, survey.scaling(values["scale"]), target)
    listens = (parameters["verbose"], parameters["callbacks"]) if team.is_first else (0, None)
    with recording(*listens) as recorder:
        common = (spec, problem, shards, judges, survey.mean_weight, team)
        greedy, tree = fit_shards(*common, recorder.record)
    history = team.by_first(lambda: recorder.history)
    fitted = Fitted(greedy, finished(tree, values), None, None)  # type: ignore[arg-type]
    return TrainedRows(fitted, history, chosen, path)


def _check(declared: Any, parameters: Mapping[str, Any], n_shards: Any, sums: Any) -> None:
    check_parameters(declared, parameters)
    if sums not in SUMS:
        raise ValueError(f"`sums` must be 'exact' or 'plain'; got {sums!r}.")
    if isinstance(n_shards, bool) or not isinstance(n_shards, int) or not 1 <= n_shards <= MOST_SHARDS:
        raise ValueError(f"`shards` must be a whole number from 1 to {MOST_SHARDS}; got {n_shards!r}.")
    for name, allowed in ONLY.items():
        if callable(parameters[name]) or parameters[name] not in allowed:
            words = " or ".join(map(repr, allowed))
            raise ValueError(f"`{name}` must be {words} for a fit by several processes; got {parameters[name]!r}.")
    if are_constrained(parameters):
        raise ValueError("`signs`, `max_features_per_split` and `apart` must be None for a fit by several processes.")
    if is_judged({**parameters, "shrinkage": 0.0}):
        raise ValueError("`prune` must be a number or None for a fit by several processes; got 'auto'.")


def _check_same(team: Team, here: dict[str, Any]) -> None:
    everywhere = team.each({name: value for name, value in here.items() if name not in OWN})
    for rank, there in enumerate(everywhere):
        names = [name for name in there if there[name] != everywhere[0][name]]
        if names:
            raise ValueError(
                f"all processes must fit with the same parameters; process {rank} differs from process 0 in "
                f"{', '.join(names)}."
            )


def _own_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Given:
    """The rows of this process, checked; there may be none."""
    from crisptree.estimators.sparse_rows import is_sparse
    from crisptree.estimators.table_rows import needs_encoder

    if is_sparse(X):
        raise ValueError("X must be dense for a fit by several processes; got a sparse matrix. Use X.toarray().")
    if estimator.leaves == "constant" and needs_encoder(estimator.categorical, X):
        raise ValueError(
            "X must be all finite numbers for a fit by several processes, because no process sees all values of a "
            "column; got a table with text, categories or holes. Encode it before by a TableEncoder that has seen all."
        )
    if y is None or np.asarray(y).ndim != 1:
        raise ValueError("y must be class labels, (n_samples,), for a fit by several processes.")
    n_rows = len(np.asarray(y))
    if sample_weight is not None and n_rows and not np.any(np.asarray(sample_weight) > 0):
        X, y, sample_weight, n_rows = X[:0], y[:0], None, 0
    if not n_rows:
        none = np.asarray(X, dtype=np.float32)
        shape = image_shape_of(none, estimator.image_shape)
        none = none.reshape(0, int(np.prod(none.shape[1:], dtype=np.int64)))
        return Given(none, np.asarray(y), np.zeros(0), None, shape)
    balanced, estimator.class_weight = estimator.class_weight, None  # by the classes of all processes, later
    try:
        data = checks.check_training_data(estimator, X, y, sample_weight)
    finally:
        estimator.class_weight = balanced
    assert data.classes is not None
    names = estimator.__dict__.get("feature_names_in_")
    return Given(data.X, data.classes[data.y], data.weight, names, data.image_shape)


def _agree_on_columns(team: Team, given: Given) -> tuple[npt.NDArray[Any] | None, tuple[int, ...] | None]:
    """Names of columns and the image that a row is, as those processes have them that have rows."""
    everywhere = team.each((len(given.y), given.X.shape[1], given.names, given.image_shape))
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


def _agree_on_classes(team: Team, given: Given) -> tuple[npt.NDArray[Any], Part]:
    """The classes of all processes, and the rows of this one with their numbers among them."""
    there = [labels for labels in team.each(np.unique(given.y)) if len(labels)]
    if len({labels.dtype.kind in "biuf" for labels in there}) > 1:
        raise ValueError("labels must be numbers in all processes, or text in all; got both.")
    classes = np.unique(np.concatenate(there))
    team.agreed(lambda: label_type(classes))
    numbers = class_numbers(given.y, classes) if len(given.y) else np.zeros(0)
    return classes, Part(given.X, numbers.astype(np.int64), given.weight)


def _weighted(team: Team, shards: Shards, classes: npt.NDArray[Any], class_weight: Any) -> Shards:
    """The rows with the weights of their classes; those without any weight are left out."""
    weights = [np.bincount(part.y, part.weight, len(classes)) for part in shards.parts]
    factors = class_weights(class_weight, classes, team.total(weights, (len(classes),)))
    parts = []
    for part in shards.parts:
        weight = part.weight * factors[part.y]
        kept = slice(None) if (weight > 0).all() else weight > 0
        parts.append(Part(part.X[kept], part.y[kept], weight[kept]))
    if not team.total([float(len(part.y)) for part in parts]):
        raise ValueError("the weights must leave at least one row with a positive weight; got only zeros.")
    return Shards(parts, shards.first, shards.n_shards)


def _judges(
    team: Team, estimator: Any, validation: Any, classes: npt.NDArray[Any], given: Given, n_shards: int
) -> Shards | None:
    """The validation rows of all processes; some may have none."""
    if not any(team.each(validation is not None)):
        return None

    def own() -> Part:
        if validation is None or not len(validation[1]):
            return Part(given.X[:0], np.zeros(0, np.int64), np.zeros(0))
        return checks.check_validation(estimator, validation, classes).part

    part = team.agreed(own)
    if not team.total([float(len(part.y))]):
        raise ValueError("`validation` must have rows in some process; all are without.")
    return Shards.of(part, team, n_shards)


def _at_first(team: Team, shards: Shards, n_rows: int, seed: int) -> Part | None:
    """Some rows of all shards, for the first process."""
    found = team.at_first(shards.drawn(ROWS_TO_CHOOSE_BY, n_rows, seed) if shards.parts else None)
    return None if found is None else joined([part for part in found if part is not None])


def _fingerprint(
    team: Team, shards: Shards, judges: Shards | None, classes: npt.NDArray[Any], n_shards: int, sums: str
) -> dict[str, Any]:
    """What a checkpoint is of: checksums of all shards, the same for any number of processes."""

    def of(some: Shards) -> list[str]:
        return [text for texts in team.each([digest(part) for part in some.parts]) for text in texts]

    known = {"rows": of(shards), "classes": classes, "shards": n_shards, "sums": sums}
    return known | {"validation": None if judges is None else of(judges)}


@contextmanager
def _kept(
    team: Team, checkpoints: Checkpoints, parameters: Mapping[str, Any], known: dict[str, Any], seed: int
) -> Iterator[int]:
    """Inside, the first process keeps trainings, if it has a folder; the seed of the fit."""
    with ExitStack() as stack:
        seed = team.by_first(lambda: stack.enter_context(checkpoints.kept(parameters, known, seed)))
        if team.by_first(lambda: checkpoints.folder is not None):
            stack.enter_context(keeping_together(team))
        yield seed
