import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crisptree.structure import TreeStructure
from tests.toys import CHAIN, FIGURE_1, SHAPES, random_structure


def test_the_papers_figure_1_sends_leaf_b_left_right_left():
    turned_right = [split + 1 for split, right in FIGURE_1.path(1) if right]
    turned_left = [split + 1 for split, right in FIGURE_1.path(1) if not right]
    assert (turned_right, turned_left) == ([2], [1, 4])


@given(st.integers(0, 40), st.integers(0, 1000))
def test_a_tree_of_any_shape_has_one_leaf_more_than_splits_and_each_leaf_one_path(n_splits, seed):
    structure = random_structure(n_splits, seed)
    assert structure.n_leaves == n_splits + 1
    paths = {tuple(structure.path(leaf)) for leaf in range(structure.n_leaves)}
    assert len(paths) == structure.n_leaves
    assert [len(structure.path(leaf)) for leaf in range(structure.n_leaves)] == structure.leaf_depths.tolist()


def test_splitting_a_leaf_keeps_its_number_on_the_left_and_changes_nothing_in_the_old_tree():
    grown = FIGURE_1.split_leaves([4])
    assert FIGURE_1.n_splits == 4
    assert (grown.left[4], grown.right[4]) == (~4, ~5)
    assert grown.path(4) == [*FIGURE_1.path(4), (4, False)]
    assert grown.path(5) == [*FIGURE_1.path(4), (4, True)]


def test_the_arrays_are_frozen():
    with pytest.raises(ValueError, match="read-only"):
        FIGURE_1.left[0] = 3


def test_a_balanced_tree_numbers_its_leaves_from_left_to_right():
    assert TreeStructure.balanced(3).leaves_left_to_right.tolist() == list(range(8))
    assert TreeStructure.balanced(0) == TreeStructure.single_leaf()


def test_leaves_stand_from_left_to_right_as_in_the_drawing():
    assert FIGURE_1.leaves_left_to_right.tolist() == [0, 1, 2, 3, 4]
    assert CHAIN.leaves_left_to_right.tolist() == [0, 1, 2, 3, 4]
    assert TreeStructure([1, ~2], [~1, ~0]).leaves_left_to_right.tolist() == [2, 0, 1]


@pytest.mark.parametrize("structure", SHAPES)
def test_the_span_of_a_node_holds_exactly_the_leaves_below_it(structure):
    below = structure.sums_below(np.eye(structure.n_leaves)) > 0
    for node, (start, stop) in enumerate(structure.leaf_spans):
        assert set(structure.leaves_left_to_right[start:stop]) == set(np.flatnonzero(below[node]))


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ([~0], [~1, ~2], "as many left as right"),
        ([0], [~0], "after its parent"),
        ([1, ~0], [1, ~1], "child of exactly one split"),
        ([~0], [~0], "leaves 0 … 1"),
        ([2, 2, ~0], [~1, ~2, ~3], "child of exactly one split"),
        ([5], [~0], "child of exactly one split"),
    ],
)
def test_what_is_not_a_tree_is_refused_with_the_reason(left, right, message):
    with pytest.raises(ValueError, match=message):
        TreeStructure(left, right)


def test_a_leaf_that_does_not_exist_cannot_be_split():
    with pytest.raises(ValueError, match=r"leaf must be one of 0 … 4; got 5"):
        FIGURE_1.split_leaves([5])


def test_equal_trees_have_equal_hashes():
    again = TreeStructure(FIGURE_1.left, FIGURE_1.right)
    assert again == FIGURE_1
    assert hash(again) == hash(FIGURE_1)
    assert again != CHAIN


def test_leaves_split_together_are_numbered_as_if_split_in_turn():
    structure = random_structure(30, 2)
    leaves = [5, 0, 17, 30]
    in_turn = structure
    for leaf in leaves:
        in_turn = in_turn.split_leaves([leaf])
    assert structure.split_leaves(leaves) == in_turn
    assert structure.split_leaves([]) == structure
    with pytest.raises(ValueError, match="given twice"):
        structure.split_leaves([3, 3])


@pytest.mark.parametrize("seed", range(8))
def test_a_spliced_tree_leads_every_path_to_the_leaf_that_it_led_to_without_the_splits_that_went(seed):
    structure = random_structure(14, seed)
    rng = np.random.default_rng(seed)
    splits = np.flatnonzero(rng.random(structure.n_splits) < 0.4)
    to_right = rng.random(len(splits)) < 0.5
    turns = dict(zip(splits.tolist(), to_right.tolist(), strict=True))
    spliced, nodes = structure.splice(splits, to_right)
    assert len(nodes) == spliced.n_nodes
    compute_residuals = {}
    for leaf in range(structure.n_leaves):
        path = structure.path(leaf)
        if all(turns.get(split, right) == right for split, right in path):
            compute_residuals[leaf] = [(split, right) for split, right in path if split not in turns]
    found = {
        int(nodes[spliced.n_splits + leaf]) - structure.n_splits: [
            (int(nodes[split]), right) for split, right in spliced.path(leaf)
        ]
        for leaf in range(spliced.n_leaves)
    }
    assert found == compute_residuals
    assert list(found) == sorted(found)  # leaves keep their order


def test_splicing_nothing_changes_nothing_and_splicing_everything_leaves_one_leaf():
    same, nodes = FIGURE_1.splice([], [])
    assert same == FIGURE_1
    assert nodes.tolist() == list(range(9))
    one, nodes = FIGURE_1.splice([0, 1, 2, 3], [False, True, False, True])  # to leaf C
    assert one == TreeStructure.single_leaf()
    assert nodes.tolist() == [FIGURE_1.n_splits + 2]
