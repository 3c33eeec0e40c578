"""Model selection: resolve parameters that are "auto" by comparing candidates on held-out rows.

A fit has one entry point, ``resolve``. It is given the parameters, the rows to select on and an evaluator, which trains
and scores a candidate as a tree or as a small forest. Imported only when something trains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import chain
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.data.rows import learn_scaling
from crisptree.inference.flat_tree import has_linear_leaves
from crisptree.learning.options import ADAM, LBFGS, Plan, Spec
from crisptree.learning.samples import TrainingTask
from crisptree.selection.candidates import (
    CONSTRAINTS_OF_SPLITS,
    FIRST_DEPTH,
    IMAGE_ROUNDS,
    LARGE_TREE_ROUNDS,
    THRESHOLD_ROUNDS,
    Round,
    Trial,
    find_best,
)
from crisptree.selection.evaluators import Evaluator
from crisptree.selection.folds import MAX_ROWS_OF_SMALL_TABLES, MIN_ROWS, Fold, make_folds, replace_scaling
from crisptree.selection.parameters import (
    apply_selected,
    has_candidates,
    is_auto,
    is_unresolved,
    resolve_depth,
    resolve_scale,
)

TRIAL_STARTS = 1
"""Random starts of a trial."""

TRIAL_EPOCHS = 0.3
"""Fraction of the epochs that a trial trains."""

MIN_ROWS_FOR_SHORT_TRIALS = {"classes": 300, "gaussians": 1500}
"""On fewer rows trials train as long as the final fit: a matter of seconds, and few updates tell little. Longer
training can empty leaves of a regression tree, so short trials overestimate it."""

UNTUNED_SHRINKAGE, UNTUNED_SHARE = 8.0, 0.2
"""Shrinkage in rows where nothing is selected, and its largest share of all rows: without it leaves of few rows predict
probabilities of 0 and 1. A share of the rows is the same for weighted and for repeated rows."""

ALWAYS_FREE = ("max_depth", "min_samples_leaf", "finetune_epochs")
"""Parameters that candidates may set although a number is given, as an upper bound or for thresholds."""

EpochCallback = Callable[[Trial], None]


class Resolution(NamedTuple):
    """Parameters without "auto", the values that were selected for it, and all trials."""

    parameters: dict[str, Any]
    selected: dict[str, Any]
    trials: list[Trial]


@contextmanager
def ignore_trials() -> Iterator[EpochCallback]:
    """Provide a listener that does nothing."""
    yield lambda trial: None


def resolve(
    parameters: Mapping[str, Any],
    problem: TrainingTask,
    evaluator: Evaluator,
    seed: int,
    *,
    image_shape: tuple[int, ...] | None = None,
    source: npt.NDArray[np.intp] | None = None,
    load_rows: Callable[[], TrainingTask | None] | None = None,
    previous: Mapping[str, Any] | None = None,
    listen: Callable[[], AbstractContextManager[EpochCallback]] = ignore_trials,
) -> Resolution:
    """Resolve "auto": by candidates that are compared on held-out rows, else by fallbacks.

    Parameters
    ----------
    parameters : mapping
        Those of the estimator.
    problem : TrainingTask
        The rows of the fit; where it has validation rows, candidates are scored on these.
    evaluator : Evaluator
        Trains and scores a candidate.
    seed : int
        Seed of folds and trials.
    image_shape : tuple of int or None
        Shape of a row that is an image.
    source : ndarray of int or None
        Index of the row that a row is a copy of; a candidate is not scored on copies of its training rows.
    load_rows : callable
        Return the rows to select on, where these are others than those of ``problem``; None in a process that leaves
        the selection to another one.
    previous : mapping or None
        Selected values of an earlier fit that is continued; nothing is selected then.
    listen : callable
        Context of a selection; provides a function that is called after every trial.
    """
    if parameters.get("optimizer") == "auto" and not problem.is_small_table:
        parameters = dict(parameters) | {"optimizer": ADAM}  # trials are trained as the fit will be
    selected, trials = dict(previous or {}), list[Trial]()
    is_fast = parameters.get("effort") == "fast"
    if previous is None and is_unresolved(parameters) and has_candidates(parameters) and not is_fast:
        rows = problem if load_rows is None else load_rows()

        def select() -> tuple[dict[str, Any], list[Trial]]:
            assert rows is not None
            with listen() as on_trial:
                return CandidateSearch(parameters, rows, evaluator, image_shape, seed, source, on_trial).run()

        selected, trials = problem.compute_once(select)
    limited = resolve_depth(parameters, problem.target.name)
    is_untuned = is_fast or problem.n_rows < MIN_ROWS
    if is_untuned and not selected and is_auto(parameters, "shrinkage"):
        limited["shrinkage"] = min(UNTUNED_SHRINKAGE, UNTUNED_SHARE * problem.n_rows) * problem.mean_weight
    resolved = apply_selected(limited, selected, image_shape, is_sparse=problem.is_sparse)
    return Resolution(resolved, selected, trials)


class CandidateSearch:
    """Rounds of candidates, each starting from the best so far."""

    def __init__(
        self,
        parameters: Mapping[str, Any],
        problem: TrainingTask,
        evaluator: Evaluator,
        image_shape: tuple[int, ...] | None,
        seed: int,
        source: npt.NDArray[np.intp] | None = None,
        on_trial: EpochCallback = lambda trial: None,
    ) -> None:
        self.has_free_depth = is_auto(parameters, "max_depth")
        self.parameters = resolve_depth(parameters, problem.target.name)
        self.problem, self.evaluator, self.image_shape = problem, evaluator, image_shape
        self.seed, self.source, self.on_trial = seed, source, on_trial
        self.is_thorough = parameters.get("effort") == "thorough"
        self.target, self.is_sparse = problem.target, problem.is_sparse
        self.max_depth: int | None = self.parameters["max_depth"]
        self.has_linear_leaves = has_linear_leaves(parameters)
        self.leaf_model = "linear" if self.has_linear_leaves else "constant"
        self.scale = resolve_scale(parameters, image_shape, is_sparse=self.is_sparse)
        max_rows = MAX_ROWS_OF_SMALL_TABLES if self.uses_lbfgs and not evaluator.is_ensemble else None
        how = {"is_ensemble": evaluator.is_ensemble, "is_thorough": self.is_thorough}
        self.folds = make_folds(problem, seed, source, max_rows=max_rows, **how)
        self.rescaled: dict[str | None, list[Fold]] = {}
        self.tasks: dict[str | None, TrainingTask] = {}
        self.trials: list[Trial] = []
        self.n_candidates, self.started = 0, monotonic()

    def run(self) -> tuple[dict[str, Any], list[Trial]]:
        """Return the selected values and all trials; nothing where there are too few rows."""
        if not self.folds:
            return {}, []
        for values in chain.from_iterable(candidates(self) for candidates in self.rounds):
            self.evaluate(self.complete(values))
            if self.is_budget_spent:
                break
        selected = self.evaluator.select(self)
        return selected, [replace(trial, trees=(), predictions=None) for trial in self.trials]

    @property
    def is_budget_spent(self) -> bool:
        """True if no further candidate is to be trained."""
        seconds, limit = self.parameters["time_budget"], self.parameters["max_candidates"]
        if limit is not None and self.n_candidates >= limit:
            return True
        return seconds is not None and monotonic() - self.started >= seconds

    def complete(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Restrict values to parameters that are to be selected, and add the depth."""
        return {"max_depth": self.max_depth, **{name: value for name, value in values.items() if self.is_free(name)}}

    def is_free(self, name: str) -> bool:
        """Return True if candidates may set a parameter; L-BFGS has no schedule of γ."""
        if name == "steepness_step" and self.uses_lbfgs:
            return False
        return name in ALWAYS_FREE or is_auto(self.parameters, name)

    def evaluate(self, values: dict[str, Any]) -> None:
        """Train and score a candidate that was not scored before."""
        if not any(trial.values == values for trial in self.trials):
            self.n_candidates += 1
            folds = self.rescale_folds(values)
            spec = self.make_spec(values, folds[0].problem)
            scale = values.get("scale", self.scale)
            if scale not in self.tasks:
                self.tasks[scale] = replace_scaling(self.problem, folds[0].problem.scaling)
            whole = self.tasks[scale]  # which keeps its scaled rows
            for trial in self.evaluator.evaluate(values, spec, folds, whole):
                self.add(trial)

    def add(self, trial: Trial) -> None:
        """Record a trial."""
        self.trials.append(replace(trial, candidate=self.n_candidates))
        self.on_trial(self.trials[-1])

    @property
    def best(self) -> Trial:
        """The trial of the highest merit."""
        return find_best(self.trials)

    def best_of(self, belongs: Callable[[dict[str, Any]], bool]) -> Trial:
        """Return the best of some candidates."""
        return find_best([trial for trial in self.trials if belongs(trial.values)])

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The rounds of candidates for this kind of rows."""
        if self.image_shape is not None:
            return IMAGE_ROUNDS
        if self.is_axis_aligned:
            return THRESHOLD_ROUNDS[self.evaluator.is_ensemble]
        is_large = not self.evaluator.is_ensemble and not self.uses_lbfgs
        return LARGE_TREE_ROUNDS if is_large else self.evaluator.rounds

    @property
    def is_axis_aligned(self) -> bool:
        """True if the splits are to be thresholds, and CART's search can find them."""
        is_constrained = any(self.parameters.get(name) is not None for name in CONSTRAINTS_OF_SPLITS)
        is_plain = not (self.is_sparse or is_constrained)
        return is_plain and self.image_shape is None and self.parameters["split"] == "axis"

    @property
    def seeks_thresholds(self) -> bool:
        """True if CART's thresholds are candidates."""
        return self.is_free("split") or self.is_axis_aligned

    @cached_property
    def uses_lbfgs(self) -> bool:
        """True if hyperplanes are trained by L-BFGS, which has a schedule of its own."""
        values = {"max_depth": self.max_depth, "split": "oblique", "l1": 0.0}
        return self.make_spec(values, self.problem).growth.optimizer == LBFGS

    @property
    def first_depth(self) -> int | None:
        """Depth at which noise levels are compared: less than the full one only for regression trees on tables."""
        if not self.target.is_regression or self.image_shape is not None or self.evaluator.is_ensemble:
            return self.max_depth
        depth = FIRST_DEPTH[self.leaf_model]
        return depth if self.max_depth is None else min(depth, self.max_depth)

    def rescale_folds(self, values: Mapping[str, Any]) -> list[Fold]:
        """Return the folds with their rows on the scale of a candidate."""
        scale = values.get("scale", self.scale)
        if scale == self.scale:
            return self.folds
        if scale not in self.rescaled:
            rows = self.problem.training
            scaling = learn_scaling(rows.X, rows.weight, scale, self.parameters["n_jobs"])
            self.rescaled[scale] = [fold.rescale(scaling) for fold in self.folds]
        return self.rescaled[scale]

    def make_spec(self, values: Mapping[str, Any], problem: TrainingTask) -> Spec:
        """Return the training options of a candidate: those of a fit, in fewer epochs unless rows are few."""
        parameters = apply_selected(self.parameters, values, self.image_shape, is_sparse=self.is_sparse)
        spec = Spec.of(
            parameters | {"max_depth": values["max_depth"], "early_stopping": False},
            input_norm=problem.input_norm,
            mean_weight=problem.mean_weight,
            n_rows=problem.n_rows,
            image_shape=self.image_shape,
            seed=self.seed,
            is_small_table=problem.is_small_table,
        )
        spec = replace(spec, n_init=min(spec.n_init, TRIAL_STARTS + self.is_thorough))
        # A hyperplane with a feature for every row can separate all rows, and does so the more the longer it trains.
        is_separable = self.is_sparse and problem.training.X.shape[1] > problem.n_rows
        is_short = problem.n_rows >= MIN_ROWS_FOR_SHORT_TRIALS[self.target.name] and not is_separable
        return shorten_training(spec, TRIAL_EPOCHS) if is_short and not self.is_thorough else spec


def shorten_training(spec: Spec, fraction: float) -> Spec:
    """Train for a fraction of the epochs, with steps of γ that reach as far."""
    return replace(
        spec, growth=shorten_phase(spec.growth, fraction), finetuning=shorten_phase(spec.finetuning, fraction)
    )


def shorten_phase(plan: Plan, fraction: float) -> Plan:
    """The same for one phase."""
    if plan.optimizer == LBFGS:
        return plan
    epochs = max(min(plan.epochs, 2), round(plan.epochs * fraction))
    factor = plan.epochs / max(epochs, 1)
    step = plan.steepness_step * factor if plan.annealing == "linear" else (1 + plan.steepness_step) ** factor - 1
    return replace(plan, epochs=epochs, steepness_step=step, min_updates=round(plan.min_updates * fraction))
