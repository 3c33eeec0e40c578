import numpy as np
import pytest
import torch

from crisptree.baselines.co2 import NU_CANDIDATES
from crisptree.baselines.non_greedy import train_non_greedy
from crisptree.learning.finetuning import hard_score
from crisptree.learning.options import Plan
from crisptree.structure import TreeStructure
from tests.baselines.test_growth import grown
from tests.learning.test_growth import samples_of, training_accuracy
from tests.toys import checkerboard, class_samples, clouds, diagonal, generator, random_tree

PLAN = Plan(epochs=15, learning_rate=0.02, batch_size=50)


def trained(tree, X, y, nu=100.0, plan=PLAN, seed=0, **options):
    return train_non_greedy(tree, samples_of(X, y), plan, nu, generator=generator(seed), **options)


def test_a_tree_of_axis_aligned_splits_learns_a_problem_of_oblique_ones():
    X, y = diagonal(400)
    start = grown("axis_aligned", X, y, max_depth=2)
    result = trained(start, X, y, nu=1000.0)
    assert training_accuracy(start, X, y) < 0.98
    assert training_accuracy(result.tree, X, y) > 0.99
    assert result.nu == 1000.0


def test_the_start_is_left_as_it_is():
    X, y = clouds(100)
    start = grown("axis_aligned", X, y, max_depth=2)
    before = start.splits.parameters["weight"].clone()
    trained(start, X, y)
    assert torch.equal(start.splits.parameters["weight"], before)


def test_every_hyperplane_stays_in_the_ball():
    X, y = clouds(200, n_classes=4)
    weight, bias = trained(grown("co2", X, y, max_depth=3), X, y, nu=2.0).tree.splits.hyperplanes()
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
    first, second = (trained(start, X, y).tree.splits.parameters["weight"] for _ in range(2))
    assert torch.equal(first, second)


def test_an_integer_weight_equals_repeating_the_row():
    X, y = clouds(80)
    repeats = 1 + torch.arange(80) % 3
    start, plan = random_tree(TreeStructure.balanced(2), 5, 3), Plan(epochs=20, learning_rate=0.02)
    start = type(start)(start.structure, start.splits.replaced(_single(start)), start.leaves.float())
    base = samples_of(X, y)
    weighted = class_samples(base.rows.values, base.y, repeats / repeats.float().mean(), 3)
    repeated = samples_of(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    trees = [train_non_greedy(start, rows, plan, 10.0, generator=generator()).tree for rows in (weighted, repeated)]
    assert torch.equal(*(tree.route(base.rows.values) for tree in trees))


def _single(tree):
    return {name: value.float() for name, value in tree.splits.parameters.items()}


def test_held_out_rows_choose_among_several_bounds():
    X, y = clouds(300, n_classes=5)
    samples, held = samples_of(X[::2], y[::2]), samples_of(X[1::2], y[1::2])
    start = grown("axis_aligned", X[::2], y[::2], max_depth=3)
    records = []
    best = train_non_greedy(start, samples, PLAN, None, generator=generator(), validation=held, on_epoch=records.append)
    scores = [
        train_non_greedy(start, samples, PLAN, nu, generator=generator(), validation=held).score for nu in NU_CANDIDATES
    ]
    assert best.nu in NU_CANDIDATES
    assert best.score == hard_score(best.tree, samples, held)
    assert best.score >= scores[0]
    assert [record.epoch for record in records] == list(range(1, len(NU_CANDIDATES) * PLAN.epochs + 1))


def test_without_held_out_rows_the_bound_must_be_given():
    X, y = clouds(60)
    with pytest.raises(ValueError, match="`nu` must be a number without validation rows to select it"):
        trained(grown("random", X, y, max_depth=1), X, y, nu=None)


def test_a_single_leaf_stays_one():
    X, y = clouds(60)
    start = grown("random", X, y, max_depth=0)
    assert trained(start, X, y).tree is start
