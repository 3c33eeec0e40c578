import numpy as np
import pytest

from crisptree.data.raw_rows import CACHE_LINE, SCALES, Scaling


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(300, 4)) * [1, 100, 1e-3, 0] + [0, 1000, 0, 7]).astype(np.float32)


def test_each_feature_gets_mean_zero_and_spread_one_and_constant_columns_become_zero(rows):
    scaled = Scaling.learn(rows, np.ones(300), "feature").apply(rows)
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 1, 0], atol=1e-4)


def test_one_scale_for_all_keeps_the_ratios_of_the_spreads(rows):
    scaling = Scaling.learn(rows, np.ones(300), "global")
    spread = scaling.apply(rows).std(axis=0)
    assert spread[1] / spread[0] == pytest.approx(rows[:, 1].std() / rows[:, 0].std(), rel=1e-3)
    assert np.mean(spread[:3] ** 2) == pytest.approx(1, rel=1e-3)


def test_no_scale_leaves_the_rows_as_they_are_except_for_constant_columns(rows):
    scaled = Scaling.learn(rows, np.ones(300), None).apply(rows)
    assert np.array_equal(scaled[:, :3], rows[:, :3])
    assert not scaled[:, 3].any()


@pytest.mark.parametrize("kind", SCALES)
def test_integer_weights_equal_repeated_rows(rows, kind):
    weight = np.arange(300) % 3
    weighted = Scaling.learn(rows[weight > 0], weight[weight > 0].astype(float), kind)
    repeated = Scaling.learn(np.repeat(rows, weight, axis=0), np.ones(weight.sum()), kind)
    np.testing.assert_allclose(weighted.center, repeated.center, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(weighted.factor, repeated.factor, rtol=1e-12)


@pytest.mark.parametrize("kind", SCALES)
def test_folding_and_unfolding_are_inverse_except_for_constant_columns(rows, kind):
    scaling = Scaling.learn(rows, np.ones(300), kind)
    weight, bias = np.random.default_rng(1).normal(size=(5, 4)), np.arange(5.0)
    again_weight, again_bias = scaling.unfold(*scaling.fold(weight, bias))
    np.testing.assert_allclose(again_weight[:, :3], weight[:, :3], rtol=1e-6)
    np.testing.assert_allclose(again_bias, bias, atol=1e-3)
    assert not again_weight[:, 3].any()


@pytest.mark.parametrize("size", [1e30, 1e-30, 3e38])
def test_extreme_columns_are_scaled_without_overflow(size):
    rows = (np.random.default_rng(0).uniform(-1, 1, (50, 1)) * size).astype(np.float32)
    scaled = Scaling.learn(rows, np.ones(50), "feature").apply(rows)
    assert np.isfinite(scaled).all()
    np.testing.assert_allclose(scaled.std(), 1, atol=1e-3)


def test_a_single_row_has_only_constant_columns():
    scaling = Scaling.learn(np.ones((1, 3), dtype=np.float32), np.ones(1), "feature")
    assert not scaling.factor.any()


@pytest.mark.parametrize("n_rows", [1, 300])
def test_scaled_rows_begin_with_a_cache_line(rows, n_rows):
    scaled = Scaling.learn(rows, np.ones(300), "feature").apply(rows[:n_rows])
    assert scaled.shape == (n_rows, 4)
    assert scaled.ctypes.data % CACHE_LINE == 0
