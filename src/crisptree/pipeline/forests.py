"""The fit of a forest: bootstrap samples, trees, and their out-of-bag predictions. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.inference import CrispTree, route_rows
from crisptree.inference.finalization import inherit_ranges, record_ranges
from crisptree.inference.flat_tree import CrispForest, has_linear_leaves
from crisptree.learning.fitting import Bootstrap, FittedTree, fit_forest
from crisptree.learning.history import EpochRecord
from crisptree.learning.options import Spec
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.pipeline.monitoring import Checkpoints, record_epochs
from crisptree.pipeline.trees import ArrayDataset, make_scaled_task, prepare, spec_of
from crisptree.pipeline.validation import (
    LOCAL_PARAMETERS,
    RowModel,
    TrainingData,
    check_fit,
    draw_seed,
)
from crisptree.selection.candidates import Trial, postprocess
from crisptree.selection.evaluators import ForestEvaluator
from crisptree.targets.base import BALANCED_SUBSAMPLE, TargetEncoding, class_factors
from crisptree.threads import row_blocks

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
OnEpoch = Callable[[EpochRecord], None]

IMAGE_SAMPLE_FRACTION = 0.8
"""Share of images that a tree is trained on by default, without replacement. A bootstrap sample lacks more than a third
of the rows, which costs trees of many pixels more than averaging gains."""

LEAF_SHRINKAGE = 0.3
"""Shrinkage of the leaf tables of a classification forest, in rows of mean weight: without it a class that no tree has
in its leaf would have a probability of 0 and an infinite log loss."""

MIN_IMAGES_TO_SAMPLE = 3
"""With fewer, that share would leave none out."""


@dataclass(frozen=True, eq=False)
class Workers:
    """Processes that train the trees of a forest: each has all rows, and a share of the trees."""

    group: Any = None  # a ProcessGroup

    @property
    def is_first(self) -> bool:
        """True for the process that selects parameters, shows progress and calls callbacks."""
        return self.group is None or self.group.is_first

    def from_first(self, function: Callable[[], Any]) -> Any:
        """Return in all processes what a function returns in the first."""
        return function() if self.group is None else self.group.from_first(function)

    def share(self, numbers: range) -> list[int]:
        """Return the numbers of the trees that this process trains, a contiguous range."""
        rank, size = (0, 1) if self.group is None else (self.group.rank, self.group.size)
        return list(numbers[len(numbers) * rank // size : len(numbers) * (rank + 1) // size])

    def collect(self, trained: dict[int, FittedTree]) -> list[FittedTree]:
        """Return the trees of all processes by their numbers, up to the first that a callback has prevented."""
        if self.group is None:
            return list(trained.values())
        by_number = {number: tree for part in self.group.gather(trained) for number, tree in part.items()}
        numbers = sorted(by_number)
        return [by_number[number] for place, number in enumerate(numbers) if number == numbers[0] + place]


ALONE = Workers()


@dataclass(frozen=True, eq=False)
class Bagging:
    """Sampling of ``n_drawn`` of ``n_rows`` rows for every tree of a forest with a seed.

    ``bootstrap`` True draws with replacement, False without, and "balanced" with replacement as many of each of the
    ``classes`` (n_rows,). With ``is_reweighted`` the drawn rows of every class weigh the same in a tree.

    Examples
    --------
    >>> Bagging(6, 6, True, seed=0).times(0).tolist()
    [1, 2, 0, 2, 0, 1]
    """

    n_rows: int
    n_drawn: int
    bootstrap: bool | str
    seed: int
    classes: Integers | None = None
    is_reweighted: bool = False

    @classmethod
    def of(
        cls, parameters: Mapping[str, Any], n_rows: int, seed: int, strata: Integers | None, *, are_images: bool
    ) -> Bagging:
        """Make the sampling of an estimator's parameters; ``strata`` are the class indices, for "balanced"."""
        bootstrap, share = parameters["bootstrap"], parameters["max_samples"]
        if bootstrap == "auto":
            bootstrap = not are_images or share is not None or n_rows < MIN_IMAGES_TO_SAMPLE
            share = share if bootstrap else IMAGE_SAMPLE_FRACTION
        is_reweighted = strata is not None and parameters.get("class_weight") == BALANCED_SUBSAMPLE
        return cls(n_rows, count_share(share, n_rows), bootstrap, seed, strata, is_reweighted)

    @property
    def kind(self) -> str:
        """Description of the sampling, for errors and warm starts."""
        how = {True: "with replacement", False: "each once", "balanced": "as many of every class"}[self.bootstrap]
        return f"{self.n_drawn} of {self.n_rows} rows, {how}"

    @property
    def settings(self) -> tuple[Any, ...]:
        """Arguments that make the same sampling again."""
        return tuple(getattr(self, name.name) for name in fields(self))

    @property
    def leaves_rows_out(self) -> bool:
        """True if trees have out-of-bag rows."""
        return bool(self.bootstrap) or self.n_drawn < self.n_rows

    def times(self, tree: int) -> Integers:
        """Count how often each row is drawn for a tree.  (n_rows,)"""
        rng = self._generator(tree)
        if not self.bootstrap:
            drawn = rng.permutation(self.n_rows)[: self.n_drawn]
        elif self.bootstrap == "balanced":
            drawn = self._balanced(rng)
        else:
            drawn = rng.integers(self.n_rows, size=self.n_drawn)
        return np.bincount(drawn, minlength=self.n_rows)

    def weights(self, tree: int) -> npt.NDArray[Any]:
        """Weigh the rows of a tree: ``times``, balanced by class with ``is_reweighted``.  (n_rows,)"""
        times = self.times(tree)
        if not self.is_reweighted:
            return times.astype(np.int32)
        assert self.classes is not None
        drawn = np.bincount(self.classes, times)
        return times * class_factors("balanced", np.arange(len(drawn)), drawn.astype(np.float64))[self.classes]

    def tree_seed(self, tree: int) -> int:
        """Derive the seed of a tree's training."""
        return int(np.random.SeedSequence((self.seed, tree, 1)).generate_state(1)[0])

    def _generator(self, tree: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence((self.seed, tree, 0)))

    def _balanced(self, rng: np.random.Generator) -> Integers:
        assert self.classes is not None
        kinds, sizes = np.unique(self.classes, return_counts=True)
        shares = np.full(len(kinds), self.n_drawn // len(kinds))
        shares[: self.n_drawn % len(kinds)] += 1  # the remainder goes to the first ones
        by_class = np.split(np.argsort(self.classes, kind="stable"), np.cumsum(sizes)[:-1])
        return np.concatenate(
            [rows[rng.integers(len(rows), size=share)] for rows, share in zip(by_class, shares, strict=True)]
        )


def count_share(share: Any, n: int) -> int:
    """Convert a number or a share of n to a number of at least one."""
    if share is None:
        return n
    return min(int(share), n) if isinstance(share, int | np.integer) else max(1, round(float(share) * n))


class OutOfBag:
    """Out-of-bag predictions: for every row the mean of the trees that were not trained on it."""

    def __init__(self, data: TrainingData, n_jobs: int | None) -> None:
        self.data, self.n_jobs = data, n_jobs
        self.sums = np.zeros((len(data.y), data.target.n_values))
        self.n_trees = np.zeros(len(data.y), dtype=np.int64)

    def add(self, tree: CrispTree, times: npt.NDArray[np.integer | np.floating]) -> None:
        """Add a tree that was trained on each row so many times, or with such a weight."""
        left_out = np.flatnonzero(times == 0)
        for block in row_blocks(len(left_out)):
            rows = left_out[block]
            X = self.data.X[rows]
            self.sums[rows] += tree.leaf_values(route_rows(tree, X, self.n_jobs), X)
        self.n_trees[left_out] += 1

    @property
    def values(self) -> Doubles:
        """The mean leaf values of every row; NaN where all trees were trained on it.  (n, n_outputs)"""
        with np.errstate(invalid="ignore"):
            return self.sums / self.n_trees[:, None]

    @property
    def scores(self) -> Doubles:
        """The score of every row; NaN where all trees were trained on it.  (n,)"""
        target, scores = self.data.target, np.full(len(self.n_trees), np.nan)
        scored = np.flatnonzero(self.n_trees)
        if len(scored):
            predictions = self.data.encoding.scale_predictions(target.predict(self.values[scored]))
            scores[scored] = target.score_predictions(predictions, target.hard.conform(self.data.y[scored]))
        return scores

    @property
    def score(self) -> float:
        """The weighted mean score; NaN without out-of-bag rows."""
        scored = self.n_trees > 0
        if not scored.any():
            return float("nan")
        return float(np.average(self.scores[scored], weights=self.data.weight[scored]))


TrainedTrees = tuple[list[CrispTree], list[EpochRecord], "OutOfBag | None", dict[str, Any], list[Trial], list[int]]
"""The first fields of ``TrainedForest``."""


class TrainedForest(NamedTuple):
    """Trees, the records of their epochs, out-of-bag predictions, selected parameters and all candidates.

    ``best_iterations`` are the finetuning epochs that early stopping has kept of the trees trained here; the fields
    from ``encoding`` on are what a warm start needs.
    """

    trees: list[CrispTree]
    history: list[EpochRecord]
    out_of_bag: OutOfBag | None
    selected: dict[str, Any]
    trials: list[Trial]
    best_iterations: list[int]
    encoding: TargetEncoding
    seed: int
    n_rows: int
    digest: str
    bagging: Bagging


class ForestWarmStart(NamedTuple):
    """What a warm start continues; forests from model files have no ``digest`` and ``sampling``."""

    forest: CrispForest
    encoding: TargetEncoding
    selected: dict[str, Any]
    seed: int
    n_rows: int
    digest: str | None
    sampling: str | None

    def check(self, parameters: Mapping[str, Any], data: TrainingData, digest: str, bagging: Bagging) -> None:
        """Check that the rows, their sampling and the leaf model are the same, and that no tree is to go."""
        is_linear = any(tree.is_linear for tree in self.forest)
        if is_linear != has_linear_leaves(parameters):
            before = "linear" if is_linear else "constant"
            raise ValueError(
                f"`leaf_model` must be {before!r} with warm_start=True, as in the trees that are there; got "
                f"{parameters['leaf_model']!r}. Use a new estimator for other leaves."
            )
        if len(data.y) != self.n_rows:
            raise ValueError(
                f"`warm_start` must continue with the same rows, {self.n_rows} of them; got {len(data.y)}. Use a new "
                "estimator for other data."
            )
        n_estimators, n_trees = parameters["n_estimators"], len(self.forest)
        if n_estimators < n_trees:
            raise ValueError(
                f"`n_estimators` must be at least {n_trees} with warm_start=True, because there are so many trees; got "
                f"{n_estimators}. Use a new estimator for fewer."
            )
        if self.digest not in (None, digest):
            raise ValueError(
                "`warm_start` must continue with the same rows, or the out-of-bag score would use training rows; "
                "X, y or sample_weight differ from those of the fit before. Use a new estimator for other data."
            )
        if self.sampling not in (None, bagging.kind):
            raise ValueError(
                f"`warm_start` must continue with trees that draw rows as those that are there did ({self.sampling}), "
                "or the out-of-bag score would use training rows; bootstrap, max_samples and the shape of X ask for "
                f"{bagging.kind}. Use a new estimator for others."
            )


def fit_forest_array(
    estimator: RowModel,
    rows: tuple[Any, Any, Any],
    eval_set: Any,
    checkpoints: Checkpoints,
    warm_start: ForestWarmStart | None,
    workers: Workers = ALONE,
) -> TrainedForest:
    """Train a forest on rows in memory, (X, y, sample_weight); set the input schema of the estimator."""
    encoding = None if warm_start is None else warm_start.encoding
    parameters, data, held_out = check_fit(
        *(estimator, rows, eval_set, encoding), reset=warm_start is None, is_forest=True
    )
    if workers.group is not None:
        parameters["n_jobs"] = workers.group.share_threads(parameters["n_jobs"])
    seed = workers.from_first(lambda: draw_seed(parameters["random_state"])) if warm_start is None else warm_start.seed
    digest = data.digest()
    bagging = Bagging.of(parameters, len(data.y), seed, None, are_images=data.image_shape is not None)
    if warm_start is not None:
        warm_start.check(parameters, data, digest, bagging)
    trees = [] if warm_start is None else [*warm_start.forest]
    inputs = ArrayDataset(data).describe(parameters, held_out, trees)
    with checkpoints.keep(parameters, inputs, seed) as seed:
        trained, bagging = fit_forest_rows(parameters, data, held_out, seed, warm_start, workers)
    return TrainedForest(*trained, data.encoding, seed, len(data.y), digest, bagging)


def fit_forest_rows(
    parameters: Mapping[str, Any],
    data: TrainingData,
    validation: RowSet | None,
    seed: int,
    warm_start: ForestWarmStart | None,
    workers: Workers = ALONE,
) -> tuple[TrainedTrees, Bagging]:
    """Train a forest on validated rows, selecting first what is "auto"."""

    def draw_bags(rows: TrainingTask) -> Bagging:
        y, are_images = rows.training.y, data.image_shape is not None
        by_class = parameters["bootstrap"] == "balanced" or parameters.get("class_weight") == BALANCED_SUBSAMPLE
        strata = rows.target.strata(y) if by_class else None
        return Bagging.of(parameters, len(y), seed, strata, are_images=are_images)

    def fit_trees(
        spec: Spec, max_features: Any, rows: TrainingTask, n_trees: int
    ) -> tuple[list[CrispTree], npt.NDArray[np.int64]]:
        bagging = draw_bags(rows)
        bootstraps = [Bootstrap(bagging.weights(number), bagging.tree_seed(number)) for number in range(n_trees)]
        spec = adapt_to_forest(spec, max_features, rows.training.X.shape[1])
        postprocessing = {**parameters, "shrinkage": find_shrinkage(rows, is_linear=spec.leaf_penalty is not None)}
        trees = [postprocess(trained.tree, postprocessing) for trained in fit_forest(spec, rows, bootstraps)]
        return trees, np.stack([bagging.times(number) for number in range(n_trees)])

    tree, previous = (None, None) if warm_start is None else (warm_start.forest.trees[0], warm_start.selected)
    dataset = ArrayDataset(data)

    def select() -> tuple[Any, TrainingTask]:
        evaluator = partial(ForestEvaluator, fit_trees=fit_trees)
        return prepare(parameters, dataset, validation, evaluator, seed, tree, previous)

    if workers.group is None:
        (values, selected, trials), task = select()
    else:
        own = {name: parameters[name] for name in LOCAL_PARAMETERS}

        def select_first() -> tuple[dict[str, Any], dict[str, Any], list[Trial]]:
            values, selected, trials = select()[0]
            return {name: value for name, value in values.items() if name not in own}, selected, trials

        values, selected, trials = workers.from_first(select_first)
        values |= own if workers.is_first else own | {"callbacks": None, "verbose": 0}
        task = make_scaled_task(values, dataset, validation, values["scale"], tree)
    bagging = draw_bags(task)
    values["shrinkage"] = find_shrinkage(task, is_linear=has_linear_leaves(values))
    trees = [] if warm_start is None else [*warm_start.forest]
    trees, history, out_of_bag, iterations = ForestTask(values, data, task, bagging, workers).fit(trees)
    return (trees, history, out_of_bag, selected, trials, iterations), bagging


@dataclass(frozen=True, eq=False)
class ForestTask:
    """Training of the trees of a forest by resolved parameters; ``task`` has the rows of ``data``, scaled."""

    parameters: Mapping[str, Any]
    data: TrainingData
    task: TrainingTask
    bagging: Bagging
    workers: Workers = ALONE

    def fit(self, trees: list[CrispTree]) -> tuple[list[CrispTree], list[EpochRecord], OutOfBag | None, list[int]]:
        """Train further trees, up to ``n_estimators``."""
        numbers = range(len(trees), self.parameters["n_estimators"])
        with record_epochs(self.parameters["verbose"], self.parameters["callbacks"]) as recorder:
            own = self._train(self.workers.share(numbers), recorder.record)
        trained = self.workers.collect(own)
        trees = trees + [fitted.tree for fitted in trained]
        out_of_bag = OutOfBag(self.data, self.parameters["n_jobs"]) if self.bagging.leaves_rows_out else None
        if out_of_bag is not None:
            for number, tree in enumerate(trees):
                out_of_bag.add(tree, self.bagging.times(number))
        growth = self.workers.from_first(lambda: recorder.history)
        records = [record for fitted in trained for record in fitted.history]
        return trees, [*growth, *records], out_of_bag, [fitted.best_iteration for fitted in trained]

    def _train(self, numbers: list[int], on_epoch: OnEpoch) -> dict[int, FittedTree]:
        """Train and postprocess the trees of some numbers."""
        data, trained = self.data, dict[int, FittedTree]()
        if not numbers:
            return trained
        spec = spec_of(self.parameters, self.task, data.image_shape, self.bagging.seed)
        spec = adapt_to_forest(spec, self.parameters["max_features"], data.X.shape[1])
        bootstraps = [Bootstrap(self.bagging.weights(n), self.bagging.tree_seed(n)) for n in numbers]
        # a callback may end the training before the last tree
        for number, fitted in zip(numbers, fit_forest(spec, self.task, bootstraps, on_epoch=on_epoch), strict=False):
            tree = postprocess(fitted.tree, self.parameters)
            if data.image_shape is None:
                first = next(iter(trained.values())).tree if trained else None
                ranges = record_ranges(tree, data.X, data.missing_indicators) if first is None else first
                tree = ranges if first is None else inherit_ranges(tree, ranges)
            trained[number] = fitted._replace(tree=data.encoding.restore_units(tree))
        return trained


def find_shrinkage(rows: TrainingTask, *, is_linear: bool) -> float:
    """Return the shrinkage λ of the trees of a forest on these rows; linear leaves have their penalty."""
    return 0.0 if rows.target.is_regression or is_linear else LEAF_SHRINKAGE * rows.mean_weight


def check_patch(patch: Sequence[int], image_shape: tuple[int, ...] | None) -> tuple[int, int]:
    """Validate that a patch (height, width) lies in the image that a row is."""
    height, width = map(int, patch)
    if image_shape is None or height > image_shape[0] or width > image_shape[1]:
        seen = "rows that are no images" if image_shape is None else f"images of {image_shape[0]} × {image_shape[1]}"
        raise ValueError(
            f"`max_features` must be a number, a share or the (height, width) of a patch of the image; got "
            f"{(height, width)} for {seen}. Set image_shape=(height, width), or take a smaller patch."
        )
    return height, width


def adapt_to_forest(spec: Spec, max_features: Any, n_features: int) -> Spec:
    """Return the spec of one of many trees: CART's thresholds, one start, and features drawn for every split.

    "auto" draws no features for hyperplanes, which are averaged anyway, and the square root for thresholds.
    """
    if isinstance(max_features, tuple | list):
        return replace(spec, n_drawn=check_patch(max_features, spec.image_shape), n_init=1)
    share = ("sqrt" if spec.grow == "cart" else None) if max_features == "auto" else max_features
    roots = {"sqrt": np.sqrt(n_features), "log2": np.log2(n_features)}
    n_drawn = max(1, round(roots[share])) if share in roots else count_share(share, n_features)
    return replace(spec, n_drawn=None if n_drawn >= n_features else n_drawn, n_init=1)
