"""Linear models in the leaves: fitted to what each is responsible for, and trained in turn with the splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.data.raw_rows import Scaling
from crisptree.equations.leaves import LOG_TWO_PI, SMALLEST_VARIANCE, TreeRidge, log_softmax, working_response
from crisptree.inference import FlatTree, route_rows
from crisptree.learning.samples import RowSet, Samples, TrainingTask
from crisptree.persistence.checkpoints import Arrays, Record
from crisptree.structure import TreeStructure
from crisptree.targets import Classes, Target
from crisptree.tree import Tree

Doubles = npt.NDArray[np.float64]

PENALTIES = {
    "classes": (3.0, 30.0, 300.0),
    "gaussians": (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 10_000.0),
}
"""What is tried, by target: logistic models take many more steps than a regression."""

ROUNDS_AT_ONCE, ROUNDS_TO_SCORE, ROUNDS_AT_THE_END = 3, 15, 40
"""Steps of a softmax towards its best weights: in an epoch of training, for a validation score, and for the
tree that is kept."""

LEAST_SHARE = 1e-3
"""A leaf whose share in a row is smaller does not look at it."""

DEEPEST_DOUBT = 80.0
"""No leaf is believed less than e⁻⁸⁰ times the likeliest one, which single precision still holds."""

MOST_SHARES = 2**26
"""Rows times leaves: responsibilities of so many fit into memory. Beyond, models are fitted once splits are trained."""


class Members(NamedTuple):
    """The rows that a leaf looks at, and how much of each it is responsible for."""

    rows: npt.NDArray[np.int64]
    share: Doubles

    @classmethod
    def of_leaves(cls, leaf: npt.NDArray[np.int64], weight: Doubles, n_leaves: int) -> list[Members]:
        """Return the members of every leaf where each row belongs to one leaf."""
        return [cls(own, weight[own]) for own in (np.flatnonzero(leaf == number) for number in range(n_leaves))]


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
    def n_answers(self) -> int:
        """How many linear functions a leaf has: one for every class, or for every output."""
        return self.target.n_classes or self.y.shape[1]

    def fitted(
        self, structure: TreeStructure, members: list[Members], penalty: float, start: Doubles | None, rounds: int
    ) -> Doubles:
        """The best weights of all nodes, or, for classes, some rounds nearer to them.  (n_nodes, q, n_answers)"""
        is_classes = self.target.n_classes is not None
        # The curvature of a softmax is at most ½.
        ridge = TreeRidge(structure, (self._factor(one, 0.5 if is_classes else 1.0) for one in members), penalty)
        if not is_classes:
            y = np.asarray(self.y, dtype=np.float64)
            moments = np.stack([(self.x[one.rows] * one.share[:, None]).T @ y[one.rows] for one in members])
            return ridge.sums(moments)
        sums = np.zeros((structure.n_nodes, self.x.shape[1], self.n_answers)) if start is None else start
        before, momentum = sums, 1.0
        for _ in range(rounds):
            # Nesterov's step beyond the last two sums: a bound that holds everywhere is far too careful at most places.
            faster = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = sums + (momentum - 1) / faster * (sums - before)
            momentum = faster
            moments = np.stack(
                [self._pull(one, weights) for one, weights in zip(members, ahead[structure.n_splits :], strict=True)]
            )
            before, sums = sums, ridge.sums(moments)
        return sums

    def _factor(self, one: Members, curvature: float) -> Doubles:
        """The rows of a leaf, each times the root of its share."""
        return np.asarray(self.x[one.rows] * np.sqrt(curvature * one.share)[:, None])

    def _pull(self, one: Members, weights: Doubles) -> Doubles:
        """½ Σ h x response: what the rows of a leaf ask its weights to be."""
        x, y = self.x[one.rows], np.asarray(self.y, dtype=np.int64)[one.rows]
        scores = x @ weights
        return np.asarray(0.5 * (x * one.share[:, None]).T @ working_response(scores, log_softmax(scores), y))

    def variances(self, structure: TreeStructure, members: list[Members], sums: Doubles) -> Doubles:
        """The variance that is left in every leaf, none too small.  (n_leaves, n_outputs)"""
        y = np.asarray(self.y, dtype=np.float64)
        found = np.ones((structure.n_leaves, self.n_answers))
        for leaf, (one, weights) in enumerate(zip(members, sums[structure.n_splits :], strict=True)):
            if one.share.sum() > 0:
                left = (y[one.rows] - self.x[one.rows] @ weights) ** 2
                found[leaf] = (one.share @ left) / one.share.sum()
        return np.maximum(found, SMALLEST_VARIANCE)

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
        """The tables of leaves that each row belongs to wholly."""
        counts = np.zeros((self.structure.n_leaves, len(leaf)))
        counts[leaf, np.arange(len(leaf))] = self.weight / self.row_weight
        return self.refit(torch.from_numpy(counts), rounds=ROUNDS_AT_THE_END // 2)

    @cached_property
    def weight(self) -> Doubles:
        """As they were given: training has them in units of their mean, the penalty is in those of the user."""
        return self.row_weight * self.samples.weight.double().cpu().numpy()

    def refit(self, counts: Tensor, rounds: int = ROUNDS_AT_ONCE) -> Tensor:
        """Models for these responsibilities (n_leaves, n), and the tables that follow."""
        share = self.row_weight * counts.detach().double().cpu().numpy()
        few = LEAST_SHARE * self.weight
        members = [Members(rows := np.flatnonzero(line > few), line[rows]) for line in share]
        self.sums = self.rows.fitted(self.structure, members, self.penalty, self.sums, rounds)
        variances = None
        if self.rows.target.is_regression:
            variances = self.rows.variances(self.structure, members, self.sums)
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


def compute_residuals(samples: Samples, row_weight: float = 1.0) -> Samples:
    """Numbers without what one linear model of all rows says of them, scaled anew; classes as they are.

    A tree of linear leaves need not part rows along a trend that a linear model follows.
    """
    if not samples.target.is_regression:
        return samples
    rows = LeafRows.of_samples(samples)
    weight = row_weight * samples.weight.double().cpu().numpy()
    whole, everyone = TreeStructure.single_leaf(), [Members(np.arange(len(samples)), weight)]
    y = rows.y - rows.x @ rows.fitted(whole, everyone, 1.0, None, 0)[0]
    spread = np.sqrt(np.average(y**2, axis=0, weights=weight))
    return replace(samples, y=torch.from_numpy(y / np.maximum(spread, 1e-12)).to(samples.y))


def linear_score(
    tree: Tree, samples: Samples, validation: Samples, *, penalty: float, row_weight: float = 1.0
) -> float:
    """The weighted mean score on ``validation`` of the deterministic tree whose leaves have models of ``samples``."""
    structure, target = tree.structure, samples.target
    rows, leaf = LeafRows.of_samples(samples), samples.all_leaves(tree).cpu().numpy()
    weight = row_weight * samples.weight.double().cpu().numpy()
    members = Members.of_leaves(leaf, weight, structure.n_leaves)
    sums = rows.fitted(structure, members, penalty, None, ROUNDS_TO_SCORE)[structure.n_splits :]
    held_out, leaf = LeafRows.of_samples(validation), validation.all_leaves(tree).cpu().numpy()
    outputs = np.zeros((len(leaf), rows.n_answers))
    for number, weights in enumerate(sums):
        own = leaf == number
        outputs[own] = held_out.x[own] @ weights
    # The class of the highest score is that of the highest probability.
    answers = target.predict(outputs) if target.n_classes is not None else outputs
    scores = np.asarray(target.score_predictions(answers, held_out.y), dtype=np.float64)
    return float(np.average(scores, weights=validation.weight.double().cpu().numpy()))


def can_train(structure: TreeStructure, samples: Samples) -> bool:
    """Whether the responsibilities of all leaves for all rows fit into memory."""
    return structure.n_leaves * len(samples) <= MOST_SHARES


def with_models(tree: FlatTree, task: TrainingTask, penalty: float, n_jobs: int | None) -> FlatTree:
    """The tree with models fitted to the training rows that reach its leaves. A weight of two equals the row twice."""
    return next(_fit_models(tree, task, [penalty], n_jobs, ROUNDS_AT_THE_END))


def _fit_models(
    tree: FlatTree, task: TrainingTask, penalties: Sequence[float], n_jobs: int | None, rounds: int
) -> Iterator[FlatTree]:
    """Fit the models of the leaves with every penalty; those of classes start from the ones before."""
    structure, scaling, part, target = tree.structure, tree.statistics.scaling, task.training, task.target
    X, weight = np.asarray(part.X[:], dtype=np.float32), part.weight
    rows, leaf = LeafRows.of(scaling.apply(X, n_jobs), part.y, target), route_rows(tree, X, n_jobs)
    members = Members.of_leaves(leaf, weight, structure.n_leaves)
    sums = None
    for penalty in penalties:
        sums = rows.fitted(structure, members, penalty, sums, rounds)
        raw, bias = folded(sums, scaling)
        variance = None
        if target.is_regression:
            left = rows.variances(structure, members, sums)
            variance = structure.means_below(left, np.array([one.share.sum() for one in members]))
        yield replace(tree, linear_weight=raw, linear_bias=bias, linear_variance=variance)


def folded(sums: Doubles, scaling: Scaling) -> tuple[Doubles, Doubles]:
    """Weights and offsets for raw rows.  (n_nodes, q, n_answers) → (n_nodes, n_answers, n_features), (…, n_answers)"""
    weight = sums[:, :-1].transpose(0, 2, 1) * scaling.factor
    return weight, sums[:, -1] - weight @ scaling.center


def best_penalty(
    trees: Sequence[FlatTree], tasks: Sequence[TrainingTask], validation: Sequence[RowSet], n_jobs: int | None
) -> float:
    """The penalty out of a few whose models are best on rows that did not train the trees, all trees together.

    For regression it is the largest within one standard error of the best: few rows say little of a small one, whose
    models may be far off. Penalties are in rows of mean weight, so that the unit of the weights changes nothing.
    """
    unit = float(np.mean([task.training.weight.mean() for task in tasks]))
    penalties = PENALTIES[tasks[0].target.name]
    scores: list[list[Doubles]] = [[] for _ in penalties]
    for tree, task, held_out in zip(trees, tasks, validation, strict=True):
        leaf = route_rows(tree, held_out.X, n_jobs)
        # From the largest one on: its models are nearest to the start.
        descending = [unit * penalty for penalty in reversed(penalties)]
        models = _fit_models(tree, task, descending, n_jobs, ROUNDS_TO_SCORE)
        for number, fitted in zip(reversed(range(len(penalties))), models, strict=True):
            answers = fitted.target.predict(fitted.scaled_values(leaf, held_out.X))
            scores[number].append(np.asarray(task.target.score_predictions(answers, held_out.y), dtype=np.float64))
    weight = np.concatenate([held_out.weight for held_out in validation])
    sums = [sum(float(part.weight @ one) for part, one in zip(validation, rows, strict=True)) for rows in scores]
    best = int(np.argmax(sums))
    if tasks[0].target.is_regression:
        of_rows = [np.concatenate(rows) for rows in scores]
        best = max(number for number, rows in enumerate(of_rows) if _is_near(of_rows[best] - rows, weight))
    return unit * penalties[best]


def _is_near(lost: Doubles, weight: Doubles) -> bool:
    """Whether what rows lose is in the mean no more than its standard error."""
    share = weight / weight.sum()
    mean = float(share @ lost)
    return mean <= float(np.sqrt((share**2 * (lost - mean) ** 2).sum()))
