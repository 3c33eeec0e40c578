"""How candidates are trained and scored: as single trees, or as small forests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from crisptree.inference import CrispTree, FlatTree, route_rows
from crisptree.inference.finalization import select_strength, shrink, truncate
from crisptree.inference.flat_tree import BRANCH_LINEAR, LINEAR_LEAVES, CrispForest, has_linear_leaves
from crisptree.learning.fitting import Bag, fit_forest, fit_tree
from crisptree.learning.history import current_store
from crisptree.learning.linear_leaves import (
    PENALTIES,
    PENALTIES_OF_ONE_LEAF,
    STEPS_TO_SCORE,
    compute_logistic_losses,
    fit_models,
    predict_models,
)
from crisptree.learning.options import LBFGS, Spec
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.selection.candidates import (
    CART_OF_MIXTURES,
    DEPTH_LADDER,
    FOREST_ROUNDS,
    LINEAR_LEAF_DEPTHS,
    MAX_ERRORS,
    SHARP,
    TREE_ROUNDS,
    Round,
    Trial,
    find_best,
    has_mixtures,
    select_against,
    select_close,
)
from crisptree.selection.folds import Fold
from crisptree.selection.parameters import MIXED, TRIAL_SHRINKAGE, is_auto
from crisptree.selection.scoring import ABSOLUTE_ERROR, SQUARED_ERROR, score_absolute_error, score_rows, weigh_rows
from crisptree.targets import Target
from crisptree.threads import n_threads, workers

if TYPE_CHECKING:
    from crisptree.selection.search import CandidateSearch

Doubles = npt.NDArray[np.float64]

RowScores = tuple[Doubles, Doubles | None]
"""Scores and log losses of rows; a regression has no losses."""

LEAST_PROBABILITY = 1e-3
"""Log losses of trials are bounded, so that single rows do not decide."""

TRIAL_TREES = {"classes": 10, "gaussians": 5}
"""Trees of a trial: enough to tell apart most candidates that help a forest from those that help a single tree. The
gain of a regression by more trees is extrapolated."""

AUTO_TREES = 25
"""Trees that a forest is assumed to have where n_estimators is "auto"."""

MIN_ERRORS_OVER_REFERENCE = {"image": 2.0, "table": 1.0}
"""Standard errors by which another forest must exceed the reference: a few trees tell forests apart by less than they
differ between bootstraps. For images the reference has the first noise level, which is best in the mean of several
seeds; for regression it is the mixture of thresholds with sharp hyperplanes, which is nowhere far from the best."""

FitTrees = Callable[[Spec, Any, TrainingTask, int], list[CrispTree]]
"""Fit the first trees of a forest: training options, max_features, rows and number of trees."""


class Evaluator(ABC):
    """Trains and scores candidates, and selects one of the trials."""

    rounds: ClassVar[tuple[Round, ...]]
    is_ensemble: ClassVar[bool]

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.parameters, self.n_jobs = parameters, parameters["n_jobs"]
        self.scoring: str | None = parameters.get("scoring")

    @abstractmethod
    def evaluate(self, values: dict[str, Any], spec: Spec, folds: Sequence[Fold], whole: TrainingTask) -> list[Trial]:
        """Train a candidate on every fold and score it on the held-out rows; ``whole`` has the rows of all folds."""

    @abstractmethod
    def select(self, search: CandidateSearch) -> dict[str, Any]:
        """Return the values of the selected trial, and those that follow from its trees."""


class TreeEvaluator(Evaluator):
    """One tree per fold, scored after shrinkage or with the best penalty of its linear leaves."""

    rounds = TREE_ROUNDS
    is_ensemble = False

    def evaluate(self, values: dict[str, Any], spec: Spec, folds: Sequence[Fold], whole: TrainingTask) -> list[Trial]:
        """Train a tree on every fold; one that is not finetuned is truncated at every depth."""
        if values.get("finetune_epochs") != 0:
            return [self._score_postprocessed(values, self._fit_folds(spec, folds, whole), folds)]
        trees = self._fit_folds(replace(spec, leaf_penalty=None), folds, whole)
        deepest = max(tree.structure.depth for tree in trees)
        if spec.leaf_penalty is not None:
            return list(self._score_linear_leaves(values, trees, folds, spec, min(deepest, spec.limits.max_depth or 0)))
        depths = [*(depth for depth in DEPTH_LADDER if depth < deepest), deepest]
        return [
            self._score_postprocessed(values | {"max_depth": depth}, [truncate(tree, depth) for tree in trees], folds)
            for depth in depths
        ]

    def _fit_folds(self, spec: Spec, folds: Sequence[Fold], whole: TrainingTask) -> list[FlatTree]:
        """Fit one tree per fold.

        Folds that L-BFGS trains are grown side by side, as the trees of a forest are, each on rows of its own; linear
        leaves and thresholds are fitted several folds at once. Either way the trees are those of single fits.
        """
        masks = [fold.training_mask for fold in folds if fold.training_mask is not None]
        is_lbfgs = LBFGS in (spec.growth.optimizer, spec.finetuning.optimizer)
        if is_lbfgs and len(masks) > 1 and spec.grow == "greedy" and not spec.has_linear_leaves:
            bags = [Bag(mask, spec.seed) for mask in masks]
            return [_as_flat(fitted.tree) for fitted in fit_forest(spec, whole, bags)]
        n_workers = min(len(folds), n_threads(self.n_jobs)) if is_lbfgs and current_store() is None else 1
        spec = spec if n_workers == 1 else replace(spec, n_jobs=1)
        with workers(n_workers) as each_of:
            return list(each_of(lambda fold: _as_flat(fit_tree(spec, fold.problem).tree), folds))

    def _score_postprocessed(self, values: dict[str, Any], trees: Sequence[FlatTree], folds: Sequence[Fold]) -> Trial:
        """Score trees about as the fit would leave them, with shrunk leaves."""
        if not trees[0].is_linear:
            prior = self.parameters["leaf_prior"]
            units = [fold.problem.mean_weight for fold in folds]
            trees = [shrink(tree, TRIAL_SHRINKAGE * unit, prior) for tree, unit in zip(trees, units, strict=True)]
        scored = [score_tree(tree, fold, self.n_jobs, self.scoring) for tree, fold in zip(trees, folds, strict=True)]
        return self._make_trial(values, scored, trees, folds)

    def _score_linear_leaves(
        self, values: dict[str, Any], trees: Sequence[FlatTree], folds: Sequence[Fold], spec: Spec, deepest: int
    ) -> Iterator[Trial]:
        """Score trees of several depths with linear leaves until deeper ones are no better.

        Where no penalty is set, it is the best one for all folds. For classes, whose models take many steps, only
        penalties beside that of the depth before are tried.
        """
        target, trials = folds[0].problem.target, list[Trial]()
        # One leaf has no thresholds: hyperplanes of depth 0 are tried.
        lowest = 1 if spec.grow == "cart" else 0
        for depth in [depth for depth in LINEAR_LEAF_DEPTHS if lowest <= depth <= deepest]:
            penalties = self._list_penalties(folds, depth)
            if not is_auto(self.parameters, "leaf_l2"):
                penalties = [spec.leaf_penalty or 0.0]
            elif trials and trials[-1].values["max_depth"] and not target.is_regression:
                place = penalties.index(trials[-1].values["leaf_l2"])
                penalties = penalties[max(0, place - 1) : place + 2]
            some = [truncate(tree, depth) for tree in trees]
            scored = self._score_penalties(some, folds, penalties, of_branches=spec.has_branch_models)
            tried = [
                self._make_trial(values | {"max_depth": depth, "leaf_l2": penalty}, rows, some, folds)
                for penalty, rows in zip(penalties, scored, strict=True)
            ]
            trials.append(select_penalty(tried))
            yield trials[-1]
            if not target.is_regression and is_past_best(trials):
                return

    def _score_penalties(
        self, trees: Sequence[FlatTree], folds: Sequence[Fold], penalties: Sequence[float], *, of_branches: bool
    ) -> list[tuple[RowScores, ...]]:
        """Score linear leaves with every penalty on every fold."""
        descending = penalties[::-1]  # the models of large ones are nearest to the start

        def score_fold(pair: tuple[FlatTree, Fold]) -> list[RowScores]:
            tree, fold = pair
            models = fit_models(tree, fold.problem, descending, 1, of_branches=of_branches, steps=STEPS_TO_SCORE)
            outputs = predict_models(tree, models, fold.held_out.X, 1)
            return [score_outputs(one, fold, self.scoring) for one in outputs]

        with workers(min(len(folds), n_threads(self.n_jobs)) if current_store() is None else 1) as each_of:
            by_fold = list(each_of(score_fold, zip(trees, folds, strict=True)))
        return list(zip(*by_fold, strict=True))[::-1]

    def select(self, search: CandidateSearch) -> dict[str, Any]:
        """Select the trial of the lowest log loss among those that cannot be told from the most accurate one."""
        selected = select_close(search.trials)
        values, folds = dict(selected.values), search.rescale_folds(selected.values)
        is_linear = has_linear_leaves({**self.parameters, **values})
        if is_auto(self.parameters, "shrinkage"):
            # Linear leaves are shrunk by their penalty.
            values["shrinkage"] = 0.0 if is_linear else self._find_shrinkage(selected.trees, folds)
        if is_linear and is_auto(self.parameters, "leaf_l2") and "leaf_l2" not in values:
            values["leaf_l2"] = self._find_leaf_penalty(selected, folds)
        return values

    def _make_trial(
        self, values: dict[str, Any], scored: Sequence[RowScores], trees: Sequence[FlatTree], folds: Sequence[Fold]
    ) -> Trial:
        """Make a trial of the scores of trees on held-out rows."""
        scores, losses = join_folds(scored)
        leaf_model = values.get("leaf_model", self.parameters["leaf_model"])
        weights = float(np.mean([count_weights(tree, leaf_model) for tree in trees]))
        leaves = sum(tree.structure.n_leaves for tree in trees) / len(trees)
        return Trial(values, scores, join_weights(folds, self.scoring), weights, leaves, losses, tuple(trees))

    def _find_leaf_penalty(self, trial: Trial, folds: Sequence[Fold]) -> float:
        """Return the penalty that is best for the trees of a trial that was trained with another one."""
        is_of_branches = {**self.parameters, **trial.values}["leaf_model"] == BRANCH_LINEAR
        penalties = self._list_penalties(folds, max(tree.structure.depth for tree in trial.trees))
        scored = self._score_penalties(trial.trees, folds, penalties, of_branches=is_of_branches)
        tried = [
            self._make_trial({"leaf_l2": penalty}, rows, trial.trees, folds)
            for penalty, rows in zip(penalties, scored, strict=True)
        ]
        return float(select_penalty(tried).values["leaf_l2"])

    def _list_penalties(self, folds: Sequence[Fold], depth: int) -> list[float]:
        """Return the penalties that are compared, in the unit of the weights."""
        grid = PENALTIES if depth else PENALTIES_OF_ONE_LEAF
        unit = float(np.mean([fold.problem.mean_weight for fold in folds]))
        return [unit * penalty for penalty in grid[folds[0].problem.target.name]]

    def _find_shrinkage(self, trees: Sequence[FlatTree], folds: Sequence[Fold]) -> float:
        """Return the median over the folds of the shrinkage that is best for each tree."""
        strengths = [
            select_strength(
                [(tree, (fold.held_out.X, fold.held_out.y, fold.held_out.weight))],
                leaf_prior=self.parameters["leaf_prior"],
                unit=fold.problem.mean_weight,
                n_jobs=self.n_jobs,
            )
            for tree, fold in zip(trees, folds, strict=True)
        ]
        return float(np.median(strengths))


def is_past_best(trials: Sequence[Trial]) -> bool:
    """Return True if the last two trials of trees with splits are no better than the best before them."""
    merits = [trial.merit for trial in trials if trial.values["max_depth"]]
    return len(merits) > 2 and max(merits[-2:]) <= max(merits[:-2])


def select_penalty(trials: Sequence[Trial]) -> Trial:
    """Return the best trial; for regression that of the largest penalty that cannot be told from it.

    Small penalties let models extrapolate, which held-out rows seldom show.
    """
    best = find_best(trials)
    if best.row_losses is not None:
        return best
    return [trial for trial in trials if best.score - trial.score <= MAX_ERRORS * best.error_against(trial)][-1]


def count_weights(tree: FlatTree, leaf_model: str) -> int:
    """Count the non-zero weights of a tree, those of the linear leaves that it has or is about to get included."""
    n_splits = int(np.count_nonzero(tree.weight))
    if tree.linear_weight is not None:
        return n_splits + int(np.count_nonzero(tree.linear_weight[tree.structure.n_splits :]))
    if leaf_model not in LINEAR_LEAVES:
        return n_splits
    n_outputs = tree.n_values // 2 if tree.target.is_regression else tree.n_values
    n_features = tree.n_features
    if leaf_model == BRANCH_LINEAR and tree.structure.n_splits:
        n_features = int((tree.weight != 0).any(axis=0).sum())
    return n_splits + tree.structure.n_leaves * n_features * n_outputs


def _as_flat(tree: CrispTree) -> FlatTree:
    assert isinstance(tree, FlatTree)  # there are no candidates with split modules
    return tree


def score_tree(tree: FlatTree, fold: Fold, n_jobs: int | None, scoring: str | None) -> RowScores:
    """Score every held-out row of a fold, and compute its log loss."""
    rows = fold.held_out
    return score_values(tree.scaled_values(route_rows(tree, rows.X, n_jobs), rows.X), fold, scoring)


def score_values(values: Doubles, fold: Fold, scoring: str | None) -> RowScores:
    """Score the predictions of a fold's held-out rows by a metric, and compute their log losses."""
    y, target = fold.held_out.y, fold.problem.target
    losses = compute_log_losses(values, y, target)
    if scoring is None:
        return np.asarray(target.score_predictions(target.predict(values), y), dtype=np.float64), losses
    return score_rows(scoring, values, y, target, losses), losses


def join_weights(folds: Sequence[Fold], scoring: str | None) -> Doubles:
    """Return the weights of all held-out rows in the mean of their scores."""
    weight = np.concatenate([fold.held_out.weight for fold in folds])
    if scoring is None:
        return weight
    return weigh_rows(scoring, np.concatenate([fold.held_out.y for fold in folds]), weight)


def score_outputs(outputs: Doubles, fold: Fold, scoring: str | None) -> RowScores:
    """Score linear outputs of a fold's held-out rows, logits or means, and compute their log losses."""
    y, target = fold.held_out.y, fold.problem.target
    losses = None
    if not target.is_regression:
        losses = np.minimum(compute_logistic_losses(outputs, y), -np.log(LEAST_PROBABILITY))
    if scoring is None:
        return np.asarray(target.score_predictions(target.predict(outputs), y), dtype=np.float64), losses
    return score_rows(scoring, outputs if losses is None else softmax(outputs, axis=1), y, target, losses), losses


def join_folds(scored: Sequence[RowScores]) -> RowScores:
    """Concatenate the scores and losses of the folds."""
    scores, losses = zip(*scored, strict=True)
    return np.concatenate(scores), None if losses[0] is None else np.concatenate(losses)


def compute_log_losses(values: Doubles, y: npt.NDArray[Any], target: Target) -> Doubles | None:
    """Compute bounded log losses of class probabilities; None for a regression.  (n, n_values) → (n,)"""
    if target.is_regression:
        return None
    return -np.log(np.maximum(values[np.arange(len(y)), y], LEAST_PROBABILITY))


class EnsemblePredictions(NamedTuple):
    """Regression predictions of a few trees: mean and variance over ``n_trees``.  (n, n_outputs)

    The expected squared error of T trees is that of infinitely many plus variance / T, so that few trees tell how good
    many would be.
    """

    mean: Doubles
    variance: Doubles
    y: Doubles
    n_trees: int

    @classmethod
    def of(cls, trees: Sequence[CrispTree], rows: RowSet, n_jobs: int | None) -> EnsemblePredictions:
        """Predict rows by every tree."""
        predicted = [t.target.predict(t.leaf_values(route_rows(t, rows.X, n_jobs), rows.X)) for t in trees]
        y = np.asarray(rows.y, dtype=np.float64)
        return cls(np.mean(predicted, axis=0), np.var(predicted, axis=0, ddof=1), y, len(trees))

    def score(self, target: Target, n_trees: float, scoring: str | None = None) -> Doubles:
        """Score every row, extrapolated to a number of trees where the score is one of squared errors.  (n,)"""
        if scoring == ABSOLUTE_ERROR:
            return score_absolute_error(self.mean, self.y)
        gain = (self.variance * (1 / self.n_trees - 1 / n_trees)).mean(axis=-1)
        return np.asarray(target.score_predictions(self.mean, self.y) + gain - (scoring == SQUARED_ERROR))

    def mix_with(self, other: EnsemblePredictions) -> EnsemblePredictions:
        """Average two ensembles of as many trees; the variance is the mean of theirs."""
        mean, variance = (self.mean + other.mean) / 2, (self.variance + other.variance) / 2
        return EnsemblePredictions(mean, variance, self.y, self.n_trees + other.n_trees)


class ForestEvaluator(Evaluator):
    """A few trees per fold, scored by their mean; the best score wins.

    What is best for one tree is not best for many: their errors are averaged, so that less noise and more depth pay.
    """

    rounds = FOREST_ROUNDS
    is_ensemble = True

    def __init__(self, parameters: Mapping[str, Any], fit_trees: FitTrees) -> None:
        super().__init__(parameters)
        self.fit_trees = fit_trees
        n_trees = parameters["n_estimators"]
        self.n_trees = AUTO_TREES if n_trees == "auto" else n_trees

    def evaluate(self, values: dict[str, Any], spec: Spec, folds: Sequence[Fold], whole: TrainingTask) -> list[Trial]:
        """Train a few trees on every fold and score their mean."""
        max_features = values.get("max_features", self.parameters["max_features"])
        n_trees = TRIAL_TREES[folds[0].problem.target.name]
        forests = [self.fit_trees(spec, max_features, fold.problem, n_trees) for fold in folds]
        all_trees = [_as_flat(tree) for trees in forests for tree in trees]
        leaf_model = values.get("leaf_model", self.parameters["leaf_model"])
        weights = float(np.mean([count_weights(tree, leaf_model) for tree in all_trees]))
        leaves = sum(tree.structure.n_leaves for tree in all_trees) / len(all_trees)
        predictions = None
        if folds[0].problem.target.is_regression:
            predictions = self._predict(forests, folds)
            scores = predictions.score(folds[0].problem.target, self.n_trees, self.scoring)
        else:
            # Few trees of pure leaves have a high log loss, many do not: without ``scoring`` accuracy alone
            # compares them.
            scores = np.concatenate(
                [self._score_classes(trees, fold) for trees, fold in zip(forests, folds, strict=True)]
            )
        return [Trial(values, scores, join_weights(folds, self.scoring), weights, leaves, predictions=predictions)]

    def _score_classes(self, trees: Sequence[CrispTree], fold: Fold) -> Doubles:
        probabilities = CrispForest(tuple(trees)).values(fold.held_out.X, self.n_jobs)
        assert probabilities is not None
        return score_values(probabilities, fold, self.scoring)[0]

    def _predict(self, forests: Sequence[Sequence[CrispTree]], folds: Sequence[Fold]) -> EnsemblePredictions:
        """Predict the held-out rows of all folds."""
        by_fold = [
            EnsemblePredictions.of(trees, fold.held_out, self.n_jobs)
            for trees, fold in zip(forests, folds, strict=True)
        ]
        mean, variance, y = (np.concatenate(part) for part in list(zip(*by_fold, strict=True))[:3])
        return EnsemblePredictions(mean, variance, y, len(forests[0]))

    def select(self, search: CandidateSearch) -> dict[str, Any]:
        """Select the best score, or a reference unless that is exceeded beyond chance."""
        reference = None
        if search.image_shape is not None:
            reference = search.trials[0]
        elif has_mixtures(search):
            reference = self._add_mixtures(search)
        if reference is None:
            return dict(search.best.values)
        min_errors = MIN_ERRORS_OVER_REFERENCE["table" if search.image_shape is None else "image"]
        return dict(select_against(reference, search.trials, min_errors).values)

    def _add_mixtures(self, search: CandidateSearch) -> Trial | None:
        """Score mixtures of hyperplanes and CART's thresholds by the predictions of their trials.

        Their errors differ, so that their mean may be better than either. The best mixture and the reference, that of
        the sharpest hyperplanes, become trials; the reference is returned, if the search was not stopped before it.
        """
        cart = next(
            (trial for trial in search.trials if all(trial.values.get(k) == v for k, v in CART_OF_MIXTURES.items())),
            None,
        )
        if cart is None:
            return None
        mixtures = list[Trial]()
        for trial in search.trials:
            if trial.values["split"] == "oblique":
                assert trial.predictions is not None
                assert cart.predictions is not None
                scores = trial.predictions.mix_with(cart.predictions).score(search.target, self.n_trees, self.scoring)
                size = {name: (getattr(trial, name) + getattr(cart, name)) / 2 for name in ("weights", "leaves")}
                mixtures.append(replace(trial, values=trial.values | {"split": MIXED}, row_scores=scores, **size))
        sharp = search.complete(SHARP) | {"split": MIXED}
        reference = next((trial for trial in mixtures if trial.values == sharp), None)
        best = find_best(mixtures) if mixtures else None
        for trial in mixtures:
            if trial in (best, reference):
                search.add(trial)
        return reference
