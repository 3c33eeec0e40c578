"""The fit of a tree on rows that are read in batches. Imported only when something trains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from crisptree.data.scaling import Scaling
from crisptree.estimators.base import Checkpoints
from crisptree.estimators.fitting import Dataset, TrainedRows, device_text, fit_rows
from crisptree.estimators.surveys import Survey
from crisptree.learning.sources.batches import BatchedProblem
from crisptree.learning.task import Part, Problem
from crisptree.selection.parameters import resolve_scale
from crisptree.streams import Batches
from crisptree.targets import Target
from crisptree.targets.encoding import TargetEncoding


@dataclass(frozen=True, eq=False)
class BatchDataset(Dataset):
    """Rows that are read in batches, pass after pass."""

    survey: Survey

    @property
    def target(self) -> Target:  # type: ignore[override]
        return self.survey.target

    @property
    def encoding(self) -> TargetEncoding:  # type: ignore[override]
        return self.survey.encoding

    def scaling(self, kind: str | None, n_jobs: int | None) -> Scaling:
        return self.survey.scaling(kind)

    def problem(self, scaling: Scaling, held: Any) -> BatchedProblem:
        survey = self.survey
        return BatchedProblem(survey.sample, scaling, survey.target, held, totals=survey.totals, chunks=survey.chunks)

    def selection_problem(self, problem: Problem, held: Any, seed: int) -> Problem:
        return Problem(self.survey.sample, problem.scaling, self.target, held)

    def split_off(self, fraction: float, seed: int) -> tuple[Self, Any]:
        raise ValueError("`validation` rows must be given for a fit on batches with prune or shrinkage 'auto'.")


class Streamed(NamedTuple):
    """What a fit on batches has learned."""

    trained: TrainedRows
    encoding: TargetEncoding
    n_features: int


def fit_batches(
    parameters: Mapping[str, Any],
    batches: Batches,
    seed: int,
    checkpoints: Checkpoints,
    encoding: type[TargetEncoding],
    check_validation: Callable[[TargetEncoding, int], Part] | None = None,
) -> Streamed:
    """Train a tree on batches: one pass to learn what y is and the scale, one for every epoch, and one to count.

    ``check_validation`` gives the validation rows, once the first pass has found what y is and how many features there
    are; None where there are none.
    """
    survey = Survey.of(batches, encoding.statistics(parameters), seed)
    data = BatchDataset(survey)
    held = None if check_validation is None else check_validation(survey.encoding, survey.n_features)
    held = held and replace(held, y=survey.target.conform(held.y))
    known: dict[str, Any] = {
        "rows": survey.totals,
        "classes": survey.encoding.classes,
        "sample of the rows": survey.sample,
        "validation": held,
    }
    known["device"] = device_text(parameters, data.problem(survey.scaling(resolve_scale(parameters, None)), None))
    with checkpoints.kept(parameters, known, seed) as seed:
        trained = fit_rows(parameters, data, held, None, {}, seed)
    return Streamed(trained, survey.encoding, survey.n_features)
