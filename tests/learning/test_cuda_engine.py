"""The steps on CUDA against their definition with torch. They also run on a CPU, with Triton's interpreter."""

import os

import pytest
import torch

from crisptree.data.raw_rows import Windows
from crisptree.learning.engines import cuda_engine
from crisptree.learning.engines.base import Groups
from crisptree.learning.engines.cuda_engine import CudaEngine, kernels
from crisptree.learning.engines.torch_engine import TorchEngine
from crisptree.learning.growth import Stumps
from crisptree.learning.loop import WholeTree
from crisptree.learning.options import Plan
from crisptree.splits import ObliqueSplits
from crisptree.tree import Tree
from tests.learning.comparing import largest_difference, trained
from tests.toys import (
    FIGURE_1,
    class_samples,
    clouds,
    generator,
    number_samples,
    random_gaussians,
    random_tables,
    random_tree,
)

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cpu" if INTERPRETED else "cuda"

pytestmark = [
    *([] if INTERPRETED else [pytest.mark.gpu]),
    pytest.mark.skipif(kernels is None, reason="there is no Triton"),
    pytest.mark.skipif(not (INTERPRETED or torch.cuda.is_available()), reason="there is no CUDA device"),
]

PENALTIES = [{}, {"l1": 0.02}, {"l2": 0.1}, {"spatial_penalty": 0.1, "image_shape": (2, 3)}]


@pytest.fixture(scope="module")
def data():
    X, y = clouds(150, n_features=6, n_classes=4)
    weight = torch.rand(150, generator=generator(), dtype=torch.float64) + 0.5
    x, labels = torch.from_numpy(X).double(), torch.from_numpy(y)
    return class_samples(x.to(DEVICE), labels.to(DEVICE), weight.to(DEVICE), 4)


def stumps(data):
    groups = Groups(torch.arange(150, device=DEVICE), torch.tensor([70, 50, 30], device=DEVICE))
    tables = random_tables(6, 4).reshape(2, -1)
    centers = torch.zeros(3, data.n_features, dtype=torch.float64)
    splits = ObliqueSplits.initial(centers, generator())
    return Stumps(splits.on(torch.device(DEVICE)), tables.to(data.weight), groups)


def whole(structure, data):
    tree = random_tree(structure, 6, 4)
    return WholeTree(Tree(structure, tree.splits.on(torch.device(DEVICE)), tree.leaves.to(DEVICE)), data)


@pytest.mark.parametrize("algorithm", ["em", "likelihood"])
@pytest.mark.parametrize("penalties", PENALTIES)
def test_zeros_that_are_held_stay_zero(algorithm, penalties, data, monkeypatch):
    plan = Plan(algorithm, epochs=3, batch_size=40, learning_rate=0.05, **penalties)
    found = []
    for make in (CudaEngine, TorchEngine):
        trainee = whole(FIGURE_1, data)
        trainee.zeros = (torch.rand(4, 6, generator=generator(3)) < 0.5).to(DEVICE)
        trainee.splits.parameters["weight"].data.masked_fill_(trainee.zeros, 0.0)
        found.append(trained(make, trainee, data, plan, monkeypatch))
        assert (found[-1].splits.parameters["weight"][trainee.zeros] == 0).all()
    assert largest_difference(*found) < 1e-6


def test_a_batch_may_go_through_the_tree_in_pieces(data, monkeypatch):
    monkeypatch.setattr("crisptree.learning.engines.cuda_engine.VALUES_AT_ONCE", 300)
    plan = Plan(epochs=2, learning_rate=0.05)
    fused, by_torch = (
        trained(make, whole(FIGURE_1, data), data, plan, monkeypatch) for make in (CudaEngine, TorchEngine)
    )
    assert largest_difference(fused, by_torch) < 1e-10


@pytest.mark.parametrize("algorithm", ["em", "likelihood"])
@pytest.mark.parametrize("make_trainee", [stumps, lambda data: whole(FIGURE_1, data)], ids=["stumps", "tree"])
def test_features_may_be_read_in_blocks(make_trainee, algorithm, data, monkeypatch):
    monkeypatch.setattr(kernels, "FEATURES_OF_ROWS", 4)
    plan = Plan(algorithm, epochs=3, batch_size=40, learning_rate=0.05, input_noise=0.3)
    fused, by_torch = (trained(make, make_trainee(data), data, plan, monkeypatch) for make in (CudaEngine, TorchEngine))
    assert largest_difference(fused, by_torch) < 1e-8


def as_windows(data):
    """The same rows as windows of one long image."""
    n, p = data.rows.values.shape
    rows = Windows(data.rows.values.reshape(-1), torch.arange(n, device=DEVICE) * p, torch.arange(p, device=DEVICE))
    return class_samples(rows, data.y, data.weight, data.target.n_values)


@pytest.mark.parametrize("algorithm", ["em", "alternating"])
@pytest.mark.parametrize("make_trainee", [stumps, lambda data: whole(FIGURE_1, data)], ids=["stumps", "tree"])
def test_windows_train_on_the_device_as_their_rows_do(make_trainee, algorithm, data, monkeypatch):
    monkeypatch.setattr("crisptree.learning.engines.cuda_engine.ROWS_AT_ONCE", 16)
    rates = {"learning_rate": 0.05, "decay": "linear", "l2": 0.01}
    plan = Plan(algorithm, epochs=4, batch_size=20, rows_per_epoch=90, min_updates=40, **rates)
    one, other = (
        trained(CudaEngine, make_trainee(samples), samples, plan, monkeypatch) for samples in (data, as_windows(data))
    )
    assert largest_difference(one, other) < 1e-12  # passes outside the steps may sum in another order


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("is_tree", [False, True], ids=["stumps", "tree"])
def test_numbers_train_in_windows_and_in_pieces_as_by_the_definition(is_tree, n_outputs, data, monkeypatch):
    monkeypatch.setattr("crisptree.learning.engines.cuda_engine.ROWS_AT_ONCE", 16)
    monkeypatch.setattr("crisptree.learning.engines.cuda_engine.VALUES_AT_ONCE", 60)
    y = torch.randn(150, n_outputs, generator=generator(), dtype=torch.float64).to(DEVICE)
    plan = Plan(epochs=2, batch_size=20, rows_per_epoch=40, learning_rate=0.05, input_noise=0.3)

    def make(samples):
        trainee = whole(FIGURE_1, data) if is_tree else stumps(data)
        trainee.leaves = random_gaussians(trainee.leaves.numel() // 4, n_outputs).to(data.weight)
        trainee.leaves = trainee.leaves.reshape(5 if is_tree else 2, -1)
        if is_tree:
            trainee.samples, trainee.target = samples, "gaussians"
        return trainee

    samples = number_samples(as_windows(data).rows, y, data.weight)
    fused, by_torch = (trained(steps, make(samples), samples, plan, monkeypatch) for steps in (CudaEngine, TorchEngine))
    assert largest_difference(fused, by_torch) < 1e-8


@pytest.mark.skipif(INTERPRETED, reason="asks for the memory of a device")
def test_windows_that_fill_the_device_train_with_the_steps_of_torch(data, monkeypatch):
    rows = as_windows(data)
    assert CudaEngine.supports(whole(FIGURE_1, rows), rows, Plan())
    monkeypatch.setattr(cuda_engine, "MAX_COPY_SHARE", 0.0)
    assert not CudaEngine.supports(whole(FIGURE_1, rows), rows, Plan())
    assert CudaEngine.supports(whole(FIGURE_1, data), data, Plan())


@pytest.mark.parametrize("make_trainee", [stumps, lambda data: whole(FIGURE_1, data)], ids=["stumps", "tree"])
def test_a_weight_that_is_no_number_ends_the_training_in_an_error(make_trainee, data, monkeypatch):
    trainee = make_trainee(data)
    with torch.no_grad():
        trainee.splits.parameters["weight"][1, 2] = float("nan")
    with pytest.raises(ValueError, match="Lower learning_rate"):
        trained(CudaEngine, trainee, data, Plan(epochs=1), monkeypatch)
