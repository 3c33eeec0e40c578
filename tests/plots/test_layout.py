import numpy as np
import pytest

from crisptree.plots.layout import tree_layout
from crisptree.structure import TreeStructure
from tests.toys import FIGURE_1, SHAPES, random_structure


@pytest.mark.parametrize("structure", [*SHAPES, random_structure(25, 0)])
def test_ends_stand_side_by_side_in_order_and_splits_between_their_children(structure):
    layout = tree_layout(structure)
    ends = structure.n_splits + structure.leaves_left_to_right
    assert layout.x[ends].tolist() == list(range(structure.n_leaves))
    for split in range(structure.n_splits):
        left, right = structure.left_nodes[split], structure.right_nodes[split]
        assert layout.x[left] < layout.x[split] < layout.x[right]
        assert layout.y[left] == layout.y[right] == layout.y[split] - 1


def test_a_cut_tree_draws_the_splits_at_the_cut_as_ends():
    layout = tree_layout(TreeStructure.balanced(4), max_depth=2)
    assert layout.cut == {3, 4, 5, 6}
    assert len(layout.nodes) == 7
    assert layout.width == 4
    assert np.isnan(layout.x[15:]).all()


def test_every_edge_leads_from_a_split_to_its_child():
    edges = tree_layout(FIGURE_1).edges
    assert len(edges) == 8
    assert (1, 3, True) in edges
