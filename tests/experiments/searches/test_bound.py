import pytest
import torch
from experiments.searches.co2 import Paths, add_gradient, bounds, learning_rate, losses, project, stump_paths
from experiments.searches.non_greedy import tree_paths

from crisptree.splits import ObliqueSplits
from tests.toys import CHAIN, FIGURE_1, generator, random_structure, random_tree

STRUCTURES = [FIGURE_1, CHAIN, random_structure(9, seed=1), random_structure(1, seed=0)]


def problem(structure, seed=0, n=60, n_features=4, n_classes=3):
    tree = random_tree(structure, n_features, n_classes, seed)
    x = torch.randn(n, n_features, generator=generator(seed), dtype=torch.float64)
    y = torch.arange(n) % n_classes
    counts = 20 * torch.rand(structure.n_leaves, n_classes, generator=generator(seed + 1), dtype=torch.float64)
    return tree, x, y, losses(counts)


def brute_force(tree, x, y, loss):
    """max over all leaves reached with at most one turn of the sign vector reversed, straight from the definition."""
    scores, values = tree.splits(x), []
    for row in range(len(x)):
        s = scores[row]
        h = torch.where(s > 0, 1.0, -1.0)
        options = []
        for flip in [None, *range(len(s))]:
            g = h.clone()
            if flip is not None:
                g[flip] *= -1
            node = 0
            while node >= 0:
                node = int(tree.structure.right[node] if g[node] > 0 else tree.structure.left[node])
            options.append(g @ s.to(g) + loss[~node, y[row]] - s.abs().sum())
        values.append(max(options))
    return torch.stack(values).to(loss)


@pytest.mark.parametrize("structure", STRUCTURES, ids=["figure 1", "chain", "random", "stump"])
def test_the_bound_is_the_maximum_over_sign_vectors_at_hamming_distance_one(structure):
    tree, x, y, loss = problem(structure)
    paths = tree_paths(tree.splits, structure, x, y, loss)
    torch.testing.assert_close(bounds(paths), brute_force(tree, x, y, loss), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("structure", STRUCTURES, ids=["figure 1", "chain", "random", "stump"])
def test_the_bound_is_never_below_the_loss_and_meets_it_for_long_weights(structure):
    tree, x, y, loss = problem(structure)
    own = loss[tree.route(x), y]
    for length in (1e-3, 1.0, 1e6):
        splits = ObliqueSplits(*(length * part for part in tree.splits.hyperplanes()))
        paths = tree_paths(splits, structure, x, y, loss)
        torch.testing.assert_close(paths.own, own)
        assert (bounds(paths) >= own).all()
    torch.testing.assert_close(bounds(paths), own)


def test_the_stump_is_the_tree_with_one_split():
    structure = random_structure(1, seed=0)
    tree, x, y, loss = problem(structure)
    of_tree = tree_paths(tree.splits, structure, x, y, loss)
    of_stump = stump_paths(tree.splits, x, y, torch.zeros(len(x), dtype=torch.long), loss[:, None])
    for one, other in zip(of_tree, of_stump, strict=True):
        torch.testing.assert_close(one, other)


def test_the_gradient_is_that_of_the_bound():
    tree, x, y, loss = problem(FIGURE_1)
    weight = torch.rand(len(x), generator=generator(), dtype=torch.float64)
    ours, reference = tree.splits.trainable(), tree.splits.trainable()
    (weight * bounds(tree_paths(reference, FIGURE_1, x, y, loss))).sum().backward()
    with torch.no_grad():
        reached = add_gradient(ours, x, weight, tree_paths(ours, FIGURE_1, x, y, loss))
    for name, value in ours.parameters.items():
        torch.testing.assert_close(value.grad, reference.parameters[name].grad)
    assert torch.equal(reached, torch.nonzero(ours.parameters["bias"].grad)[:, 0])


@pytest.mark.parametrize("structure", STRUCTURES, ids=["figure 1", "chain", "random", "stump"])
@torch.no_grad()
def test_a_small_full_batch_step_with_fixed_leaves_never_raises_the_bound(structure):
    tree, x, y, loss = problem(structure)
    splits, weight = tree.splits.trainable(), torch.ones(len(x), dtype=torch.float64)
    before = bounds(tree_paths(splits, structure, x, y, loss)).sum()
    first = before
    for _ in range(50):
        for value in splits.parameters.values():
            value.grad = None
        add_gradient(splits, x, weight, tree_paths(splits, structure, x, y, loss))
        for value in splits.parameters.values():
            value -= 1e-6 * value.grad
        after = bounds(tree_paths(splits, structure, x, y, loss)).sum()
        assert after <= before + 1e-12
        before = after
    assert after < first


def test_no_hyperplane_is_longer_than_the_ball_and_short_ones_stay():
    splits = ObliqueSplits(torch.tensor([[3.0, 0.0], [0.3, 0.0]]), torch.tensor([4.0, 0.4])).trainable()
    project(splits, nu=4.0)
    weight, bias = splits.hyperplanes()
    torch.testing.assert_close(weight.detach(), torch.tensor([[1.2, 0.0], [0.3, 0.0]]))
    torch.testing.assert_close(bias.detach(), torch.tensor([1.6, 0.4]))


def test_a_step_is_a_share_of_the_balls_radius():
    assert learning_rate(0.02, nu=4.0, n_features=1) == pytest.approx(0.04)
    assert learning_rate(0.02, nu=1.0, n_features=100) == pytest.approx(0.002)


def test_an_empty_leaf_costs_the_same_for_all_classes_and_an_unseen_class_a_finite_loss():
    loss = losses(torch.tensor([[0.0, 0.0], [5.0, 0.0]]))
    assert loss[0, 0] == loss[0, 1] == pytest.approx(0.6931, abs=1e-4)
    assert loss[1, 0] < 0.01 < loss[1, 1] < 10


def test_a_row_whose_own_leaf_is_the_worst_pulls_nothing():
    splits = ObliqueSplits(torch.ones(1, 1), torch.zeros(1)).trainable()
    paths = Paths(
        torch.zeros(1, 1, dtype=torch.long), torch.tensor([[0.1]]), torch.tensor([2.0]), torch.tensor([[1.0]])
    )
    assert len(add_gradient(splits, torch.ones(1, 1), torch.ones(1), paths)) == 0
