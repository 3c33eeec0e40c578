"""The kernel reaches the reference's leaf for every row, bit for bit, on every instruction set."""

import pickle
import threading
import time
import tracemalloc

import numpy as np
import pytest
from sklearn import config_context

from crisptree import CrispTreeWarning
from crisptree.data.raw_rows import Scaling
from crisptree.estimators.base import fast_leaves
from crisptree.inference import FlatTree, route_rows
from crisptree.inference import flat_tree as routing
from crisptree.inference.finalization import empty_statistics
from crisptree.native import router
from crisptree.structure import TreeStructure
from tests.toys import SHAPES, clouds, plain_tree, random_structure

if router is None:
    pytest.skip("crisptree was installed without its kernel", allow_module_level=True)

SETS = router.instruction_sets()


def flat_tree(structure, weight, bias):
    leaves = np.full((structure.n_leaves, 2), 0.5)
    n_features = np.shape(weight)[1]
    statistics = empty_statistics(structure, Scaling.none(n_features), leaves, 1.0)
    return FlatTree(structure, leaves, statistics, weight=np.float32(weight), bias=np.float32(bias))


def random_flat_tree(structure, n_features, seed=0, density=1.0):
    rng = np.random.default_rng(seed)
    weight = rng.normal(size=(structure.n_splits, n_features)) * (
        rng.random((structure.n_splits, n_features)) < density
    )
    return flat_tree(structure, weight, rng.normal(size=structure.n_splits) * 0.1)


def rows_of(n, n_features, seed=1):
    return np.random.default_rng(seed).normal(size=(n, n_features)).astype(np.float32)


def test_at_least_two_instruction_sets_are_available():
    assert SETS[0] == "scalar"
    assert len(SETS) >= 2


@pytest.mark.parametrize("instruction_set", SETS)
def test_a_million_rows_reach_the_leaves_of_the_reference(instruction_set, million):
    tree, X, expected = million
    assert np.array_equal(routing.route_array(tree, X, instruction_set=instruction_set), expected)


@pytest.fixture(scope="module")
def million():
    """Half of the rows are random, half are small whole numbers that often lie exactly on a hyperplane."""
    rng = np.random.default_rng(0)
    structure = random_structure(40, 3)
    tree = flat_tree(structure, rng.integers(-2, 3, (40, 37)), rng.integers(-2, 3, 40))
    X = np.concatenate([rows_of(500_000, 37), rng.integers(-1, 2, (500_000, 37)).astype(np.float32)])
    on_the_root = X @ tree.weight[0] + tree.bias[0] == 0
    assert on_the_root.sum() > 10_000
    return tree, X, routing.route_reference(tree, X)


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("n_features", [1, 3, 31, 32, 33, 64, 100, 784, 2000])
@pytest.mark.parametrize("density", [1.0, 0.03])
def test_any_width_and_any_sparsity_give_the_reference_leaf(instruction_set, n_features, density):
    tree, X = random_flat_tree(TreeStructure.balanced(5), n_features, density=density), rows_of(301, n_features)
    assert np.array_equal(
        routing.route_array(tree, X, instruction_set=instruction_set), routing.route_reference(tree, X)
    )


def rows_near(weight, bias, n, seed=2):
    """Rows at distances from the hyperplane that go down to nothing, on both sides of it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, len(weight)))
    wanted = rng.choice([-1.0, 1.0], n) * 10.0 ** rng.uniform(-12, 1, n)
    return (X + np.outer(wanted - bias - X @ weight, weight / (weight @ weight))).astype(np.float32)


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("n_features", [33, 784, 20_000])
def test_rows_that_coarse_scores_cannot_resolve_reach_the_reference_leaf(instruction_set, n_features):
    weight = np.random.default_rng(0).normal(size=n_features)
    tree, X = flat_tree(TreeStructure.stump(), weight[None], [0.5]), rows_near(weight, 0.5, 100)
    expected = routing.route_reference(tree, X)
    assert 10 < expected.sum() < 90
    assert np.array_equal(routing.route_array(tree, X, instruction_set=instruction_set), expected)


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("of_weights", [1e-38, 1e-25, 1e-12, 1e12, 1e20])
@pytest.mark.parametrize("of_rows", [1e-42, 1e-15, 1.0, 1e15, 1e37])
def test_values_of_any_magnitude_give_the_reference_leaf(instruction_set, of_weights, of_rows):
    rng = np.random.default_rng(0)
    weight = rng.normal(size=(7, 50)) * of_weights
    weight[3] *= 10.0 ** rng.uniform(-9, 9, 50)
    X = rng.normal(size=(300, 50)) * of_rows * 10.0 ** rng.uniform(-1, 0, (300, 1))
    X[::3] *= 10.0 ** rng.uniform(-9, 0, (100, 50))
    bias = np.clip(rng.normal(size=7) * of_weights * of_rows, -1e30, 1e30)
    tree = flat_tree(TreeStructure.balanced(3), weight, bias)
    with np.errstate(over="ignore"):
        X = X.astype(np.float32)
    expected = routing.route_reference(tree, X)
    assert np.array_equal(routing.route_array(tree, X, instruction_set=instruction_set), expected)


def test_all_zero_rows_are_routed_by_the_bias():
    rng = np.random.default_rng(0)
    tree = flat_tree(TreeStructure.balanced(3), rng.normal(size=(7, 50)), [0.0, 1e-30, -1e-30, 1.0, -1.0, 0.0, -0.0])
    X = np.zeros((20, 50), dtype=np.float32)
    assert np.array_equal(routing.route_array(tree, X), routing.route_reference(tree, X))


def test_ties_go_left():
    tree = flat_tree(TreeStructure.stump(), [[1.0, -1.0]], [0.0])
    assert routing.route_array(tree, np.float32([[2, 2], [2, 1], [1, 2]])).tolist() == [0, 1, 0]


@pytest.mark.parametrize("structure", SHAPES)
def test_trees_of_any_shape_and_any_number_of_rows_work(structure):
    tree = random_flat_tree(structure, 5)
    for n in (0, 1, 2, 3, 4, 5, 7, 8, 9, 100):
        X = rows_of(n, 5)
        expected = routing.route_reference(tree, X)
        for name in SETS:
            assert np.array_equal(routing.route_array(tree, X, instruction_set=name), expected)


def test_sparse_weights_are_stored_as_pairs():
    assert routing.compiled_tree(random_flat_tree(TreeStructure.balanced(4), 2000, density=0.02)).n_sparse == 15
    assert routing.compiled_tree(random_flat_tree(TreeStructure.balanced(4), 2000)).n_sparse == 0
    assert routing.compiled_tree(flat_tree(TreeStructure.stump(), np.eye(1, 4), [0.0])).n_sparse == 1


def _field_of_a_record(X):
    records = np.zeros(len(X), dtype=[("name", "u1"), ("x", "f4", (X.shape[1],))])
    records["x"] = X
    return records["x"]


LAYOUTS = {
    "float64": lambda X: X.astype(np.float64),
    "transposed": np.asfortranarray,
    "transposed float64": lambda X: np.asfortranarray(X.astype(np.float64)),
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "read-only": lambda X: np.frombuffer(X.tobytes(), dtype=np.float32).reshape(X.shape),
    "a field of a record": lambda X: _field_of_a_record(X),
    "misaligned": lambda X: np.frombuffer(b"x" + X.tobytes(), dtype=np.float32, offset=1).reshape(X.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_rows_of_any_layout_and_any_number_of_threads_give_the_same_leaves(layout, n_jobs):
    tree, X = random_flat_tree(TreeStructure.balanced(5), 40), rows_of(20_001, 40)
    expected = routing.route_reference(tree, X)
    assert np.array_equal(routing.route_array(tree, LAYOUTS[layout](X), n_jobs=n_jobs), expected)


def test_a_transposed_array_is_not_copied_whole():
    tree, X = random_flat_tree(TreeStructure.balanced(3), 50), np.asfortranarray(rows_of(200_000, 50))
    routing.compiled_tree(tree)
    tracemalloc.start()
    routing.route_array(tree, X, check_finite=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * X.nbytes  # the leaves themselves are 0.04 of it


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("column", [0, 30, 39])
def test_every_value_is_checked_also_those_that_no_split_reads(value, instruction_set, column):
    tree = flat_tree(TreeStructure.stump(), np.eye(1, 40, 5), [0.0])
    X = rows_of(100, 40)
    arguments = {"check_finite": True, "instruction_set": instruction_set}
    assert routing.route_array(tree, X, **arguments) is not None
    X[77, column] = value
    assert routing.route_array(tree, X, **arguments) is None
    assert routing.route_array(tree, X.astype(np.float64), **arguments) is None
    assert routing.route_array(tree, X, instruction_set=instruction_set) is not None


@pytest.mark.parametrize("kind", [np.uint8, np.float16])
@pytest.mark.parametrize("layout", ["as it is", "transposed", "every second column", "a field of a record"])
def test_bytes_and_half_floats_reach_the_leaves_of_their_float32_values(kind, layout):
    tree = random_flat_tree(TreeStructure.balanced(5), 40)
    X = (100 * np.abs(rows_of(3001, 40))).astype(kind)
    if layout == "a field of a record":
        records = np.zeros(len(X), dtype=[("name", "u1"), ("x", kind, (40,))])
        records["x"] = X
        rows = records["x"]
    else:
        rows = X if layout == "as it is" else LAYOUTS[layout](X)
    found = routing.route_array(tree, rows, check_finite=True)
    assert np.array_equal(found, routing.route_reference(tree, X.astype(np.float32)))


def test_every_half_float_is_converted_exactly():
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)]
    for limit in np.unique(np.abs(finite.astype(np.float32)))[::997]:
        tree = flat_tree(TreeStructure.stump(), [[1.0]], [-limit])
        found = routing.route_array(tree, finite[:, None], check_finite=True)
        assert np.array_equal(found, (finite.astype(np.float32) > limit).astype(int))
    for odd in halves[~np.isfinite(halves)][::50]:
        assert routing.route_array(tree, np.array([[odd]]), check_finite=True) is None


@pytest.mark.parametrize("kind", [np.uint8, np.float16])
def test_bytes_and_half_floats_are_not_copied_whole(kind):
    tree, X = random_flat_tree(TreeStructure.balanced(3), 200), np.ones((50_000, 200), dtype=kind)
    routing.compiled_tree(tree)
    tracemalloc.start()
    routing.route_array(tree, X, check_finite=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * X.nbytes


def test_a_double_that_float32_cannot_hold_is_not_finite():
    tree = random_flat_tree(TreeStructure.stump(), 2)
    assert routing.route_array(tree, np.array([[1e300, 0.0]]), check_finite=True) is None


def test_other_python_threads_run_while_rows_are_routed():
    tree = random_flat_tree(TreeStructure.balanced(10), 400)
    X = np.broadcast_to(rows_of(1, 400), (1_000_000, 400))
    routing.compiled_tree(tree)
    assert has_turns_inside(lambda: routing.route_array(tree, X, n_jobs=1))


def has_turns_inside(call):
    """Whether another thread runs Python in the middle of a call; 20 calls are tried.

    A call that holds the lock computes between two turns of that thread at most, not between three. Processor time
    tells computing from waiting, on a busy machine too.
    """
    calls, seen, enough, done = [0], [(0, 0.0)], threading.Event(), threading.Event()

    def work():
        while calls[0] < 20 and not enough.is_set():
            calls[0] += 1
            call()
        done.set()

    worker = threading.Thread(target=work)
    worker.start()
    while not done.wait(0.001):
        turn = calls[0], time.process_time()
        if turn[0] != seen[-1][0]:
            seen = [turn]
        elif turn[1] - seen[-1][1] > 0.02:
            seen.append(turn)
            if len(seen) == 3:
                enough.set()
    worker.join()
    return enough.is_set()


def test_without_the_kernel_leaves_are_equal_with_one_warning(monkeypatch):
    tree, X = random_flat_tree(TreeStructure.balanced(4), 20), rows_of(50, 20)
    expected = route_rows(tree, X)
    monkeypatch.setattr(routing, "router", None)
    routing._warn_once.cache_clear()
    with pytest.warns(CrispTreeWarning, match="without its compiled kernel"):
        assert np.array_equal(route_rows(tree, X), expected)
    assert np.array_equal(route_rows(tree, X.astype(np.float64)), expected)
    X[3, 3] = np.nan
    assert routing.route_array(tree, X, check_finite=True) is None


def test_the_compiled_tree_is_not_pickled():
    tree, X = random_flat_tree(TreeStructure.balanced(4), 20), rows_of(50, 20)
    expected = route_rows(tree, X)
    again = pickle.loads(pickle.dumps(tree))
    assert "_router" not in again.__dict__
    assert np.array_equal(route_rows(again, X), expected)


def test_wrong_arrays_are_refused():
    tree = random_flat_tree(TreeStructure.stump(), 3)
    with pytest.raises(ValueError, match="another width"):
        routing.route_array(tree, rows_of(2, 4))
    with pytest.raises(ValueError, match="float32, float64, float16 or uint8"):
        routing.route_array(tree, np.zeros((2, 3), dtype=np.int32))
    with pytest.raises(ValueError, match="no instruction set 'mmx'"):
        routing.route_array(tree, rows_of(2, 3), instruction_set="mmx")


@pytest.fixture(scope="module")
def model():
    X, y = clouds(100)
    return plain_tree(max_depth=3, epochs=3, finetune_epochs=2, min_updates=5, random_state=0).fit(X, y)


def test_only_plain_arrays_take_fast_predict(model):
    X, _ = clouds(100)

    def lane(rows):
        return fast_leaves(model.tree_, rows, None, has_names=False)

    assert lane(X) is not None
    for kind in (np.float64, np.float16, np.uint8):
        assert lane(np.abs(X).astype(kind)) is not None
    for other in (X.astype(np.int64), X.tolist(), X[:, :3], X[0], X[:0], X.astype(">f4")):
        assert lane(other) is None


def test_fast_and_validated_predict_give_the_same_leaves(model):
    X, _ = clouds(100)
    assert np.array_equal(model.leaf_indices(X), model.leaf_indices(X.tolist()))


def test_fast_and_validated_predict_raise_the_same_error(model):
    X, _ = clouds(100)
    X[5, 1] = np.inf
    messages = []
    for rows in (X, X.tolist()):
        with pytest.raises(ValueError, match="column 'x1' must hold finite numbers; row 5") as caught:
            model.predict(rows)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_assume_finite_turns_the_check_off(model):
    X, _ = clouds(100)
    X[5, 1] = np.nan
    with config_context(assume_finite=True):
        assert model.predict(X).shape == (100,)


def test_fast_prediction_still_checks_column_names():
    pandas = pytest.importorskip("pandas")
    X, y = clouds(60)
    model = plain_tree(max_depth=1, epochs=2, finetune_epochs=0, min_updates=2)
    model.fit(pandas.DataFrame(X, columns=list("abcde")), y)
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(X)


def test_more_threads_than_cores_give_the_same_leaves():
    tree, X = random_flat_tree(TreeStructure.balanced(3), 64), rows_of(20_000, 64)
    assert np.array_equal(routing.route_array(tree, X, n_jobs=2**31 - 1), routing.route_reference(tree, X))
