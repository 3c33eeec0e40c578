"""Windows reach the leaf that their rows would reach as an array, bit for bit, on every instruction set."""

import numpy as np
import pytest

from crisptree import CrispTreeWarning
from crisptree.data.raw_rows import Canvas, WindowView
from crisptree.inference import flat_tree as routing
from crisptree.inference import route_rows
from crisptree.inference.finalization import finalize
from crisptree.native import router
from crisptree.structure import TreeStructure
from tests.images.test_windows import images_of
from tests.inference.test_routing_kernel import random_flat_tree
from tests.toys import SHAPES

SETS = router.instruction_sets() if router else []
VIEWS = [WindowView(1, (1,), 1), WindowView(7, (1,), 1), WindowView(31, (1,), 1), WindowView(5, (1, 3), 2)]


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("density", [1.0, 0.02])
def test_windows_reach_the_leaves_of_the_reference(instruction_set, view, density):
    windows = Canvas.of(images_of((33, 34), (36, 32), channels=view.channels), view).windows()
    tree = random_flat_tree(TreeStructure.balanced(5), view.n_features, density=density)
    leaves = routing.route_implicit(tree, windows, instruction_set=instruction_set)
    assert np.array_equal(leaves, routing.route_reference(tree, windows[:]))


@pytest.mark.parametrize("structure", SHAPES)
def test_trees_of_any_shape_route_windows(structure):
    windows = Canvas.of(images_of((9, 9)), WindowView(3, (1,), 1)).windows()
    tree = random_flat_tree(structure, 9)
    assert np.array_equal(route_rows(tree, windows), routing.route_reference(tree, windows[:]))


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_leaves_do_not_depend_on_the_number_of_threads(n_jobs):
    windows = Canvas.of(images_of((120, 110)), WindowView(21, (1,), 1)).windows()
    tree = random_flat_tree(TreeStructure.balanced(6), 441)
    assert np.array_equal(route_rows(tree, windows, n_jobs), route_rows(tree, windows[:], 1))


def test_leaves_without_the_kernel_are_equal(monkeypatch):
    windows = Canvas.of(images_of((60, 60)), WindowView(5, (1,), 1)).windows()
    tree = random_flat_tree(TreeStructure.balanced(4), 25)
    expected = route_rows(tree, windows)
    monkeypatch.setattr(routing, "router", None)
    routing._warn_once.cache_clear()
    with pytest.warns(CrispTreeWarning, match="without its compiled kernel"):
        assert np.array_equal(route_rows(tree, windows), expected)


def test_statistics_of_windows_are_those_of_their_rows(monkeypatch):
    windows = Canvas.of(images_of((40, 40)), WindowView(5, (1,), 1)).windows()
    tree = random_flat_tree(TreeStructure.balanced(3), 25)
    rng = np.random.default_rng(0)
    y, weight = rng.integers(0, 2, len(windows)), rng.random(len(windows)) + 0.5
    one, other = (finalize(tree, rows, y, weight, 0.0) for rows in (windows, windows[:]))
    monkeypatch.setattr(routing, "router", None)
    monkeypatch.setattr(routing, "_warn_once", lambda: None)
    by_numpy = finalize(tree, windows, y, weight, 0.0)
    for name in ("node_counts", "gain", "score_mean", "score_spread"):
        assert np.array_equal(getattr(one.statistics, name), getattr(other.statistics, name))
        assert np.allclose(getattr(one.statistics, name), getattr(by_numpy.statistics, name))


@pytest.mark.skipif(router is None, reason="crisptree was installed without its kernel")
def test_windows_outside_the_data_are_refused():
    tree = random_flat_tree(TreeStructure.stump(), 3)
    prepared, leaves = routing.compiled_tree(tree), np.empty(1, dtype=np.int64)
    offset = np.array([-1, 0, 1])
    for base in ([0], [9]):
        with pytest.raises(ValueError, match="inside the data"):
            prepared.route_windows(np.zeros(10, dtype=np.float32), np.array(base), offset, leaves, 1)
    with pytest.raises(ValueError, match="another width"):
        prepared.route_windows(np.zeros(10, dtype=np.float32), np.array([4]), offset[:2], leaves, 1)
