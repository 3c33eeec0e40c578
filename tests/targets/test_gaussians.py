"""Leaves that are normal distributions of numbers."""

import numpy as np
import pytest
import torch

from crisptree.equations.leaves import DEEPEST_DOUBT, MIN_VARIANCE
from crisptree.targets import Gaussians, gain, regression
from tests.toys import generator, random_gaussians


def some_rows(n=40, n_outputs=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, n_outputs)), rng.uniform(0.5, 2, n), rng.integers(0, 3, n)


def test_the_evidence_is_the_log_density_of_a_normal_distribution():
    tables, (y, _, _) = random_gaussians(4, 2), some_rows()
    found = Gaussians(4).evidence(tables, torch.from_numpy(y))
    for leaf, table in enumerate(tables):
        normal = torch.distributions.Normal(table[:2], table[2:].sqrt())
        torch.testing.assert_close(found[:, leaf], normal.log_prob(torch.from_numpy(y)).sum(dim=1))


def test_evidence_at_places_is_that_of_each_place_alone():
    y, _, group = some_rows()
    both = random_gaussians(6, 2).reshape(2, -1)  # two leaves at three places
    found = Gaussians(4).evidence(both, torch.from_numpy(y), torch.from_numpy(group))
    for number in range(3):
        here = group == number
        alone = both.reshape(2, 3, 4)[:, number]
        torch.testing.assert_close(found[here], Gaussians(4).evidence(alone, torch.from_numpy(y[here])))


def test_no_leaf_is_doubted_more_than_doubles_can_hold():
    tables = torch.tensor([[0.0, 1e-3], [1e4, 1e-3]], dtype=torch.float64)
    found = Gaussians(2).evidence(tables, torch.tensor([[0.0]], dtype=torch.float64))
    assert (found[0, 0] - found[0, 1]).item() == pytest.approx(DEEPEST_DOUBT)


def test_the_update_is_the_weighted_mean_and_variance_and_empty_leaves_stay():
    target, (y, weight, _) = Gaussians(4), some_rows()
    h = torch.rand(len(y), 3, generator=generator(), dtype=torch.float64)
    h[:, 2] = 0
    previous = random_gaussians(3, 2)
    found = target.update(target.statistics(h * torch.from_numpy(weight)[:, None], torch.from_numpy(y)), previous)
    for leaf in (0, 1):
        w = h[:, leaf].numpy() * weight
        mean = np.average(y, axis=0, weights=w)
        variance = np.average((y - mean) ** 2, axis=0, weights=w)
        np.testing.assert_allclose(found[leaf].numpy(), [*mean, *variance])
    assert torch.equal(found[2], previous[2])


def test_the_update_never_lowers_the_likelihood_of_its_rows():
    target, (y, _, _) = Gaussians(4), some_rows()
    ones, rows = torch.ones(len(y), 1, dtype=torch.float64), torch.from_numpy(y)
    before = random_gaussians(1, 2)
    after = target.update(target.statistics(ones, rows), before)
    assert target.evidence(after, rows).sum() >= target.evidence(before, rows).sum()


def test_a_variance_stays_above_its_floor():
    one_row = torch.tensor([[1.0, 0.3, 0.09]], dtype=torch.float64)
    assert Gaussians(2).update(one_row, one_row[:, :2])[0, 1] == MIN_VARIANCE
    assert Gaussians(2).tables(one_row.numpy())[0, 1] == MIN_VARIANCE


def test_a_prior_is_rows_that_are_spread_like_all():
    target, (y, weight, _) = Gaussians(4), some_rows()
    sums = target.tally(y, weight, np.zeros(len(y), dtype=int), 1)
    # Four rows at ±1 have mean 0 and variance 1.
    more = np.array([[1.0, 1], [-1, -1], [1, 1], [-1, -1]])
    together = target.tally(np.vstack([y, more]), np.append(weight, np.ones(4)), np.zeros(len(y) + 4, dtype=int), 1)
    np.testing.assert_allclose(target.tables(sums, prior=4.0), target.tables(together))


def test_tallies_of_arrays_and_tensors_agree_with_statistics():
    target, (y, weight, group) = Gaussians(4), some_rows()
    arrays = target.tally(y, weight, group, 3)
    rows = torch.from_numpy(y)
    tensors = target.tally(rows, torch.from_numpy(weight), torch.from_numpy(group), 3)
    by_columns = target.tally(rows, torch.from_numpy(weight)[:, None], torch.from_numpy(group), 3)
    sums = target.statistics(torch.from_numpy(weight)[:, None], rows, torch.from_numpy(group), 3)
    for found in (tensors, by_columns[:, 0], sums.reshape(3, -1)):
        np.testing.assert_allclose(found.numpy(), arrays)


@pytest.mark.parametrize("at_once", [1, 60, 2**26])
def test_sums_by_products_are_those_of_every_place(at_once, monkeypatch):
    monkeypatch.setattr(regression, "MAX_MASK_VALUES", at_once)
    values, place = torch.randn(40, 2, 3, generator=generator(), dtype=torch.float64), torch.arange(40) % 3
    expected = torch.stack([values[place == one].sum(dim=0) for one in range(4)])  # nobody is at the last one
    torch.testing.assert_close(regression.sums_by_products(values, place, 4), expected)


def test_the_gain_is_the_decrease_of_variance():
    target, y = Gaussians(2), np.array([[0.0], [0.0], [1.0], [3.0]])
    sums = target.tally(y, np.ones(4), np.array([0, 0, 1, 1]), 2)
    assert gain(target, sums[0], sums[1]) == pytest.approx(np.var(y) - 0.5 * np.var([1, 3]))


def test_the_loss_of_tables_is_the_squared_error_of_rows():
    target, (y, weight, group) = Gaussians(4), some_rows()
    tables = random_gaussians(3, 2).numpy()
    expected = (weight[:, None] * (y - tables[group, :2]) ** 2).sum()
    assert target.loss(tables, target.tally(y, weight, group, 3)) == pytest.approx(expected)


def test_stumps_begin_on_both_sides_of_their_rows():
    target, y = Gaussians(2), 100 + np.random.default_rng(0).normal(size=(50, 1))
    sums = torch.from_numpy(target.tally(y, np.ones(50), np.zeros(50, dtype=int), 1))
    left, right = target.stump_tables(target.random_tables(2, generator()).reshape(2, 1, 2).double(), sums)
    assert (left[0, 0] + right[0, 0]).item() / 2 == pytest.approx(y.mean())
    assert abs(left[0, 0] - right[0, 0]).item() / 2 == pytest.approx(y.std())


def test_strata_are_quantile_bins_and_one_for_a_constant_target():
    found = Gaussians(2).strata(np.arange(100.0)[:, None])
    assert np.bincount(found).tolist() == [10] * 10
    assert (np.diff(found) >= 0).all()
    assert not Gaussians(2).strata(np.ones((20, 1))).any()


def test_tables_in_units_of_y_equal_those_of_unscaled_y():
    y, weight, group = some_rows()
    center, unit, target = y.mean(axis=0), y.std(axis=0), Gaussians(4)
    scaled = target.tables(target.tally((y - center) / unit, weight, group, 3))
    np.testing.assert_allclose(
        target.restore_units(scaled, center, unit), target.tables(target.tally(y, weight, group, 3))
    )


def test_files_with_negative_variances_are_refused():
    assert Gaussians(2).check(np.array([[0.0, -1.0]])) == "not means and variances"
    assert Gaussians(2).check(np.array([[0.0, 1.0]])) is None


def test_variances_are_drawn_halfway_to_that_of_all_leaves_of_a_place():
    tables = torch.tensor([[[0.0, 1.0]], [[2.0, 4.0]]], dtype=torch.float64)  # two leaves, one place
    sums = torch.tensor([[[3.0, 0, 0]], [[1.0, 0, 0]]], dtype=torch.float64)
    found = Gaussians(2).pool_variances(tables, sums)
    assert found[:, 0].tolist() == [[0.0, 0.5 + 0.875], [2.0, 2 + 0.875]]
