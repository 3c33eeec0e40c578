"""On a CUDA device: run by hand with ``pytest -m gpu``."""

import numpy as np
import pytest
import torch

from crisptree import CrispForestClassifier, CrispForestRegressor, CrispPixelRegressor, CrispSegmenter, TrainingOptions
from crisptree.learning.engines import cuda_graphs
from tests.toys import clouds, plain_regressor, plain_tree, ridges

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]
QUICK = {"max_depth": 4, "epochs": 10, "finetune_epochs": 10, "min_updates": 50, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return clouds(3000, n_features=40, n_classes=6)


@pytest.mark.parametrize("algorithm", ["em", "alternating", "likelihood"])
@pytest.mark.parametrize("split", ["oblique", "axis", lambda shape: torch.nn.Linear(shape[0], 1)])
def test_training_on_the_device_is_as_accurate_as_on_the_cpu(data, algorithm, split):
    X, y = data
    on_gpu, on_cpu = (
        plain_tree(**QUICK, split=split, algorithm=algorithm, device=device, batch_size=1000).fit(X, y)
        for device in ("cuda", "cpu")
    )
    assert abs(on_gpu.score(X, y) - on_cpu.score(X, y)) < 0.05


def test_predictions_of_a_cuda_tensor_are_those_of_its_rows_on_the_cpu(data):
    X, y = data
    model = plain_tree(**QUICK).fit(X, np.array(list("abcdef"))[y])
    rows = torch.from_numpy(X).cuda()
    for method in (model.apply, model.predict, model.predict_proba):
        assert np.array_equal(method(rows), method(X))


def test_two_fits_on_the_device_are_equal_bit_for_bit(data):
    X, y = data
    one, other = (plain_tree(**QUICK, device="cuda").fit(X, y).tree_ for _ in range(2))
    np.testing.assert_array_equal(one.weight, other.weight)
    np.testing.assert_array_equal(one.leaves, other.leaves)
    assert one.structure == other.structure


def test_a_segmenter_trains_on_the_device_as_accurately_as_on_the_cpu():
    images = np.random.default_rng(0).normal(size=(3, 40, 40)).astype(np.float32)
    labels = (images < np.roll(images, 1, axis=2)).astype(int)
    scores = []
    for device in ("cuda", "cpu"):
        model = CrispSegmenter(
            window=5,
            max_depth=3,
            training=TrainingOptions(epochs=5, finetune_epochs=10, device=device),
            pixels_per_epoch=2000,
            random_state=0,
        )
        scores.append(model.fit(images, labels).score(images, labels))
    assert min(scores) > 0.9
    assert abs(scores[0] - scores[1]) < 0.05


@pytest.fixture(scope="module")
def numbers():
    """Two numbers of every row, the first of which has four leaves."""
    X, y = ridges(3000, n_features=20)
    return X, np.stack([y, X[:, 4] + (X[:, 5] > X[:, 6])], axis=1)


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"algorithm": "likelihood"},
        {"algorithm": "alternating"},
        {"input_noise": 0.3, "l1": 1e-3},
        {"input_noise": 0.3, "l2": 1e-3, "batch_size": 300},
        {"max_leaf_nodes": 6, "max_depth": None},
        {"grow": "balanced"},
        {"leaf_model": "linear"},
    ],
    ids=str,
)
def test_numbers_train_on_the_device_as_well_as_on_the_cpu(numbers, changes, n_outputs):
    X, y = numbers[0], numbers[1][:, :n_outputs] if n_outputs > 1 else numbers[1][:, 0]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    on_gpu, on_cpu = (
        plain_regressor(**{"device": device, "batch_size": 5000, **changes}).fit(X, y, sample_weight=weight)
        for device in ("cuda", "cpu")
    )
    assert abs(on_gpu.score(X, y, weight) - on_cpu.score(X, y, weight)) < 0.05
    assert on_gpu.score(X, y, weight) > 0.5


def test_without_chance_numbers_go_to_the_same_leaves_on_the_device_and_on_the_cpu(numbers):
    X, y = numbers
    settled = {"batch_size": 5000, "max_depth": 2, "input_noise": 0.3}  # one batch holds all rows: no order is drawn
    on_gpu, on_cpu = (plain_regressor(**settled, device=device).fit(X, y) for device in ("cuda", "cpu"))
    assert on_gpu.tree_.structure == on_cpu.tree_.structure
    assert (on_gpu.leaf_indices(X) != on_cpu.leaf_indices(X)).mean() < 0.01
    np.testing.assert_allclose(on_gpu.tree_.leaves, on_cpu.tree_.leaves, atol=0.02)


@pytest.mark.parametrize("changes", [{}, {"algorithm": "alternating"}, {"early_stopping": True}], ids=str)
def test_two_fits_of_numbers_on_the_device_are_equal_bit_for_bit(numbers, changes):
    X, y = numbers
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    one, other = (
        plain_regressor(device="cuda", input_noise=0.3, **changes).fit(X, y, sample_weight=weight).tree_
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.weight, other.weight)
    np.testing.assert_array_equal(one.leaves, other.leaves)
    assert one.structure == other.structure


def test_weights_on_the_device_are_rows_that_come_more_than_once(numbers):
    X, y = numbers
    times = np.random.default_rng(1).integers(1, 4, len(X))
    settled = {"device": "cuda", "batch_size": 10_000, "max_depth": 2}
    weighted = plain_regressor(**settled).fit(X, y, sample_weight=times)
    repeated = plain_regressor(**settled).fit(np.repeat(X, times, axis=0), np.repeat(y, times, axis=0))
    assert abs(weighted.score(X, y, times) - repeated.score(X, y, times)) < 0.02


def test_a_forest_of_numbers_trains_on_the_device_as_well_as_on_the_cpu(numbers):
    X, y = numbers
    settled = {"n_estimators": 4, "max_depth": 4, "epochs": 10, "finetune_epochs": 10, "random_state": 0, "l1": 0.0}
    scores = [
        CrispForestRegressor.from_flat(**settled, input_noise=0.3, scale="feature", split="oblique", device=device)
        .fit(X[:2000], y[:2000])
        .score(X[2000:], y[2000:])
        for device in ("cuda", "cpu")
    ]
    assert min(scores) > 0.5
    assert abs(scores[0] - scores[1]) < 0.05


def test_trees_that_are_finetuned_at_once_are_those_that_are_finetuned_alone(data, monkeypatch):
    X, y = data
    model = CrispForestClassifier.from_flat(
        **QUICK, n_estimators=9, split="oblique", input_noise=0.3, l1=0.0, device="cuda"
    )
    at_once = [tree.weight for tree in model.fit(X, y).forest_]
    monkeypatch.setattr(cuda_graphs, "STREAMS", 1)
    for a, b in zip(at_once, model.fit(X, y).forest_, strict=True):
        assert np.array_equal(a, b.weight)


def test_numbers_of_pixels_train_on_the_device_as_well_as_on_the_cpu():
    images = np.random.default_rng(0).normal(size=(3, 40, 40)).astype(np.float32)
    numbers = np.maximum(images, np.roll(images, 1, axis=2))
    settled = {"window": 5, "max_depth": 4, "epochs": 5, "finetune_epochs": 10, "pixels_per_epoch": 2000}
    scores = [
        CrispPixelRegressor.from_flat(**settled, random_state=0, device=device)
        .fit(images, numbers)
        .score(images, numbers)
        for device in ("cuda", "cpu")
    ]
    assert min(scores) > 0.5
    assert abs(scores[0] - scores[1]) < 0.05
