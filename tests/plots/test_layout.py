import numpy as np
import pytest

from crisptree.plots.style import leaf_letters
from crisptree.plots.tree import END, compute_layout, make_arrow
from crisptree.structure import TreeStructure
from tests.toys import CHAIN, FIGURE_1, SHAPES, random_structure

STRUCTURES = [*SHAPES, random_structure(25, 0), random_structure(60, 1)]


@pytest.mark.parametrize("structure", STRUCTURES)
def test_ends_stand_side_by_side_in_order_and_splits_between_their_children(structure):
    layout = compute_layout(structure)
    ends = structure.n_splits + structure.leaves_left_to_right
    assert layout.x[ends].tolist() == list(range(structure.n_leaves))
    assert (structure.n_splits + structure.leaves_left_to_right).tolist() == layout.ends
    for split in range(structure.n_splits):
        left, right = structure.left_nodes[split], structure.right_nodes[split]
        assert layout.x[left] < layout.x[split] < layout.x[right]
        assert layout.y[left] == layout.y[right] < layout.y[split]


@pytest.mark.parametrize("shape", [{}, {"aspect": 0.4, "lowest": 0.6}, {"widest": 4.0, "aspect": 2.0}])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_no_two_nodes_touch(structure, shape):
    layout = compute_layout(structure, **shape)
    boxes = np.array([layout.outline(int(node)) for node in layout.nodes])
    for number, (left, right, lower, upper) in enumerate(boxes):
        others = np.delete(boxes, number, axis=0)
        beside = (others[:, 0] >= right) | (others[:, 1] <= left)
        above = (others[:, 2] >= upper) | (others[:, 3] <= lower)
        assert np.all(beside | above)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_nothing_stands_under_an_end(structure):
    layout = compute_layout(structure)
    ends = [int(node) for node in layout.nodes if layout.is_end(int(node))]
    for end in ends:
        below = [node for node in layout.nodes if layout.y[node] < layout.y[end]]
        for node in below:
            left, right, _, _ = layout.outline(int(node))
            assert right <= layout.x[end] - END / 2 or left >= layout.x[end] + END / 2


def test_splits_of_upper_levels_are_never_smaller():
    layout = compute_layout(TreeStructure.balanced(5))
    sizes = [layout.width[level[0]] for level in TreeStructure.balanced(5).levels]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] > END


def test_a_cut_tree_draws_the_splits_at_the_cut_as_ends():
    layout = compute_layout(TreeStructure.balanced(4), [3, 4, 5, 6])
    assert layout.ends == [3, 4, 5, 6]
    assert len(layout.nodes) == 7
    assert all(layout.is_end(node) for node in (3, 4, 5, 6))
    assert np.isnan(layout.x[15:]).all()


def test_every_edge_leads_from_a_split_to_its_child():
    edges = compute_layout(FIGURE_1).edges
    assert len(edges) == 8
    assert (1, 3, True) in edges


def test_a_chain_needs_no_more_room_than_its_leaves():
    layout = compute_layout(CHAIN)
    assert np.nanmax(layout.x) == CHAIN.n_leaves - 1


def test_an_arrow_starts_broad_enough_and_ends_in_its_tip():
    outline = make_arrow((0, 0), (0, -2), 0.2)
    assert outline[3].tolist() == [0, -2]
    assert np.ptp(outline[[0, 6], 0]) == pytest.approx(0.2)
    assert np.ptp(outline[[2, 4], 0]) > 0.2  # the head is broader than the tail
    assert np.isfinite(make_arrow((1, 1), (1, 1), 0.2)).all()


def test_letters_go_on_after_z():
    assert [leaf_letters(number) for number in (0, 4, 25, 26, 27, 52)] == ["A", "E", "Z", "AA", "AB", "BA"]
