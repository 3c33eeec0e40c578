"""What a forest chooses where a parameter says "auto": once for all trees, by small forests on rows that are held out.

What is best for one tree is not best for many: their errors are averaged, so that less noise and more depth pay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.estimators.bags import Bagging
from crisptree.estimators.capabilities import MIXED
from crisptree.estimators.choices import LARGE_STEP, THRESHOLDS, Search, is_chosen_for
from crisptree.estimators.fitting_forest import as_in_forest, with_depth
from crisptree.estimators.folds import ROWS_FOR_ONE_FOLD, folds_of
from crisptree.estimators.validation import TrainingData
from crisptree.inference import CrispTree, route_rows
from crisptree.inference.forest import CrispForest
from crisptree.learning.choosing import Fold, Trial
from crisptree.learning.forest import Bag, fit_forest
from crisptree.learning.options import Spec
from crisptree.learning.task import Part, Problem
from crisptree.targets import Gaussians

Doubles = npt.NDArray[np.float64]

SOME = 0.4
"""The share of features that a split may have where fewer are tried: trees that look elsewhere err elsewhere."""

LOW = 6
"""The depth of CART's trees that are finetuned: deeper ones would soften hundreds of splits."""

TREES, MANY = 5, 25
"""Trees of a trial: enough to tell most settings apart that help many trees from those that help one. And of the last
trials on few rows, if the forest will have as many: kinds of trees differ in how much they gain by being many."""

FAR = {"classes": 0.1}
"""A kind of tree that is so much worse with few trees has no trial with many. Those of numbers need none: what more
trees would gain follows from how far the few differ."""

BEYOND_CHANCE = {"images": 2.0, "numbers": 1.0}
"""Standard errors by which another forest must be better than the one that is taken otherwise: a few trees tell forests
apart by less than what they differ by when they are drawn anew. On images that one has the first width of noise, which
is best in the mean of several draws; of numbers in tables it mixes thresholds with hyperplanes as sharp as they can be,
which is nowhere far from the best."""

SHARP = {"split": "oblique", "input_noise": 0.0, "l1": 0.0, "l2": 0.0, "steepness_step": LARGE_STEP}


def choose_for_forest(
    parameters: Mapping[str, Any],
    data: TrainingData,
    problem: Problem,
    seed: int,
    on_trial: Callable[[Trial], None] = lambda trial: None,
) -> tuple[dict[str, Any], list[Trial]]:
    """What the open parameters should be, and all that was tried; nothing where there are too few rows to tell."""
    if not is_chosen_for(parameters):
        return {}, []
    folds = folds_of(problem, seed, data.source)
    if not folds:
        return {}, []
    search = ForestSearch(with_depth(parameters, problem.target), folds, data.image_shape, seed, on_trial)
    search.deep = parameters["max_depth"] == "auto"
    n_trees = MANY if parameters["n_estimators"] == "auto" else parameters["n_estimators"]
    search.n_wanted = n_trees
    search.widths()
    if data.image_shape is not None:
        search.taken_otherwise = search.trials[0]
    else:
        search.one_scale()
        search.sparse()
        search.harder()
        search.thresholds()
        if search.leaves == "constant" and n_trees > 1:
            search.mixed()
    if len(problem.training.y) < ROWS_FOR_ONE_FOLD and n_trees > TREES and problem.target.name in FAR:
        search.with_many(min(n_trees, MANY))
    return search.best.values, search.trials


class Answers(NamedTuple):
    """What a few trees say of held-out numbers: the mean over the trees, and their variance.  (n, n_outputs)

    The squared error of T trees is in the mean that of infinitely many plus variance / T, so that few trees tell how
    good many would be.
    """

    mean: Doubles
    variance: Doubles
    y: Doubles

    @classmethod
    def of(cls, trees: list[CrispTree], held: Part, n_jobs: int | None) -> Answers:
        said = [tree.meaning.answers(tree.leaf_values(route_rows(tree, held.X, n_jobs), held.X)) for tree in trees]
        return cls(np.mean(said, axis=0), np.var(said, axis=0, ddof=1), np.asarray(held.y, dtype=np.float64))

    def scores(self, target: Gaussians, n_few: int, n_many: float) -> Doubles:
        """How good so many trees would be for every row.  (n,)"""
        gained = (self.variance * (1 / n_few - 1 / n_many)).mean(axis=-1)
        return np.asarray(target.agreement(self.mean, self.y) + gained)

    def mixed_with(self, other: Answers) -> Answers:
        """What as many trees of either kind say together; the variance is that of one of them in the mean."""
        return self._replace(mean=(self.mean + other.mean) / 2, variance=(self.variance + other.variance) / 2)


class ForestSearch(Search):
    """The same stages as for one tree, but for the small trees that only one tree needs; the best score wins.

    Where there is one to be ``taken_otherwise``, the others must be better than that beyond chance.
    """

    deep: bool
    """Whether thresholds may go as deep as there are rows."""

    n_wanted: int
    """Trees that the forest will have."""

    n_trees = TREES

    taken_otherwise: Trial | None = None

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.answers: list[Answers] = []
        """Of numbers, what the trees of every trial say."""

    @property
    def best(self) -> Trial:
        found, other = super().best, self.taken_otherwise
        if other is None:
            return found
        beyond_chance = BEYOND_CHANCE["numbers" if self.image_shape is None else "images"]
        return found if found.score - other.score > beyond_chance * found.error_against(other) else other

    def with_many(self, n_trees: int) -> None:
        """The best of every kind anew, with so many trees."""
        kinds: dict[Any, Trial] = {}
        for trial in self.trials:
            values = trial.values
            kind = (values.get("split"), bool(values.get("l1")), *map(values.get, ("max_features", "finetune_epochs")))
            if kind not in kinds or trial.score > kinds[kind].score:
                kinds[kind] = trial
        far = self.best.score - FAR[self.target.name]
        near = [trial.values for trial in kinds.values() if trial.score >= far]
        if len(near) > 1:
            self.n_trees, self.last = n_trees, len(self.trials)
            for values in near:
                self._add(self.judged(values, self._spec(values), self._folds(values)))

    def judged(self, values: dict[str, Any], spec: Spec, folds: list[Fold]) -> Trial:
        """A small forest on every fold, judged by the rest."""
        scores, answers = list[Doubles](), list[Answers]()
        for fold in folds:
            rows = fold.problem.training
            strata = self.target.strata(rows.y) if self.parameters["bootstrap"] == "balanced" else None
            are_images = self.image_shape is not None
            bagging = Bagging.of(self.parameters, len(rows.y), self.seed, strata, are_images=are_images)
            bags = [Bag(bagging.times(tree), bagging.tree_seed(tree)) for tree in range(self.n_trees)]
            share = values.get("max_features", self.parameters["max_features"])
            own = as_in_forest(spec, share, rows.X.shape[1])
            trees = [found.tree for found in fit_forest(own, fold.problem, bags)]
            if isinstance(self.target, Gaussians):
                answers.append(Answers.of(trees, fold.held, self.parameters["n_jobs"]))
                scores.append(answers[-1].scores(self.target, self.n_trees, self.n_wanted))
                continue
            said = CrispForest.of(trees).values(fold.held.X, self.parameters["n_jobs"])
            assert said is not None
            scores.append(np.asarray(self.target.agreement(self.target.answers(said), fold.held.y), dtype=float))
        if answers:
            self.answers.append(Answers(*map(np.concatenate, zip(*answers, strict=True))))
        weights = np.concatenate([fold.held.weight for fold in folds])
        leaves = sum(tree.structure.n_leaves for tree in trees) / self.n_trees
        return Trial(values, np.concatenate(scores), weights, 0.0, leaves)

    def thresholds(self) -> None:
        """CART's splits to the full depth, as they are found: what a random forest averages; low trees trained on."""
        if self._is_free("split"):
            values = THRESHOLDS | {"finetune_epochs": 0} | ({"max_depth": None} if self.deep else {})
            for share in ("sqrt", None):
                self._try(**values, max_features=share)
            if self.parameters["finetune_epochs"]:
                depth = LOW if self.depth is None else min(LOW, self.depth)
                self._try(**THRESHOLDS | {"max_depth": depth}, max_features=None)

    def mixed(self) -> None:
        """Of numbers in constant leaves, hyperplanes of some trial and thresholds of all features in turn.

        They err elsewhere, so that their mean may be better than either; what they said before tells.
        """
        if not isinstance(self.target, Gaussians) or not self._is_free("split"):
            return
        sharp = self._try(**SHARP, max_depth=self.depth)
        is_cart = {"split": "axis", "finetune_epochs": 0, "max_features": None}
        tried, mixtures = list(zip(self.trials, self.answers, strict=True)), list[Trial]()
        others = [said for trial, said in tried if all(trial.values.get(name) == is_cart[name] for name in is_cart)]
        for trial, said in tried:
            if trial.values["split"] == "oblique":
                scores = said.mixed_with(others[0]).scores(self.target, 2 * self.n_trees, self.n_wanted)
                mixtures.append(replace(trial, values=trial.values | {"split": MIXED}, row_scores=scores))
        best = max(mixtures, key=lambda trial: trial.score)
        self.taken_otherwise = next(trial for trial in mixtures if trial.values == sharp | {"split": MIXED})
        self._add(*(trial for trial in mixtures if trial in (best, self.taken_otherwise)))

    def _first_depth(self) -> int | None:
        return self.depth

    def sparse(self) -> None:
        """Sparse trees as for one, shallow and as deep as the others; the best so far with fewer features a split."""
        super().sparse()
        if self.best.values.get("l1"):
            self._try(**self.best.values | {"max_depth": self.depth})
        self._try(**self.best.values | {"max_features": SOME})

    def _is_free(self, name: str) -> bool:
        return name == "finetune_epochs" or super()._is_free(name)
