"""Linear models in the leaves: fitted to what each is responsible for, and trained in turn with the splits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from crisptree import native
from crisptree.data.raw_rows import Scaling
from crisptree.equations.leaves import (
    LOG_TWO_PI,
    MIN_VARIANCE,
    ROOT_SHARE,
    Gram,
    TreeRidge,
    log_softmax,
    root_strengths,
    working_response,
)
from crisptree.inference import FlatTree, route_rows
from crisptree.inference.flat_tree import group_by_leaf
from crisptree.learning.samples import RowSet, RowSource, Samples, Source, SummedRows, SummedTask, TrainingTask
from crisptree.persistence.checkpoints import Arrays, Record
from crisptree.structure import TreeStructure
from crisptree.targets import Classes, Target
from crisptree.tree import Tree

Doubles = npt.NDArray[np.float64]

PENALTIES = {
    "classes": (0.1, 1.0, 10.0, 100.0, 1000.0),
    "gaussians": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 10_000.0),
}
"""λ that selection compares, by target, in rows of mean weight."""

PENALTIES_OF_ONE_LEAF = {
    "classes": (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0),
    "gaussians": (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0),
}
"""The same for a tree without splits, whose λ is that of a ridge or logistic regression."""

STEPS_PER_EPOCH, STEPS_TO_SCORE, STEPS_AT_THE_END = 3, 60, 200
"""Steps towards the best weights of a softmax: in an epoch of training, for a validation score, and for the
tree that is kept."""

TOLERANCE, TOLERANCE_TO_SCORE = 1e-7, 1e-5
"""Relative decrease of the loss per step below which a softmax is fitted, or near enough for a validation score."""

MIN_SHARE = 1e-3
"""A leaf whose share in a row is smaller does not look at it."""

DEEPEST_DOUBT = 80.0
"""No leaf is believed less than e⁻⁸⁰ times the likeliest one, which single precision still holds."""

MAX_SHARES = 2**26
"""Rows times leaves: responsibilities of so many fit into memory. Beyond, models are fitted once splits are trained."""


class Members(NamedTuple):
    """The rows that a leaf looks at, and how much of each it is responsible for."""

    rows: npt.NDArray[np.int64]
    share: Doubles

    @classmethod
    def of_leaves(cls, leaf: npt.NDArray[np.int64], weight: Doubles, n_leaves: int) -> list[Members]:
        """Return the members of every leaf where each row belongs to one leaf."""
        order = np.argsort(leaf, kind="stable")
        ends = np.cumsum(np.bincount(leaf, minlength=n_leaves))[:-1]
        return [cls(own, weight[own]) for own in np.split(order, ends)]


class FittedModels(NamedTuple):
    """Weights of all nodes and variances of all leaves, for every penalty.

    (n_penalties, n_nodes, n_features + 1, n_outputs) and, for a regression, (n_penalties, n_leaves, n_outputs)
    """

    sums: Doubles
    variances: Doubles | None


@dataclass(frozen=True, eq=False)
class LeafRows:
    """Scaled rows with a constant feature, (n, n_features + 1), and their y: class indices or scaled outputs."""

    x: Doubles
    y: npt.NDArray[np.generic]
    target: Target

    @classmethod
    def of(cls, rows: npt.NDArray[np.floating], y: npt.NDArray[np.generic], target: Target) -> LeafRows:
        """Add the constant feature to scaled rows."""
        return cls(np.concatenate([rows, np.ones((len(rows), 1))], axis=1, dtype=np.float64), y, target)

    @classmethod
    def of_samples(cls, samples: Samples) -> LeafRows:
        """Copy samples to the host."""
        scaled = samples.batch(torch.arange(len(samples), device=samples.device)).cpu().numpy()
        return cls.of(scaled, samples.y.cpu().numpy(), samples.target)

    @property
    def n_outputs(self) -> int:
        """Number of linear functions of a leaf: one per class, or per output."""
        return self.target.n_classes or self.y.shape[1]

    def fit(
        self,
        structure: TreeStructure,
        members: Sequence[Members],
        penalties: Sequence[float],
        start: Doubles | None = None,
        steps: int = STEPS_AT_THE_END,
    ) -> FittedModels:
        """Fit the models of all nodes with every penalty; those of classes start from the ones before."""
        if native.training is not None and native.training.has_leaf_models:
            return self._fit_natively(structure, members, penalties, start, steps)
        sums, variances = [], []
        for penalty in penalties:
            start = self.fit_reference(structure, members, penalty, start, steps)
            sums.append(start)
            if self.target.is_regression:
                variances.append(mean_squares(self.squared_errors(members, start[structure.n_splits :])))
        return FittedModels(np.stack(sums), np.stack(variances) if variances else None)

    def _fit_natively(
        self,
        structure: TreeStructure,
        members: Sequence[Members],
        penalties: Sequence[float],
        start: Doubles | None,
        steps: int,
    ) -> FittedModels:
        assert native.training is not None
        share = np.concatenate([one.share for one in members])
        rows = np.concatenate([one.rows for one in members])
        begin = np.concatenate([[0], np.cumsum([len(one.rows) for one in members])])
        unit = float(share.sum()) / max(len(share), 1) or 1.0  # the kernel's guards are in rows
        share, scaled = share / unit, [penalty / unit for penalty in penalties]
        q, total = self.x.shape[1], self._curvature * float(share.sum())
        sums = np.empty((len(penalties), structure.n_nodes, q, self.n_outputs))
        variances = (
            np.empty((len(penalties), structure.n_leaves, self.n_outputs)) if self.target.is_regression else None
        )
        native.training.fit_leaf_models(
            self.x,
            None if self.target.is_regression else np.asarray(self.y, dtype=np.int64),
            np.ascontiguousarray(self.y, dtype=np.float64) if self.target.is_regression else None,
            *(np.asarray(part, dtype=np.int64) for part in (rows, begin)),
            np.asarray(share, dtype=np.float64),
            structure.left,
            structure.right,
            np.stack([root_strengths(structure, q, total, penalty) for penalty in scaled]),
            np.asarray(scaled, dtype=np.float64),
            None if start is None else np.ascontiguousarray(start),
            sums,
            variances,
            steps,
            TOLERANCE if steps > STEPS_TO_SCORE else TOLERANCE_TO_SCORE,
        )
        return FittedModels(sums, variances)

    def fit_reference(
        self, structure: TreeStructure, members: Sequence[Members], penalty: float, start: Doubles | None, steps: int
    ) -> Doubles:
        """Return the best weights of all nodes, for classes after some steps; the definition of the kernel."""
        ridge = TreeRidge(structure, (Gram.of_factor(self._factor(one)) for one in members), penalty)
        if start is None:
            start = np.zeros((structure.n_nodes, self.x.shape[1], self.n_outputs))

        def moments(sums: Doubles) -> Doubles:
            return self.moments(members, sums[structure.n_splits :])

        return _descend(ridge, moments, start, 1 if self.target.is_regression else steps)

    @property
    def _curvature(self) -> float:
        """The curvature of the loss in a score: of a softmax at most ½."""
        return 0.5 if self.target.n_classes is not None else 1.0

    def _factor(self, one: Members) -> Doubles:
        """Return the rows of a leaf, each times the root of its share in the curvature."""
        return np.asarray(self.x[one.rows] * np.sqrt(self._curvature * one.share)[:, None])

    def moments(self, members: Sequence[Members], weights: Doubles) -> Doubles:
        """Σ h x y, or for classes ½ Σ h x response: what the rows of a leaf ask its weights to be.

        (n_leaves, q, n_outputs) → the same
        """
        found = np.empty_like(weights)
        for leaf, one in enumerate(members):
            x, y = self.x[one.rows], self.y[one.rows]
            if not self.target.is_regression:
                scores = x @ weights[leaf]
                y = 0.5 * working_response(scores, log_softmax(scores), np.asarray(y, dtype=np.int64))
            found[leaf] = (x * one.share[:, None]).T @ np.asarray(y, dtype=np.float64)
        return found

    def grams(self, members: Sequence[Members]) -> Doubles:
        """Return the Gram matrix of every leaf.  (n_leaves, q, q)"""
        factors = [self._factor(one) for one in members]
        return np.stack([factor.T @ factor for factor in factors])

    def squared_errors(self, members: Sequence[Members], weights: Doubles) -> Doubles:
        """Σ h (y − x θ)² of every leaf, and Σ h.  (n_leaves, n_outputs + 1)"""
        y = np.asarray(self.y, dtype=np.float64)
        residuals = [y[one.rows] - self.x[one.rows] @ own for one, own in zip(members, weights, strict=True)]
        pairs = zip(members, residuals, strict=True)
        return np.stack([np.append(one.share @ error**2, one.share.sum()) for one, error in pairs])

    def evidence(self, structure: TreeStructure, sums: Doubles, variances: Doubles | None) -> npt.NDArray[np.float32]:
        """log p(y_n ∣ x_n, leaf), in single precision: there are many of them.  (n_leaves, n)"""
        found = np.empty((structure.n_leaves, len(self.x)), dtype=np.float32)
        every, single = np.arange(len(self.x)), self.single
        for leaf, weights in enumerate(sums[structure.n_splits :].astype(np.float32)):
            scores = single @ weights
            if variances is None:
                found[leaf] = log_softmax(scores)[every, self.y]
            else:
                left = (self.y - scores.astype(np.float64)) ** 2
                found[leaf] = -0.5 * (left / variances[leaf] + np.log(variances[leaf]) + LOG_TWO_PI).sum(axis=1)
        return found

    @cached_property
    def single(self) -> npt.NDArray[np.float32]:
        """The rows in single precision."""
        return self.x.astype(np.float32)


def _descend(ridge: TreeRidge, moments: Callable[[Doubles], Doubles], sums: Doubles, steps: int) -> Doubles:
    """Take Nesterov's steps beyond the last two sums.

    A bound that holds everywhere is far too careful at most places.
    """
    before, momentum = sums, 1.0
    for _ in range(steps):
        faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = sums + (momentum - 1) / faster * (sums - before)
        momentum = faster
        before, sums = sums, ridge.sums(moments(ahead))
        if ((ahead - sums) * (sums - before)).sum() > 0:
            momentum = 1.0  # which has carried the steps too far
    return sums


def mean_squares(squared_errors: Doubles) -> Doubles:
    """Return the mean squared error of every leaf, 1 where it has no rows.  (n_leaves, n_outputs + 1) → n_outputs"""
    errors, weight = squared_errors[:, :-1], squared_errors[:, -1:]
    return np.divide(errors, weight, out=np.ones_like(errors), where=weight > 0)


Part = tuple[LeafRows, Sequence[Members]]
Total = Callable[[Callable[[LeafRows, Sequence[Members]], Doubles], tuple[int, ...]], Doubles]
"""Adds up what a function of rows and the members of leaves gives for all parts of the rows, arrays of a shape."""


def fit_summed(
    structure: TreeStructure, total: Total, n_columns: int, target: Target, penalty: float
) -> tuple[Doubles, Doubles | None]:
    """Fit the models of all nodes to rows that are summed over; return them and, for a regression, squared errors.

    Neither depends on what the rows are divided into: BLAS, whose sums may differ with its threads, has one.
    (n_nodes, n_columns, n_outputs), (n_leaves, n_outputs + 1)
    """
    n_leaves, n_splits = structure.n_leaves, structure.n_splits
    shape = n_leaves, n_columns, target.n_classes or target.n_values // 2

    def moments(sums: Doubles) -> Doubles:
        return total(lambda rows, members: rows.moments(members, sums[n_splits:]), shape)

    with threadpool_limits(1, "blas"):
        grams = total(lambda rows, members: rows.grams(members), (n_leaves, n_columns, n_columns))
        ridge = TreeRidge(structure, (Gram(gram, False) for gram in grams), penalty)
        start = np.zeros((structure.n_nodes, *shape[1:]))
        if not target.is_regression:
            return _descend(ridge, moments, start, STEPS_AT_THE_END), None
        sums = ridge.sums(moments(start))
        size = n_leaves, shape[2] + 1
        return sums, total(lambda rows, members: rows.squared_errors(members, sums[n_splits:]), size)


class LeafModels:
    """The models of a tree in training, beside its splits.

    For the steps on the splits every row is a class of its own: the table of a leaf says how likely the row's y is
    under the leaf's model, and what the steps count for it is how much the leaf is responsible for the row.
    """

    def __init__(self, structure: TreeStructure, samples: Samples, penalty: float, row_weight: float = 1.0) -> None:
        self.rows = LeafRows.of_samples(samples)
        self.structure, self.penalty, self.row_weight = structure, penalty, row_weight
        self.sums: Doubles | None = None
        self.offset = 0.0
        self.samples = replace(
            samples, y=torch.arange(len(samples), device=samples.device), target=Classes(len(samples))
        )

    def begin(self, leaf: npt.NDArray[np.int64]) -> Tensor:
        """Return the tables of leaves that each row belongs to wholly."""
        counts = np.zeros((self.structure.n_leaves, len(leaf)))
        counts[leaf, np.arange(len(leaf))] = self.weight / self.row_weight
        return self.refit(torch.from_numpy(counts), steps=STEPS_AT_THE_END // 2)

    @cached_property
    def weight(self) -> Doubles:
        """As they were given: training has them in units of their mean, the penalty is in those of the user."""
        return self.row_weight * self.samples.weight.double().cpu().numpy()

    def refit(self, counts: Tensor, steps: int = STEPS_PER_EPOCH) -> Tensor:
        """Models for these responsibilities (n_leaves, n), and the tables that follow."""
        share = self.row_weight * counts.detach().double().cpu().numpy()
        few = MIN_SHARE * self.weight
        members = [Members(rows := np.flatnonzero(line > few), line[rows]) for line in share]
        models = self.rows.fit(self.structure, members, [self.penalty], self.sums, steps)
        self.sums = models.sums[0]
        variances = None if models.variances is None else np.maximum(models.variances[0], MIN_VARIANCE)
        evidence = self.rows.evidence(self.structure, self.sums, variances)
        highest = evidence.max(axis=0)
        self.offset = float(self.weight @ highest / self.weight.sum())
        tables = np.exp(np.maximum(evidence - highest, -DEEPEST_DOUBT))
        return torch.from_numpy(tables).to(self.samples.weight)

    def to_arrays(self) -> Arrays:
        return {"models.sums": np.array(self.sums), "models.offset": np.array([self.offset])}

    def restore(self, record: Record) -> None:
        self.sums = record.take("models.sums", np.asarray(self.sums)).copy()
        self.offset = float(record.take("models.offset", np.zeros(1))[0])


def compute_residuals(samples: Source, row_weight: float = 1.0) -> Source:
    """Residuals of one linear model of all rows, rescaled, for regression; classes unchanged.

    A tree of linear leaves need not part rows along a trend that a linear model follows.
    """
    if not samples.target.is_regression:
        return samples
    replaced: Any
    if isinstance(samples, SummedRows):
        replaced = _replace_by_summed_residuals(samples, row_weight)
        return replaced
    assert isinstance(samples, Samples)
    rows = LeafRows.of_samples(samples)
    weight = row_weight * samples.weight.double().cpu().numpy()
    whole, members = TreeStructure.single_leaf(), [Members(np.arange(len(samples)), weight)]
    y = rows.y - rows.x @ rows.fit(whole, members, [ROOT_SHARE * weight.sum()]).sums[0, 0]
    spread = np.sqrt(np.average(y**2, axis=0, weights=weight))
    replaced = replace(samples, y=torch.from_numpy(y / np.maximum(spread, 1e-12)).to(samples.y))
    return replaced


def _replace_by_summed_residuals(samples: SummedRows, row_weight: float) -> SummedRows:
    def as_one_leaf(part: Samples) -> Part:
        weight = row_weight * part.weight.double().cpu().numpy()
        return LeafRows.of_samples(part), [Members(np.arange(len(part)), weight)]

    def total(function: Callable[[LeafRows, Sequence[Members]], Doubles], shape: tuple[int, ...]) -> Doubles:
        return samples.total(lambda part: function(*as_one_leaf(part)), shape)

    penalty = ROOT_SHARE * row_weight * float(samples.target.weight(samples.root.statistics))
    models, errors = fit_summed(TreeStructure.single_leaf(), total, samples.n_features + 1, samples.target, penalty)
    assert errors is not None
    spread = np.maximum(np.sqrt(errors[0, :-1] / errors[0, -1]), 1e-12)

    def residuals(part: Samples) -> Tensor:
        rows = LeafRows.of_samples(part)
        with threadpool_limits(1, "blas"):
            return torch.from_numpy((rows.y - rows.x @ models[0]) / spread).to(part.y)

    return samples.replace_y(residuals)


def linear_score(
    tree: Tree, samples: Samples, validation: Samples, *, penalty: float, row_weight: float = 1.0
) -> float:
    """Score the deterministic tree with leaf models of ``samples`` on ``validation``, as a weighted mean."""
    structure, target = tree.structure, samples.target
    rows, leaf = LeafRows.of_samples(samples), samples.all_leaves(tree).cpu().numpy()
    weight = row_weight * samples.weight.double().cpu().numpy()
    members = Members.of_leaves(leaf, weight, structure.n_leaves)
    sums = rows.fit(structure, members, [penalty], steps=STEPS_TO_SCORE).sums[0, structure.n_splits :]
    held_out, leaf = LeafRows.of_samples(validation), validation.all_leaves(tree).cpu().numpy()
    outputs = np.zeros((len(leaf), rows.n_outputs))
    for number, weights in enumerate(sums):
        own = leaf == number
        outputs[own] = held_out.x[own] @ weights
    # The class of the highest score is that of the highest probability.
    predicted = target.predict(outputs) if target.n_classes is not None else outputs
    scores = np.asarray(target.score_predictions(predicted, held_out.y), dtype=np.float64)
    return float(np.average(scores, weights=validation.weight.double().cpu().numpy()))


def can_train(structure: TreeStructure, samples: RowSource) -> bool:
    """Return True if the responsibilities of all leaves for all rows fit into memory."""
    return structure.n_leaves * len(samples) <= MAX_SHARES


def fit_routed(
    structure: TreeStructure,
    leaf: npt.NDArray[np.int64],
    rows: LeafRows,
    weight: Doubles,
    penalties: Sequence[float],
    used: npt.NDArray[np.intp] | None,
    steps: int,
) -> FittedModels:
    """Fit models with every penalty to rows whose leaves are known; with weights for ``used`` features, if not None."""
    members = Members.of_leaves(leaf, weight, structure.n_leaves)
    if used is None:
        return rows.fit(structure, members, penalties, steps=steps)
    columns = np.append(used, rows.x.shape[1] - 1)
    models = replace(rows, x=rows.x[:, columns]).fit(structure, members, penalties, steps=steps)
    return _insert_columns(models, columns, rows.x.shape[1])


def _insert_columns(models: FittedModels, columns: npt.NDArray[np.intp], n_columns: int) -> FittedModels:
    """Add weights of zero for the columns that were not used."""
    sums = np.zeros((*models.sums.shape[:2], n_columns, models.sums.shape[3]))
    sums[:, :, columns] = models.sums
    return models._replace(sums=sums)


def _fit_summed_leaves(
    task: SummedTask,
    read: Callable[[RowSet], tuple[LeafRows, npt.NDArray[np.int64]]],
    structure: TreeStructure,
    n_features: int,
    penalty: float,
    used: npt.NDArray[np.intp] | None,
) -> FittedModels:
    """Fit models to rows that are summed over; ``read`` gives scaled rows and their leaves."""
    columns = np.arange(n_features + 1) if used is None else np.append(used, n_features)

    def total(function: Callable[[LeafRows, Sequence[Members]], Doubles], shape: tuple[int, ...]) -> Doubles:
        def add_up(part: RowSet) -> Doubles:
            rows, leaf = read(part)
            members = Members.of_leaves(leaf, part.weight, structure.n_leaves)
            return function(replace(rows, x=rows.x[:, columns]), members)

        return task.total(add_up, shape)

    sums, errors = fit_summed(structure, total, len(columns), task.target, penalty)
    models = FittedModels(sums[None], None if errors is None else mean_squares(errors)[None])
    return _insert_columns(models, columns, n_features + 1)


def predict_routed(models: FittedModels, structure: TreeStructure, leaf: npt.NDArray[np.int64], x: Doubles) -> Doubles:
    """Compute the linear outputs of rows, with a constant feature, by the models of every penalty.

    (n,), (n, n_features + 1) → (n_penalties, n, n_outputs)
    """
    outputs = np.empty((len(models.sums), len(leaf), models.sums.shape[3]))
    for own in group_by_leaf(leaf):
        outputs[:, own] = x[own] @ models.sums[:, structure.n_splits + leaf[own[0]]]
    return outputs


def compute_logistic_losses(outputs: Doubles, y: npt.NDArray[np.int64]) -> Doubles:
    """Return the log loss of every row from the logits of its classes.  (n, n_classes), (n,) → (n,)"""
    return np.asarray(-log_softmax(outputs)[np.arange(len(y)), y], dtype=np.float64)


def with_models(
    tree: FlatTree, task: TrainingTask, penalty: float, n_jobs: int | None, *, of_branches: bool = False
) -> FlatTree:
    """Return a finalized tree with models of the training rows in its leaves.

    ``penalty`` is λ in the unit of the weights; a weight of two equals the row twice. With ``of_branches`` models have
    weights only for features that a split of the tree has, if there is one.
    """
    structure, scaling = tree.structure, tree.statistics.scaling
    used = np.flatnonzero((tree.weight != 0).any(axis=0)) if of_branches and structure.n_splits else None

    def read(rows: RowSet) -> tuple[LeafRows, npt.NDArray[np.int64]]:
        X = np.asarray(rows.X[:], dtype=np.float32)
        return LeafRows.of(scaling.apply(X, n_jobs), rows.y, task.target), route_rows(tree, X, n_jobs)

    if isinstance(task, SummedTask):
        models = _fit_summed_leaves(task, read, structure, len(scaling.center), penalty, used)
    else:
        leaf_rows, leaf = read(task.training)
        models = fit_routed(structure, leaf, leaf_rows, task.training.weight, [penalty], used, STEPS_AT_THE_END)
    raw, bias = fold_scaling(models.sums[0], scaling)
    variance = None
    if models.variances is not None:
        n_rows = task.target.weight(tree.statistics.node_counts[tree.structure.n_splits :])
        variance = tree.structure.means_below(models.variances[0], n_rows)
    return replace(tree, linear_weight=raw, linear_bias=bias, linear_variance=variance)


def fold_scaling(sums: Doubles, scaling: Scaling) -> tuple[Doubles, Doubles]:
    """Return weights and offsets for raw rows.

    (n_nodes, q, n_outputs) → (n_nodes, n_outputs, n_features), (…, n_outputs)
    """
    weight = sums[:, :-1].transpose(0, 2, 1) * scaling.factor
    return weight, sums[:, -1] - weight @ scaling.center
