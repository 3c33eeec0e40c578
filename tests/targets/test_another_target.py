"""A new kind of y is one class and one line in the registry: nothing else has to know it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

from crisptree.data.raw_rows import Scaling
from crisptree.inference import route_rows
from crisptree.inference.finalization import truncate
from crisptree.learning.fitting import fit_tree
from crisptree.learning.options import Spec
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.persistence.model_file import read, write
from crisptree.persistence.trees import known_sections, trees_from_file, trees_to_sections
from crisptree.targets import TARGETS, Target
from crisptree.tree import Tree
from tests.toys import plain_tree


@dataclass(frozen=True)
class Rates(Target):
    """y_n counts events; a leaf is a Poisson distribution with a rate. Statistics are (rows, events)."""

    name: ClassVar[str] = "rates"
    n_statistics: ClassVar[int] = 2

    def evidence(self, tables, y, node=None):
        rate = tables.T.reshape(-1, len(tables))
        rate = rate[torch.zeros_like(y, dtype=torch.long) if node is None else node]
        return y[:, None] * rate.log() - rate - torch.lgamma(y[:, None] + 1)

    def statistics(self, responsibilities, y, node=None, n_nodes=1):
        node = torch.zeros(len(y), dtype=torch.long) if node is None else node
        sums = responsibilities.new_zeros(n_nodes, 2, responsibilities.shape[1])
        sums[:, 0].index_add_(0, node, responsibilities)
        sums[:, 1].index_add_(0, node, responsibilities * y[:, None].to(responsibilities))
        return sums.reshape(2 * n_nodes, -1).T

    def update(self, statistics, previous, prior):
        rows, events = statistics[:, :1], statistics[:, 1:]
        return ((events + prior) / (rows + prior).clamp_min(1e-30)).where(rows > 0, previous).clamp_min(1e-3)

    def random_tables(self, n, generator):
        return 0.5 + torch.rand(n, 1, generator=generator)

    def tally(self, y, weight, node, n_nodes):
        if isinstance(weight, np.ndarray):
            return np.stack([np.bincount(node, part, n_nodes) for part in (weight, weight * y)], axis=1)
        sums = weight.new_zeros(n_nodes, *weight.shape[1:], 2)
        events = weight * y.reshape(-1, *[1] * (weight.dim() - 1)).to(weight)
        return sums.index_add_(0, node, torch.stack([weight, events], dim=-1))

    def score_predictions(self, predicted, y):
        return -((predicted - y) ** 2)

    def loss(self, tables, statistics):
        return float((statistics[:, 0] * tables[:, 0] - statistics[:, 1] * np.log(tables[:, 0])).sum())

    def weight(self, statistics):
        return statistics[..., 0]

    def impurity(self, statistics):
        rows, events = statistics[..., 0], np.maximum(statistics[..., 1], 1e-30)
        return events - events * np.log(events / np.maximum(rows, 1e-30))

    def mean_impurity(self, statistics, unit):
        return self.impurity(statistics) / np.maximum(statistics[..., 0], 1e-30)

    def is_mixed(self, statistics):
        return statistics[..., 1] > 0

    def tables(self, statistics, prior=0.0):
        return (statistics[:, 1:] + prior) / np.maximum(statistics[:, :1] + prior, 1e-30)

    def predict(self, tables):
        return tables[:, 0]

    def check(self, tables):
        return "not rates" if (tables < 0).any() else None


QUICK = {
    "max_depth": 3,
    "min_samples_leaf": 5,
    "epochs": 10,
    "finetune_epochs": 10,
    "min_updates": 100,
    "batch_size": 64,
}
PARAMETERS = plain_tree(**QUICK, device="cpu", n_jobs=1, leaf_prior=0.0).training_parameters()


@pytest.fixture
def rates(monkeypatch):
    monkeypatch.setitem(TARGETS, "rates", Rates)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    y = rng.poisson(np.where(X[:, 0] > X[:, 1], 6.0, np.where(X[:, 2] > 0, 1.0, 2.5))).astype(np.float32)
    part = RowSet(X, y, np.ones(400))
    return TrainingTask(part, Scaling.learn(X, part.weight, "feature"), Rates(1), part)


def fitted(problem, **changes):
    return fit_tree(
        Spec.of(
            PARAMETERS | changes,
            input_norm=3,
            mean_weight=1.0,
            n_rows=len(problem.training.y),
            image_shape=None,
            seed=0,
        ),
        problem,
    ).tree


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"algorithm": "likelihood", "early_stopping": True},
        {"algorithm": "alternating", "l2": 1e-3},
        {"grow": "balanced", "max_depth": 2},
        {"split": "axis"},
        {"max_leaf_nodes": 4},
    ],
)
def test_a_tree_of_rates_trains_with_every_option(rates, changes):
    tree, rows = fitted(rates, **changes), rates.training
    found = tree.labels(route_rows(tree, rows.X))
    truth = np.where(rows.X[:, 0] > rows.X[:, 1], 6.0, np.where(rows.X[:, 2] > 0, 1.0, 2.5))
    assert np.mean((found - truth) ** 2) < 0.5 * np.var(truth)
    assert tree.target == Rates(1)


def test_its_tables_are_the_mean_events_of_the_rows_that_reach_a_leaf(rates):
    tree, rows = fitted(rates), rates.training
    leaf = route_rows(tree, rows.X)
    for number in range(tree.structure.n_leaves):
        assert tree.leaf_values([number])[0, 0] == pytest.approx(rows.y[leaf == number].mean())
    shallow = truncate(tree, 0)
    assert shallow.labels().tolist() == pytest.approx([rows.y.mean()])


def test_it_travels_through_a_model_file(rates, tmp_path):
    tree, rows = fitted(rates), rates.training
    write(tmp_path / "rates.crisp", trees_to_sections({"tree": tree}))
    again = trees_from_file(read(tmp_path / "rates.crisp", known_sections(["tree"])), ["tree"])["tree"]
    assert again.target_name == "rates"
    assert np.array_equal(again.labels(route_rows(again, rows.X)), tree.labels(route_rows(tree, rows.X)))
    assert Tree.soft(again).target == Rates(1)
