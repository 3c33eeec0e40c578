"""One growth serves all depths."""

import signal
import time

import numpy as np
import pytest
from experiments.trees import Grown, Shelf, TimeCapReached, at_most, grow, train_on

from crisptree.datasets import load_digits
from experiments import methods

DATA = load_digits()
ROWS = (DATA.X_train[:400], DATA.y_train[:400])


@pytest.mark.parametrize("algorithm", methods.ALGORITHMS)
@pytest.mark.parametrize("depth", [1, 2, 4])
def test_a_tree_cut_at_a_depth_is_the_tree_grown_to_that_depth(algorithm, depth):
    deep = grow(methods.ours(f"greedy_{algorithm}", 6, 3, 0, 0), ROWS)
    cut, grown = deep.model.truncate(depth), methods.ours(f"greedy_{algorithm}", depth, 3, 0, 0).fit(*ROWS)
    assert cut.tree_.structure == grown.tree_.structure
    assert np.array_equal(cut.tree_.weight, grown.tree_.weight)
    assert np.array_equal(cut.predict_proba(DATA.X_test), grown.predict_proba(DATA.X_test))
    assert 0 < deep.seconds_to(1) <= deep.seconds_to(depth) <= deep.seconds_to(6)


def test_finetuning_a_cut_tree_grows_nothing_even_where_it_could():
    deep = grow(methods.ours("finetuned_em", 5, 3, 0, 0), ROWS).model
    tuned = train_on(deep.truncate(2), methods.ours("finetuned_em", 2, 3, 3, 0), ROWS)
    assert tuned.greedy_tree_.structure == tuned.tree_.structure == deep.truncate(2).tree_.structure
    assert not np.allclose(tuned.tree_.weight, deep.truncate(2).tree_.weight)
    assert np.array_equal(tuned.before_finetuning().predict(DATA.X_test), deep.truncate(2).predict(DATA.X_test))
    assert deep.get_depth() == 5
    shallow = deep.truncate(2).set_params(max_depth=4)  # open leaves above its largest depth
    tuned = train_on(shallow, methods.ours("finetuned_em", 4, 3, 3, 0), ROWS)
    assert tuned.tree_.structure == shallow.tree_.structure


@pytest.mark.parametrize(("method", "first"), [("finetuned_em", 1.0), ("continued_em", 1.3)])
def test_gamma_starts_again_or_goes_on_from_growth(method, first):
    steepness = []
    start = grow(methods.ours("greedy_em", 2, 3, 0, 0), ROWS).model
    start.set_params(training__callbacks=[lambda record: steepness.append(record.steepness)])
    like = methods.ours(method, 2, 3, 2, 0).set_params(training__callbacks=start.training.callbacks)
    train_on(start, like, ROWS)
    assert steepness == pytest.approx([first, first + 0.1])


def test_a_kept_tree_goes_on_as_the_one_that_was_kept(tmp_path):
    grown = grow(methods.ours("finetuned_em", 4, 3, 0, 0), ROWS)
    shelf, key = Shelf(tmp_path / "trees"), {"seed": 0}
    assert shelf.get(key) is None
    shelf.put(key, grown)
    kept = shelf.get(key)
    assert kept.seconds == grown.seconds
    assert shelf.get({"seed": 1}) is None
    like = methods.ours("finetuned_em", 2, 3, 3, 0)
    one, other = (train_on(some.model.truncate(2), like, ROWS) for some in (grown, kept))
    assert np.array_equal(one.tree_.weight, other.tree_.weight)


def sleep_to_the_end():
    time.sleep(30)
    pytest.fail("nothing broke off the sleep")


def test_a_time_cap_breaks_off_like_an_interrupt():
    with pytest.raises(TimeCapReached), at_most(0.05):
        sleep_to_the_end()
    with pytest.raises(TimeCapReached), at_most(0):
        pass
    with pytest.raises(TimeCapReached), at_most(1e-6):
        sleep_to_the_end()
    with at_most(None), at_most(1000):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_growth_that_stops_early_takes_no_longer_for_a_deeper_tree():
    assert Grown(None, {1: 0.5, 2: 0.7}).seconds_to(9) == 0.7
    assert Grown(None, {}).seconds_to(2) == 0.0
