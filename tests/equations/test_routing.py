import pytest
import torch

from crisptree.equations.alternating import hard_responsibilities
from crisptree.equations.routing import (
    goes_right,
    log_class_probabilities,
    log_likelihoods,
    log_path_probabilities,
)
from tests.toys import FIGURE_1, SHAPES, brute_force_paths, generator, random_structure, random_tables, random_tree

STRUCTURES = [*SHAPES, random_structure(20, 1), random_structure(33, 2)]


def scores_for(structure, n=7, seed=0):
    return torch.randn(n, structure.n_splits, generator=generator(seed), dtype=torch.float64)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_path_probabilities_equal_the_product_along_the_path_and_sum_to_one(structure):
    scores = scores_for(structure)
    paths = log_path_probabilities(scores, structure, 1.7).exp()
    torch.testing.assert_close(paths, brute_force_paths(scores, structure, 1.7))
    torch.testing.assert_close(paths.sum(dim=1), torch.ones(7, dtype=torch.float64))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_high_steepness_gives_the_deterministic_leaf(structure):
    scores = scores_for(structure)
    tree = random_tree(structure, n_features=3, n_classes=2)
    x = torch.randn(50, 3, generator=generator(5), dtype=torch.float64)
    steep = tree.log_path_probabilities(x, 1e6)
    assert torch.equal(steep.argmax(dim=1), tree.route(x))
    assert torch.equal(hard_responsibilities(tree.splits(x), structure).argmax(dim=1), tree.route(x))
    assert hard_responsibilities(scores, structure).unique().tolist() in ([1.0], [0.0, 1.0])


def test_a_score_of_zero_goes_left():
    assert goes_right(torch.tensor([-1.0, 0.0, 1e-30])).tolist() == [False, False, True]


def test_extreme_scores_keep_finite_paths_and_gradients():
    scores = torch.tensor([[1e4, -1e4, 1e4, -1e4]], dtype=torch.float64, requires_grad=True)
    log_paths = log_path_probabilities(scores, FIGURE_1, 1.0)
    assert torch.isfinite(log_paths).all()
    log_likelihoods(log_paths, random_tables(5, 3).log().T[[0]]).sum().backward()
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("structure", STRUCTURES)
def test_class_probabilities_are_the_leaf_tables_mixed_by_the_paths(structure):
    scores, tables = scores_for(structure), random_tables(structure.n_leaves, 4)
    log_paths = log_path_probabilities(scores, structure, 1.0)
    mixed = brute_force_paths(scores, structure, 1.0) @ tables
    torch.testing.assert_close(log_class_probabilities(log_paths, tables).exp(), mixed)
    y = torch.arange(7) % 4
    torch.testing.assert_close(log_likelihoods(log_paths, tables.log().T[y]), mixed.log()[torch.arange(7), y])


@pytest.mark.parametrize("structure", [FIGURE_1, random_structure(9, 3)])
def test_the_log_likelihood_has_the_gradient_of_its_formula(structure):
    tables, y = random_tables(structure.n_leaves, 3), torch.arange(5) % 3

    def likelihood(scores):
        return log_likelihoods(log_path_probabilities(scores, structure, 1.3), tables.log().T[y]).sum()

    assert torch.autograd.gradcheck(likelihood, scores_for(structure, 5).requires_grad_())


def test_a_batch_of_one_is_a_batch():
    assert log_path_probabilities(scores_for(FIGURE_1, 1), FIGURE_1, 1.0).shape == (1, 5)
