"""Every backend against the definition, on one grid of cases.

What differs by design: with a ``mass_threshold`` the fused backends leave subtrees out that carry less than that share
of a row's probability, so leaf counts and the reported loss are those of what is left; torch counts them in full and
leaves only their gradients out. On CUDA sums are not always taken in one order.
"""

import os
from dataclasses import replace

import pytest
import torch

from crisptree.data.raw_rows import Windows
from crisptree.learning.engines.base import Groups
from crisptree.learning.engines.cuda_engine import kernels
from crisptree.learning.growth import Stumps
from crisptree.learning.loop import ENGINES, WholeTree, select_engine
from crisptree.learning.options import Plan
from crisptree.native import training
from crisptree.splits import AxisCandidates, ConvNet, ModuleSplits, ObliqueSplits
from crisptree.tree import Tree
from tests.learning.comparing import largest_difference, trained
from tests.toys import (
    FIGURE_1,
    SHAPES,
    class_samples,
    clouds,
    generator,
    number_samples,
    random_gaussians,
    random_structure,
    random_tables,
)

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
ON_CUDA = [
    *([] if INTERPRETED else [pytest.mark.gpu]),
    pytest.mark.skipif(kernels is None, reason="there is no Triton"),
]
DEVICES = {"native": "cpu", "graphed": "cpu", "cuda": "cpu" if INTERPRETED else "cuda"}
LINEAR = [
    pytest.param("native", marks=pytest.mark.skipif(training is None, reason="installed without the kernel")),
    pytest.param("cuda", marks=ON_CUDA),
]
ALGORITHMS = ["em", "likelihood", "alternating"]
PENALTIES = [
    {},
    {"l1": 0.02},
    {"l2": 0.1},
    {"spatial_penalty": 0.1, "image_shape": (2, 3)},
    {"spatial_penalty": 0.1, "image_shape": (2, 3), "penalty_share": "none"},
    {"input_noise": 0.7},
    {"input_noise": 0.3, "l2": 0.1},
    {"input_noise": 0.7, "image_shape": (2, 3), "spatial_penalty": 0.1},
]
SCHEDULES = [(1, 1000, 1e-10), (5, 40, 1e-6)]
STRUCTURES = [structure for structure in SHAPES if structure.n_splits] + [random_structure(25, 1)]
N = 150


def rows(device="cpu", n_features=6):
    X, y = clouds(N, n_features=n_features, n_classes=4)
    weight = torch.rand(N, generator=generator(), dtype=torch.float64) + 0.5
    parts = (torch.from_numpy(X).double(), torch.from_numpy(y), weight)
    return class_samples(*(part.to(device) for part in parts), 4)


def windows(device="cpu"):
    """The same rows as windows of one long image."""
    data = rows(device)
    n, p = data.rows.shape
    base, offset = torch.arange(n, device=device) * p, torch.arange(p, device=device)
    return class_samples(Windows(data.rows.values.reshape(-1), base, offset), data.y, data.weight, 4)


def hyperplanes(n, data):
    return ObliqueSplits.initial(torch.zeros(n, data.n_features, dtype=torch.float64), generator()).on(data.device)


def networks(n, data):
    splits = ModuleSplits.build(ConvNet, n, (1, 16, 16), generator())
    return splits.replace_parameters({name: value.to(data.weight) for name, value in splits.parameters.items()})


def stumps(make_splits, data):
    groups = Groups(torch.arange(N, device=data.device), torch.tensor([70, 50, 30], device=data.device))
    return Stumps(make_splits(3, data), random_tables(6, 4).reshape(2, -1).to(data.weight), groups)


def tree(make_splits, data, structure=FIGURE_1):
    leaves = random_tables(structure.n_leaves, 4).to(data.weight)
    return WholeTree(Tree(structure, make_splits(structure.n_splits, data), leaves), data)


def both(name, make_trainee, data, plan, monkeypatch):
    """A trainee trained by a backend, and one trained by the definition."""
    return [trained(ENGINES[one], make_trainee(), data, plan, monkeypatch) for one in (name, "torch")]


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("make_data", [rows, windows])
@pytest.mark.parametrize("make_trainee", [stumps, tree])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("penalties", PENALTIES)
@pytest.mark.parametrize(("epochs", "batch_size", "bound"), SCHEDULES)
def test_a_linear_backend_trains_as_the_definition(
    name, make_data, make_trainee, algorithm, penalties, epochs, batch_size, bound, monkeypatch
):
    data = make_data(DEVICES[name])
    steps = {"learning_rate": 0.05, "min_updates": 6, "decay": "linear"}
    plan = Plan(algorithm, epochs=epochs, batch_size=batch_size, **steps, **penalties)
    ours, definition = both(name, lambda: make_trainee(hyperplanes, data), data, plan, monkeypatch)
    assert largest_difference(ours, definition) < bound


@pytest.mark.parametrize("name", LINEAR[:1])
@pytest.mark.parametrize("make_trainee", [stumps, tree])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("changes", [{}, {"input_noise": 0.7, "penalty_share": "none"}])
@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize(("epochs", "batch_size", "bound"), SCHEDULES)
def test_groups_of_features_are_shrunk_as_by_the_definition(
    name, make_trainee, algorithm, changes, held, epochs, batch_size, bound, monkeypatch
):
    data = rows(DEVICES[name])

    def make():
        trainee = make_trainee(hyperplanes, data)
        if held:
            trainee.signs = torch.tensor([1, 0, 0, 0, -1, 0], dtype=torch.int8)
            trainee.zeros = torch.zeros_like(trainee.splits.parameters["weight"], dtype=torch.bool)
            trainee.zeros[:, 1] = trainee.zeros[0, 3] = True
        return trainee

    steps = {"learning_rate": 0.05, "min_updates": 6, "l1": 0.1, "feature_groups": ((0, 3), (4, 6))}
    plan = Plan(algorithm, epochs=epochs, batch_size=batch_size, **steps, **changes)
    ours, definition = both(name, make, data, plan, monkeypatch)
    assert largest_difference(ours, definition) < bound
    if epochs > 1:
        weight = ours.splits.parameters["weight"].detach() == 0
        assert (weight[:, 4].any() and torch.equal(weight[:, 4], weight[:, 5])) or held


def test_cuda_leaves_groups_of_features_to_torch():
    plan = Plan(l1=0.1, feature_groups=((0, 3),))
    assert plan.shrinks_groups
    assert not replace(plan, l1=0.0).shrinks_groups
    data = rows()
    assert not ENGINES["cuda"].supports(tree(hyperplanes, data), data, plan)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("structure", STRUCTURES)
def test_trees_of_any_shape_take_the_same_step(name, structure, monkeypatch):
    data, plan = rows(DEVICES[name]), Plan(epochs=1, learning_rate=0.05, steepness=2.0)
    ours, definition = both(name, lambda: tree(hyperplanes, data, structure), data, plan, monkeypatch)
    assert largest_difference(ours, definition) < 1e-10


def numbers(device="cpu", n_outputs=1, spread=1.0):
    """The same rows with numbers instead of classes."""
    data = rows(device)
    y = torch.randn(N, n_outputs, generator=generator(3), dtype=torch.float64).to(device)
    return number_samples(data.rows, spread * y + data.rows.values[:, :n_outputs], data.weight)


def number_stumps(data):
    groups = Groups(torch.arange(N, device=data.device), torch.tensor([70, 50, 30], device=data.device))
    leaves = random_gaussians(6, data.y.shape[1]).reshape(2, -1).to(data.weight)
    return Stumps(hyperplanes(3, data), leaves, groups)


def number_tree(data, structure=STRUCTURES[-1]):
    leaves = random_gaussians(structure.n_leaves, data.y.shape[1]).to(data.weight)
    return WholeTree(Tree(structure, hyperplanes(structure.n_splits, data), leaves, "gaussians"), data)


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("make_trainee", [number_stumps, number_tree])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("penalties", [{}, {"l1": 0.02, "input_noise": 0.7}])
@pytest.mark.parametrize(("epochs", "batch_size", "bound"), SCHEDULES)
def test_a_linear_backend_trains_on_numbers_as_the_definition(
    name, n_outputs, make_trainee, algorithm, penalties, epochs, batch_size, bound, monkeypatch
):
    data = numbers(DEVICES[name], n_outputs)
    plan = Plan(algorithm, epochs=epochs, batch_size=batch_size, learning_rate=0.05, min_updates=6, **penalties)
    assert INTERPRETED or ENGINES[name].supports(make_trainee(data), data, plan)
    ours, definition = both(name, lambda: make_trainee(data), data, plan, monkeypatch)
    assert largest_difference(ours, definition) < bound


@pytest.mark.parametrize("name", LINEAR)
def test_numbers_far_from_every_leaf_train_as_the_definition(name, monkeypatch):
    data = numbers(DEVICES[name], spread=200.0)
    plan = Plan("likelihood", epochs=2, batch_size=40, learning_rate=0.05, steepness=50.0)
    ours, definition = both(name, lambda: number_tree(data), data, plan, monkeypatch)
    assert largest_difference(ours, definition) < 1e-6


@pytest.mark.parametrize("name", LINEAR)
def test_a_mass_threshold_hardly_moves_splits_of_numbers(name, monkeypatch):
    data = numbers(DEVICES[name])
    plan = Plan(epochs=1, learning_rate=0.05, steepness=2.0, mass_threshold=1e-5)
    ours, definition = both(name, lambda: number_tree(data), data, plan, monkeypatch)
    difference = ours.splits.parameters["weight"] - definition.splits.parameters["weight"]
    assert (difference.abs() > 0.005).double().mean() < 0.1


@pytest.mark.parametrize("name", LINEAR)
def test_a_mass_threshold_hardly_moves_splits_elsewhere(name, monkeypatch):
    data = rows(DEVICES[name])
    plan = Plan(epochs=1, learning_rate=0.05, steepness=2.0, mass_threshold=1e-4)
    ours, definition = both(name, lambda: tree(hyperplanes, data, STRUCTURES[-1]), data, plan, monkeypatch)
    for parameter in ("weight", "bias"):
        difference = ours.splits.parameters[parameter] - definition.splits.parameters[parameter]
        assert (difference.abs() > 0.005).double().mean() < 0.1  # a tenth of a step, for few of the weights


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("make_trainee", [stumps, tree])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("changes", [{}, {"mass_threshold": 0.05, "l2": 0.01, "decay": "linear"}])
def test_recorded_steps_on_modules_are_those_of_the_definition(device, make_trainee, algorithm, changes, monkeypatch):
    data = rows(device, n_features=256)
    plan = Plan(algorithm, epochs=4, batch_size=20, learning_rate=0.01, **changes)
    ours, definition = both("graphed", lambda: make_trainee(networks, data), data, plan, monkeypatch)
    bound = 0 if device == "cpu" else 1e-6
    for name, value in ours.splits.parameters.items():
        torch.testing.assert_close(value, definition.splits.parameters[name], rtol=0, atol=bound)
    torch.testing.assert_close(ours.leaves, definition.leaves, rtol=0, atol=bound)


def test_the_definition_supports_everything_and_comes_last():
    assert list(ENGINES)[-1] == "torch"
    data = rows()
    candidates = AxisCandidates.initial(torch.zeros(1, 6, dtype=torch.float64), generator())
    groups = Groups.single(N, data.device)
    thresholds = Stumps(candidates, random_tables(12, 4).reshape(2, -1), groups, 6)
    assert select_engine(thresholds, data, Plan()) is ENGINES["torch"]
    if training is not None:
        assert select_engine(tree(hyperplanes, data), data, Plan()) is ENGINES["native"]
