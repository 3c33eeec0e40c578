"""Training and scoring of candidates, as single trees or as small forests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from crisptree.inference import CrispTree, FlatTree, route_rows
from crisptree.inference.finalization import end_tables, select_strength, truncate
from crisptree.inference.flat_tree import BRANCH_LINEAR, LINEAR_LEAVES, CrispForest, has_linear_leaves
from crisptree.learning.fitting import Bootstrap, fit_forest, fit_tree
from crisptree.learning.linear_leaves import (
    PENALTIES,
    PENALTIES_OF_ONE_LEAF,
    STEPS_TO_SCORE,
    compute_logistic_losses,
    fit_routed,
    predict_routed,
)
from crisptree.learning.options import LBFGS, Plan, Spec
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.selection.candidates import (
    DEPTH_LADDER,
    FOREST_ROUNDS,
    LINEAR_LEAF_DEPTHS,
    TREE_ROUNDS,
    TRIAL_SHRINKAGE,
    Round,
    Trial,
    find_best,
    is_auto,
    select_against,
)
from crisptree.selection.search import MIN_ROWS_FOR_HOLDOUT, CandidateTask, Fold
from crisptree.targets import Target
from crisptree.threads import limit_trainings, n_threads, workers

if TYPE_CHECKING:
    from crisptree.selection.search import CandidateSearch

Doubles = npt.NDArray[np.float64]

RowScores = tuple[Doubles, Doubles | None]
"""Scores and log losses of rows; a regression has no losses."""

MIN_PROBABILITY = 1e-3
"""Log losses of trials are bounded, so that single rows do not decide."""

TRIAL_TREES = {"classes": 10, "gaussians": 5}
"""Trees of a trial: enough to tell apart most candidates that help a forest from those that help a single tree. The
gain of a regression by more trees is extrapolated."""

MAX_TRIAL_TREES, MAX_CART_TRIAL_TREES = 10, 25
"""Trees of a trial that is scored on few out-of-bag rows, and of one of CART's thresholds, which grow ten times as
fast."""

MIN_TREES_OF_ROW = 2
"""Rows out of bag of fewer trees have no variance."""

MIN_ERRORS_OVER_REFERENCE = 2.0
"""Standard errors by which another noise level must exceed the first one on images, which is best in the mean of
several seeds: a few trees tell forests apart by less than they differ between bootstraps."""

CART_SHRINKAGES = {"classes": (TRIAL_SHRINKAGE, 30.0), "gaussians": (TRIAL_SHRINKAGE,)}
"""Shrinkage of the leaf tables of CART's thresholds, in rows of mean weight, of which the better one scores a trial."""

BALANCED, BRIER, LOG_LOSS = "balanced_accuracy", "neg_brier_score", "neg_log_loss"
ABSOLUTE_ERROR, SQUARED_ERROR = "neg_mean_absolute_error", "neg_mean_squared_error"
"""Metrics of ``scoring`` beside the target's own score. All are means over rows, because candidates are compared row
by row, with the standard error of the paired difference."""

FitTrees = Callable[[Spec, Any, TrainingTask, int], tuple[list[CrispTree], npt.NDArray[np.int64]]]
"""Fit the first trees of a forest: training options, max_features, rows and number of trees; returns them and how often
each was trained on every row, (n_trees, n)."""


Task = Callable[[], FlatTree | list[Trial]]
"""The training of a fold, or that of a candidate with its scores."""


class Evaluator(ABC):
    """Trains and scores candidates, and selects one of the trials."""

    rounds: ClassVar[tuple[Round, ...]]
    is_ensemble: ClassVar[bool]

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.parameters, self.n_jobs = parameters, parameters["n_jobs"]
        self.scoring: str | None = parameters.get("scoring")

    @abstractmethod
    def evaluate(self, candidates: Sequence[CandidateTask]) -> Iterator[list[Trial]]:
        """Train candidates on every fold and score them on the held-out rows; return the trials of each, in order."""

    @abstractmethod
    def select(self, search: CandidateSearch) -> dict[str, Any]:
        """Return the values of the selected trial, and those that follow from its trees."""


@dataclass(frozen=True, eq=False)
class FoldTree:
    """A deterministic tree and the rows of its fold, by the nodes that they pass: what all its truncations share."""

    tree: FlatTree
    fold: Fold

    @classmethod
    def list(cls, trees: Sequence[FlatTree], folds: Sequence[Fold]) -> list[FoldTree]:
        """Pair the trees with their folds."""
        return [cls(tree, fold) for tree, fold in zip(trees, folds, strict=True)]

    def cap_depth(self, depth: int | None) -> int:
        """Return the depth of the tree truncated at ``depth``; None leaves it as it is."""
        deepest = len(self.tree.structure.nodes_by_depth) - 1
        return deepest if depth is None else min(depth, deepest)

    @cached_property
    def leaf(self) -> npt.NDArray[np.int64]:
        """The leaf of every training row."""
        return route_rows(self.tree, self.fold.task.training.X, 1)

    @cached_property
    def held_out_leaf(self) -> npt.NDArray[np.int64]:
        """The leaf of every held-out row."""
        return route_rows(self.tree, self.fold.held_out.X, 1)

    def predict_shrunk(self, leaf_prior: float, n_rows: float = TRIAL_SHRINKAGE) -> Callable[[int], Doubles]:
        """Return a function that predicts the held-out rows by the tree truncated at a depth, its leaves shrunk."""
        tree, strength = self.tree, n_rows * self.fold.task.mean_weight
        tables = end_tables(tree.target, tree.structure, tree.statistics.node_counts, leaf_prior, strength)
        return lambda depth: np.asarray(tables[tree.structure.nodes_by_depth[depth][self.held_out_leaf]])

    def fit_models(self, depth: int, penalties: Sequence[float], *, of_branches: bool) -> Doubles:
        """Fit linear leaves to the truncated tree and return the outputs of the held-out rows, for every penalty.

        (n_penalties, n, n_outputs)
        """
        whole, fold = self.tree.structure, self.fold
        structure, nodes = whole.truncate(depth)
        number = np.empty(whole.n_nodes, dtype=np.int64)
        number[nodes[structure.n_splits :]] = np.arange(structure.n_leaves)
        ends, used = number[whole.nodes_by_depth[depth]], None
        if of_branches and structure.n_splits:
            used = np.flatnonzero((self.tree.weight[nodes[: structure.n_splits]] != 0).any(axis=0))
        weight, steps = fold.task.training.weight, STEPS_TO_SCORE
        models = fit_routed(structure, ends[self.leaf], fold.leaf_rows, weight, penalties, used, steps)
        return predict_routed(models, structure, ends[self.held_out_leaf], fold.held_out_leaf_rows.x)


class CartSearch:
    """CART's thresholds of every fold, fitted when a candidate first needs them."""

    def __init__(self, key: Spec, folds: Sequence[Fold], fit: Callable[[], list[FoldTree]]) -> None:
        self.key, self.folds, self._fit, self._lock = key, folds, fit, Lock()
        self._trees: list[FoldTree] = []

    def serves(self, key: Spec, folds: Sequence[Fold]) -> bool:
        """Return True if the trees of another search are truncations of these."""
        depth, own = key.limits.max_depth, self.key.limits.max_depth
        is_deep_enough = own is None or (depth is not None and depth <= own)
        limits = replace(key.limits, max_depth=own)
        return self.folds is folds and is_deep_enough and self.key == replace(key, limits=limits)

    @property
    def trees(self) -> list[FoldTree]:
        """The trees; candidates that run side by side wait for the first of them."""
        with self._lock:
            self._trees = self._trees or self._fit()
        return self._trees


class TreeEvaluator(Evaluator):
    """One tree per fold, scored after shrinkage or with the best penalty of its linear leaves."""

    rounds = TREE_ROUNDS
    is_ensemble = False

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        super().__init__(parameters)
        self.searches: list[CartSearch] = []

    def evaluate(self, candidates: Sequence[CandidateTask]) -> Iterator[list[Trial]]:
        """Train a tree on every fold; one that is not finetuned is truncated at every depth.

        With several threads the folds of hyperplanes are tasks of their own, among the other candidates: while one
        thread is in the kernel, another one scores.
        """
        bootstraps = [[] if is_cart_search(one) else list_bags(one.spec, one.folds) for one in candidates]
        n_workers = self._count_workers(candidates, sum(len(own) or 1 for own in bootstraps))
        if n_workers > 1:
            candidates = [one._replace(spec=replace(one.spec, n_jobs=1)) for one in candidates]
        for one in candidates:
            # Which searches candidates share follows from their order, whatever the threads do.
            if is_cart_search(one):
                self._find_search(one)
        if n_workers == 1:
            yield from map(self._evaluate, candidates)
            return
        fits = [partial(fit_bag, one, bag) for one, own in zip(candidates, bootstraps, strict=True) for bag in own]
        others = [partial(self._evaluate, one) for one, own in zip(candidates, bootstraps, strict=True) if not own]
        with workers(n_workers) as each_of:
            results = list(each_of(run_task, interleave(fits, others)))
        trees = iter([result for result in results if isinstance(result, FlatTree)])
        trials = iter([result for result in results if isinstance(result, list)])
        for one, own in zip(candidates, bootstraps, strict=True):
            yield self._score_trees(one, list(islice(trees, len(own)))) if own else next(trials)

    def _count_workers(self, candidates: Sequence[CandidateTask], n_tasks: int) -> int:
        """Return the number of tasks side by side; training by Adam has all threads to itself."""
        optimizers = [{one.spec.growth.optimizer, one.spec.finetuning.optimizer} for one in candidates]
        is_parallel = all(LBFGS in own or is_cart_search(one) for one, own in zip(candidates, optimizers, strict=True))
        return limit_trainings(min(n_tasks, n_threads(self.n_jobs))) if is_parallel else 1

    def _evaluate(self, candidate: CandidateTask) -> list[Trial]:
        """Train the trees of a candidate and score them."""
        values, spec, folds, _ = candidate
        if values.get("finetune_epochs") != 0:
            return self._score_trees(candidate, self._fit_folds(spec, candidate))
        if spec.grow == "cart":
            trees = self._find_search(candidate).trees
        else:
            trees = FoldTree.list(self._fit_folds(replace(spec, leaf_penalty=None), candidate), folds)
        deepest = max(tree.cap_depth(spec.limits.max_depth) for tree in trees)
        if spec.leaf_penalty is not None:
            return list(self._score_linear_leaves(values, trees, spec, min(deepest, spec.limits.max_depth or 0)))
        prior, strengths = self.parameters["leaf_prior"], CART_SHRINKAGES[candidate.whole.target.name]
        shrunk = [[tree.predict_shrunk(prior, strength) for tree in trees] for strength in strengths]
        depths = [*(depth for depth in DEPTH_LADDER if depth < deepest), deepest]
        return [
            find_best([self._score_depth(values | {"max_depth": depth}, trees, depth, each) for each in shrunk])
            for depth in depths
        ]

    def _score_trees(self, candidate: CandidateTask, trees: Sequence[FlatTree]) -> list[Trial]:
        """Score finetuned trees as they are."""
        return [self._score_depth(candidate.values, FoldTree.list(trees, candidate.folds), None)]

    def _find_search(self, candidate: CandidateTask) -> CartSearch:
        """Return the first search for CART's thresholds whose trees are those of a candidate, or a new one."""
        grown, folds = replace(candidate.spec, leaf_penalty=None), candidate.folds
        key = replace(grown, n_jobs=1, has_branch_models=False, growth=Plan(), finetuning=Plan(epochs=0))
        if not candidate.whole.target.is_regression:
            key = replace(key, grows_on_residuals=False)
        for search in self.searches:
            if search.serves(key, folds):
                return search
        search = CartSearch(key, folds, lambda: FoldTree.list(self._fit_folds(grown, candidate), folds))
        self.searches.append(search)
        return search

    def _fit_folds(self, spec: Spec, candidate: CandidateTask) -> list[FlatTree]:
        """Fit one tree per fold.

        Folds that L-BFGS or CART train are one work list, as the trees of a forest are; linear leaves are fitted
        several folds at once. Either way the trees are those of single fits.
        """
        folds, bags = candidate.folds, list_bags(spec, candidate.folds)
        if bags:
            return [_as_flat(fitted.tree) for fitted in fit_forest(spec, candidate.whole, bags)]
        is_lbfgs = LBFGS in (spec.growth.optimizer, spec.finetuning.optimizer)
        n_workers = limit_trainings(min(len(folds), n_threads(spec.n_jobs))) if is_lbfgs else 1
        spec = spec if n_workers == 1 else replace(spec, n_jobs=1)
        with workers(n_workers) as each_of:
            return list(each_of(lambda fold: _as_flat(fit_tree(spec, fold.task).tree), folds))

    def _score_depth(
        self,
        values: dict[str, Any],
        trees: Sequence[FoldTree],
        depth: int | None,
        predictors: Sequence[Callable[[int], Doubles]] = (),
    ) -> Trial:
        """Score trees, truncated at a depth, about as the fit would leave them, with shrunk leaves."""
        if trees[0].tree.is_linear:
            scored = [score_tree(one.tree, one.fold, 1, self.scoring) for one in trees]
            return self._make_trial(values, scored, trees, depth)
        predictors = predictors or [tree.predict_shrunk(self.parameters["leaf_prior"]) for tree in trees]
        scored = [
            score_values(predict(one.cap_depth(depth)), one.fold, self.scoring)
            for one, predict in zip(trees, predictors, strict=True)
        ]
        return self._make_trial(values, scored, trees, depth)

    def _score_linear_leaves(
        self, values: dict[str, Any], trees: Sequence[FoldTree], spec: Spec, deepest: int
    ) -> Iterator[Trial]:
        """Score trees of several depths with linear leaves until deeper ones are no better.

        Where no penalty is set, it is the best one for all folds. For classes, whose models take many steps, only
        penalties beside that of the depth before are tried.
        """
        target, trials = trees[0].tree.target, list[Trial]()
        # One leaf has no thresholds: hyperplanes of depth 0 are tried.
        lowest = 1 if spec.grow == "cart" else 0
        for depth in [depth for depth in LINEAR_LEAF_DEPTHS if lowest <= depth <= deepest]:
            penalties = self._list_penalties(trees, depth)
            if not is_auto(self.parameters, "leaf_l2"):
                penalties = [spec.leaf_penalty or 0.0]
            elif trials and trials[-1].values["max_depth"] and not target.is_regression:
                place = penalties.index(trials[-1].values["leaf_l2"])
                penalties = penalties[max(0, place - 1) : place + 2]
            own = values | {"max_depth": depth}
            how: dict[str, Any] = {"of_branches": spec.has_branch_models, "n_jobs": spec.n_jobs}
            tried = self._try_penalties(own, trees, depth, penalties, **how)
            trials.append(select_penalty(tried))
            yield trials[-1]
            if not target.is_regression and is_past_best(trials):
                return

    def _try_penalties(
        self,
        values: dict[str, Any],
        trees: Sequence[FoldTree],
        depth: int | None,
        penalties: Sequence[float],
        *,
        of_branches: bool,
        n_jobs: int | None,
    ) -> list[Trial]:
        """Score linear leaves with every penalty on every fold."""
        descending = penalties[::-1]  # the models of large ones are nearest to the start

        def score_fold(one: FoldTree) -> list[RowScores]:
            outputs = one.fit_models(one.cap_depth(depth), descending, of_branches=of_branches)
            return [score_outputs(each, one.fold, self.scoring) for each in outputs]

        with workers(limit_trainings(min(len(trees), n_threads(n_jobs)))) as each_of:
            by_fold = list(each_of(score_fold, trees))
        return [
            self._make_trial(values | {"leaf_l2": penalty}, rows, trees, depth)
            for penalty, rows in zip(penalties, list(zip(*by_fold, strict=True))[::-1], strict=True)
        ]

    def select(self, search: CandidateSearch) -> dict[str, Any]:
        """Select a trial, and the shrinkage or the penalty of its leaves."""
        selected = search.best_of(lambda values: True)
        values, depth = dict(selected.values), selected.values["max_depth"]
        trees = FoldTree.list(selected.trees, search.rescale_folds(selected.values))
        is_linear = has_linear_leaves({**self.parameters, **values})
        if is_auto(self.parameters, "shrinkage"):
            # Linear leaves are shrunk by their penalty.
            values["shrinkage"] = 0.0 if is_linear else self._find_shrinkage(trees, depth)
        if is_linear and is_auto(self.parameters, "leaf_l2") and "leaf_l2" not in values:
            penalties = self._list_penalties(trees, max(tree.cap_depth(depth) for tree in trees))
            of_branches = {**self.parameters, **values}["leaf_model"] == BRANCH_LINEAR
            how: dict[str, Any] = {"of_branches": of_branches, "n_jobs": self.n_jobs}
            tried = self._try_penalties(values, trees, depth, penalties, **how)
            values["leaf_l2"] = float(select_penalty(tried).values["leaf_l2"])
        return values

    def _make_trial(
        self, values: dict[str, Any], scored: Sequence[RowScores], trees: Sequence[FoldTree], depth: int | None
    ) -> Trial:
        """Make a trial of the scores of truncated trees on held-out rows."""
        scores, losses = join_folds(scored)
        leaf_model = values.get("leaf_model", self.parameters["leaf_model"])
        depths = [one.tree.structure.node_depths[: one.tree.structure.n_splits] for one in trees]
        sizes = [int((own < one.cap_depth(depth)).sum()) + 1 for one, own in zip(trees, depths, strict=True)]
        weights = float(np.mean([count_weights(one.tree, leaf_model, one.cap_depth(depth)) for one in trees]))
        row_weights = join_weights([one.fold for one in trees], self.scoring)
        grown = tuple(one.tree for one in trees)
        return Trial(values, scores, row_weights, weights, sum(sizes) / len(sizes), losses, grown)

    def _list_penalties(self, trees: Sequence[FoldTree], depth: int) -> list[float]:
        """Return the penalties that are compared, in the unit of the weights."""
        grid = PENALTIES if depth else PENALTIES_OF_ONE_LEAF
        unit = float(np.mean([one.fold.task.mean_weight for one in trees]))
        return [unit * penalty for penalty in grid[trees[0].tree.target.name]]

    def _find_shrinkage(self, trees: Sequence[FoldTree], depth: int | None) -> float:
        """Return the median over the folds of the shrinkage that is best for each truncated tree."""
        strengths = [
            select_strength(
                [(truncate(one.tree, one.cap_depth(depth)), (rows.X, rows.y, rows.weight))],
                leaf_prior=self.parameters["leaf_prior"],
                unit=one.fold.task.mean_weight,
                n_jobs=self.n_jobs,
            )
            for one in trees
            for rows in [one.fold.held_out]
        ]
        return float(np.median(strengths))


def is_cart_search(candidate: CandidateTask) -> bool:
    """Return True if the trees are CART's, not finetuned."""
    return candidate.spec.grow == "cart" and candidate.values.get("finetune_epochs") == 0


def list_bags(spec: Spec, folds: Sequence[Fold]) -> list[Bootstrap]:
    """Return the folds as bootstraps where L-BFGS trains whole trees on several of them, else none."""
    masks = [fold.training_mask for fold in folds if fold.training_mask is not None]
    is_plain = spec.is_whole_lbfgs and spec.leaf_penalty is None and len(masks) > 1
    return [Bootstrap(mask, spec.seed) for mask in masks] if is_plain else []


def fit_bag(candidate: CandidateTask, bag: Bootstrap) -> FlatTree:
    """Train the tree of one fold."""
    (fitted,) = fit_forest(candidate.spec, candidate.whole, [bag])
    return _as_flat(fitted.tree)


def run_task(task: Task) -> FlatTree | list[Trial]:
    """Call a task."""
    return task()


def interleave(first: Sequence[Task], second: Sequence[Task]) -> list[Task]:
    """Mix two lists evenly, each in its order."""
    places = [(i + 0.5) / len(tasks) for tasks in (first, second) for i in range(len(tasks))]
    tasks = [*first, *second]
    return [tasks[i] for i in sorted(range(len(tasks)), key=lambda i: places[i])]


def is_past_best(trials: Sequence[Trial]) -> bool:
    """Return True if the last two trials of trees with splits are no better than the best before them."""
    merits = [trial.merit for trial in trials if trial.values["max_depth"]]
    return len(merits) > 2 and max(merits[-2:]) <= max(merits[:-2])


def select_penalty(trials: Sequence[Trial]) -> Trial:
    """Return the trial of the lowest log loss, for regression that of the highest score.

    Small penalties let models extrapolate, which accuracies do not show.
    """
    return find_best(trials) if trials[0].row_losses is None else min(trials, key=lambda trial: trial.log_loss)


def count_weights(tree: FlatTree, leaf_model: str, depth: int | None = None) -> int:
    """Count the non-zero weights of a truncated tree, those of the linear leaves that it is about to get included."""
    is_split = slice(None) if depth is None else tree.structure.node_depths[: tree.structure.n_splits] < depth
    weight = tree.weight[is_split]
    n_splits = int(np.count_nonzero(weight))
    if tree.linear_weight is not None:
        return n_splits + int(np.count_nonzero(tree.linear_weight[tree.structure.n_splits :]))
    if leaf_model not in LINEAR_LEAVES:
        return n_splits
    n_outputs = tree.n_values // 2 if tree.target.is_regression else tree.n_values
    n_features = tree.n_features
    if leaf_model == BRANCH_LINEAR and len(weight):
        n_features = int((weight != 0).any(axis=0).sum())
    return n_splits + (len(weight) + 1) * n_features * n_outputs


def _as_flat(tree: CrispTree) -> FlatTree:
    assert isinstance(tree, FlatTree)  # there are no candidates with split modules
    return tree


def score_rows(
    scoring: str | None, values: Doubles, y: npt.NDArray[Any], target: Target, losses: Doubles | None
) -> Doubles:
    """Score held-out rows by class probabilities and log losses, or by scaled means.  (n, n_values) → (n,)"""
    if scoring == LOG_LOSS:
        assert losses is not None
        return -losses
    if scoring == BRIER:
        return score_brier(values, y)
    if scoring == ABSOLUTE_ERROR:
        return score_absolute_error(target.predict(values), y)
    scores = np.asarray(target.score_predictions(target.predict(values), y), dtype=np.float64)
    return scores - 1 if scoring == SQUARED_ERROR else scores


def score_brier(probabilities: Doubles, y: npt.NDArray[Any]) -> Doubles:
    """Minus the squared distance to the one-hot label, halved for two classes as in scikit-learn.  (n,)"""
    squares = (probabilities**2).sum(axis=1) + 1 - 2 * probabilities[np.arange(len(y)), y]
    return np.asarray(-squares / (2 if probabilities.shape[1] == 2 else 1))


def score_absolute_error(predicted: Doubles, y: npt.NDArray[Any]) -> Doubles:
    """Minus the absolute error, averaged over outputs.  (n,)"""
    return np.asarray(-np.abs(predicted - y).mean(axis=-1))


def weigh_rows(scoring: str | None, y: npt.NDArray[Any], weight: Doubles) -> Doubles:
    """Return the weights of the mean over rows: for balanced accuracy the same total for every class.  (n,)"""
    if scoring != BALANCED:
        return weight
    _, classes = np.unique(y, return_inverse=True)
    return np.asarray(weight / np.bincount(classes, weight)[classes])


def score_tree(tree: FlatTree, fold: Fold, n_jobs: int | None, scoring: str | None) -> RowScores:
    """Score every held-out row of a fold, and compute its log loss."""
    rows = fold.held_out
    return score_values(tree.scaled_values(route_rows(tree, rows.X, n_jobs), rows.X), fold, scoring)


def score_values(values: Doubles, fold: Fold, scoring: str | None) -> RowScores:
    """Score the predictions of a fold's held-out rows by a metric, and compute their log losses."""
    y, target = fold.held_out.y, fold.task.target
    losses = compute_log_losses(values, y, target)
    return score_rows(scoring, values, y, target, losses), losses


def join_weights(folds: Sequence[Fold], scoring: str | None) -> Doubles:
    """Return the weights of all held-out rows in the mean of their scores."""
    weight = np.concatenate([fold.held_out.weight for fold in folds])
    return weigh_rows(scoring, np.concatenate([fold.held_out.y for fold in folds]), weight)


def score_outputs(outputs: Doubles, fold: Fold, scoring: str | None) -> RowScores:
    """Score linear outputs of a fold's held-out rows, logits or means, and compute their log losses."""
    y, target = fold.held_out.y, fold.task.target
    if target.is_regression:
        return score_rows(scoring, outputs, y, target, None), None
    losses = np.minimum(compute_logistic_losses(outputs, y), -np.log(MIN_PROBABILITY))
    return score_rows(scoring, softmax(outputs, axis=1), y, target, losses), losses


def join_folds(scored: Sequence[RowScores]) -> RowScores:
    """Concatenate the scores and losses of the folds."""
    scores, losses = zip(*scored, strict=True)
    return np.concatenate(scores), None if losses[0] is None else np.concatenate(losses)


def compute_log_losses(values: Doubles, y: npt.NDArray[Any], target: Target) -> Doubles | None:
    """Compute bounded log losses of class probabilities; None for a regression.  (n, n_values) → (n,)"""
    if target.is_regression:
        return None
    return -np.log(np.maximum(values[np.arange(len(y)), y], MIN_PROBABILITY))


class EnsemblePredictions(NamedTuple):
    """Regression predictions of a few trees: mean and variance over ``n_trees``, (n,).  (n, n_outputs)

    The expected squared error of T trees is that of infinitely many plus variance / T, so that few trees tell how good
    many would be.
    """

    mean: Doubles
    variance: Doubles
    y: Doubles
    n_trees: Doubles

    @classmethod
    def of(
        cls, trees: Sequence[CrispTree], rows: RowSet, n_jobs: int | None, is_predicted: npt.NDArray[np.bool_]
    ) -> EnsemblePredictions:
        """Predict rows by every tree that is to predict them, (n_trees, n); rows of a single tree have no variance."""
        predicted = np.stack([t.target.predict(t.leaf_values(route_rows(t, rows.X, n_jobs), rows.X)) for t in trees])
        share = is_predicted[:, :, None].astype(np.float64)
        n_trees = share.sum(axis=0)
        mean = (share * predicted).sum(axis=0) / np.maximum(n_trees, 1)
        variance = (share * (predicted - mean) ** 2).sum(axis=0) / np.maximum(n_trees - 1, 1)
        return cls(mean, variance, np.asarray(rows.y, dtype=np.float64), np.maximum(n_trees[:, 0], 1))

    def score(self, target: Target, n_trees: float, scoring: str | None = None) -> Doubles:
        """Score every row, extrapolated to a number of trees where the score is one of squared errors.  (n,)"""
        if scoring == ABSOLUTE_ERROR:
            return score_absolute_error(self.mean, self.y)
        gain = (self.variance * (1 / self.n_trees - 1 / n_trees)[:, None]).mean(axis=-1)
        return np.asarray(target.score_predictions(self.mean, self.y) + gain - (scoring == SQUARED_ERROR))


def count_trial_trees(spec: Spec, fold: Fold) -> int:
    """Return the number of trees of a trial."""
    if not fold.is_out_of_bag or fold.task.n_rows >= MIN_ROWS_FOR_HOLDOUT:
        return TRIAL_TREES[fold.task.target.name]
    return MAX_CART_TRIAL_TREES if spec.grow == "cart" else MAX_TRIAL_TREES


class ForestEvaluator(Evaluator):
    """A few trees per fold, scored by their mean; the best score wins.

    What is best for one tree is not best for many: their errors are averaged, so that less noise and more depth pay.
    """

    rounds = FOREST_ROUNDS
    is_ensemble = True

    def __init__(self, parameters: Mapping[str, Any], fit_trees: FitTrees) -> None:
        super().__init__(parameters)
        self.fit_trees = fit_trees
        self.n_trees = parameters["n_estimators"]

    def evaluate(self, candidates: Sequence[CandidateTask]) -> Iterator[list[Trial]]:
        """Train a few trees on every fold and score their mean."""
        return ([self._evaluate(one.values, one.spec, one.folds)] for one in candidates)

    def _evaluate(self, values: dict[str, Any], spec: Spec, folds: Sequence[Fold]) -> Trial:
        max_features = values.get("max_features", self.parameters["max_features"])
        n_trees = count_trial_trees(spec, folds[0])
        fitted = [self.fit_trees(spec, max_features, fold.task, n_trees) for fold in folds]
        forests = [trees for trees, _ in fitted]
        all_trees = [_as_flat(tree) for trees in forests for tree in trees]
        leaf_model = values.get("leaf_model", self.parameters["leaf_model"])
        weights = float(np.mean([count_weights(tree, leaf_model) for tree in all_trees]))
        leaves = sum(tree.structure.n_leaves for tree in all_trees) / len(all_trees)
        row_weights = join_weights(folds, self.scoring)
        if folds[0].task.target.is_regression:
            scores = self._predict(fitted, folds).score(folds[0].task.target, self.n_trees, self.scoring)
            if folds[0].is_out_of_bag:  # the same rows for any number of trees
                first = fitted[0][1][:MAX_TRIAL_TREES]
                row_weights = row_weights * ((first == 0).sum(axis=0) >= MIN_TREES_OF_ROW)
        else:
            # Few trees of pure leaves have a high log loss, many do not: without ``scoring`` accuracy alone
            # compares them.
            scores = np.concatenate(
                [self._score_classes(trees, fold) for trees, fold in zip(forests, folds, strict=True)]
            )
        return Trial(values, scores, row_weights, weights, leaves)

    def _score_classes(self, trees: Sequence[CrispTree], fold: Fold) -> Doubles:
        probabilities = CrispForest(tuple(trees)).values(fold.held_out.X, self.n_jobs)
        assert probabilities is not None
        return score_values(probabilities, fold, self.scoring)[0]

    def _predict(
        self, fitted: Sequence[tuple[list[CrispTree], npt.NDArray[np.int64]]], folds: Sequence[Fold]
    ) -> EnsemblePredictions:
        """Predict the held-out rows of all folds, out-of-bag rows by the trees that were not trained on them."""
        by_fold = []
        for (trees, times), fold in zip(fitted, folds, strict=True):
            every = np.ones((len(trees), len(fold.held_out.y)), dtype=bool)
            is_predicted = times == 0 if fold.is_out_of_bag else every
            by_fold.append(EnsemblePredictions.of(trees, fold.held_out, self.n_jobs, is_predicted))
        return EnsemblePredictions(*(np.concatenate(part) for part in zip(*by_fold, strict=True)))

    def select(self, search: CandidateSearch) -> dict[str, Any]:
        """Select the best score, on images the first noise level unless another one is significantly better."""
        if search.image_shape is not None:
            return dict(select_against(search.trials[0], search.trials, MIN_ERRORS_OVER_REFERENCE).values)
        return dict(search.best.values)
