"""Steps on the bound: the kernel against the definition, on a grid of trees and stumps."""

import numpy as np
import pytest
import torch
from experiments.searches.co2 import NativeBound, StumpRoutes, TorchBound, bound_steps, bounds, losses
from experiments.searches.non_greedy import TreeRoutes

from crisptree.learning.engines.base import Groups
from crisptree.learning.options import Plan
from crisptree.native import training
from crisptree.structure import TreeStructure
from tests.learning.test_engines import STRUCTURES, hyperplanes, rows, windows
from tests.toys import generator

pytestmark = pytest.mark.skipif(training is None, reason="installed without the kernel")
PLAN = Plan(epochs=4, learning_rate=0.05, batch_size=40, min_updates=12)
STUMPS = Groups(torch.arange(150), torch.tensor([70, 50, 30]))


def trained(kind, ways, groups, data, nu):
    """Splits after some epochs on fixed losses, and the mean bound of every step."""
    splits = hyperplanes(len(ways.left), data).trainable()
    steps = kind(splits, data, ways, nu)
    found, random = [], generator()
    for epoch in range(PLAN.epochs):
        counts = 9 * torch.rand(len(ways.left) + len(groups.sizes), 4, generator=random, dtype=torch.float64)
        steps.begin(losses(counts), PLAN.settings_at(epoch).learning_rate)
        found += [steps.take(*step) for step in groups.epoch(PLAN, random)]
    return splits, torch.tensor(found)


def assert_alike(ways, groups, data, nu):
    (one, totals), (other, also) = (trained(kind, ways, groups, data, nu) for kind in (TorchBound, NativeBound))
    torch.testing.assert_close(totals, also, rtol=1e-9, atol=1e-9)
    for name, value in one.parameters.items():
        torch.testing.assert_close(value, other.parameters[name], rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("nu", [0.1, 4.0, 100.0])
@pytest.mark.parametrize("make_rows", [rows, windows])
@pytest.mark.parametrize("structure", STRUCTURES, ids=str)
def test_the_kernel_takes_the_steps_of_the_definition_on_trees(structure, make_rows, nu):
    data = make_rows()
    assert_alike(TreeRoutes(structure), Groups.single(len(data), data.device), data, nu)


@pytest.mark.parametrize("nu", [0.1, 4.0, 100.0])
@pytest.mark.parametrize("make_rows", [rows, windows])
def test_the_kernel_takes_the_steps_of_the_definition_on_stumps(make_rows, nu):
    assert_alike(StumpRoutes(3), STUMPS, make_rows(), nu)


def test_a_row_looks_along_paths_only():
    data, structure = rows(), TreeStructure.balanced(7)
    steps = NativeBound(hyperplanes(structure.n_splits, data).trainable(), data, TreeRoutes(structure), 0.001)
    steps.begin(losses(torch.rand(structure.n_leaves, 4, dtype=torch.float64)), 0.02)
    everything = torch.arange(len(data))
    steps.take(everything, torch.zeros_like(everything))
    most = 7 + sum(range(7))
    assert 7 * len(data) < steps.n_scores <= most * len(data) < structure.n_splits * len(data)


def test_what_cannot_attain_the_maximum_is_not_looked_at():
    data, structure = rows(), TreeStructure.balanced(7)
    splits = hyperplanes(structure.n_splits, data).trainable()
    with torch.no_grad():
        splits.parameters["weight"] *= 1e6
    ways, everything = TreeRoutes(structure), torch.arange(len(data))
    steps = NativeBound(splits, data, ways, 1e20)
    loss = losses(torch.rand(structure.n_leaves, 4, dtype=torch.float64))
    before = bounds(ways.paths(splits.detach(), data.rows.values, data.y, everything, loss))
    steps.begin(loss, 0.02)
    total, _ = steps.take(everything, torch.zeros_like(everything))
    assert steps.n_scores < 8 * len(data)
    assert total == pytest.approx(float((data.weight * before).sum()))


def test_rows_that_the_kernel_cannot_read_go_by_the_definition():
    data = rows()
    splits = hyperplanes(1, data)
    assert isinstance(bound_steps(splits.trainable(), data, StumpRoutes(1), 1.0), NativeBound)
    data.__dict__["native_rows"] = None
    assert isinstance(bound_steps(splits.trainable(), data, StumpRoutes(1), 1.0), TorchBound)


def test_the_kernel_refuses_what_does_not_exist():
    data, structure = rows(), TreeStructure.balanced(2)
    steps = NativeBound(hyperplanes(3, data).trainable(), data, TreeRoutes(structure), 1.0)
    worst = np.zeros((7, 4))
    order, start = np.arange(5), np.zeros(5, dtype=np.int32)
    left, right = structure.left, structure.right
    for wrong, message in (
        ((order + 150, start, left, right, worst, 1.0), "a row must exist"),
        ((order, start + 3, left, right, worst, 1.0), "begin at a split"),
        ((order, start, left * 0, right, worst, 1.0), "children come after"),
        ((order, start, left, right, worst[:5], 1.0), "a row per node"),
        ((order, start, left, right, worst[:, :2].copy(), 1.0), "a label must have a column"),
        ((order, start, left, right, worst, 0.0), "nu must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            steps.kernel.bound(*wrong)
