"""Large arrays are scaled row by row while they are read, and a fit on them is the same."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import torch

from crisptree.data import rows as data_rows
from crisptree.data.raw_rows import Scaling
from crisptree.data.rows import ArrayRows, UnscaledRows
from tests.toys import class_samples, plain_tree

QUICK = {"max_depth": 3, "epochs": 3, "finetune_epochs": 3, "min_updates": 8, "batch_size": 64, "random_state": 0}


def rows(n=300, n_features=6):
    X = np.random.default_rng(0).normal(3, [1, 5, 0.1, 20, 1, 1], size=(n, n_features)).astype(np.float32)
    return X, (X[:, 0] * (X[:, 1] - 3) > 3).astype(int)


def linear(shape):
    return torch.nn.Linear(shape[0], 1)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"algorithm": "likelihood", "input_noise": 0.3, "early_stopping": True},
        {"split": "axis", "max_depth": 2},
        {"split": linear, "max_depth": 1},
        {"grow": "cart"},
    ],
    ids=["EM", "likelihood", "axis", "module", "CART"],
)
def test_a_fit_without_a_scaled_copy_is_the_same_bit_for_bit(more, monkeypatch, tmp_path):
    X, y = rows()

    def saved():
        plain_tree(**QUICK | more).fit(X, y).save(tmp_path / "m.crisp")
        return (tmp_path / "m.crisp").read_bytes()

    copied = saved()
    made = []
    monkeypatch.setattr(data_rows, "MAX_COPY_BYTES", 0)
    monkeypatch.setattr(data_rows, "UnscaledRows", lambda *parts: made.append(parts) or UnscaledRows(*parts))
    assert saved() == copied
    assert made


def test_batches_are_those_of_the_copy_and_do_not_become_infinite():
    X = np.array([[1e38, 1.0], [-3e38, 2.0], [0.0, 3.0]], dtype=np.float32)
    scaling = Scaling(np.zeros(2), np.array([1e3, 2.0]), np.zeros(2), np.ones(2))
    whole = ArrayRows.scale(X, scaling, torch.device("cpu"))
    lazy = UnscaledRows(X, scaling)
    some = torch.tensor([2, 0, 1])
    y, weight = torch.zeros(3, dtype=torch.long), torch.ones(3)
    samples = class_samples(lazy, y, weight, 2)
    assert samples.native_rows is not None
    assert torch.equal(samples.batch(some), whole.batch(some))
    assert torch.equal(lazy.batch(some), whole.batch(some))
    assert lazy.batch(some).isfinite().all()


def test_a_file_that_is_mapped_for_reading_trains_without_a_copy(tmp_path, monkeypatch):
    X, y = rows(4000)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    plain = plain_tree(**QUICK).fit(X, y)
    monkeypatch.setattr(data_rows, "MAX_COPY_BYTES", 0)
    for scale in ("feature", None):
        other = plain_tree(**QUICK | {"scale": scale}).fit(mapped, y)
        assert scale is None or np.array_equal(other.tree_.weight, plain.tree_.weight)


@pytest.mark.slow
def test_a_fit_takes_little_memory_beside_its_data(monkeypatch):
    X = np.random.default_rng(0).normal(size=(80_000, 100)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    model = plain_tree(**QUICK | {"max_depth": 1, "epochs": 1, "finetune_epochs": 1})

    def peak():
        tracemalloc.start()
        model.fit(X, y)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak() > X.nbytes  # the copy, where it is small
    monkeypatch.setattr(data_rows, "MAX_COPY_BYTES", X.nbytes // 2)
    assert peak() < X.nbytes / 2


PROGRAM = """
import resource, sys
import numpy as np
import crisptree.pipeline.trees
from tests.toys import plain_tree
X = np.empty((1_000_000, 256), dtype=np.float32)
for block in range(0, len(X), 10_000):
    X[block : block + 10_000] = np.random.default_rng(block).normal(size=(10_000, 256))
y = (X[:, 0] > X[:, 1]).astype(int)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model = plain_tree(max_depth=4, epochs=1, finetune_epochs=1, random_state=0, batch_size=1000).fit(X, y)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024, model.score(X[:10_000], y[:10_000]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux does it")
def test_a_fit_on_a_gigabyte_takes_at_most_three_hundred_megabytes_more():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    megabytes, score = done.stdout.split()
    assert int(megabytes) <= 300, done.stdout
    assert float(score) > 0.8
