"""Coordinate descent: the kernel against the definition."""

import numpy as np
import pytest
from experiments.searches.oc1 import _Descents, _orders, _unit
from experiments.searches.thresholds import NodeRows

from crisptree.learning.cart import ONE_ROW, LeafLimits
from crisptree.native import training
from tests.toys import clouds

pytestmark = pytest.mark.skipif(training is None, reason="installed without the kernel")


def lines(random, *, weighted=False, least=ONE_ROW, sizes=(7, 300, 41)):
    nodes = []
    for size in sizes:
        X, y = clouds(size, n_features=6, n_classes=4)
        weight = random.uniform(0.5, 2.0, size) if weighted else np.ones(size)
        nodes.append(NodeRows((X + random.normal(size=X.shape)).astype(np.float32), y.astype(np.int64), weight))
    made = _Descents(nodes, 4, least)
    made.start(np.eye(6)[[0, 3, 5]], _unit(np.random.default_rng(1).normal(size=(2, 6))))
    return made


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("least", [LeafLimits(), LeafLimits(3, 4.0)], ids=["one row", "three rows"])
@pytest.mark.parametrize("n_tries", [0, 4, 60])
def test_the_kernel_descends_as_the_definition_does(n_tries, least, weighted):
    coordinates = _orders(3, n_tries, 7, np.random.default_rng(2))
    jumps = _unit(np.random.default_rng(3).normal(size=(2, 3, 7)))
    one, other = (lines(np.random.default_rng(0), weighted=weighted, least=least) for _ in range(2))
    start = one.gain.copy()
    one.descend_reference(coordinates, jumps)
    other.descend(coordinates, jumps)
    np.testing.assert_allclose(other.gain, one.gain, atol=1e-9)
    np.testing.assert_allclose(other.beta, one.beta, rtol=1e-7, atol=1e-9)
    assert (one.gain >= start).all()
    assert n_tries == 0 or (one.gain > start + 0.01).any()


def test_orders_hold_every_coordinate_once_in_a_row():
    orders = _orders(2, 25, 10, np.random.default_rng(0))
    assert orders.shape == (2, 25)
    for order in orders:
        assert sorted(order[:10]) == sorted(order[10:20]) == list(range(10))
    assert not np.array_equal(orders[0], orders[1])


def test_a_descent_that_has_ended_tries_no_more():
    made = lines(np.random.default_rng(0), sizes=(200, 100, 50))
    jumps = np.zeros((0, 3, 7))
    made.descend(_orders(1, 5000, 7, np.random.default_rng(0)), jumps)
    gain = made.gain.copy()
    made.descend(_orders(1, 7, 7, np.random.default_rng(1)), jumps)
    np.testing.assert_array_equal(made.gain, gain)


def test_the_kernel_refuses_what_does_not_exist():
    made = lines(np.random.default_rng(0))
    rows = (np.ascontiguousarray(made.x.T), made.rows_y, made.rows_weight, made.ends)
    now = (made.beta, made.scores, made.gain)
    jumps = np.zeros((0, 3, 7))
    for coordinates, classes, message in ((np.array([[7]]), 4, "a coordinate"), (np.array([[0]]), 2, "a label")):
        with pytest.raises(ValueError, match=message):
            training.descend(*rows, *now, classes, coordinates, jumps, (1, 0.0), 1)
