"""Where stumps of numbers begin."""

import numpy as np
import torch

from crisptree.data.rows import learn_scaling
from crisptree.learning.engines.base import Groups
from crisptree.learning.initialisation import QUANTILES, _quantiles, find_initial_splits
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.splits import ObliqueSplits
from crisptree.targets import Gaussians
from tests.toys import plain_regressor


def valley(n=600, seed=0):
    """|x0|: no hyperplane through the middle takes anything off its variance, and no line follows it."""
    X = np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)
    return X, np.abs(X[:, 0]).astype(np.float64)


def started(X, y, weight):
    problem = TrainingTask(RowSet(X, y[:, None], weight), learn_scaling(X, weight, "feature", 1), Gaussians(2))
    samples, _ = problem.on(torch.device("cpu"), 1)
    random = ObliqueSplits.initial(torch.zeros(1, X.shape[1]), torch.Generator().manual_seed(0))
    groups = Groups.single(len(y), torch.device("cpu"))
    return find_initial_splits(random, samples, groups, torch.Generator().manual_seed(1)), random


def test_a_stump_begins_where_the_numbers_part():
    X, y = valley()
    start, random = started(X, y, np.ones(600))
    weight = start.splits.parameters["weight"][0]
    assert weight.abs().argmax() == 0
    torch.testing.assert_close(weight.norm(), random.parameters["weight"].norm())  # as steep as it was
    low, high = sorted((start.statistics[:, 0, 1] / start.statistics[:, 0, 0]).tolist())
    assert high > low + 0.5


def test_copies_of_a_row_and_its_weight_begin_alike():
    X, y = valley()
    weight = np.where(np.arange(600) < 200, 2.0, 1.0)
    twice = np.repeat(np.arange(600), weight.astype(int))
    one, _ = started(X, y, weight)
    other, _ = started(X[twice], y[twice], np.ones(800))
    for name, value in one.splits.parameters.items():
        torch.testing.assert_close(value, other.splits.parameters[name], rtol=1e-4, atol=1e-4)


def test_what_a_linear_model_leaves_over_is_split():
    X, y = valley()
    for seed in range(3):
        model = plain_regressor(leaf_model="linear", leaf_l2=3.0, max_depth=2, random_state=seed).fit(X, y)
        assert model.score(*valley(seed=1)) > 0.8


def test_places_along_a_direction_are_the_quantiles_of_the_scores():
    for kind in (torch.float32, torch.float64):
        scores = torch.randn(3, 57, 4, generator=torch.Generator().manual_seed(0)).to(kind)
        assert torch.equal(_quantiles(scores), scores.quantile(torch.tensor(QUANTILES).to(kind), dim=1))
