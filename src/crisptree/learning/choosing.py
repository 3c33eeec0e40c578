"""Which of some settings generalises best, judged by deterministic trees on rows that they were not trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.data.rows import learn_scaling
from crisptree.inference import CrispTree, FlatTree, route_rows
from crisptree.inference.cutting import cut
from crisptree.inference.shrinking import best_strength, chosen_strength, shrunk
from crisptree.learning.fitting import fit_tree
from crisptree.learning.linear_leaves import best_penalty, with_models
from crisptree.learning.options import Spec
from crisptree.learning.task import Part, Problem

Doubles = npt.NDArray[np.float64]

NEAR = 3.0
"""Kinds of trees that are no more standard errors below the best are near it."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One setting and what became of it.

    Parameters
    ----------
    values : dict
        What was set.
    row_scores : ndarray of shape (n,)
        How good the answer was for every held-out row, fold after fold: for classes 1 or 0.
    row_weights : ndarray of shape (n,)
        What these rows weigh.
    weights, leaves : float
        Weights that are not zero, and leaves, in the mean over the folds.
    trees : tuple of CrispTree
        Those of the folds, while they are needed.
    """

    values: dict[str, Any]
    row_scores: Doubles
    row_weights: Doubles
    weights: float
    leaves: float
    trees: tuple[CrispTree, ...] = ()

    @property
    def score(self) -> float:
        """The weighted mean over the rows."""
        return float(np.average(self.row_scores, weights=self.row_weights))

    def error_against(self, other: Trial) -> float:
        """The standard error of the difference between two settings, row by row."""
        return self._error(self.row_scores - other.row_scores)

    @property
    def error(self) -> float:
        """The standard error of the score."""
        return self._error(self.row_scores)

    def _error(self, values: Doubles) -> float:
        share = self.row_weights / self.row_weights.sum()
        return float(np.sqrt((share**2 * (values - share @ values) ** 2).sum()))


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to train on, and rows that judge."""

    problem: Problem
    held: Part

    def rescaled(self, scale: str | None, n_jobs: int | None) -> Fold:
        """The same rows on another scale."""
        rows = self.problem.training
        scaling = learn_scaling(rows.X, rows.weight, scale, n_jobs)
        return replace(self, problem=Problem(rows, scaling, self.problem.target))


def try_out(values: dict[str, Any], spec: Spec, folds: Sequence[Fold]) -> Trial:
    """Train a tree on every fold and judge it on the rest."""
    return _judged(values, [fit_tree(spec, fold.problem).tree for fold in folds], folds, spec.n_jobs)


def try_depths(values: dict[str, Any], spec: Spec, folds: Sequence[Fold]) -> list[Trial]:
    """The same for every depth up to the tree's own: it is grown once and cut."""
    trees = [fit_tree(spec, fold.problem).tree for fold in folds]
    deepest = max(tree.structure.depth for tree in trees)
    return [
        _judged(values | {"max_depth": depth}, [cut(tree, depth) for tree in trees], folds, spec.n_jobs)
        for depth in range(1, deepest + 1)
    ]


def _judged(values: dict[str, Any], trees: list[CrispTree], folds: Sequence[Fold], n_jobs: int | None) -> Trial:
    scores = []
    for tree, fold in zip(trees, folds, strict=True):
        leaf, target = route_rows(tree, fold.held.X, n_jobs), fold.problem.target
        if isinstance(tree, FlatTree) and tree.is_linear:
            score = target.agreement(tree.meaning.answers(tree.scaled_values(leaf, fold.held.X)), fold.held.y)
        else:
            score = target.score(tree.leaves, leaf, fold.held.y)
        scores.append(np.asarray(score, dtype=np.float64))
    weights = sum(int(np.count_nonzero(tree.weight)) for tree in trees if isinstance(tree, FlatTree))
    leaves = sum(tree.structure.n_leaves for tree in trees)
    held = np.concatenate([fold.held.weight for fold in folds])
    return Trial(values, np.concatenate(scores), held, weights / len(trees), leaves / len(trees), tuple(trees))


def with_shrinkage(trial: Trial, folds: Sequence[Fold], leaf_prior: float, n_jobs: int | None) -> Trial:
    """The same trees as a fit would leave them: shrunk by the strength that is best for the folds together."""
    judges = [(fold.held.X, fold.held.y, fold.held.weight) for fold in folds]
    unit = float(np.mean([fold.problem.training.weight.mean() for fold in folds]))
    strength = best_strength(list(zip(trial.trees, judges, strict=True)), leaf_prior, unit, n_jobs)
    trees = [shrunk(tree, strength, leaf_prior) for tree in trial.trees]
    return _judged(trial.values, trees, folds, n_jobs)


def with_penalty(trial: Trial, folds: Sequence[Fold], n_jobs: int | None) -> tuple[Trial, float]:
    """The same trees with the models of the penalty that is best for the folds together; and that penalty."""
    flat = [tree for tree in trial.trees if isinstance(tree, FlatTree)]
    problems = [fold.problem for fold in folds]
    penalty = best_penalty(flat, problems, [fold.held for fold in folds], n_jobs)
    trees = [with_models(tree, problem, penalty, n_jobs) for tree, problem in zip(flat, problems, strict=True)]
    return _judged(trial.values, list(trees), folds, n_jobs), penalty


def simplest_of_the_best(trials: Sequence[Trial], errors: float = 1.0) -> Trial:
    """The setting with the fewest weights among those within so many standard errors of the best.

    The error is that of the difference from the best, row by row: two settings that err on the same rows are told
    apart by few others.
    """
    best = max(trials, key=lambda trial: trial.score)
    near = [trial for trial in trials if best.score - trial.score <= errors * best.error_against(trial)]
    return min(near, key=lambda trial: trial.weights)


def kinds_near_the_best(trials: Sequence[Trial]) -> list[Trial]:
    """The best of every kind, sparse or not, of hyperplanes or thresholds, if it is near the best of all."""
    kinds: dict[Any, Trial] = {}
    for trial in sorted(trials, key=lambda trial: -trial.score):
        values = trial.values
        kind = (bool(values.get("l1")), *map(values.get, ("split", "finetune_epochs", "min_samples_leaf")))
        kinds.setdefault(kind, trial)
    best = max(trials, key=lambda trial: trial.score)
    return [trial for trial in kinds.values() if best.score - trial.score <= NEAR * best.error_against(trial)]


def found_thresholds(trials: Sequence[Trial]) -> Trial | None:
    """Thresholds as CART finds them, if there are some within one standard error of the best.

    All rows find nearly the thresholds that most of them find, while hyperplanes may train to another end.
    """
    found = [trial for trial in trials if trial.values.get("finetune_epochs") == 0]
    if not found:
        return None
    first, best = (max(some, key=lambda trial: trial.score) for some in (found, trials))
    return first if best.score - first.score <= best.error_against(first) else None


def median_strength(trial: Trial, folds: Sequence[Fold], leaf_prior: float, n_jobs: int | None) -> float:
    """The shrinkage that is best for the tree of every fold, in the median."""
    strengths = [
        chosen_strength(
            tree,
            *(fold.held.X, fold.held.y, fold.held.weight),
            leaf_prior=leaf_prior,
            unit=float(fold.problem.training.weight.mean()),
            n_jobs=n_jobs,
        )
        for tree, fold in zip(trial.trees, folds, strict=True)
    ]
    return float(np.median(strengths))


def shortened(spec: Spec, share: float) -> Spec:
    """The same training in fewer epochs, with steps of γ that reach as far."""
    return replace(spec, growth=_shorter(spec.growth, share), finetuning=_shorter(spec.finetuning, share))


def _shorter(plan: Any, share: float) -> Any:
    epochs = max(min(plan.epochs, 2), round(plan.epochs * share))
    longer = plan.epochs / max(epochs, 1)
    step = plan.steepness_step * longer if plan.annealing == "linear" else (1 + plan.steepness_step) ** longer - 1
    return replace(plan, epochs=epochs, steepness_step=step, min_updates=round(plan.min_updates * share))
