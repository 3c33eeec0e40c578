"""A fit gives the same bits for any number of threads, also where there are enough values for several."""

import numpy as np
import pytest
import torch

from crisptree import CrispSegmenter, CrispTreeClassifier, threads
from crisptree.learning.samples import MIN_VALUES_FOR_THREADS
from tests.golden.cases import QUICK
from tests.golden.summary import found

N_FEATURES = 200
N_ROWS = 24_000
FEW = {"epochs": 1, "finetune_epochs": 1, "min_updates": 0, "max_depth": 2, "device": "cpu", "batch_size": 2048}


class WithDropout(torch.nn.Sequential):
    """A split that draws random numbers of its own."""

    def __init__(self, input_shape):
        super().__init__(torch.nn.Linear(input_shape[0], 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))


@pytest.fixture(scope="module")
def many():
    assert N_ROWS * N_FEATURES > MIN_VALUES_FOR_THREADS
    random = np.random.default_rng(0)
    X = random.normal(size=(N_ROWS, N_FEATURES)).astype(np.float32)
    scores = X @ random.normal(size=(N_FEATURES, 4)) + random.normal(size=(N_ROWS, 4))
    return X, scores


def bits(many, n_jobs, soft=False, weights=False, **changes):
    X, scores = many
    y = np.exp(scores / 9) / np.exp(scores / 9).sum(axis=1, keepdims=True) if soft else scores.argmax(axis=1)
    weight = np.random.default_rng(1).random(N_ROWS) + 0.5 if weights else None
    return found(CrispTreeClassifier.from_flat(**{**QUICK, **FEW, **changes}, n_jobs=n_jobs).fit(X, y, weight))["bits"]


CONFIGURATIONS = {
    "em": {},
    "likelihood, weights": {"algorithm": "likelihood", "weights": True},
    "alternating": {"algorithm": "alternating"},
    "l1": {"l1": 1e-3},
    "l2": {"l2": 1e-3},
    "spatial_penalty": {"spatial_penalty": 1e-3, "image_shape": (10, 20)},
    "noise": {"input_noise": 0.3},
    "scaled by one number": {"scale": "global"},
    "not scaled": {"scale": None},
    "balanced": {"grow": "balanced"},
    "best first": {"max_leaf_nodes": 5},
    "early stopping": {"early_stopping": True},
    "pruned and shrunk by held-out rows": {"ccp_alpha": "auto", "shrinkage": "auto"},
    "axis": {"split": "axis", "max_depth": 1, "finetune_epochs": 0},
    "axis, noise": {"split": "axis", "input_noise": 0.3, "algorithm": "likelihood"},
    "CART's thresholds": {"grow": "cart"},
    "soft labels": {"soft": True},
    "conv": {"split": "conv", "image_shape": (20, 10 * 2, 1), "max_depth": 1},
    "modules that draw": {"split": WithDropout},
    "all chosen inside": {
        **{"split": "auto", "l1": "auto", "input_noise": "auto", "scale": "auto", "shrinkage": "auto"},
        "max_depth": 1,
    },
}
QUICK_ONES = ("alternating", "axis", "modules that draw")


@pytest.mark.parametrize(
    "name", [name if name in QUICK_ONES else pytest.param(name, marks=pytest.mark.slow) for name in CONFIGURATIONS]
)
def test_a_fit_of_many_values_has_the_same_bits_for_any_number_of_threads(name, many, monkeypatch):
    monkeypatch.setattr(threads, "available_cores", lambda: 3)  # more than the machine may have
    changes = CONFIGURATIONS[name]
    if name == "conv":
        X, scores = many
        many = np.concatenate([X, X], axis=1), scores
    assert bits(many, 1, **changes) == bits(many, 2, **changes) == bits(many, 3, **changes)


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"split": "conv", "window": 17}])
def test_a_segmentation_of_many_windows_has_the_same_bits_for_any_number_of_threads(changes):
    image = np.random.default_rng(0).normal(size=(160, 160)).astype(np.float32)
    labels = (image < np.roll(image, 1, axis=1)).astype(int)
    some = {**QUICK, **FEW, "window": 15, "pixels_per_epoch": 4000, "max_depth": 1, **changes}
    one, two = (found(CrispSegmenter.from_flat(**some, n_jobs=n_jobs).fit(image, labels)) for n_jobs in (1, 2))
    assert one == two


def test_trees_of_modules_predict_alike_for_any_number_of_threads(many, monkeypatch):
    monkeypatch.setattr(threads, "available_cores", lambda: 3)
    X, scores = many[0][:5000], many[1][:5000]
    model = CrispTreeClassifier.from_flat(**{**QUICK, **FEW, "split": WithDropout}).fit(X, scores.argmax(axis=1))
    leaves = [model.set_params(n_jobs=n_jobs).leaf_indices(X) for n_jobs in (1, 2, 3)]
    assert np.array_equal(leaves[0], leaves[1])
    assert np.array_equal(leaves[0], leaves[2])
