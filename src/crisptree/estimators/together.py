"""The fit of a tree by several processes, each with its own rows. Imported only when they train."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
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
from crisptree.estimators.constraints import by_number
from crisptree.estimators.finishing import finished, is_judged, judged, unfinished
from crisptree.estimators.fitting import TrainedRows
from crisptree.estimators.images import image_shape_of
from crisptree.estimators.numbers import check_unscaled_numbers, check_validation_numbers
from crisptree.estimators.progress import hearing_trials, recording
from crisptree.estimators.surveys import ROWS_TO_CHOOSE_BY
from crisptree.estimators.together_answers import Agreed, Given, agreed_classes, agreed_numbers
from crisptree.estimators.validation import holds_out
from crisptree.estimators.weights import check_total_weight, sum_weights
from crisptree.inference import CrispTree
from crisptree.learning.fitting import Fitted
from crisptree.learning.history import EpochRecord
from crisptree.learning.problem import Part, Problem
from crisptree.learning.sharded.fitting import fit_shards
from crisptree.learning.sharded.journal import keeping_together
from crisptree.learning.sharded.rows import Shards, joined
from crisptree.learning.sharded.survey import Survey
from crisptree.learning.sharded.team import Team
from crisptree.learning.spec import Spec
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

SUMS = ("exact", "plain")


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
    sums: str,
    *,
    has_numbers: bool = False,
) -> Together:
    """Train one tree on the rows of all processes: (X, y, sample_weight), and rows that judge it."""
    parameters = estimator.get_params(deep=False)
    team = Team(exact=sums != "plain")
    team.agreed(lambda: _check(estimator.PARAMETERS, parameters, n_shards, sums))
    _check_same(team, {**{name: told(value) for name, value in parameters.items()}, "shards": n_shards, "sums": sums})
    if parameters["n_jobs"] is None:  # processes of one machine share its cores
        parameters["n_jobs"] = max(1, CORES // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    seed = team.by_first(lambda: int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max)))
    given = team.agreed(lambda: _own_rows(estimator, *rows, has_numbers=has_numbers))
    names, image_shape = _agree_on_columns(team, given)
    estimator.n_features_in_, estimator.image_shape_ = given.X.shape[1], image_shape  # a process may have no rows
    parameters = by_number(parameters, estimator)
    answers = (agreed_numbers if has_numbers else agreed_classes)(team, given, n_shards, parameters)
    judges = _judges(team, estimator, validation, answers, given, n_shards)
    known = _fingerprint(team, answers, judges, n_shards, sums, parameters["device"])
    with _kept(team, checkpoints, parameters, known, seed) as seed:
        trained = _trained(team, parameters, answers, judges, image_shape, seed)
    return Together(trained, answers.labels, given.X.shape[1], names, image_shape)


def _trained(
    team: Team,
    parameters: dict[str, Any],
    answers: Agreed,
    judges: Shards | None,
    image_shape: tuple[int, ...] | None,
    seed: int,
) -> TrainedRows:
    """Choose what is open, then train."""
    shards, target = answers.shards, answers.target
    if judges is None and holds_out(parameters):
        shards, judges = shards.divided(parameters["validation_fraction"], seed)
    survey = Survey.of(team, shards)
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
    if judges is None and is_judged(values):
        # As on arrays, a first tree tells how much to prune, and the rows that it was judged by train then too.
        rest, held_out = shards.divided(parameters["validation_fraction"], seed)
        first = _fitted(team, unfinished(values), replace(answers, shards=rest), None, image_shape, seed)
        values = _judged(team, first.tree, values, held_out, Survey.of(team, rest), seed)
    found = _fitted(team, values, replace(answers, shards=shards), judges, image_shape, seed)
    if judges is not None:
        values = _judged(team, found.tree, values, judges, survey, seed)
    trees = (found.greedy, finished(found.tree, values))
    greedy, tree = trees if answers.scale is None else map(answers.scale.on, trees)
    kept = found.best_iteration if parameters["early_stopping"] else None
    fitted = Fitted(greedy, tree, None, None, kept)  # type: ignore[arg-type]
    return TrainedRows(fitted, found.history, chosen, path)


class _Found(NamedTuple):
    """A tree before it is finished, and how it came about."""

    greedy: CrispTree
    tree: CrispTree
    history: list[EpochRecord]
    best_iteration: int


def _fitted(
    team: Team,
    values: dict[str, Any],
    answers: Agreed,
    judges: Shards | None,
    image_shape: tuple[int, ...] | None,
    seed: int,
) -> _Found:
    """A tree trained on some shards."""
    shards, target, survey = answers.shards, answers.target, Survey.of(team, answers.shards)
    spec = Spec.of(
        values,
        reach=survey.n_features,
        mean_weight=survey.mean_weight,
        n_rows=survey.n_rows,
        image_shape=image_shape,
        seed=seed,
    )
    nothing = Part(np.zeros((0, survey.n_features), np.float32), answers.no_labels, np.zeros(0))
    # Every process looks at the same rows for where stumps of numbers may begin.
    looked_at = _everywhere(team, shards, survey.n_rows, seed) if target.starts_at_node else nothing
    problem = Problem(nothing, survey.scaling(values["scale"]), target)
    listens = (values["verbose"], values["callbacks"]) if team.is_first else (0, None)
    with recording(*listens) as recorder:
        common = (spec, problem, shards, judges, survey.mean_weight, team)
        greedy, tree, best_iteration = fit_shards(*common, recorder.record, looked_at)
    return _Found(greedy, tree, team.by_first(lambda: recorder.history), best_iteration)


def _judged(
    team: Team, tree: CrispTree, values: dict[str, Any], judges: Shards, survey: Survey, seed: int
) -> dict[str, Any]:
    """The parameters with a price of a leaf, by some rows that did not train the tree."""
    if not is_judged(values):
        return values
    held = _at_first(team, judges, survey.n_rows, seed)
    return {**values, "prune": team.by_first(lambda: judged(tree, values, held, survey.mean_weight)["prune"])}


def _check(declared: Any, parameters: Mapping[str, Any], n_shards: Any, sums: Any) -> None:
    check_parameters(declared, parameters)
    if sums not in SUMS:
        raise ValueError(f"`sums` must be 'exact' or 'plain'; got {sums!r}.")
    if isinstance(n_shards, bool) or not isinstance(n_shards, int) or not 1 <= n_shards <= MOST_SHARDS:
        raise ValueError(f"`shards` must be a whole number from 1 to {MOST_SHARDS}; got {n_shards!r}.")
    for name, allowed in ONLY.items():
        if callable(parameters[name]) or parameters[name] not in allowed:
            words = " or ".join(map(repr, allowed))
            raise ValueError(
                f"`{name}` must be {words} for a fit by several processes, because {BECAUSE[name]}; got "
                f"{parameters[name]!r}."
            )


def _check_same(team: Team, here: dict[str, Any]) -> None:
    everywhere = team.each({name: value for name, value in here.items() if name not in OWN})
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


def _judges(team: Team, estimator: Any, validation: Any, answers: Agreed, given: Given, n_shards: int) -> Shards | None:
    """The validation rows of all processes; some may have none."""
    if not any(team.each(validation is not None)):
        return None

    def own() -> Part:
        if validation is None or not len(checks.validation_pair(validation)[1]):
            return Part(given.X[:0], answers.no_labels, np.zeros(0))
        if answers.scale is not None:
            return check_validation_numbers(estimator, validation, answers.scale).part
        return checks.check_validation(estimator, validation, answers.labels).part

    part = team.agreed(own)
    if not team.total([float(len(part.y))]):
        raise ValueError("`validation` must have rows in some process; all are without.")
    return Shards.of(part, team, n_shards)


def _at_first(team: Team, shards: Shards, n_rows: int, seed: int) -> Part | None:
    """Some rows of all shards, for the first process."""
    found = team.at_first(shards.drawn(ROWS_TO_CHOOSE_BY, n_rows, seed) if shards.parts else None)
    return None if found is None else joined([part for part in found if part is not None])


def _everywhere(team: Team, shards: Shards, n_rows: int, seed: int) -> Part:
    """The same rows for every process."""
    found = team.each(shards.drawn(ROWS_TO_CHOOSE_BY, n_rows, seed) if shards.parts else None)
    return joined([part for part in found if part is not None])


def _fingerprint(
    team: Team, answers: Agreed, judges: Shards | None, n_shards: int, sums: str, device: str
) -> dict[str, Any]:
    """What a checkpoint is of: checksums of all shards, the same for any number of processes."""

    def of(some: Shards) -> list[str]:
        return [text for texts in team.each([digest(part) for part in some.parts]) for text in texts]

    known = {"rows": of(answers.shards), "classes": answers.labels, "shards": n_shards, "sums": sums}
    known["device"] = "cpu" if device == "auto" else device
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
