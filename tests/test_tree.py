import numpy as np
import pytest
import torch

from crisptree.data.raw_rows import Scaling
from crisptree.inference import route_rows
from crisptree.splits import AbstractSplits, AxisSplits
from crisptree.tree import Tree
from tests.toys import FIGURE_1, SHAPES, generator, random_tree

SCALING = Scaling(np.array([10.0, -3.0, 0.0]), np.array([0.5, 2.0, 1.0]), np.zeros(3), np.ones(3))


def test_splitting_a_leaf_breaks_the_symmetry_of_its_children():
    tree = random_tree(FIGURE_1, 3, 2)
    stump = tree.splits.select([0])
    tables = torch.tensor([[[0.9, 0.1], [0.2, 0.8]]], dtype=torch.float64)
    grown = tree.split_leaves([1], stump, tables)
    assert torch.equal(grown.leaves[[1, 5]], tables[0])
    assert torch.equal(grown.leaves[[0, 2, 3, 4]], tree.leaves[[0, 2, 3, 4]])
    assert tree.structure.n_leaves == 5


def test_growth_changes_only_the_rows_of_the_leaf_that_was_split():
    tree = random_tree(FIGURE_1, 3, 2)
    x = torch.randn(200, 3, generator=generator(), dtype=torch.float64)
    grown = tree.split_leaves([2], tree.splits.select([3]), torch.full((1, 2, 2), 0.5, dtype=torch.float64))
    before, after = tree.route(x), grown.route(x)
    assert torch.equal(before[before != 2], after[before != 2])
    assert set(after[before == 2].tolist()) <= {2, 5}


@pytest.mark.parametrize("structure", SHAPES)
def test_a_row_visits_only_the_splits_on_its_path(structure):
    tree, x = random_tree(structure, 3, 2), torch.randn(40, 3, generator=generator(), dtype=torch.float64)
    visits = []

    class Counting(type(tree.splits)):
        def at(self, x, split):
            visits.extend(split.tolist())
            return super().at(x, split)

    counted = Tree(structure, Counting(*tree.splits.parameters.values()), tree.leaves)
    leaf = counted.route(x)
    assert len(visits) == structure.leaf_depths[leaf.numpy()].sum()


@pytest.mark.parametrize("structure", SHAPES)
def test_the_crisp_tree_on_raw_rows_takes_the_leaves_of_the_soft_tree_on_scaled_rows(structure):
    tree = random_tree(structure, 3, 2)
    raw = np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32)
    crisp = tree.crisp(SCALING, steepness=3.0)
    scaled = torch.from_numpy(SCALING.apply(raw)).double()
    distance = tree.splits(scaled).abs().min(dim=1).values if structure.n_splits else torch.ones(500)
    clear = (distance > 1e-4).numpy()
    assert np.array_equal(route_rows(crisp, raw)[clear], tree.route(scaled).numpy()[clear])


def test_the_soft_tree_comes_back_from_the_crisp_one():
    tree = random_tree(FIGURE_1, 3, 2)
    again = Tree.soft(tree.crisp(SCALING, steepness=3.0))
    x = torch.randn(20, 3, generator=generator())
    torch.testing.assert_close(
        again.log_class_probabilities(x, 2.0),
        tree.log_class_probabilities(x.double(), 2.0).float(),
        atol=1e-4,
        rtol=1e-4,
    )


def test_axis_splits_stay_axis_splits_when_a_crisp_tree_is_taken_up_again():
    splits = AxisSplits.initial(torch.zeros(4, 3), generator())
    tree = Tree(FIGURE_1, splits, random_tree(FIGURE_1, 3, 2).leaves)
    again = Tree.soft(tree.crisp(SCALING, 1.0), linear=AxisSplits)
    assert isinstance(again.splits, AxisSplits)
    assert torch.equal(again.splits.parameters["axis"], splits.parameters["axis"])


def test_candidates_must_be_chosen_before_a_tree_is_crisp():
    class Unknown(AbstractSplits):
        parameters = {"weight": torch.zeros(4, 3)}  # noqa: RUF012

        def __call__(self, x): ...
        def at(self, x, split): ...
        def weights(self): ...
        def replace_parameters(self, parameters): ...

    with pytest.raises(TypeError, match="cannot be made deterministic"):
        Tree(FIGURE_1, Unknown(), torch.ones(5, 2) / 2).crisp(SCALING, 1.0)
