"""The fit of a tree on rows that are read in batches. Imported only when something trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from crisptree.data.scaling import Scaling
from crisptree.estimators.base import Checkpoints
from crisptree.estimators.constraints import are_constrained
from crisptree.estimators.fitting import Dataset, TrainedRows, device_text, fit_rows
from crisptree.estimators.numbers import NumberScale
from crisptree.estimators.soft_labels import likeliest
from crisptree.estimators.surveys import Answers, ClassAnswers, NumberAnswers, Survey
from crisptree.learning.sources.batches import BatchedProblem
from crisptree.learning.task import Part, Problem
from crisptree.selection.parameters import resolve_scale
from crisptree.streams import Batches
from crisptree.targets import Target

ONLY = {
    "grow": ("greedy",),
    "algorithm": ("likelihood",),
    "max_leaf_nodes": (None,),
    "leaves": ("constant",),
    "shifts": (0,),
    "image_shape": (None,),
    "warm_start": (False,),
}
"""What a fit on batches can do."""


@dataclass(frozen=True, eq=False)
class BatchDataset(Dataset):
    """Rows that are read in batches, pass after pass."""

    survey: Survey

    @property
    def target(self) -> Target:  # type: ignore[override]
        return self.survey.target

    @property
    def y_scale(self) -> NumberScale | None:  # type: ignore[override]
        answers = self.survey.answers
        return answers.scale if isinstance(answers, NumberAnswers) else None

    def scaling(self, kind: str | None, n_jobs: int | None) -> Scaling:
        return self.survey.scaling(kind)

    def problem(self, scaling: Scaling, held: Any) -> BatchedProblem:
        survey = self.survey
        return BatchedProblem(survey.sample, scaling, survey.target, held, totals=survey.totals, chunks=survey.chunks)

    def selection_problem(self, problem: Problem, held: Any, seed: int) -> Problem:
        return Problem(self.survey.sample, problem.scaling, self.target, held)

    def split_off(self, fraction: float, seed: int) -> tuple[Self, Any]:
        raise ValueError("`prune` must be a number or None for a fit on batches; got 'auto'.")


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
    data = BatchDataset(survey)
    held = None if check_validation is None else check_validation(answers, survey.n_features)
    if held is not None and not has_numbers:
        held = likeliest(held)
    known = {"rows": survey.totals, "classes": answers.labels, "sample of the rows": survey.sample, "validation": held}
    known["device"] = device_text(parameters, data.problem(survey.scaling(resolve_scale(parameters, None)), None))
    with checkpoints.kept(parameters, known, seed) as seed:
        trained = fit_rows(parameters, data, held, None, {}, seed)
    return Streamed(trained, answers.labels, survey.n_features)


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
