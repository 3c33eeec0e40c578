"""From checked data and parameters to a problem and a spec, and to the tree. Imported only when something trains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.blocks import ROWS_AT_ONCE, row_blocks
from crisptree.estimators.choices import choose, closed, is_open, scale_of, still_open
from crisptree.estimators.constraints import are_constrained
from crisptree.estimators.finishing import finished, is_judged, judged, unfinished
from crisptree.estimators.numbers import NumberScale
from crisptree.estimators.progress import hearing_trials, recording
from crisptree.estimators.soft_labels import likeliest, one_hot
from crisptree.estimators.validation import TrainingData, holds_out
from crisptree.holdout import hold_out
from crisptree.inference import CrispTree, FlatTree
from crisptree.inference.ranges import with_ranges
from crisptree.learning.choosing import Trial
from crisptree.learning.fitting import Fitted, device_of, fit_tree
from crisptree.learning.history import EpochRecord
from crisptree.learning.problem import Part, Problem
from crisptree.learning.spec import Spec
from crisptree.one_thread import one_thread
from crisptree.rows.base import RawRows, learned_scaling
from crisptree.rows.sparse import SparseRows
from crisptree.scaling import Scaling
from crisptree.targets import Classes, SoftClasses, Target
from crisptree.tree import Tree

Trained = tuple[Fitted, list[EpochRecord]]

SPARSE_VALUES_AT_ONCE = 2**24
"""The soft tree sees whole rows: so many values of sparse ones are written down at a time."""


class TrainedRows(NamedTuple):
    """A tree, the records of its epochs, what was chosen for it and what was tried for that."""

    fitted: Fitted
    history: list[EpochRecord]
    chosen: dict[str, Any]
    path: list[Trial]


def fit_rows(
    parameters: Mapping[str, Any],
    data: TrainingData,
    validation: Part | None,
    earlier: CrispTree | None,
    chosen: dict[str, Any],
    seed: int,
) -> TrainedRows:
    """Train a tree on rows with an estimator's parameters, choosing first what they leave open.

    ``earlier`` is a tree to grow on from, and ``chosen`` what was chosen for it.
    """
    everything, given = data, validation
    if validation is None and holds_out(parameters):
        data, validation = split_off(data, parameters["validation_fraction"], seed)

    def scaled(scale: str | None) -> Problem:
        scaling = earlier.statistics.scaling if earlier else learned_scaling(data.X, data.weight, scale, n_jobs)
        if parameters["shifts"] and earlier is None:
            scaling = scaling.same_for_pixels(*(data.image_shape or ())[2:])
        return problem_of(data, scaling, validation)

    asks_for_planes = (
        isinstance(data.target, SoftClasses) or isinstance(data.X, SparseRows) or are_constrained(parameters)
    )
    if parameters["split"] == "auto" and asks_for_planes:
        # Thresholds are found by counting whole rows, column by column; constraints are those of hyperplanes.
        parameters = {**parameters, "split": "oblique"}
    is_sparse = isinstance(data.X, SparseRows)
    n_jobs, scale = parameters["n_jobs"], scale_of(parameters, data.image_shape, is_sparse=is_sparse)
    path: list[Trial] = []
    if earlier is not None:
        chosen = still_open(chosen, parameters)
    problem = scaled(scale)
    if is_open(parameters) and earlier is None:
        with hearing_trials(parameters["verbose"]) as on_trial:
            chosen, path = choose(parameters, with_labels(problem), data.image_shape, seed, data.source, on_trial)
    values = closed(parameters, chosen, data.image_shape, is_sparse=is_sparse)
    if given is None and validation is not None and not values["finetune_epochs"] and not is_judged(values):
        # No epoch is to be judged after all: the rows that were held out for it train too.
        data, validation = everything, None
        problem = scaled(values["scale"])
    elif values["scale"] != scale:
        problem = scaled(values["scale"])
    if validation is None and is_judged(values):
        # Rows are missed too much to be held out for the last step alone: a first tree tells the numbers.
        rest, held = split_off(data, parameters["validation_fraction"], seed)
        first = fit_rows(unfinished(values), rest, None, None, {}, seed).fitted
        values = judged(first.tree, values, labelled(held, data.target), float(rest.weight.mean()))
    fitted, history = fit_problem(values, problem, data.image_shape, seed, earlier)
    if data.image_shape is None:
        tree = with_ranges(fitted.tree, everything.X, everything.holes)
        fitted = fitted._replace(tree=tree, greedy=tree if fitted.greedy is fitted.tree else fitted.greedy)
    return TrainedRows(in_units_of_y(fitted, data.y_scale), history, chosen, path)


def in_units_of_y(fitted: Fitted, scale: NumberScale | None) -> Fitted:
    """The trees that answer in the units in which numbers came; those of classes as they are."""
    if scale is None:
        return fitted
    tree = scale.on(fitted.tree)
    return fitted._replace(tree=tree, greedy=tree if fitted.greedy is fitted.tree else scale.on(fitted.greedy))


def device_for(parameters: Mapping[str, Any], data: TrainingData) -> str:
    """The same for rows whose scaling is not known yet."""
    return device_text(parameters, Problem(data.part, Scaling.none(data.X.shape[1]), data.target))


def problem_of(data: TrainingData, scaling: Scaling, validation: Part | None) -> Problem:
    """Rows of classes, of numbers or of probabilities of classes; those that judge are put like them."""
    target = data.target
    if isinstance(target, SoftClasses):
        held = validation and replace(validation, y=one_hot(validation.y, target.n_values))
        return Problem(data.part, scaling, target, held)
    is_soft = isinstance(target, Classes)  # the rows that judge may be
    return Problem(data.part, scaling, target, validation and (likeliest(validation) if is_soft else validation))


def labelled(part: Part, target: Target) -> Part:
    """The rows as the leaves of the tree mean them: one class per row where they have probabilities."""
    return likeliest(part) if isinstance(target, SoftClasses) else part


def with_labels(problem: Problem) -> Problem:
    """The problem with one class per row, which a choice of parameters can be made by and which trains faster."""
    if not isinstance(problem.target, SoftClasses):
        return problem
    held = problem.validation and likeliest(problem.validation)
    return Problem(likeliest(problem.training), problem.scaling, Classes(problem.target.n_values), held)


def fit_problem(
    parameters: Mapping[str, Any],
    problem: Problem,
    image_shape: tuple[int, ...] | None,
    seed: int,
    earlier: CrispTree | None = None,
) -> Trained:
    """Train a tree with an estimator's parameters, its progress shown and kept."""
    spec = spec_of(parameters, problem, image_shape, seed)
    with recording(parameters["verbose"], parameters["callbacks"]) as recorder:
        fitted = fit_tree(spec, problem, start=earlier, on_epoch=recorder.record)
    held = problem.validation and labelled(problem.validation, problem.target)
    numbers = judged(fitted.tree, parameters, held, float(problem.training.weight.mean()))
    return fitted._replace(tree=finished(fitted.tree, numbers)), recorder.history


def spec_of(parameters: Mapping[str, Any], problem: Problem, image_shape: tuple[int, ...] | None, seed: int) -> Spec:
    """The spec of an estimator's parameters for a problem."""
    mean_weight = float(problem.training.weight.mean())
    return Spec.of(parameters, reach=problem.reach, mean_weight=mean_weight, image_shape=image_shape, seed=seed)


def device_text(parameters: Mapping[str, Any], problem: Problem) -> str:
    """The device that a fit of a problem trains on, as a checkpoint knows it; all that "auto" may choose is linear."""
    split = "oblique" if parameters["split"] == "auto" else parameters["split"]
    return str(device_of(parameters["device"], problem, split))


def split_off(data: TrainingData, fraction: float, seed: int) -> tuple[TrainingData, Part]:
    """Hold out a share of the rows, of every class alike where that can be done."""
    if len(data.y) < 2:
        raise ValueError(
            "a fit that holds rows out must have at least 2 rows; got n_samples = 1. "
            "Switch early_stopping off, and give nu (for algorithm='non_greedy'), prune and shrinkage a number."
        )
    kept, held = hold_out(data.target.strata(data.y), fraction, seed, source=data.source)
    source = None if data.source is None else data.source[kept]
    rest = replace(data, X=data.X[kept], y=data.y[kept], weight=data.weight[kept], source=source)
    return rest, Part(data.X[held], data.y[held], data.weight[held])


@one_thread()
@torch.no_grad()
def soft_probabilities(tree: CrispTree, X: RawRows, steepness: float | None) -> npt.NDArray[np.float64]:
    """p(y∣x) of the probabilistic tree behind a crisp one."""
    if tree.is_linear:
        return _soft_linear(tree, X, steepness)
    soft, gamma = Tree.soft(tree), _steepness(tree, steepness)
    logs = [soft.log_class_probabilities(block, gamma).double() for block in _scaled_blocks(tree, X)]
    return np.asarray(torch.softmax(torch.cat(logs), dim=1).numpy())


@one_thread()
@torch.no_grad()
def soft_means(tree: CrispTree, X: RawRows, steepness: float | None) -> npt.NDArray[np.float64]:
    """E(y∣x) = Σ_ℓ m_ℓ μ_ℓ(x) of the probabilistic tree behind a crisp one of numbers, in the units of y."""
    if tree.is_linear:
        return np.asarray(tree.meaning.answers(tree.in_units(_soft_linear(tree, X, steepness))))
    soft, gamma = Tree.soft(tree), _steepness(tree, steepness)
    means = torch.from_numpy(tree.meaning.answers(tree.in_units(tree.statistics.soft_leaves)))
    paths = (soft.log_path_probabilities(block, gamma).double().exp() for block in _scaled_blocks(tree, X))
    return np.asarray(torch.cat([path @ means for path in paths]).numpy())


def _soft_linear(tree: CrispTree, X: RawRows, steepness: float | None) -> npt.NDArray[np.float64]:
    """Σ_ℓ μ_ℓ(x) times what the model of the leaf says, in the units of training."""
    assert isinstance(tree, FlatTree)
    soft, gamma, found, start = Tree.soft(tree), _steepness(tree, steepness), [], 0
    for block in _scaled_blocks(tree, X):
        paths, rows = soft.log_path_probabilities(block, gamma).double().exp().numpy(), X[start : start + len(block)]
        said = np.zeros((len(block), tree.n_outputs))
        for leaf in range(tree.structure.n_leaves):
            said += paths[:, [leaf]] * tree.scaled_values(np.full(len(block), leaf), rows)
        found.append(said)
        start += len(block)
    return np.concatenate(found)


def _steepness(tree: CrispTree, steepness: float | None) -> float:
    return tree.statistics.steepness if steepness is None else steepness


def _scaled_blocks(tree: CrispTree, X: RawRows) -> Iterator[Tensor]:
    at_once = max(1, SPARSE_VALUES_AT_ONCE // X.shape[1]) if isinstance(X, SparseRows) else ROWS_AT_ONCE
    pieces = (X[rows] for rows in row_blocks(len(X), at_once))
    dense = (piece.dense() if isinstance(piece, SparseRows) else piece for piece in pieces)
    return (torch.from_numpy(tree.statistics.scaling.apply(piece)) for piece in dense)
