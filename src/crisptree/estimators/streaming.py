"""The fit of a tree on rows that are read in batches. Imported only when something trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from crisptree.estimators.base import Checkpoints
from crisptree.estimators.choices import choose, closed, is_open, scale_of
from crisptree.estimators.constraints import are_constrained
from crisptree.estimators.finishing import finished, is_judged
from crisptree.estimators.fitting import TrainedRows, device_text, spec_of
from crisptree.estimators.progress import hearing_trials, recording
from crisptree.estimators.soft_labels import likeliest
from crisptree.estimators.surveys import Answers, ClassAnswers, NumberAnswers, Survey
from crisptree.learning.fitting import Fitted
from crisptree.learning.problem import Part, Problem
from crisptree.learning.streaming import fit_stream
from crisptree.streams import Batches

ONLY = {
    "grow": ("greedy",),
    "algorithm": ("likelihood", "em"),
    "max_leaf_nodes": (None,),
    "leaves": ("constant",),
    "reanneal": (0,),
    "shifts": (0,),
    "image_shape": (None,),
    "warm_start": (False,),
}
"""What a fit on batches can do."""


class Streamed(NamedTuple):
    """What a fit on batches leaves behind; ``labels`` are the classes, or how many numbers a row has."""

    trained: TrainedRows
    labels: Any
    n_features: int


def fit_batches(
    parameters: Mapping[str, Any],
    batches: Batches,
    seed: int,
    checkpoints: Checkpoints,
    check_validation: Callable[[Answers, int], Part] | None = None,
    *,
    has_numbers: bool = False,
) -> Streamed:
    """Train a tree on batches: one pass to learn what y is and the scale, one for every epoch, and one to count.

    ``check_validation`` gives the validation rows, once the first pass has found what y is and how many features there
    are; None where there are none.
    """
    _check(parameters, has_validation=check_validation is not None)
    answers: Answers = NumberAnswers() if has_numbers else ClassAnswers(parameters["class_weight"])
    survey = Survey.of(batches, answers, seed)
    parameters = {**parameters, "split": "oblique"}
    held = None if check_validation is None else check_validation(answers, survey.n_features)
    if held is not None and not has_numbers:
        held = likeliest(held)
    scaling = survey.scaling(scale_of(parameters, None))
    sample = Problem(survey.sample, scaling, survey.target, held)
    chosen: dict[str, Any] = {}
    path: list[Any] = []
    known = {"rows": survey.totals, "classes": answers.labels, "sample of the rows": survey.sample}
    known["validation"] = held
    known["device"] = device_text(parameters, sample, survey.totals.n_rows)
    with checkpoints.kept(parameters, known, seed) as seed:
        if is_open(parameters):
            with hearing_trials(parameters["verbose"]) as on_trial:
                chosen, path = choose(parameters, sample, None, seed, None, on_trial)
        values = closed(parameters, chosen, None)
        if is_judged(values):
            raise ValueError("`prune` must be a number or None for a fit on batches; got 'auto'.")
        sample = Problem(survey.sample, survey.scaling(values["scale"]), survey.target, held)
        spec = spec_of(values, sample, None, seed, survey.totals.n_rows)
        with recording(parameters["verbose"], parameters["callbacks"]) as recorder:
            greedy, tree, kept = fit_stream(spec, sample, survey.totals, survey.chunks, recorder.record)
    best_iteration = kept if parameters["early_stopping"] else None
    fitted = Fitted(greedy, finished(tree, values), None, None, best_iteration)  # type: ignore[arg-type]
    if isinstance(answers, NumberAnswers):
        fitted = fitted._replace(greedy=answers.scale.on(fitted.greedy), tree=answers.scale.on(fitted.tree))
    return Streamed(TrainedRows(fitted, recorder.history, chosen, path), answers.labels, survey.n_features)


def is_for_batches(parameters: Mapping[str, Any]) -> bool:
    """Whether a fit with these parameters can be one on batches."""
    try:
        _check(parameters, has_validation=False)
    except ValueError:
        return False
    return bool(parameters["prune"] != "auto")


def _check(parameters: Mapping[str, Any], *, has_validation: bool) -> None:
    if parameters["split"] not in ("auto", "oblique"):
        raise ValueError(f"`split` must be 'auto' or 'oblique' for a fit on batches; got {parameters['split']!r}.")
    for name, allowed in ONLY.items():
        if parameters[name] not in allowed:
            words = " or ".join(map(repr, allowed))
            raise ValueError(f"`{name}` must be {words} for a fit on batches; got {parameters[name]!r}.")
    if parameters["early_stopping"] and not has_validation:
        raise ValueError(
            "`early_stopping` must come with `validation` rows for a fit on batches, of which none are held out; got "
            "none. Give fit validation=(X, y), arrays in memory, or set early_stopping=False."
        )
    if are_constrained(parameters):
        raise ValueError("`signs`, `max_features_per_split` and `apart` must be None for a fit on batches.")
