"""What a fit chooses by itself where a parameter says "auto". Imported only when something trains.

Settings are tried on rows that are held out, in stages: first the width of the noise on the inputs at the full depth;
then, for tables, shallower trees, sparse ones, and thresholds instead of hyperplanes. The simplest within one standard
error of the best is refitted on all rows; for numbers in constant leaves the best itself. Trees of numbers are judged
as the fit would leave them, shrunk or with the penalty of their models chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.estimators.folds import MORE_FOLDS, folds_of, scikit_learns_score
from crisptree.estimators.rules import is_whole
from crisptree.learning.choosing import (
    Fold,
    Trial,
    found_thresholds,
    kinds_near_the_best,
    median_strength,
    shortened,
    simplest_of_the_best,
    try_depths,
    try_out,
    with_penalty,
    with_shrinkage,
)
from crisptree.learning.options import Spec
from crisptree.learning.task import Problem

WIDTHS = (0.0, 0.3, 0.7, 1.4)
IMAGE_WIDTHS = (0.0, 0.5, 1.0, 1.5)
"""Widths of the noise that are tried, in units of the scaled features: the two in the middle, and the one beyond the
better of them."""

PLAIN_WIDTH, PLAIN_SHRINKAGE = 0.3, 0.0
"""Those of a fit on too few rows to choose by."""

PLAIN_STEP, LARGE_STEP = 0.1, 1.0
"""Steps of γ where they are left open: the small one, and a trial of the large one. Leaves of numbers that are small
beside the width of a soft turn need a harder tree while they train."""

SPARSE: tuple[dict[str, float], ...] = ({"l1": 0.01, "input_noise": 0.3}, {"l1": 0.03})
"""Sparse trees that are tried: a little sparser with a little noise, and more so with the noise that was best, or a
little: without any the full training overfits where the short one of a trial did not. Such trees are shallow."""

SHALLOW = 4
LOWER_DEPTHS = {("classes", "constant"): (4,), ("classes", "linear"): (4,), ("gaussians", "constant"): (4, 6)}
LOWER_DEPTHS["gaussians", "linear"] = (2, 4)
"""Depths that are tried beside the full one and the least, by what a leaf predicts and how: a linear leaf does the work
of many constant ones."""

FIRST_DEPTH = {"constant": 6, "linear": 4}
"""A tree of numbers is tried at this depth first, then with the best noise at others: full ones take the longest."""

ERRORS = {("classes", "constant"): 1.0, ("classes", "linear"): 1.0, ("gaussians", "linear"): 1.0}
ERRORS["gaussians", "constant"] = 0.0
"""So many standard errors below the best a simpler tree is taken. Squared errors of few rows make that error large, and
the simplest tree of constant leaves, one split, is then far from the best; of linear leaves it is a linear model."""

MOST_FOR_PENALTIES = 64
"""Features up to which every trial of linear leaves is judged with its own best penalty: models of many take long."""

HOPELESS = {"classes": 0.04, "gaussians": 0.1}
"""A kind of tree that is so much worse at its first trial gets no further one: in accuracy, or in R²."""

EPOCHS = 0.3
"""The share of the epochs that a trial gets."""

ROWS_FOR_SHORT_TRIALS = {"classes": 300, "gaussians": 1500}
"""Fewer rows are trained on as long in a trial as in the end: a matter of seconds, and few updates tell little. A tree
of numbers that trains on may lose leaves, and with them what a short trial promised."""

ALIKE = (1.5, 30.0)
"""Columns whose spreads, but for a tenth at either end, differ by a factor between these may have one unit."""

THRESHOLDS = {"split": "axis", "input_noise": 0.0, "l1": 0.0, "l2": 0.0}
"""Splits on one feature each, found as CART finds them."""

LEAST_ROWS: dict[str, tuple[int | None, ...]] = {"classes": (None,), "gaussians": (5, 20)}
"""Fewest rows in a leaf of thresholds, if no more are asked for: a mean of few numbers says little, shrunk or not."""

PENALTIES = (0.0, 1e-3, 1e-2, 1e-1)
"""Strengths of l2 that are tried where it says "auto"."""


def is_open(parameters: Mapping[str, Any]) -> bool:
    """Whether a parameter is left to the fit."""
    names = "split", "input_noise", "l1", "l2", "shrinkage"
    return any(_auto(parameters, name) for name in names) or _chooses_penalty(parameters)


def _chooses_penalty(parameters: Mapping[str, Any]) -> bool:
    return parameters.get("leaves") == "linear" and _auto(parameters, "leaf_penalty")


def _auto(parameters: Mapping[str, Any], name: str) -> bool:
    return isinstance(parameters.get(name), str) and parameters[name] == "auto"


def scale_of(
    parameters: Mapping[str, Any], image_shape: tuple[int, ...] | None, *, is_sparse: bool = False
) -> str | None:
    """What scale="auto" means at first: the columns of a table have units of their own.

    The pixels of an image have one, and so have the words of a text and the categories of sparse rows: by its own
    spread, a feature that few rows have would be the largest of all.
    """
    scale: str | None = parameters["scale"]
    return scale if scale != "auto" else "feature" if image_shape is None and not is_sparse else "global"


def still_open(chosen: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What was chosen for an earlier tree and holds for a larger one: neither its depth nor what is set by now."""
    free = {name for name in chosen if _auto(parameters, name)}
    if _auto(parameters, "split"):
        free |= {"finetune_epochs", "min_samples_leaf"}
    return {name: value for name, value in chosen.items() if name in free}


def closed(
    parameters: Mapping[str, Any],
    chosen: Mapping[str, Any],
    image_shape: tuple[int, ...] | None,
    *,
    is_sparse: bool = False,
) -> dict[str, Any]:
    """The parameters with what was chosen, or else with plain values, in place of "auto"."""
    values = dict(parameters)
    plain = {"split": "oblique", "input_noise": PLAIN_WIDTH, "l1": 0.0, "l2": 0.0, "shrinkage": PLAIN_SHRINKAGE}
    plain["steepness_step"] = PLAIN_STEP
    linear = parameters["split"] in ("auto", "oblique", "axis")
    if not linear or parameters["grow"] not in ("greedy", "balanced") or parameters["algorithm"] == "non_greedy":
        plain["input_noise"] = 0.0
    values["scale"] = scale_of(parameters, image_shape, is_sparse=is_sparse)
    for name, value in (plain | dict(chosen)).items():
        if _auto(parameters, name) or (name in chosen and name == "max_depth"):
            values[name] = value
    if parameters["split"] == "auto" and values["split"] == "axis":
        values["grow"] = "axis_aligned"
        values["finetune_epochs"] = chosen.get("finetune_epochs", values["finetune_epochs"])
        if is_whole(values["min_samples_leaf"]):
            values["min_samples_leaf"] = max(values["min_samples_leaf"], chosen.get("min_samples_leaf", 1))
    return values


def choose(
    parameters: Mapping[str, Any],
    problem: Problem,
    image_shape: tuple[int, ...] | None,
    seed: int,
    source: npt.NDArray[np.intp] | None = None,
    on_trial: Callable[[Trial], None] = lambda trial: None,
) -> tuple[dict[str, Any], list[Trial]]:
    """What the open parameters should be, and all that was tried; nothing where there are too few rows to tell.

    Parameters
    ----------
    parameters : mapping
        Those of the estimator.
    problem : Problem
        All rows; where it has validation rows, they judge.
    image_shape : tuple of int or None
        The image that a row is; images have no shallow, sparse or axis-aligned trees worth trying.
    seed : int
        Draws the folds.
    source : ndarray of int or None
        Which row a row is a copy of; no fold is judged by a copy of a row that trained it.
    on_trial : callable
        Hears of every trial when it is done.
    """
    if not is_chosen_for(parameters):
        return {}, []
    folds = folds_of(problem, seed, source, more=True)
    if not folds:
        return {}, []
    search = Search(parameters, folds, image_shape, seed, on_trial)
    search.widths()
    if image_shape is None:
        search.one_scale()
        search.shallow()
        search.sparse()
        search.harder()
        search.thresholds()
        if search.target.name == "gaussians" and search.leaves == "constant" and 1 < len(folds) < MORE_FOLDS:
            search.finals(folds_of(problem, seed, source, n_folds=MORE_FOLDS))
    chosen = search.choice()
    return chosen, [replace(trial, trees=()) for trial in search.trials]


def is_chosen_for(parameters: Mapping[str, Any]) -> bool:
    """Whether the tree is of a kind that choices are made for."""
    if parameters["grow"] != "greedy" or parameters["algorithm"] == "non_greedy" or callable(parameters["split"]):
        return False
    return bool(parameters["split"] != "conv" and parameters["max_depth"] != 0)


class Search:
    """Trials in stages, each beside the best so far."""

    last = 0
    """The first of the trials that are compared in the end."""

    def __init__(
        self,
        parameters: Mapping[str, Any],
        folds: list[Fold],
        image_shape: tuple[int, ...] | None,
        seed: int,
        on_trial: Callable[[Trial], None],
    ) -> None:
        self.on_trial = on_trial
        self.parameters, self.image_shape, self.seed = parameters, image_shape, seed
        self.target = folds[0].problem.target
        self.is_sparse = folds[0].problem.is_sparse
        self.scale = scale_of(parameters, image_shape, is_sparse=self.is_sparse)
        self.trials: list[Trial] = []
        self.by_scale = {self.scale: folds}
        self.depth = parameters["max_depth"]
        self.fixed = {"max_depth": self.depth}
        self.leaves = parameters.get("leaves", "constant")

    def _folds(self, values: Mapping[str, Any]) -> list[Fold]:
        """The folds with their rows scaled as the values say."""
        scale = values.get("scale", self.scale)
        if scale not in self.by_scale:
            n_jobs = self.parameters["n_jobs"]
            self.by_scale[scale] = [fold.rescaled(scale, n_jobs) for fold in self.by_scale[self.scale]]
        return self.by_scale[scale]

    def _spec(self, values: Mapping[str, Any]) -> Spec:
        problem = self._folds(values)[0].problem
        rows = problem.training
        parameters = closed(self.parameters, values, self.image_shape, is_sparse=self.is_sparse) | {
            "max_depth": values["max_depth"],
            "early_stopping": False,
        }
        spec = Spec.of(
            parameters,
            reach=problem.reach,
            mean_weight=float(rows.weight.mean()),
            n_rows=len(rows.y),
            image_shape=self.image_shape,
            seed=self.seed,
        )
        # A hyperplane can hold every row that it has a feature for, and does the more of it the longer it trains.
        as_long = len(rows.y) < ROWS_FOR_SHORT_TRIALS[self.target.name] or (
            self.is_sparse and rows.X.shape[1] > len(rows.y)
        )
        return spec if as_long else shortened(spec, EPOCHS)

    def _try(self, **values: Any) -> dict[str, Any]:
        values = {**self.fixed, **{name: value for name, value in values.items() if self._is_free(name)}}
        if not any(trial.values == values for trial in self.trials):
            self._add(self.judged(values, self._spec(values), self._folds(values)))
        return values

    def judged(self, values: dict[str, Any], spec: Spec, folds: list[Fold]) -> Trial:
        """What becomes of one setting."""
        return self._finished(try_out(values, spec, folds), folds)

    def _finished(self, trial: Trial, folds: list[Fold]) -> Trial:
        """Trees of numbers as the fit would leave them, because leaves that are too small may be mended then."""
        n_jobs = self.parameters["n_jobs"]
        if self.target.name != "gaussians":
            return trial
        if self.leaves == "linear":
            few = folds[0].problem.training.X.shape[1] <= MOST_FOR_PENALTIES
            return with_penalty(trial, folds, n_jobs)[0] if few and _chooses_penalty(self.parameters) else trial
        is_open, prior = _auto(self.parameters, "shrinkage"), self.parameters["leaf_prior"]
        return with_shrinkage(trial, folds, prior, n_jobs) if is_open else trial

    def _add(self, *trials: Trial) -> None:
        self.trials += trials
        for trial in trials:
            self.on_trial(trial)

    def _is_free(self, name: str) -> bool:
        return name in ("max_depth", "min_samples_leaf") or _auto(self.parameters, name)

    @property
    def best(self) -> Trial:
        return max(self.trials[self.last :], key=lambda trial: trial.score)

    def widths(self) -> None:
        """Two widths of noise, and a third beyond the better one."""
        none, less, more, most = WIDTHS if self.image_shape is None else IMAGE_WIDTHS
        first = {"max_depth": self._first_depth()}
        for l2 in PENALTIES if self._is_free("l2") else (0.0,):
            for width in (less, more):
                self._try(**first, split="oblique", input_noise=width, l1=0.0, l2=l2)
        if self._is_free("input_noise"):
            values = self.best.values
            self._try(**(values | {"input_noise": most if values["input_noise"] == more else none}))

    def _first_depth(self) -> int | None:
        """The depth at which noise is chosen; images are as deep as they may be."""
        if self.target.name != "gaussians" or self.image_shape is not None:
            return self.depth
        low = FIRST_DEPTH[self.leaves]
        return low if self.depth is None else min(low, self.depth)

    def one_scale(self) -> None:
        """One spread for all columns, where they may have one unit; for sparse ones each its own."""
        if self.is_sparse:
            if self._is_free("scale"):
                self._try(**(self.best.values | {"scale": "feature"}))
            return
        spread = self.by_scale[self.scale][0].problem.scaling.spread
        least, largest = np.quantile(spread[spread > 0], (0.1, 0.9)) if spread.any() else (1.0, 1.0)
        if self._is_free("scale") and ALIKE[0] < largest / least < ALIKE[1]:
            self._try(**(self.best.values | {"scale": "global"}))

    def shallow(self) -> None:
        """Shallower trees with the best noise, as a tree of one split is a linear model; and the full one."""
        least = max(1, math.ceil(math.log2(self.target.fewest_leaves)))
        values = self.best.values
        for depth in sorted({least, *LOWER_DEPTHS[self.target.name, self.leaves]}):
            if (self.depth is None or depth < self.depth) and depth >= least:
                self._try(**(values | {"max_depth": depth}))
        self._try(**(values | {"max_depth": self.depth}))

    def sparse(self) -> None:
        if self._is_free("l1"):
            depth = self._sparse_depth()
            noise = {"input_noise": max(self.best.values.get("input_noise", 0.0), PLAIN_WIDTH)}
            for values in SPARSE:
                self._try(**(self.best.values | noise | values | {"max_depth": depth}))
                if self.trials[-1].score < self.best.score - HOPELESS[self.target.name]:
                    break

    def harder(self) -> None:
        """The best hyperplanes so far with a larger step of γ."""
        if self._is_free("steepness_step"):
            self._try(**(self.best.values | {"steepness_step": LARGE_STEP}))

    def _sparse_depth(self) -> int:
        """Shallow ones; of numbers as deep as the best so far, but for the deepest."""
        low, deep = SHALLOW, self.depth
        if self.target.name == "gaussians":
            low, deep = FIRST_DEPTH[self.leaves], self.best.values["max_depth"]
        return low if deep is None else min(low, deep)

    def thresholds(self) -> None:
        """CART's splits at every depth, and trained together at the best one."""
        enough = self.best.score - HOPELESS[self.target.name]
        if self._is_free("split") and scikit_learns_score(self._folds({}), self.depth, self.seed) > enough:
            values = {**self.fixed, **{name: value for name, value in THRESHOLDS.items() if self._is_free(name)}}
            found, trials = values | {"finetune_epochs": 0}, list[Trial]()
            # A fraction holds as it was given.
            counts = LEAST_ROWS[self.target.name] if is_whole(self.parameters["min_samples_leaf"]) else (None,)
            for least in counts:
                trials += self._every_depth(found | ({"min_samples_leaf": least} if least else {}))
            self._add(*trials)
            if trials and self.parameters["finetune_epochs"]:
                best = max(trials, key=lambda trial: trial.score)
                self._try(**{name: value for name, value in best.values.items() if name != "finetune_epochs"})

    def _every_depth(self, values: dict[str, Any]) -> list[Trial]:
        values, folds = values | {"max_depth": self.depth}, self._folds(values)
        return [self._finished(trial, folds) for trial in try_depths(values, self._spec(values), folds)]

    def finals(self, folds: list[Fold]) -> None:
        """The kinds that are close once more, with more rows to train on: thresholds gain more by them than planes."""
        near = kinds_near_the_best(self.trials)
        if len(near) < 2:
            return
        self.by_scale, self.last = {self.scale: folds}, len(self.trials)
        for values in (trial.values for trial in near):
            if values.get("finetune_epochs") == 0:
                self._add(*self._every_depth(values))
            else:
                self._add(self.judged(values, self._spec(values), self._folds(values)))

    def choice(self) -> dict[str, Any]:
        """The best of every kind by its score, because noise and scale make no tree simpler; then the simplest kind."""
        best: dict[Any, Trial] = {}
        for trial in self.trials[self.last :]:
            values = trial.values
            is_axis = values.get("split") == "axis"
            kind = (is_axis, None if is_axis else values["max_depth"], values.get("l1"), values.get("l2"))
            if kind not in best or trial.score > best[kind].score:
                best[kind] = trial
        chosen = found_thresholds(self.trials[self.last :] if self.last else [])
        chosen = chosen or simplest_of_the_best(list(best.values()), ERRORS[self.target.name, self.leaves])
        if self.parameters.get("leaves") == "linear":
            return chosen.values | self._penalty(chosen)
        if not _auto(self.parameters, "shrinkage"):
            return chosen.values
        given = self._folds(chosen.values), self.parameters["leaf_prior"], self.parameters["n_jobs"]
        return chosen.values | {"shrinkage": median_strength(chosen, *given)}

    def _penalty(self, chosen: Trial) -> dict[str, float]:
        """That of the linear models, the best for all folds together; they need no other shrinkage."""
        values = {"shrinkage": 0.0} if _auto(self.parameters, "shrinkage") else {}
        if not _chooses_penalty(self.parameters):
            return values
        return values | {"leaf_penalty": with_penalty(chosen, self._folds(chosen.values), self.parameters["n_jobs"])[1]}
