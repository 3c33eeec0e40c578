import numpy as np
import torch
from experiments.searches.non_greedy import train_non_greedy

from crisptree.learning.options import Plan
from crisptree.structure import TreeStructure
from tests.experiments.searches.test_growth import grown
from tests.learning.test_growth import samples_of, training_accuracy
from tests.toys import checkerboard, class_samples, clouds, diagonal, generator, random_tree

PLAN = Plan(epochs=15, learning_rate=0.02, batch_size=50)


def trained(tree, X, y, nu=100.0, plan=PLAN, seed=0, **options):
    return train_non_greedy(tree, samples_of(X, y), plan, nu, generator(seed), **options)


def test_a_tree_of_axis_aligned_splits_learns_a_problem_of_oblique_ones():
    X, y = diagonal(400)
    start = grown("axis_aligned", X, y, max_depth=2)
    result = trained(start, X, y, nu=1000.0)
    assert training_accuracy(start, X, y) < 0.98
    assert training_accuracy(result, X, y) > 0.99


def test_the_start_is_left_as_it_is():
    X, y = clouds(100)
    start = grown("axis_aligned", X, y, max_depth=2)
    before = start.splits.parameters["weight"].clone()
    trained(start, X, y)
    assert torch.equal(start.splits.parameters["weight"], before)


def test_every_hyperplane_stays_in_the_ball():
    X, y = clouds(200, n_classes=4)
    weight, bias = trained(grown("co2", X, y, max_depth=3), X, y, nu=2.0).splits.hyperplanes()
    assert (weight.square().sum(dim=1) + bias.square()).max() <= 2.0 + 1e-5


def test_the_mean_bound_falls():
    X, y = clouds(300, n_features=8, n_classes=6)
    records = []
    trained(grown("random", X, y, max_depth=3), X, y, on_epoch=records.append)
    assert records[-1].loss < 0.8 * records[0].loss
    assert [record.epoch for record in records] == list(range(1, 16))


def test_the_same_generator_gives_the_same_tree():
    X, y = checkerboard(200)
    start = grown("co2", X, y, max_depth=2)
    first, second = (trained(start, X, y).splits.parameters["weight"] for _ in range(2))
    assert torch.equal(first, second)


def test_an_integer_weight_equals_repeating_the_row():
    X, y = clouds(80)
    repeats = 1 + torch.arange(80) % 3
    start, plan = random_tree(TreeStructure.balanced(2), 5, 3), Plan(epochs=20, learning_rate=0.02)
    start = type(start)(start.structure, start.splits.replace_parameters(_single(start)), start.leaves.float())
    base = samples_of(X, y)
    weighted = class_samples(base.rows.values, base.y, repeats / repeats.float().mean(), 3)
    repeated = samples_of(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    trees = [train_non_greedy(start, rows, plan, 10.0, generator()) for rows in (weighted, repeated)]
    assert torch.equal(*(tree.route(base.rows.values) for tree in trees))


def _single(tree):
    return {name: value.float() for name, value in tree.splits.parameters.items()}


def test_a_single_leaf_stays_one():
    X, y = clouds(60)
    start = grown("random", X, y, max_depth=0)
    assert trained(start, X, y) is start
