import pytest
import torch

from crisptree.equations.em import node_masses, responsibilities, split_loss
from crisptree.equations.routing import log_likelihoods, log_path_probabilities
from crisptree.targets import Classes
from tests.toys import FIGURE_1, SHAPES, generator, random_structure, random_tables

THREE = Classes(3)
STRUCTURES = [shape for shape in SHAPES if shape.n_splits] + [random_structure(17, 4)]


def problem(structure, n=6, n_classes=3, seed=0):
    scores = torch.randn(n, structure.n_splits, generator=generator(seed), dtype=torch.float64)
    y = torch.randint(n_classes, (n,), generator=generator(seed))
    return scores, random_tables(structure.n_leaves, n_classes, seed), y


@pytest.mark.parametrize("structure", STRUCTURES)
def test_responsibilities_are_the_posterior_of_the_leaf(structure):
    scores, tables, y = problem(structure)
    log_paths = log_path_probabilities(scores, structure, 1.0)
    joint = log_paths.exp() * tables.T[y]
    torch.testing.assert_close(
        responsibilities(log_paths, THREE.evidence(tables, y)), joint / joint.sum(dim=1, keepdim=True)
    )


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_split_loss_decomposes_the_sum_of_h_log_mu(structure):
    scores, tables, y = problem(structure)
    log_paths = log_path_probabilities(scores, structure, 2.0)
    h = responsibilities(log_paths, THREE.evidence(tables, y))
    torch.testing.assert_close(split_loss(scores, *node_masses(h, structure), 2.0), -(h * log_paths).sum())


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_expected_likelihood_is_a_part_of_the_leaves_and_a_part_of_the_splits(structure):
    """Q of equation (11): the leaves' closed form maximises its first part, the split loss is minus its second."""
    scores, tables, y = problem(structure, n=40)
    log_paths = log_path_probabilities(scores, structure, 1.5)
    h = responsibilities(log_paths, THREE.evidence(tables, y))
    counts = THREE.statistics(h, y)
    best = THREE.update(counts, tables, 0.0)
    loss = split_loss(scores, *node_masses(h, structure), 1.5)

    def q(leaves):
        return (h * (THREE.evidence(leaves, y) + log_paths)).sum()

    torch.testing.assert_close(q(best), (h * THREE.evidence(best, y)).sum() - loss)
    for seed in range(5):
        assert q(best) >= q(random_tables(structure.n_leaves, 3, seed))


@pytest.mark.parametrize("structure", STRUCTURES)
def test_masses_are_the_sums_of_the_responsibilities_left_and_right(structure):
    h = torch.rand(4, structure.n_leaves, generator=generator(), dtype=torch.float64)
    left, right = node_masses(h, structure)
    for split in range(structure.n_splits):
        for turn, masses in ((False, left), (True, right)):
            leaves = [leaf for leaf in range(structure.n_leaves) if (split, turn) in structure.path(leaf)]
            torch.testing.assert_close(masses[:, split], h[:, leaves].sum(dim=1))


def test_the_split_loss_has_the_gradient_of_its_formula():
    scores, tables, y = problem(FIGURE_1)
    h = responsibilities(log_path_probabilities(scores, FIGURE_1, 1.0), THREE.evidence(tables, y))
    left, right = node_masses(h, FIGURE_1)
    loss = lambda scores: split_loss(scores, left, right, 1.5)  # noqa: E731
    assert torch.autograd.gradcheck(loss, scores.clone().requires_grad_())


def test_with_current_responsibilities_the_split_loss_has_the_gradient_of_the_log_likelihood():
    scores, tables, y = problem(FIGURE_1)
    scores.requires_grad_()
    log_paths = log_path_probabilities(scores, FIGURE_1, 1.5)
    direct = torch.autograd.grad(-log_likelihoods(log_paths, THREE.evidence(tables, y)).sum(), scores)[0]
    h = responsibilities(log_paths, THREE.evidence(tables, y)).detach()
    through_em = torch.autograd.grad(split_loss(scores, *node_masses(h, FIGURE_1), 1.5), scores)[0]
    torch.testing.assert_close(through_em, direct)


def test_a_split_without_mass_costs_a_sample_nothing():
    scores = torch.tensor([[0.3, 7.0]], dtype=torch.float64, requires_grad=True)
    loss = split_loss(scores, torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 0.0]]), 1.0)
    loss.backward()
    assert scores.grad[0, 1] == 0


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("seed", range(3))
def test_an_em_step_with_a_small_enough_step_never_lowers_the_likelihood(structure, seed):
    scores, tables, y = problem(structure, n=40, seed=seed)

    def likelihood(scores, tables):
        return log_likelihoods(log_path_probabilities(scores, structure, 1.0), THREE.evidence(tables, y)).sum()

    for _ in range(20):
        before = likelihood(scores, tables)
        log_paths = log_path_probabilities(scores, structure, 1.0)
        h = responsibilities(log_paths, THREE.evidence(tables, y))
        leaf = scores.detach().clone().requires_grad_()
        gradient = torch.autograd.grad(split_loss(leaf, *node_masses(h, structure), 1.0), leaf)[0]
        scores, tables = scores - 0.1 * gradient, THREE.update(THREE.statistics(h, y), tables)
        assert likelihood(scores, tables) >= before - 1e-9
