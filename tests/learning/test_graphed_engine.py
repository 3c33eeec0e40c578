"""Steps with everything in one place against their definition; on a CPU they are launched, on CUDA recorded."""

import pytest
import torch

from crisptree.learning.engines.base import Groups
from crisptree.learning.engines.cuda_graphs import GraphedEngine
from crisptree.learning.growth import Stumps
from crisptree.learning.loop import WholeTree, select_engine
from crisptree.learning.options import Plan
from crisptree.splits import ConvNet, ModuleSplits
from crisptree.tree import Tree
from tests.toys import FIGURE_1, class_samples, generator, random_tables

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
N = 90


@pytest.fixture(params=DEVICES)
def data(request):
    x = torch.randn(N, 256, generator=generator(), dtype=torch.float64)
    y = torch.randint(4, (N,), generator=generator(1))
    weight = torch.rand(N, generator=generator(2), dtype=torch.float64) + 0.5
    return class_samples(x.to(request.param), y.to(request.param), weight.to(request.param), 4)


def modules(n, data):
    splits = ModuleSplits.build(ConvNet, n, (1, 16, 16), generator())
    return splits.replace_parameters({name: value.to(data.rows.values) for name, value in splits.parameters.items()})


def stumps(data):
    groups = Groups(torch.arange(N, device=data.device), torch.tensor([45, 30, 15], device=data.device))
    return Stumps(modules(3, data), random_tables(6, 4).reshape(2, -1).to(data.rows.values), groups)


def whole(data):
    leaves = random_tables(FIGURE_1.n_leaves, 4).to(data.rows.values)
    return WholeTree(Tree(FIGURE_1, modules(FIGURE_1.n_splits, data), leaves), data)


@pytest.mark.gpu
def test_modules_on_cuda_train_from_recorded_graphs():
    data = class_samples(torch.randn(N, 256).cuda(), torch.randint(4, (N,)).cuda(), torch.ones(N).cuda(), 4)
    trainee = stumps(data)
    plan = Plan(epochs=4, batch_size=20)
    assert select_engine(trainee, data, plan) is GraphedEngine
    steps = GraphedEngine(trainee, data, plan, fresh=False)
    steps.epoch(plan.settings_at(0), trainee.groups.rows)
    assert steps.graphs
