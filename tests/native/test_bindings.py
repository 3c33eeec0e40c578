"""The bindings check what they are given themselves: wrong arrays are errors, whoever calls."""

import numpy as np
import pytest

from crisptree.data.raw_rows import Scaling, Windows
from crisptree.inference import flat_tree as routing
from crisptree.native import router, training
from tests.toys import random_structure, random_tree

pytestmark = pytest.mark.skipif(router is None, reason="built without the kernels")

FAR = 2**62


def children(*numbers):
    return np.array(numbers, dtype=np.int32)


def a_router(left=(1, -1), right=(-3, -2), n_features=3, n_splits=None):
    n = len(left) if n_splits is None else n_splits
    weight = np.ones((n, n_features), dtype=np.float32)
    return router.Router(children(*left), children(*right), weight, np.zeros(n, dtype=np.float32))


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((0, -1), (-2, -3), "other than the first"),
        ((1, 0), (-1, -2), "other than the first"),
        ((1, 1), (-1, -2), "one parent"),
        ((1, -1), (1, -2), "one parent"),
        ((1, 2, 1), (-1, -2, -3), "one parent"),
        ((7, -1), (-2, -3), "other than the first"),
        ((2**31 - 1, -1), (-2, -3), "other than the first"),
        ((1, -1), (-3, -9), "one leaf more"),
        ((1, -1), (-3, -(2**31)), "one leaf more"),
    ],
)
def test_a_router_takes_nothing_but_trees(left, right, message):
    with pytest.raises(ValueError, match=message):
        a_router(left, right)
    trainer = a_trainer(n_splits=len(left))
    with pytest.raises(ValueError, match=message):
        a_tree_step(trainer, left, right)


def test_a_router_needs_features_and_an_entry_for_every_split():
    with pytest.raises(ValueError, match="must be features"):
        a_router(n_features=0)
    with pytest.raises(ValueError, match="one entry per split"):
        a_router(n_splits=3)


@pytest.mark.parametrize("n_threads", [0, -1, -(2**31), 4097, 2**31 - 1])
def test_threads_are_counted(n_threads):
    X, leaves = np.zeros((2, 3), dtype=np.float32), np.zeros(2, dtype=np.int64)
    with pytest.raises(ValueError, match="1 to 4096 threads"):
        a_router().route(X, leaves, n_threads, False)
    with pytest.raises(ValueError, match="1 to 4096 threads"):
        a_router().score_moments(X, np.ones(2), np.zeros((2, 3)), n_threads)
    with pytest.raises(ValueError, match="1 to 4096 threads"):
        a_trainer(n_threads=n_threads)
    with pytest.raises(ValueError, match="1 to 4096 threads"):
        training.SingleRows(X).gather(np.zeros(1, dtype=np.int64), X[:1].copy(), n_threads)


def test_rows_leaves_weights_and_moments_must_fit_together():
    X, leaves, tree = np.zeros((4, 3), dtype=np.float32), np.zeros(4, dtype=np.int64), a_router()
    for wrong in (
        lambda: tree.route(X[:, :2], leaves, 1, False),
        lambda: tree.route(X, leaves[:3], 1, False),
        lambda: tree.route(X, leaves, 1, False, "none such"),
        lambda: tree.score_moments(X, np.ones(3), np.zeros((2, 3)), 1),
        lambda: tree.score_moments(X, np.ones(4), np.zeros((1, 3)), 1),
        lambda: tree.score_moments(X, np.ones(4), np.zeros((2, 2)), 1),
        lambda: tree.score_moments(X[:, :2].copy(), np.ones(4), np.zeros((2, 3)), 1),
    ):
        with pytest.raises(ValueError, match=r"width|per row|instruction set|n_splits"):
            wrong()


OFFSETS = [
    ((0, 1, FAR), (0,)),
    ((0, 1, 2**63 - 1), (5,)),
    ((0, 1, -FAR), (FAR,)),
    ((0, 1, -(2**63)), (0,)),
    ((0, 1, 2), (2**63 - 1,)),
    ((0, 1, 2), (-(2**63),)),
    ((0, 1, 2), (8,)),
    ((-1, 0, 1), (0,)),
    ((2**63 - 1, -(2**63), 0), ()),
]


@pytest.mark.parametrize(("offset", "base"), OFFSETS)
def test_windows_outside_the_data_are_refused_however_far(offset, base):
    data = np.zeros(10, dtype=np.float32)
    base, offset = np.array(base, dtype=np.int64), np.array(offset, dtype=np.int64)
    with pytest.raises(ValueError, match="inside the data"):
        a_router().route_windows(data, base, offset, np.zeros(len(base), dtype=np.int64), 1)
    with pytest.raises(ValueError, match="inside the data"):
        a_router().score_moments_of_windows(data, base, offset, np.ones(len(base)), np.zeros((2, 3)), 1)
    with pytest.raises(ValueError, match="inside the data"):
        training.SingleRows(data, base, offset)


SPARSE = {
    "a feature beyond the width": ([0, 3], [0, 1, 2]),
    "a feature far beyond": ([0, 2**31 - 1], [0, 1, 2]),
    "a negative feature": ([-1, 0], [0, 1, 2]),
    "features out of order": ([1, 0], [0, 0, 2]),
    "a feature twice": ([1, 1], [0, 0, 2]),
    "a row beyond the values": ([0, 1], [0, 1, 3]),
    "a row far beyond": ([0, 1], [0, FAR, 2]),
    "a row that ends before it begins": ([0, 1], [0, 2, 1, 2]),
    "a first row that begins late": ([0, 1], [1, 1, 2]),
    "a negative start": ([0, 1], [-1, 1, 2]),
    "values that belong to no row": ([0, 1], [0, 1, 1]),
    "no start at all": ([0, 1], []),
    "fewer features than values": ([0], [0, 1, 2]),
}


@pytest.mark.parametrize(("index", "start"), SPARSE.values(), ids=SPARSE)
def test_sparse_rows_outside_their_arrays_are_refused(index, start):
    value, index, start = np.ones(2, dtype=np.float32), children(*index), np.array(start, dtype=np.int64)
    n = max(len(start) - 1, 0)
    with pytest.raises(ValueError, match=r"sparse rows must lie|per value"):
        a_router().route_sparse(value, index, start, 3, np.zeros(n, dtype=np.int64), 1)
    with pytest.raises(ValueError, match=r"sparse rows must lie|per value"):
        a_router().score_moments_of_sparse(value, index, start, 3, np.ones(n), np.zeros((2, 3)), 1)
    with pytest.raises(ValueError, match=r"sparse rows must lie|per value"):
        training.SingleRows(value, index, start, 3)


def test_sparse_rows_leaves_and_weights_must_fit_together():
    value, index, start = np.ones(2, dtype=np.float32), children(0, 2), np.array([0, 1, 2])
    for wrong in (
        lambda: a_router().route_sparse(value, index, start, 4, np.zeros(2, dtype=np.int64), 1),
        lambda: a_router().route_sparse(value, index, start, 3, np.zeros(3, dtype=np.int64), 1),
        lambda: a_router().score_moments_of_sparse(value, index, start, 3, np.ones(3), np.zeros((2, 3)), 1),
        lambda: a_router().score_moments_of_sparse(value, index, start, 3, np.ones(2), np.zeros((1, 3)), 1),
        lambda: training.SingleRows(value, index, start, 0),
        lambda: training.SingleRows(value, index, start, 2**31),
        lambda: training.SingleRows(value, index, start, 3).gather(start[:1], np.ones((1, 3), dtype=np.float32), 1),
    ):
        with pytest.raises(ValueError, match=r"width|per row|n_splits|features|not copied"):
            wrong()


def test_sparse_rows_that_were_changed_later_are_refused():
    value, index, start = np.ones(2, dtype=np.float32), children(0, 2), np.array([0, 1, 2])
    rows = training.SingleRows(value, index, start, 3)
    weight, bias = np.ones((1, 3), dtype=np.float32), np.zeros(1, dtype=np.float32)

    def route():
        rows.route(np.arange(2), children(0, 0), weight, bias, children(-1), children(-2), 1)

    route()
    index[1] = 3
    with pytest.raises(ValueError, match="belong to a feature"):
        route()
    index[1], start[1] = 2, FAR
    with pytest.raises(ValueError, match="inside the data"):
        route()


def unaligned(array):
    """The same values, one byte off."""
    array = np.ascontiguousarray(array)
    room = np.zeros(array.nbytes + 1, dtype=np.uint8)
    moved = room[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    assert not moved.flags.aligned
    return moved


def test_unaligned_arrays_are_refused_by_the_bindings():
    X, leaves, tree = np.ones((4, 3), dtype=np.float32), np.zeros(4, dtype=np.int64), a_router()
    for wrong in (
        lambda: tree.route(unaligned(X), leaves, 1, False),
        lambda: tree.route(X, unaligned(leaves), 1, False),
        lambda: tree.score_moments(X, unaligned(np.ones(4)), np.zeros((2, 3)), 1),
        lambda: router.Router(children(-1), children(-2), unaligned(X[:1]), np.zeros(1, dtype=np.float32)),
        lambda: training.SingleRows(unaligned(X)),
        lambda: a_trainer(share=unaligned(np.ones(1))),
    ):
        with pytest.raises(ValueError, match="aligned"):
            wrong()


def test_unaligned_rows_and_windows_are_copied():
    tree = random_tree(random_structure(4, 0), 6, 2).crisp(Scaling.none(6), 1.0)
    X = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    expected = routing.route_array(tree, X)
    assert np.array_equal(routing.route_array(tree, unaligned(X)), expected)
    assert np.array_equal(routing.route_array(tree, unaligned(X.astype(np.float64))), expected)
    weight = np.ones(len(X))
    moments = routing.score_moments(tree, X, weight, 1)
    assert np.array_equal(routing.score_moments(tree, unaligned(X), unaligned(weight), 1), moments)
    parts = X.reshape(-1), np.arange(0, 100, 6), np.arange(6)
    assert np.array_equal(routing.route_implicit(tree, Windows(*map(unaligned, parts))), expected[:17])


def a_trainer(n_rows=6, n_features=4, n_splits=1, image=(0, 0), n_threads=1, y=None, roughness=0.0, **changes):
    shape = (n_splits, n_features)
    X = np.ones((n_rows, n_features), dtype=np.float32)
    vectors = {name: np.zeros(n_splits, dtype=np.float32) for name in ("bias", "bias_mean", "bias_square", "steps")}
    matrices = {name: np.zeros(shape, dtype=np.float32) for name in ("weight", "weight_mean", "weight_square")}
    given = {**vectors, **matrices, "squares": np.zeros(n_splits), "share": np.ones(n_splits), **changes}
    return training.SingleTrainer(
        training.SingleRows(X),
        np.zeros(n_rows, dtype=np.int64) if y is None else y,
        given.get("sample_weight", np.ones(n_rows, dtype=np.float32)),
        *(given[name] for name in ("weight", "bias", "weight_mean", "weight_square")),
        *(given[name] for name in ("bias_mean", "bias_square", "steps")),
        0.0,
        0.0,
        roughness,
        0.0,
        given["squares"],
        np.ones(1),
        given.get("correlated"),
        given.get("varying"),
        given["share"],
        image,
        given.get("zeros"),
        given.get("signs"),
        given.get("groups", np.zeros((0, 2), dtype=np.int64)),
        n_threads,
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"zeros": np.zeros((1, 3), dtype=bool)},
        {"zeros": np.zeros((2, 4), dtype=bool)},
        {"signs": np.zeros(3, dtype=np.int8)},
        {"groups": np.array([[0, 5]])},
        {"groups": np.array([[2, 4], [0, 2]])},
        {"groups": np.array([[0, 3], [2, 4]])},
        {"groups": np.array([[1, 1]])},
        {"groups": np.array([[-1, 2]])},
        {"share": np.ones(0)},
        {"share": np.ones(2)},
        {"squares": np.ones(0)},
        {"steps": np.zeros(0, dtype=np.float32)},
        {"weight_mean": np.zeros((1, 3), dtype=np.float32)},
        {"y": np.zeros(5, dtype=np.int64)},
        {"sample_weight": np.ones(5, dtype=np.float32)},
        {"image": (-2, -2), "roughness": 1.0},
        {"image": (-2, -2)},
        {"image": (FAR, 4), "roughness": 1.0},
        {"image": (2**32, 2**32), "roughness": 1.0},
        {"image": (3, 1), "roughness": 1.0},
        {"image": (0, 0), "roughness": 1.0},
        {"n_features": 0},
        {"correlated": np.zeros((1, 3), dtype=np.float32), "image": (2, 2)},
        {"correlated": np.zeros((1, 4), dtype=np.float32), "image": (3, 1)},
        {"varying": np.ones(3, dtype=np.float32)},
    ],
)
def test_a_trainer_refuses_arrays_and_images_that_do_not_fit(changes):
    with pytest.raises(ValueError, match=r"share|per split|n_features|per row|image|feature|correlated|stays zero"):
        a_trainer(**changes)


def numbers(*values):
    return np.array(values, dtype=np.int64)


def a_stump_step(trainer, order=(0, 1, 2), active=(0,), begin=(0,), end=(3,), n_classes=2, n_splits=1, n_features=4):
    before = (
        np.zeros((n_splits, n_features), dtype=np.float32),
        np.zeros(n_splits, dtype=np.float32),
        np.zeros(n_splits),
    )
    tables = np.full((2, n_splits * n_classes), 0.5, dtype=np.float32)
    factors = np.ones(len(active)), np.ones(len(active))
    ranges = (numbers(*part) for part in (order, active, begin, end))
    return trainer.stumps(*ranges, *factors, *before, tables, np.zeros(tables.shape), 1.0)


def a_tree_step(trainer, left, right, order=(0, 1, 2), n_features=4):
    n = len(left)
    before = np.zeros((n, n_features), dtype=np.float32), np.zeros(n, dtype=np.float32), np.zeros(n)
    best, counts = np.full((2 * n + 1, 2), 0.5, dtype=np.float32), np.zeros((n + 1, 2))
    rows = numbers(*order), numbers(0), numbers(0), numbers(len(order)), np.ones(1), np.ones(1)
    return trainer.tree(*rows, *before, best, counts, 1.0, children(*left), children(*right), 0.0)


def test_steps_on_what_fits_are_taken():
    assert a_stump_step(a_trainer()).pairs == 3
    assert a_tree_step(a_trainer(n_splits=2), (1, -1), (-3, -2)).pairs == 6


@pytest.mark.parametrize(
    "changes",
    [
        {"order": (0, 1, 6)},
        {"order": (0, 1, -1)},
        {"order": (0, 1, FAR)},
        {"end": (4,)},
        {"end": (0,)},
        {"begin": (-1,)},
        {"active": (1,)},
        {"active": (-1,)},
        {"active": (0, 0), "begin": (0, 1), "end": (1, 2)},
        {"n_classes": 0},
        {"n_features": 3},
    ],
)
def test_a_step_refuses_rows_groups_and_tables_that_do_not_exist(changes):
    with pytest.raises(ValueError, match=r"row|range|group|stumps|shape"):
        a_stump_step(a_trainer(), **changes)


@pytest.mark.parametrize("label", [2, -1, FAR, -(2**63)])
def test_a_step_refuses_labels_that_the_tables_do_not_have(label):
    trainer = a_trainer(y=numbers(0, 0, label, 0, 0, 0))
    with pytest.raises(ValueError, match="one of the classes"):
        a_stump_step(trainer)
    with pytest.raises(ValueError, match="one of the classes"):
        a_tree_step(trainer, (-1,), (-2,))


def test_windows_that_were_moved_out_of_the_data_are_refused():
    data, base = np.zeros(10, dtype=np.float32), numbers(0, 3)
    rows = training.SingleRows(data, base, numbers(0, 1, 2))
    copies = np.zeros((2, 3), dtype=np.float32)
    rows.gather(numbers(0, 1), copies, 1)
    for place in (8, -1, FAR, -FAR):
        base[1] = place
        with pytest.raises(ValueError, match="inside the data"):
            rows.gather(numbers(0, 1), copies, 1)


def test_rows_in_training_route_only_through_trees_and_from_nodes_that_exist():
    rows = training.SingleRows(np.ones((3, 2), dtype=np.float32))
    weight, bias = np.ones((2, 2), dtype=np.float32), np.zeros(2, dtype=np.float32)

    def route(row=0, node=0, left=(1, -1), right=(-3, -2)):
        rows.route(numbers(row), children(node), weight, bias, children(*left), children(*right), 1)

    route()
    for wrong in ({"row": 3}, {"row": -1}, {"node": 2}, {"left": (0, -1)}, {"left": (1, 0)}, {"left": (5, -1)}):
        with pytest.raises(ValueError, match=r"row|children"):
            route(**wrong)
