import pytest
import torch

from crisptree.learning import loop as training
from crisptree.learning.engines.native_engine import NativeEngine
from crisptree.learning.engines.torch_engine import TorchEngine
from crisptree.learning.loop import finetune
from crisptree.learning.options import Plan
from crisptree.structure import TreeStructure
from tests.toys import FIGURE_1, class_samples, clouds, generator, random_tree


def samples(n=200, n_features=6, n_classes=4, seed=0):
    X, y = clouds(n, n_features=n_features, n_classes=n_classes, seed=seed)
    return class_samples(
        torch.from_numpy(X).double(), torch.from_numpy(y), torch.ones(n, dtype=torch.float64), n_classes
    )


PENALTIES = [{}, {"l1": 1e-3}, {"l2": 1e-2}, {"spatial_penalty": 1e-2, "image_shape": (2, 3)}]


@pytest.mark.parametrize("make", [NativeEngine, TorchEngine])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("algorithm", ["em", "likelihood", "alternating"])
def test_zeros_stay_exactly_zero_and_the_other_weights_move(make, penalty, algorithm, monkeypatch):
    monkeypatch.setattr(training, "select_engine", lambda *_: make)
    tree, zeros = with_zeros(random_tree(FIGURE_1, 6, 4))
    plan = Plan(algorithm=algorithm, epochs=3, batch_size=50, learning_rate=0.05, **penalty)
    found = finetune(tree, samples(), plan, generator=generator(), zeros=zeros).tree.splits.parameters["weight"]
    assert (found[zeros] == 0).all()
    moved = (found != tree.splits.parameters["weight"])[~zeros]
    assert moved.double().mean() > 0.9


def with_zeros(tree, seed=5):
    zeros = torch.rand(tree.splits.parameters["weight"].shape, generator=generator(seed)) < 0.5
    tree.splits.parameters["weight"][zeros] = 0.0
    return tree, zeros


def test_holding_zeros_is_training_without_those_features():
    """One split with a zero for feature 0 trains as a split on the other features alone."""
    data = samples(n_features=3)
    tree = random_tree(TreeStructure.stump(), 3, 4)
    tree.splits.parameters["weight"][:, 0] = 0.0
    zeros = torch.tensor([[True, False, False]])
    plan = Plan(epochs=4, batch_size=64, learning_rate=0.05, l2=1e-3)
    held = finetune(tree, data, plan, generator=generator(), zeros=zeros).tree
    less = random_tree(TreeStructure.stump(), 3, 4)
    less.splits.parameters["weight"] = tree.splits.parameters["weight"][:, 1:].clone()
    narrow = class_samples(data.rows.values[:, 1:].contiguous(), data.y, data.weight, 4)
    free = finetune(less, narrow, plan, generator=generator()).tree
    assert torch.allclose(held.splits.parameters["weight"][:, 1:], free.splits.parameters["weight"], atol=1e-9)
    assert torch.allclose(held.splits.parameters["bias"], free.splits.parameters["bias"], atol=1e-9)


def test_native_and_torch_steps_agree_with_zeros(monkeypatch):
    found = []
    for make in (NativeEngine, TorchEngine):
        monkeypatch.setattr(training, "select_engine", lambda *_, make=make: make)
        tree, zeros = with_zeros(random_tree(FIGURE_1, 6, 4))
        found.append(finetune(tree, samples(), Plan(epochs=3, batch_size=50), generator=generator(), zeros=zeros).tree)
    assert torch.allclose(*(tree.splits.parameters["weight"] for tree in found), atol=1e-6)
