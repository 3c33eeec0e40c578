"""What a forest chooses where a parameter says "auto": once for all trees, by small forests on rows that are held out.

What is best for one tree is not best for many: their errors are averaged, so that less noise and more depth pay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from crisptree.estimators.bags import Bagging
from crisptree.estimators.choices import THRESHOLDS, Search, is_chosen_for
from crisptree.estimators.fitting_forest import as_in_forest, with_depth
from crisptree.estimators.folds import ROWS_FOR_ONE_FOLD, folds_of
from crisptree.estimators.validation import TrainingData
from crisptree.inference.forest import CrispForest
from crisptree.learning.choosing import Fold, Trial
from crisptree.learning.forest import Bag, fit_forest
from crisptree.learning.problem import Problem
from crisptree.learning.spec import Spec

SOME = 0.4
"""The share of features that a split may have where fewer are tried: trees that look elsewhere err elsewhere."""

LOW = 6
"""The depth of CART's trees that are finetuned: deeper ones would soften hundreds of splits."""

TREES, MANY = 5, 25
"""Trees of a trial: enough to tell most settings apart that help many trees from those that help one. And of the last
trials on few rows, if the forest will have as many: kinds of trees differ in how much they gain by being many."""

FAR = {"classes": 0.1}
"""A kind of tree that is so much worse with few trees has no trial with many. Those of numbers have none at all."""


BEYOND_CHANCE = 2.0
"""Standard errors by which another width of noise must be better on images: a few trees tell widths apart by less than
what they differ by when the forest is drawn anew, and the first width is best in the mean of several draws."""


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
    search.widths()
    if data.image_shape is None:
        search.one_scale()
        search.sparse()
        search.harder()
        search.thresholds()
    n_trees = MANY if parameters["n_estimators"] == "auto" else min(parameters["n_estimators"], MANY)
    if len(problem.training.y) < ROWS_FOR_ONE_FOLD and n_trees > TREES and problem.target.name in FAR:
        search.with_many(n_trees)
    return search.best.values, search.trials


class ForestSearch(Search):
    """The same stages as for one tree, but for the small trees that only one tree needs; the best score wins.

    On images, where only the noise is chosen, the first width wins unless another one is better beyond chance.
    """

    deep: bool
    """Whether thresholds may go as deep as there are rows."""

    n_trees = TREES
    last = 0
    """The first trial with as many trees as those that are compared in the end."""

    @property
    def best(self) -> Trial:
        first, *others = self.trials[self.last :]
        found = max([first, *others], key=lambda trial: trial.score)
        if self.image_shape is not None and found.score - first.score <= BEYOND_CHANCE * found.error_against(first):
            return first
        return found

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
        scores = []
        for fold in folds:
            rows = fold.problem.training
            bagging = Bagging(len(rows.y), len(rows.y), True, self.seed)
            bags = [Bag(bagging.times(tree), bagging.tree_seed(tree)) for tree in range(self.n_trees)]
            share = values.get("max_features", self.parameters["max_features"])
            own = as_in_forest(spec, share, rows.X.shape[1])
            trees = [found.tree for found in fit_forest(own, fold.problem, bags)]
            said = CrispForest.of(trees).values(fold.held.X, self.parameters["n_jobs"])
            assert said is not None
            scores.append(np.asarray(self.target.agreement(self.target.answers(said), fold.held.y), dtype=float))
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
