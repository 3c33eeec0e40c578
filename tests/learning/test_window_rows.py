"""Training on windows is training on the array of their rows, bit for bit."""

import numpy as np
import pytest
import torch

from crisptree.data.raw_rows import Canvas, Windows, WindowView
from crisptree.learning import loop as training_loop
from crisptree.learning.engines.native_engine import NativeEngine
from crisptree.learning.engines.torch_engine import TorchEngine
from crisptree.learning.growth import grow, single_leaf
from crisptree.learning.loop import WholeTree, finetune
from crisptree.learning.options import GrowthLimits, Plan
from crisptree.native import training
from crisptree.splits import resolve_kind
from tests.images.test_windows import images_of
from tests.learning.comparing import largest_difference, trained
from tests.toys import FIGURE_1, class_samples, generator, random_structure, random_tree

native = pytest.mark.skipif(training is None, reason="crisptree was installed without its kernel")
VIEWS = [WindowView(5, (1,), 1), WindowView(3, (1, 2), 2)]


def both(view, dtype=torch.float64, n_classes=3):
    """The same samples as windows and as an array."""
    windows = Canvas.of(images_of((12, 14), (11, 10), channels=view.channels), view).windows()
    data = torch.from_numpy(windows.data).to(dtype)
    lazy = Windows(data, torch.from_numpy(windows.base), torch.from_numpy(windows.offset))
    array = torch.from_numpy(windows[:]).to(dtype)
    center = array[:, array.shape[1] // 2].clone()
    y = torch.bucketize(center, torch.quantile(center, torch.linspace(0, 1, n_classes + 1).to(center)[1:-1]))
    weight = torch.rand(len(y), generator=generator(), dtype=dtype) + 0.5
    return [class_samples(x, y, weight, n_classes) for x in (lazy, array)]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_batch_of_windows_is_a_batch_of_rows(view, dtype):
    lazy, array = both(view, dtype)
    rows = torch.randint(len(lazy), (700,), generator=generator())
    assert torch.equal(lazy.batch(rows), array.batch(rows))
    assert torch.equal(lazy.rows.batch(rows), array.batch(rows))
    assert lazy.n_features == array.n_features


@native
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("algorithm", ["em", "alternating"])
def test_growing_and_finetuning_on_windows_give_the_same_bits(view, dtype, algorithm):
    trees = []
    for samples in both(view, dtype):
        draw, kind = generator(), resolve_kind("oblique", (samples.n_features,))
        plan = Plan(algorithm, epochs=3, batch_size=37, learning_rate=0.05, rows_per_epoch=150, mass_threshold=1e-3)
        start = single_leaf(samples, kind, draw)
        greedy = grow(start, samples, plan, GrowthLimits(max_depth=3), kind, generator=draw)
        trees.append(finetune(greedy, samples, plan, generator=draw, validation=samples).tree)
    one, other = trees
    assert one.structure == other.structure
    assert one.structure.n_splits > 3
    for name in ("weight", "bias"):
        assert torch.equal(one.splits.parameters[name], other.splits.parameters[name])
    assert torch.equal(one.leaves, other.leaves)


@native
def test_a_batch_that_goes_in_pieces_gives_the_same_bits_too():
    results = []
    for samples in both(VIEWS[0], torch.float32):
        trainee = WholeTree(random_tree(random_structure(400, 1), samples.n_features, 3), samples)
        trainee.splits = trainee.splits.replace_parameters({k: v.float() for k, v in trainee.splits.parameters.items()})
        trainee.leaves = trainee.leaves.float()
        plan = Plan(epochs=1, batch_size=1000, steepness=0.1)
        steps = NativeEngine(trainee, samples, plan, fresh=False)
        for _ in range(2):
            steps.epoch(plan.settings_at(0), trainee.groups.rows)
        results.append(trainee.splits.parameters["weight"].detach())
    assert torch.equal(*results)


@native
def test_windows_trained_natively_equal_those_of_torch(monkeypatch):
    samples, _ = both(VIEWS[1])
    tree, plan = random_tree(FIGURE_1, samples.n_features, 3), Plan(epochs=2, batch_size=60, learning_rate=0.05)
    trainees = [WholeTree(tree, samples) for _ in range(2)]
    assert NativeEngine.supports(trainees[0], samples, Plan())
    one, other = (
        trained(make, trainee, samples, plan, monkeypatch)
        for make, trainee in zip((NativeEngine, TorchEngine), trainees, strict=True)
    )
    assert largest_difference(one, other) < 1e-9


@pytest.mark.parametrize("view", VIEWS)
def test_hard_routing_of_windows_is_that_of_the_tree(view):
    lazy, array = both(view)
    tree = random_tree(FIGURE_1, lazy.n_features, 3)
    everything = torch.arange(len(lazy))
    assert torch.equal(lazy.leaves(tree, everything), tree.route(array.rows.values))
    assert torch.equal(lazy.hard_counts(tree), array.hard_counts(tree))


def test_training_works_without_the_kernel(monkeypatch):
    monkeypatch.setattr("crisptree.learning.samples.training", None)
    samples, _ = both(VIEWS[0])
    assert samples.native_rows is None
    trainee = WholeTree(random_tree(FIGURE_1, samples.n_features, 3), samples)
    before = trainee.splits.parameters["weight"].detach().clone()
    training_loop.train(trainee, samples, Plan(epochs=1, learning_rate=0.05), generator=generator())
    assert not torch.equal(before, trainee.splits.parameters["weight"])


@native
def test_windows_outside_the_images_are_refused():
    with pytest.raises(ValueError, match="inside the data"):
        training.SingleRows(np.zeros(10, dtype=np.float32), np.array([9]), np.array([-1, 0, 1]))
    rows = training.SingleRows(np.zeros(10, dtype=np.float32), np.array([8]), np.array([-1, 0, 1]))
    with pytest.raises(ValueError, match="a row must exist"):
        rows.gather(np.array([1]), np.zeros((1, 3), dtype=np.float32), 1)
