"""Fits and predictions that run at the same time in threads of one process."""

from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from crisptree import CrispTreeClassifier
from crisptree.threads import one_thread, workers
from tests.golden.cases import QUICK
from tests.golden.summary import found
from tests.threads.test_same_bits import WithDropout

AT_ONCE = 4


@pytest.fixture(scope="module")
def images():
    X, y = load_digits(return_X_y=True)
    return np.kron(X[:90].reshape(-1, 8, 8), np.ones((2, 2))), y[:90]


def in_new_thread(function):
    result = []
    thread = Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def model(split, seed):
    shape = {} if split == "conv" else {"image_shape": None}
    few = {"max_depth": 2, "epochs": 1, "finetune_epochs": 2, "min_updates": 0, "batch_size": 32}
    return CrispTreeClassifier.from_flat(
        **{**QUICK, **few, "split": split, "random_state": seed, "device": "cpu", **shape}
    )


def fitted(split, seed, images):
    X, y = images
    return found(model(split, seed).fit(X if split == "conv" else X.reshape(len(X), -1), y))["bits"]


@pytest.mark.parametrize("split", ["oblique", "conv", WithDropout])
def test_fits_at_the_same_time_are_those_one_after_the_other(split, images, three_threads):
    seeds = range(AT_ONCE)
    state = torch.get_rng_state()
    alone = [fitted(split, seed, images) for seed in seeds]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        together = list(pool.map(lambda seed: fitted(split, seed, images), seeds))
        assert list(pool.map(lambda _: torch.get_num_threads(), range(AT_ONCE))) == [3] * AT_ONCE
    assert alone == together
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == in_new_thread(torch.get_num_threads) == 3


def test_modules_are_made_on_one_thread_from_the_first_on(images, three_threads):
    X, y = images
    threads = []

    def factory(shape):
        threads.append(torch.get_num_threads())
        return torch.nn.Linear(shape[0], 1)

    model(factory, 0).fit(X.reshape(len(X), -1), y)
    assert set(threads) == {1}


def test_predictions_of_one_conv_tree_at_the_same_time_are_those_one_after_the_other(images):
    X, y = images
    tree = model("conv", 0).fit(X, y)
    pieces = np.array_split(X, 30)
    alone = [tree.predict(piece) for piece in pieces]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        together = list(pool.map(tree.predict, pieces))
    assert all(np.array_equal(one, other) for one, other in zip(alone, together, strict=True))


def test_the_callers_random_numbers_and_threads_are_left_alone_while_a_fit_runs(images, three_threads):
    X, y = images
    torch.manual_seed(5)
    state, seen = torch.get_rng_state(), []

    def look(record):
        seen.append((in_new_thread(torch.get_num_threads), torch.equal(torch.get_rng_state(), state)))

    model("conv", 0).set_params(training__callbacks=[look]).fit(X, y)
    assert set(seen) == {(3, True)}


def test_workers_have_torch_on_one_thread_each_and_return_in_order(three_threads):
    with workers(2) as each:
        assert list(each(lambda number: (number, torch.get_num_threads()), range(9))) == [(n, 1) for n in range(9)]
        torch.randn(2**17).sum()
    assert torch.get_num_threads() == in_new_thread(torch.get_num_threads) == 3


def test_one_thread_is_for_the_caller_alone(three_threads):
    with one_thread(), one_thread():
        assert torch.get_num_threads() == 1
        assert in_new_thread(torch.get_num_threads) == 3
    assert torch.get_num_threads() == 3
