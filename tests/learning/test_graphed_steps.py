"""Steps with everything in one place against their definition; on a CPU they are launched, on CUDA recorded."""

import pytest
import torch

from crisptree.learning import train as training_loop
from crisptree.learning.batches import Groups
from crisptree.learning.finetuning import WholeTree
from crisptree.learning.graphed_steps import GraphedSteps
from crisptree.learning.plan import Plan
from crisptree.learning.samples import Samples
from crisptree.learning.steps import TorchSteps
from crisptree.learning.stumps import Stumps
from crisptree.splits import ConvSplits, ModuleSplits
from crisptree.tree import Tree
from tests.learning.comparing import trained
from tests.toys import FIGURE_1, generator, random_tables

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
N = 90


@pytest.fixture(params=DEVICES)
def data(request):
    x = torch.randn(N, 256, generator=generator(), dtype=torch.float64)
    y = torch.randint(4, (N,), generator=generator(1))
    weight = torch.rand(N, generator=generator(2), dtype=torch.float64) + 0.5
    return Samples(x.to(request.param), y.to(request.param), weight.to(request.param), 4)


def modules(n, data):
    splits = ModuleSplits.build(ConvSplits, n, (1, 16, 16), generator())
    return splits.replaced({name: value.to(data.x) for name, value in splits.parameters.items()})


def stumps(data):
    groups = Groups(torch.arange(N, device=data.device), torch.tensor([45, 30, 15], device=data.device))
    return Stumps(modules(3, data), random_tables(6, 4).reshape(2, -1).to(data.x), groups)


def whole(data):
    leaves = random_tables(FIGURE_1.n_leaves, 4).to(data.x)
    return WholeTree(Tree(FIGURE_1, modules(FIGURE_1.n_splits, data), leaves), data)


@pytest.mark.parametrize("algorithm", ["em", "likelihood", "alternating"])
@pytest.mark.parametrize("changes", [{}, {"mass_threshold": 0.05, "l2": 0.01, "decay": "linear"}])
@pytest.mark.parametrize("make_trainee", [stumps, whole])
def test_training_in_one_place_equals_that_of_torch(make_trainee, algorithm, changes, data, monkeypatch):
    plan = Plan(algorithm, epochs=4, batch_size=20, learning_rate=0.01, **changes)
    one, other = (trained(make, make_trainee(data), data, plan, monkeypatch) for make in (GraphedSteps, TorchSteps))
    bound = 0 if data.device.type == "cpu" else 1e-6  # on CUDA sums are not always taken in one order
    for name, value in one.splits.parameters.items():
        torch.testing.assert_close(value, other.splits.parameters[name], rtol=0, atol=bound)
    torch.testing.assert_close(one.leaves, other.leaves, rtol=0, atol=bound)


@pytest.mark.gpu
def test_modules_on_cuda_train_from_recorded_graphs():
    data = Samples(torch.randn(N, 256).cuda(), torch.randint(4, (N,)).cuda(), torch.ones(N).cuda(), 4)
    trainee = stumps(data)
    plan = Plan(epochs=4, batch_size=20)
    assert training_loop._quickest_steps(trainee, data, plan) is GraphedSteps
    steps = GraphedSteps(trainee, data, plan, fresh=False)
    steps.epoch(plan.pace(0), trainee.groups.rows)
    assert steps.graphs
