import numpy as np
import pytest

from crisptree import targets
from crisptree.learning import cart as search
from crisptree.learning.cart import LeafLimits, best_crossings, best_thresholds


def gain_of(right, y, weight, n_classes):
    """The definition: class counts on both sides."""
    counts = [np.bincount(y[side], weights=weight[side], minlength=n_classes) for side in (~right, right)]
    return float(targets.gain(targets.Classes(len(counts[0])), *counts))


def allowed(right, weight, least):
    sides = (right, ~right)
    return min(side.sum() for side in sides) >= least.rows and min(weight[side].sum() for side in sides) >= least.weight


def best_gain(partitions, y, weight, n_classes, least):
    gains = [gain_of(right, y, weight, n_classes) for right in partitions if allowed(right, weight, least)]
    return max(gains, default=-1.0)


@pytest.mark.parametrize("least", [LeafLimits(), LeafLimits(rows=5), LeafLimits(weight=12.0)], ids=str)
def test_the_best_threshold_is_that_of_trying_them_all(least):
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 12, (6, 40)).astype(np.float32)  # with ties
    y, weight = rng.integers(0, 3, 40), rng.uniform(0.1, 2.0, 40)
    best = best_thresholds(scores, y, weight, 3, least)
    for line, place, gain in zip(scores, *best, strict=True):
        partitions = [line > value for value in np.unique(line)]
        assert gain == pytest.approx(best_gain(partitions, y, weight, 3, least), abs=1e-12)
        assert gain == pytest.approx(gain_of(line > place, y, weight, 3), abs=1e-12)


def test_the_best_crossing_is_that_of_trying_them_all():
    rng = np.random.default_rng(1)
    scores, slopes = rng.normal(size=(5, 30)), rng.normal(size=(5, 30))
    slopes[:, :4] = 0  # rows that never change sides
    y, weight = rng.integers(0, 3, 30), rng.uniform(0.5, 2.0, 30)
    moves = slopes != 0
    points = np.where(moves, -scores / np.where(moves, slopes, 1), np.inf)
    right = np.where(moves, slopes < 0, scores > 0)
    best = best_crossings(points, right, y, weight, 3)
    for number, (place, gain) in enumerate(zip(*best, strict=True)):
        finite = np.sort(points[number][moves[number]])
        places = [finite[0] - 1, *(finite[:-1] + finite[1:]) / 2, finite[-1] + 1]
        partitions = [scores[number] + alpha * slopes[number] > 0 for alpha in places]
        assert gain == pytest.approx(best_gain(partitions, y, weight, 3, LeafLimits()), abs=1e-12)
        assert gain == pytest.approx(gain_of(scores[number] + place * slopes[number] > 0, y, weight, 3), abs=1e-12)


def test_chunks_of_lines_give_the_same_thresholds(monkeypatch):
    rng = np.random.default_rng(2)
    scores, y, weight = rng.normal(size=(7, 25)), rng.integers(0, 4, 25), rng.uniform(0.5, 2.0, 25)
    whole = best_thresholds(scores, y, weight, 4)
    monkeypatch.setattr(search, "CROSSINGS_PER_CHUNK", 60)
    other = best_thresholds(scores, y, weight, 4)
    np.testing.assert_allclose(other.threshold, whole.threshold)
    np.testing.assert_allclose(other.gain, whole.gain, atol=1e-12)


def test_an_integer_weight_counts_as_so_many_rows():
    rng = np.random.default_rng(3)
    scores, y, weight = rng.normal(size=(5, 40)), rng.integers(0, 3, 40), rng.integers(1, 4, 40)
    weighted = best_thresholds(scores, y, weight.astype(float), 3)
    repeated = best_thresholds(np.repeat(scores, weight, axis=1), np.repeat(y, weight), np.ones(weight.sum()), 3)
    np.testing.assert_allclose(weighted.threshold, repeated.threshold)
    np.testing.assert_allclose(weighted.gain, repeated.gain, atol=1e-12)


def test_equal_scores_have_no_threshold():
    best = best_thresholds(np.ones((2, 6)), np.arange(6) % 2, np.ones(6), 2)
    assert best.gain.tolist() == [-1.0, -1.0]


@pytest.mark.skipif(search.training is None, reason="installed without the kernel")
@pytest.mark.parametrize("least", [LeafLimits(), LeafLimits(rows=5, weight=6.0)], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 2, 90, 700])
def test_the_kernel_finds_the_thresholds_of_the_definition(n, weighted, least):
    rng = np.random.default_rng(n)
    scores = np.concatenate([rng.normal(size=(9, n)), rng.integers(0, 5, (9, n))]).astype(np.float32)
    y, weight = rng.integers(0, 3, n), rng.uniform(0.1, 2.0, n) if weighted else np.ones(n)
    found, definition = (
        find(scores, y, weight, 3, least) for find in (best_thresholds, search.best_thresholds_reference)
    )
    np.testing.assert_allclose(found.gain, definition.gain, atol=1e-12)
    possible = definition.gain >= 0
    np.testing.assert_array_equal(found.threshold[possible], definition.threshold[possible])
