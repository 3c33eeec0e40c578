"""A leaf is a distribution over classes."""

import numpy as np
import pytest
import torch

from crisptree.targets import Classes, gain
from crisptree.targets.classification import MIN_PROBABILITY


def test_counts_add_up_the_responsibilities_by_class():
    h = torch.tensor([[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]])
    assert Classes(3).statistics(h, torch.tensor([1, 0, 1])).tolist() == [[1.0, 0.75, 0.0], [0.0, 1.25, 0.0]]


def test_leaf_distributions_are_frequencies_without_exact_zeros():
    tables = Classes(3).update(torch.tensor([[3.0, 1.0, 0.0]]), torch.ones(1, 3) / 3)
    torch.testing.assert_close(tables, torch.tensor([[0.75, 0.25, 0.0]]), atol=1e-6, rtol=0)
    assert tables.min() >= MIN_PROBABILITY / 2


def test_an_empty_leaf_keeps_its_distribution():
    previous = torch.tensor([[0.2, 0.8], [0.5, 0.5]])
    tables = Classes(2).update(torch.tensor([[0.0, 0.0], [1.0, 3.0]]), previous, prior=0.0)
    torch.testing.assert_close(tables, torch.tensor([[0.2, 0.8], [0.25, 0.75]]))


def test_a_prior_smooths_the_tables_like_that_many_samples_of_every_class():
    tables = Classes(2).update(torch.tensor([[3.0, 0.0]]), torch.ones(1, 2) / 2, prior=1.0)
    torch.testing.assert_close(tables, torch.tensor([[0.8, 0.2]]))


def test_rows_with_places_count_in_their_own_tables_only():
    three, h = Classes(3), torch.rand(6, 2)
    y, group = torch.tensor([0, 1, 2, 2, 1, 0]), torch.tensor([0, 1, 0, 1, 0, 1])
    together = three.statistics(h, y, group, 2).reshape(2, 2, 3)
    for number in (0, 1):
        alone = three.statistics(h[group == number], y[group == number])
        torch.testing.assert_close(together[:, number], alone)
    tables = torch.rand(2, 6) + 0.1
    for number in (0, 1):
        alone = three.evidence(tables[:, 3 * number : 3 * number + 3], y)
        assert torch.equal(three.evidence(tables, y, torch.full_like(y, number)), alone)


def test_a_tally_of_arrays_is_a_tally_of_tensors():
    rng = np.random.default_rng(0)
    y, group, weight = rng.integers(0, 3, 50), rng.integers(0, 4, 50), rng.random(50)
    arrays = Classes(3).tally(y, weight, group, 4)
    tensors = Classes(3).tally(*(torch.from_numpy(part) for part in (y, weight, group)), 4)
    assert np.array_equal(arrays, tensors.numpy())
    candidates = torch.from_numpy(np.stack([weight, 2 * weight], axis=1))
    several = Classes(3).tally(torch.from_numpy(y), candidates, torch.from_numpy(group), 4)
    np.testing.assert_allclose(several.numpy(), np.stack([arrays, 2 * arrays], axis=1))


def test_the_gain_is_never_negative_and_nothing_without_rows():
    two = Classes(2)
    assert gain(two, np.zeros((1, 2)), np.zeros((1, 2))).tolist() == [0.0]
    assert gain(two, np.array([[5.0, 3.0]]), np.array([[5.0, 3.0]]))[0] == pytest.approx(0, abs=1e-12)


def test_invalid_leaf_tables_are_detected():
    assert Classes(2).check(np.array([[0.5, 0.5]])) is None
    assert Classes(2).check(np.array([[0.5, 0.6]])) == "not probabilities"
    assert Classes(2).check(np.array([[-0.5, 1.5]])) is not None
