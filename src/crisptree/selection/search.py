"""Model selection: resolve parameters that are "auto" by comparing candidates on held-out rows.

The held-out rows are given validation rows, a holdout split or those of a cross-validation. A fit has one entry point,
``resolve``. It is given the parameters, the rows to select on and an evaluator, which trains
and scores a candidate as a tree or as a small forest. Imported only when something trains.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import KFold, StratifiedKFold

from crisptree.data.raw_rows import Scaling
from crisptree.data.rows import learn_scaling
from crisptree.exceptions import CrispTreeWarning
from crisptree.inference.flat_tree import has_linear_leaves
from crisptree.learning.fitting import resolve_device
from crisptree.learning.linear_leaves import LeafRows
from crisptree.learning.options import ADAM, LBFGS, Plan, Spec
from crisptree.learning.samples import RowSet, SummedTask, TrainingTask
from crisptree.selection.candidates import (
    CONSTRAINTS_OF_SPLITS,
    FIRST_DEPTH,
    IMAGE_ROUNDS,
    LARGE_TREE_ROUNDS,
    LINEAR_LEAVES_IN_FOREST,
    MAX_DEFICIT,
    THRESHOLD_ROUNDS,
    USUAL_WORK,
    Batch,
    Round,
    Trial,
    apply_selected,
    find_best,
    has_candidates,
    is_auto,
    is_unresolved,
    resolve_depth,
    resolve_scale,
)
from crisptree.targets.base import add_copies, find_originals, hold_out
from crisptree.threads import ROWS_AT_ONCE, row_blocks

if TYPE_CHECKING:
    from crisptree.selection.evaluators import Evaluator

Doubles = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

MIN_ROWS = 60
"""Nothing is selected on fewer rows."""

MIN_VALIDATION_ROWS = 20
"""Fewer given validation rows are too noisy; the training rows are cross-validated instead."""

MIN_ROWS_FOR_HOLDOUT, MIN_ROWS_FOR_HOLDOUT_OF_SMALL_TABLES = 4000, 8000
"""From here on one holdout split replaces cross-validation; the second for single trees that L-BFGS trains."""

HOLDOUT_FRACTION = 0.2

MIN_ROWS_FOR_TWO_FOLDS = 1000
"""Fewer rows are cross-validated in three folds."""

MIN_ROWS_FOR_FEWER_FOLDS, MAX_FOLDS = 1500, 5
"""Single trees on fewer rows are compared in five folds."""

MAX_ROWS = {"classes": 50_000, "gaussians": 25_000}
"""Larger parts are subsampled."""

MAX_ROWS_OF_SMALL_TABLES = 10_000
"""The same for single trees that L-BFGS trains: many candidates tell more than many rows."""

SAMPLE_ROWS = 20_000
"""Rows sampled from batches or from all ranks of a process group, on which candidates are compared."""

TRIAL_STARTS = 1
"""Random starts of a trial."""

PROBE_ROWS, PROBE_DEFICIT = 5000, 4.0
"""Rows on which thresholds are searched first where others train on CUDA, and how many times ``MAX_DEFICIT`` they must
then be behind the best to be left out: more rows would bring them closer."""

TRIAL_EPOCHS = 0.3
"""Fraction of the epochs that a trial trains."""

MIN_ROWS_FOR_SHORT_TRIALS = {"classes": 300, "gaussians": 1500}
"""On fewer rows trials train as long as the final fit: a matter of seconds, and few updates tell little. Longer
training can empty leaves of a regression tree, so short trials overestimate it."""

UNTUNED_SHRINKAGE, UNTUNED_SHARE = 8.0, 0.2
"""Shrinkage in rows where nothing is selected, and its largest share of all rows: without it leaves of few rows predict
probabilities of 0 and 1. A share of the rows is the same for weighted and for repeated rows."""

MAX_FRACTION_DONE = 0.95
"""How much of a selection is done at most while it goes on, since it may have more candidates than usual."""

ALWAYS_FREE = ("max_depth", "min_samples_leaf", "finetune_epochs")
"""Parameters that candidates may set although a number is given, as an upper bound or for thresholds."""

TrialCallback = Callable[[Trial, float], None]
"""Receives a trial and the fraction of the selection that is done, as far as that can be told."""


class Resolution(NamedTuple):
    """Parameters without "auto", the values that were selected for it, and all trials."""

    parameters: dict[str, Any]
    selected: dict[str, Any]
    trials: list[Trial]


@contextmanager
def ignore_trials() -> Iterator[TrialCallback]:
    """Provide a listener that does nothing."""
    yield lambda trial, fraction: None


def resolve(
    parameters: Mapping[str, Any],
    task: TrainingTask,
    evaluator: Evaluator,
    seed: int,
    *,
    image_shape: tuple[int, ...] | None = None,
    source: npt.NDArray[np.intp] | None = None,
    load_rows: Callable[[], TrainingTask | None] | None = None,
    previous: Mapping[str, Any] | None = None,
    listen: Callable[[], AbstractContextManager[TrialCallback]] = ignore_trials,
) -> Resolution:
    """Resolve "auto": by candidates that are compared on held-out rows, else by fallbacks.

    Parameters
    ----------
    parameters : mapping
        Those of the estimator.
    task : TrainingTask
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
        Return the rows to select on, where these are others than those of ``task``; None in a process that leaves
        the selection to another one.
    previous : mapping or None
        Selected values of an earlier fit that is continued; nothing is selected then.
    listen : callable
        Context of a selection; provides a function that is called after every trial.
    """
    if parameters.get("optimizer") == "auto" and not task.is_small_table:
        parameters = dict(parameters) | {"optimizer": ADAM}  # trials are trained as the fit will be
    selected, trials = dict(previous or {}), list[Trial]()
    is_fast = parameters.get("effort") == "fast"
    is_selecting = previous is None and is_unresolved(parameters) and has_candidates(parameters) and not is_fast
    if is_selecting:
        rows = task if load_rows is None else load_rows()

        def select() -> tuple[dict[str, Any], list[Trial]]:
            assert rows is not None
            with listen() as on_trial:
                # Trials train as the fit will: where it sums over rows, models come after the splits.
                how = {"trains_models": not isinstance(task, SummedTask)}
                return CandidateSearch(parameters, rows, evaluator, image_shape, seed, source, on_trial, **how).run()

        selected, trials = task.compute_once(select)
    limited = resolve_depth(parameters, task.target.name)
    is_untuned = is_fast or task.n_rows < MIN_ROWS
    if is_selecting and not trials and task.n_rows < MIN_ROWS and task.is_first:
        shrunk = ", and leaves are shrunk by a fixed strength" if is_auto(parameters, "shrinkage") else ""
        text = f"fewer than {MIN_ROWS} rows to train on: nothing was tuned{shrunk}. Compare with other depths and "
        warnings.warn(f"{text}strengths of shrinkage on rows of your own.", CrispTreeWarning, stacklevel=2)
    if is_untuned and not selected and is_auto(parameters, "shrinkage"):
        limited["shrinkage"] = min(UNTUNED_SHRINKAGE, UNTUNED_SHARE * task.n_rows) * task.mean_weight
    resolved = apply_selected(limited, selected, image_shape, is_sparse=task.is_sparse)
    return Resolution(resolved, selected, trials)


class CandidateSearch:
    """Rounds of candidates, each starting from the best so far."""

    def __init__(
        self,
        parameters: Mapping[str, Any],
        task: TrainingTask,
        evaluator: Evaluator,
        image_shape: tuple[int, ...] | None,
        seed: int,
        source: npt.NDArray[np.intp] | None = None,
        on_trial: TrialCallback = lambda trial, fraction: None,
        *,
        trains_models: bool = True,
    ) -> None:
        self.has_free_depth = is_auto(parameters, "max_depth")
        self.parameters = resolve_depth(parameters, task.target.name)
        self.task, self.evaluator, self.image_shape = task, evaluator, image_shape
        self.seed, self.source, self.on_trial = seed, source, on_trial
        self.trains_models = trains_models
        self.is_thorough = parameters.get("effort") == "thorough"
        self.target, self.is_sparse = task.target, task.is_sparse
        self.max_depth: int | None = self.parameters["max_depth"]
        self.has_linear_leaves = has_linear_leaves(parameters)
        self.leaf_model = "linear" if self.has_linear_leaves else "constant"
        self.scale = resolve_scale(parameters, image_shape, is_sparse=self.is_sparse)
        max_rows = MAX_ROWS_OF_SMALL_TABLES if self.uses_lbfgs and not evaluator.is_ensemble else None
        how = {"is_ensemble": evaluator.is_ensemble, "is_thorough": self.is_thorough, "is_bagged": self.is_bagged}
        self.folds = make_folds(task, seed, source, max_rows=max_rows, **how)
        self.rescaled: dict[str | None, list[Fold]] = {}
        self.tasks: dict[str | None, TrainingTask] = {}
        self.trials: list[Trial] = []
        self.n_candidates, self.work, self.seconds, self.started = 0, 0.0, 0.0, monotonic()

    def run(self) -> tuple[dict[str, Any], list[Trial]]:
        """Return the selected values and all trials; nothing where there are too few rows."""
        if not self.folds:
            return {}, []
        for batch in chain.from_iterable(candidates(self) for candidates in self.rounds):
            if not self.evaluate([self.complete(values) for values in batch]):
                break
        selected = self.evaluator.select(self)
        return selected, [replace(trial, trees=()) for trial in self.trials]

    def complete(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Restrict values to parameters that are to be selected, and add the depth."""
        return {"max_depth": self.max_depth, **{name: value for name, value in values.items() if self.is_free(name)}}

    def is_free(self, name: str) -> bool:
        """Return True if candidates may set a parameter."""
        return name in ALWAYS_FREE or is_auto(self.parameters, name)

    def evaluate(self, batch: Batch) -> bool:
        """Train and score candidates that were not scored before; False if the budget ends before the last of them.

        With a time budget they are trained one after the other.
        """
        scored = [trial.values for trial in self.trials]
        fresh = [values for number, values in enumerate(batch) if values not in scored + batch[:number]]
        limit = self.parameters["max_candidates"]
        allowed = fresh if limit is None else fresh[: limit - self.n_candidates]
        at_once = max(len(allowed), 1) if self.parameters["time_budget"] is None else 1
        for first in range(0, len(allowed), at_once):
            if self.n_candidates and self.is_time_over:
                return False
            candidates = [self.make_task(values) for values in allowed[first : first + at_once]]
            for candidate, trials in zip(candidates, self.evaluator.evaluate(candidates), strict=True):
                self.n_candidates += 1
                self.work += self.estimate_work(candidate.values)
                for trial in trials:
                    self.add(trial)
        return len(allowed) == len(fresh)

    def make_task(self, values: dict[str, Any]) -> CandidateTask:
        """Return a candidate with its training options and the folds on its scale."""
        folds = self.rescale_folds(values)
        scale = values.get("scale", self.scale)
        if scale not in self.tasks:
            self.tasks[scale] = replace_scaling(self.task, folds[0].task.scaling)
        # Which keeps its scaled rows.
        return CandidateTask(values, self.make_spec(values, folds[0].task), folds, self.tasks[scale])

    def is_far_behind(self, values: Mapping[str, Any]) -> bool:
        """Return True if thresholds that are searched on a few rows of the first fold are far behind the best trial.

        Only where other candidates train on CUDA: one core searches all rows for longer than all of those take.
        """
        candidate, limit = self.make_task(self.complete(values)), PROBE_DEFICIT * MAX_DEFICIT[self.target.name]
        fold, device = candidate.folds[0], resolve_device(self.parameters["device"], self.task)
        if device.type != "cuda" or fold.task.n_rows < 2 * PROBE_ROWS:
            return False
        rows = _subsample(np.arange(fold.task.n_rows), PROBE_ROWS, self.seed)
        few = replace(fold, task=_take_rows(fold.task, rows), training_mask=None)
        trials = chain.from_iterable(self.evaluator.evaluate([candidate._replace(folds=[few])]))
        return find_best(list(trials)).merit < self.best.merit - limit

    @property
    def is_time_over(self) -> bool:
        """True if no further candidate is to be trained."""
        budget = self.parameters["time_budget"]
        if budget is None:
            return False
        self.seconds = monotonic() - self.started
        return bool(self.seconds >= budget)

    def add(self, trial: Trial) -> None:
        """Record a trial."""
        self.trials.append(replace(trial, candidate=self.n_candidates))
        self.on_trial(self.trials[-1], self.fraction_done)

    @property
    def fraction_done(self) -> float:
        """Fraction of the selection that is done, if its candidates take as much work as usual."""
        count, seconds = self.parameters["max_candidates"], self.parameters["time_budget"]
        total = self.usual_work if count is None else min(self.usual_work, count)
        spent = self.seconds / seconds if seconds else 0.0
        return min(max(self.work / total, spent), MAX_FRACTION_DONE)

    @property
    def usual_work(self) -> float:
        """Number of candidates that a selection usually has, by the work of the first ones."""
        more = len(LINEAR_LEAVES_IN_FOREST) if self.evaluator.is_ensemble and self.target.is_regression else 0
        return USUAL_WORK.get(self.rounds, len(self.rounds)) + more

    def estimate_work(self, values: Mapping[str, Any]) -> float:
        """Estimate the work of a candidate: of trees that Adam trains by their depth, while thresholds take little."""
        if self.rounds is not LARGE_TREE_ROUNDS:
            return 1.0
        depth, most = values.get("max_depth"), self.max_depth
        return 0.1 if values.get("finetune_epochs") == 0 else 1.0 if not (depth and most) else depth / most

    @property
    def best(self) -> Trial:
        """The trial of the highest merit."""
        return find_best(self.trials)

    def best_of(self, belongs: Callable[[dict[str, Any]], bool]) -> Trial:
        """Return the trial of the highest merit among some candidates."""
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
        return self.make_spec(values, self.task).growth.optimizer == LBFGS

    @property
    def is_bagged(self) -> bool:
        """True if candidates are regression forests whose trees leave out a third of the rows."""
        is_regression = self.evaluator.is_ensemble and self.target.is_regression and self.image_shape is None
        is_bootstrap = self.parameters.get("bootstrap") in ("auto", True) and self.parameters.get("max_samples") is None
        return is_regression and is_bootstrap

    def shortens_training(self, task: TrainingTask) -> bool:
        """Return True if trials train for a fraction of the epochs."""
        # A hyperplane with a feature for every row can separate all rows, and does so the more the longer it trains.
        is_separable = self.is_sparse and task.training.X.shape[1] > task.n_rows
        is_large = task.n_rows >= MIN_ROWS_FOR_SHORT_TRIALS[self.target.name]
        return is_large and not (is_separable or self.is_thorough)

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
            rows = self.task.training
            scaling = learn_scaling(rows.X, rows.weight, scale, self.parameters["n_jobs"])
            self.rescaled[scale] = [fold.rescale(scaling) for fold in self.folds]
        return self.rescaled[scale]

    def make_spec(self, values: Mapping[str, Any], task: TrainingTask) -> Spec:
        """Return the training options of a candidate: those of a fit, in fewer epochs unless rows are few."""
        parameters = apply_selected(self.parameters, values, self.image_shape, is_sparse=self.is_sparse)
        spec = Spec.of(
            parameters | {"max_depth": values["max_depth"], "early_stopping": False},
            input_norm=task.input_norm,
            mean_weight=task.mean_weight,
            n_rows=task.n_rows,
            image_shape=self.image_shape,
            seed=self.seed,
            is_small_table=task.is_small_table,
        )
        n_init = min(spec.n_init, TRIAL_STARTS + self.is_thorough)
        spec = replace(spec, n_init=n_init, trains_models=self.trains_models)
        return shorten_training(spec, TRIAL_EPOCHS) if self.shortens_training(task) else spec


def shorten_training(spec: Spec, fraction: float) -> Spec:
    """Train for a fraction of the epochs, with steps of γ that reach as far."""
    return replace(
        spec, growth=shorten_phase(spec.growth, fraction), finetuning=shorten_phase(spec.finetuning, fraction)
    )


def shorten_phase(plan: Plan, fraction: float) -> Plan:
    """Train one phase for a fraction of its epochs."""
    if plan.optimizer == LBFGS:
        return plan
    epochs = max(min(plan.epochs, 2), round(plan.epochs * fraction))
    factor = plan.epochs / max(epochs, 1)
    step = plan.steepness_step * factor if plan.annealing == "linear" else (1 + plan.steepness_step) ** factor - 1
    return replace(plan, epochs=epochs, steepness_step=step, min_updates=round(plan.min_updates * fraction))


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to train on, and held-out rows to score on."""

    task: TrainingTask
    held_out: RowSet
    training_mask: npt.NDArray[np.int32] | None = None
    """Number of folds in which each row is a training row."""
    is_out_of_bag: bool = False
    """Whether the held-out rows are the training rows, each scored by the trees whose bags lack it."""

    @cached_property
    def leaf_rows(self) -> LeafRows:
        """Scaled training rows as linear leaves take them."""
        return self._scale(self.task.training)

    @cached_property
    def held_out_leaf_rows(self) -> LeafRows:
        """The same of the held-out rows."""
        return self._scale(self.held_out)

    def _scale(self, rows: RowSet) -> LeafRows:
        scaled = self.task.scaling.apply(np.asarray(rows.X[:], dtype=np.float32), 1)
        return LeafRows.of(scaled, rows.y, self.task.target)

    def rescale(self, scaling: Scaling) -> Fold:
        """Return the same rows on another scale."""
        return replace(self, task=replace_scaling(self.task, scaling))


class CandidateTask(NamedTuple):
    """Values of parameters, the training options that follow, and the folds; ``whole`` has the rows of all folds."""

    values: dict[str, Any]
    spec: Spec
    folds: Sequence[Fold]
    whole: TrainingTask


def replace_scaling(task: TrainingTask, scaling: Scaling) -> TrainingTask:
    """Return the training on the same rows with another scale."""
    return TrainingTask(task.training, scaling, task.target)


def count_folds(n_rows: int, *, is_ensemble: bool, is_thorough: bool = False) -> int:
    """Return the number of folds of a cross-validation."""
    times = 2 if is_thorough else 1
    if not is_ensemble:
        return times * (MAX_FOLDS if n_rows < MIN_ROWS_FOR_FEWER_FOLDS else 3)
    return times * (3 if n_rows < MIN_ROWS_FOR_TWO_FOLDS else 2)


def make_folds(
    task: TrainingTask,
    seed: int,
    source: npt.NDArray[np.intp] | None = None,
    *,
    is_ensemble: bool = False,
    is_thorough: bool = False,
    is_bagged: bool = False,
    max_rows: int | None = None,
) -> list[Fold]:
    """Split rows into training and held-out rows; return no fold where there are too few.

    Parameters
    ----------
    task : TrainingTask
        All rows. Its validation rows, if there are enough, are the held-out rows of the only fold.
    seed : int
        Seed of the splits.
    source : ndarray of int or None
        Index of the row that a row is a copy of; no copy of a training row is held out.
    is_ensemble : bool
        Whether candidates are forests, which need fewer folds.
    is_thorough : bool
        Whether to make twice as many folds.
    is_bagged : bool
        Whether the trees of a forest have out-of-bag rows, which take the place of held-out rows where none are given.
    max_rows : int or None
        Larger parts are subsampled; None takes the limit of the target.
    """
    min_rows_for_holdout = MIN_ROWS_FOR_HOLDOUT if max_rows is None else MIN_ROWS_FOR_HOLDOUT_OF_SMALL_TABLES
    part, max_rows = task.training, max_rows or MAX_ROWS[task.target.name]
    if task.validation is not None and len(task.validation.y) >= MIN_VALIDATION_ROWS:
        kept = _subsample(np.arange(len(part.y)), max_rows, seed)
        return [Fold(_take_rows(task, kept), task.validation)]
    own = find_originals(len(part.y), source)
    strata = task.target.strata(part.y)
    n_rows, counts = len(own), np.bincount(strata[own])
    n_folds = count_folds(n_rows, is_ensemble=is_ensemble, is_thorough=is_thorough)
    counts = counts[counts > 0]
    if n_rows < MIN_ROWS or len(counts) < 2:
        return []
    if is_bagged and source is None:
        kept = _subsample(own, max_rows, seed)
        return [Fold(_take_rows(task, kept), part.select(kept), is_out_of_bag=True)]
    if n_rows >= min_rows_for_holdout:
        pairs = [hold_out(strata[own], HOLDOUT_FRACTION, seed)]
    else:
        # A class with fewer rows than folds cannot be in all of them.
        splitter = StratifiedKFold if counts.min() >= n_folds else KFold
        pairs = list(splitter(n_folds, shuffle=True, random_state=seed).split(own, strata[own]))
    trained = [_subsample(add_copies(own[kept], source), max_rows, seed) for kept, _ in pairs]
    scored = [_subsample(own[held_out], max_rows, seed) for _, held_out in pairs]
    factors = weigh_repeated(part, own, trained, scored)
    folds = []
    for training, rows, factor in zip(trained, scored, factors, strict=True):
        mask = np.bincount(training, minlength=len(part.y)).astype(np.int32) if len(pairs) > 1 else None
        held_out = RowSet(part.X[rows], part.y[rows], part.weight[rows] * factor)
        folds.append(Fold(_take_rows(task, training), held_out, mask))
    return folds


def weigh_repeated(part: RowSet, own: Rows, trained: Sequence[Rows], scored: Sequence[Rows]) -> list[Doubles]:
    """Weigh held-out rows so that those with the features of a training row have the share that new rows would have.

    A row is repeated more often in the whole table than in the training rows of a fold, so that without these factors
    trees that memorise rows, which is right where rows repeat, score less than they are worth. The share for the whole
    table is that of its rows with the features of another one.

    Returns
    -------
    list of ndarray of shape (n_scored,)
        Factors of the weights of the held-out rows of every fold, all 1 unless some of the rows are repeated.
    """
    ones = [np.ones(len(rows)) for rows in scored]
    if not isinstance(part.X, np.ndarray):
        return ones
    keys = hash_rows(part.X)
    _, key, counts = np.unique(keys[own], return_inverse=True, return_counts=True)
    share = float(np.average(counts[key] > 1, weights=part.weight[own]))
    is_seen = [np.isin(keys[rows], keys[training]) for training, rows in zip(trained, scored, strict=True)]
    seen = float(np.average(np.concatenate(is_seen), weights=part.weight[np.concatenate(scored)]))
    if not (0 < share < 1 and 0 < seen < 1):
        return ones
    return [np.where(one, share / seen, (1 - share) / (1 - seen)) for one in is_seen]


HASHED_AT_ONCE = 2**22
"""Values of rows that are hashed in one step: products of eight bytes bound the memory."""


def hash_rows(X: npt.NDArray[np.float32]) -> npt.NDArray[np.uint64]:
    """Return a number for every row, the same for equal rows.  (n, n_features) → (n,)

    Examples
    --------
    >>> keys = hash_rows(np.float32([[1, 2], [2, 1], [1, 2]]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    factors = np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64) | np.uint64(1)
    keys = np.empty(len(X), dtype=np.uint64)
    for block in row_blocks(len(X), max(1, min(ROWS_AT_ONCE, HASHED_AT_ONCE // max(1, X.shape[1])))):
        # Adding zero makes −0 and 0 the same.
        products = np.ascontiguousarray(X[block] + np.float32(0)).view(np.uint32) * factors
        keys[block] = (products ^ (products >> np.uint64(32))).sum(axis=1)
    return keys


def _subsample(rows: Any, max_rows: int, seed: int) -> Any:
    return rows if len(rows) <= max_rows else np.sort(np.random.default_rng(seed).choice(rows, max_rows, replace=False))


def _take_rows(task: TrainingTask, rows: Any) -> TrainingTask:
    return TrainingTask(task.training.select(rows), task.scaling, task.target)
