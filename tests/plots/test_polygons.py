import numpy as np
import pytest

from crisptree.inference import route_rows
from crisptree.plots.regions import (
    clip_polygon,
    compute_cells,
    intersect_line,
    make_rectangle,
    polygon_area,
    polygon_center,
)
from crisptree.structure import TreeStructure
from tests.plots.models import FIGURE_1_BIAS, FIGURE_1_WEIGHT, figure_1, random_model
from tests.toys import FIGURE_1

SQUARE = make_rectangle((0, 1, 0, 1))


def inside(polygon, point):
    """Whether a point lies in a convex polygon whose corners go against the clock."""
    along = np.roll(polygon, -1, axis=0) - polygon
    to = point - polygon
    return bool(np.all(along[:, 0] * to[:, 1] - along[:, 1] * to[:, 0] >= -1e-12))


def test_clipping_keeps_what_lies_above_the_line():
    half = clip_polygon(SQUARE, (1, 1), -1.0)
    assert polygon_area(half) == pytest.approx(0.5)
    assert inside(half, np.array([0.9, 0.9]))
    assert not inside(half, np.array([0.1, 0.1]))


def test_a_polygon_on_one_side_is_kept_whole_or_not_at_all():
    assert np.array_equal(clip_polygon(SQUARE, (1, 0), 5.0), SQUARE)
    assert clip_polygon(SQUARE, (1, 0), -5.0).shape == (0, 2)
    assert clip_polygon(clip_polygon(SQUARE, (1, 0), -5.0), (0, 1), 0.5).shape == (0, 2)


def test_the_leaves_of_figure_1_tile_the_square():
    found = compute_cells(FIGURE_1, FIGURE_1_WEIGHT, FIGURE_1_BIAS, SQUARE)
    leaves = found[FIGURE_1.n_splits :]
    assert sum(map(polygon_area, leaves)) == pytest.approx(1.0)
    # The places of the letters A … E in the paper's figure.
    for polygon, place in zip(leaves, [(0.2, 0.4), (0.1, 0.8), (0.5, 0.8), (0.42, 0.1), (0.8, 0.4)], strict=True):
        assert inside(polygon, np.array(place))


@pytest.mark.parametrize("seed", range(4))
def test_the_middle_of_a_cell_is_routed_to_its_leaf(seed):
    model = random_model(n_features=2, depth=4, seed=seed)
    tree = model.tree_
    found = compute_cells(
        tree.structure, tree.weight.astype(float), tree.bias.astype(float), make_rectangle((-3, 3, -3, 3))
    )
    leaves = found[tree.structure.n_splits :]
    assert sum(map(polygon_area, leaves)) == pytest.approx(36.0)
    shown = [leaf for leaf, polygon in enumerate(leaves) if polygon_area(polygon) > 1e-3]
    assert len(shown) > 2
    points = np.array([polygon_center(leaves[leaf]) for leaf in shown], dtype=np.float32)
    assert route_rows(tree, points).tolist() == shown


def test_a_split_without_weights_sends_its_whole_cell_to_one_side():
    stump = TreeStructure.stump()
    for bias, right in ((1.0, True), (-1.0, False), (0.0, False)):
        found = compute_cells(stump, np.zeros((1, 2)), np.array([bias]), SQUARE)
        assert len(found[2]) == (4 if right else 0)
        assert len(found[1]) == (0 if right else 4)


def test_a_line_is_drawn_inside_its_own_cell_only():
    found = compute_cells(FIGURE_1, FIGURE_1_WEIGHT, FIGURE_1_BIAS, SQUARE)
    ends = intersect_line(found[3], FIGURE_1_WEIGHT[3], FIGURE_1_BIAS[3])  # x = 0.3, from the line of split 1 upwards
    assert np.allclose(ends[:, 0], 0.3)
    assert ends[:, 1].max() == pytest.approx(1.0)
    assert ends[:, 1].min() == pytest.approx((0.4 - 0.05 * 0.3) / 0.65)
    assert intersect_line(SQUARE, np.array([1.0, 0.0]), -7.0) is None
    assert intersect_line(SQUARE, np.zeros(2), 0.0) is None


def test_the_middle_of_a_flat_polygon_is_on_it():
    assert polygon_center(np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])).tolist() == [1.0, 0.0]


def test_one_leaf_has_the_whole_frame():
    model = random_model(n_features=2, depth=0)
    assert polygon_area(compute_cells(model.tree_.structure, np.zeros((0, 2)), np.zeros(0), SQUARE)[0]) == 1.0
    assert figure_1().tree_.structure.n_leaves == 5
