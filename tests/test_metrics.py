import numpy as np
import pytest
from sklearn import metrics as theirs

from crisptree import metrics

RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 3, (4, 20, 30))
FOUND = np.where(RNG.random(TRUTH.shape) < 0.7, TRUTH, RNG.integers(0, 3, TRUTH.shape))


def test_the_adapted_rand_error_is_that_of_all_pairs_of_pixels():
    truth, found = RNG.integers(0, 4, (6, 7)), RNG.integers(1, 4, (6, 7))
    true, seen = truth[truth > 0], found[truth > 0]
    in_truth, in_found = (values[:, None] == values for values in (true, seen))  # every pixel with every pixel
    both = (in_truth & in_found).sum()
    precision, recall = both / in_found.sum(), both / in_truth.sum()
    expected = 1 - 2 * precision * recall / (precision + recall)
    assert metrics.adapted_rand_error(truth, found) == pytest.approx(expected)


def test_the_adapted_rand_error_ignores_segment_labels():
    truth = np.array([[1, 1, 0, 2], [1, 0, 3, 3]])
    assert metrics.adapted_rand_error(truth, np.array([[7, 7, 0, 5], [7, 0, 9, 9]])) == 0.0
    assert metrics.adapted_rand_error([truth, truth], [truth, truth]) == 0.0
    assert metrics.adapted_rand_error(np.stack([truth, truth]), np.stack([truth, truth])) == 0.0


def test_a_pixel_between_the_found_segments_is_a_segment_of_its_own():
    numbered = metrics.adapted_rand_error([[1, 1, 1, 1]], [[1, 2, 3, 4]])
    assert metrics.adapted_rand_error([[1, 1, 1, 1]], [[0, 0, 0, 0]]) == pytest.approx(numbered)


def test_merging_and_splitting_a_cell_have_the_same_error():
    apart, joined = np.array([[1, 1, 2, 2]]), np.array([[1, 1, 1, 1]])
    assert metrics.adapted_rand_error(apart, joined) == pytest.approx(metrics.adapted_rand_error(joined, apart))


def test_neighbours_are_counted_in_every_image_and_never_across_two():
    flat, board = np.zeros((3, 3)), np.indices((3, 3)).sum(axis=0) % 2
    assert metrics.neighbours_in_same_leaf(flat) == 1.0
    assert metrics.neighbours_in_same_leaf(board) == 0.0
    assert metrics.neighbours_in_same_leaf([flat, board]) == 0.5
    assert metrics.neighbours_in_same_leaf(np.stack([flat, flat + 1])) == 1.0


@pytest.mark.parametrize("ignored", [9, np.nan])
def test_ignored_pixels_do_not_count(ignored):
    truth, found = np.array([[0, 1], [ignored, ignored]]), np.array([[0, 0], [1, 0]])
    true, predicted = metrics.flatten_pixels(truth, found, ignore_label=ignored)
    assert (true.tolist(), predicted.tolist()) == ([0, 1], [0, 0])


def test_lists_of_images_of_unequal_size_are_pooled():
    truth, found = [TRUTH[0], TRUTH[1, :5]], [FOUND[0], FOUND[1, :5]]
    pooled = metrics.flatten_pixels(truth, found)
    for images, flat in zip((truth, found), pooled, strict=True):
        assert np.array_equal(flat, np.concatenate([image.ravel() for image in images]))


def test_labels_may_be_text():
    true, predicted = metrics.flatten_pixels(np.array(["a", "b"]), np.array(["a", "a"]), ignore_label=np.nan)
    assert theirs.accuracy_score(true, predicted) == 0.5


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: metrics.flatten_pixels([0, 1], [0]), "same shapes"),
        (lambda: metrics.flatten_pixels([9], [0], ignore_label=9), "at least one labelled pixel"),
        (lambda: metrics.adapted_rand_error([[0, 0]], [[1, 1]]), "at least one segment"),
        (lambda: metrics.adapted_rand_error([1, 1], [1, 1]), "height, width"),
        (lambda: metrics.neighbours_in_same_leaf([[1]]), "two pixels"),
    ],
)
def test_invalid_label_images_are_rejected(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


SAID = RNG.dirichlet(np.ones(4), 300)
CLASSES = np.array(["a", "b", "c", "d"])
NUMBERS = RNG.integers(0, 4, 300)


def test_log_loss_and_brier_score_are_those_of_scikit_learn():
    assert metrics.log_loss(NUMBERS, SAID) == pytest.approx(theirs.log_loss(NUMBERS, SAID))
    two = np.stack([SAID[:, 0], 1 - SAID[:, 0]], axis=1)
    assert metrics.brier_score(NUMBERS % 2, two) == pytest.approx(2 * theirs.brier_score_loss(NUMBERS % 2, two[:, 1]))


def test_labels_are_matched_to_the_columns_of_classes():
    for measure in (metrics.log_loss, metrics.brier_score, metrics.calibration_error):
        assert measure(CLASSES[NUMBERS], SAID, CLASSES) == measure(NUMBERS, SAID)


def test_log_loss_is_infinite_for_probability_zero_and_zero_for_probability_one():
    assert metrics.log_loss([0, 1], [[1.0, 0.0], [1.0, 0.0]]) == np.inf
    assert str(metrics.log_loss([0], [[1.0, 0.0]])) == "0.0"


def test_the_brier_score_is_between_zero_and_two():
    assert metrics.brier_score([0], [[1.0, 0.0, 0.0]]) == 0
    assert metrics.brier_score([2], [[1.0, 0.0, 0.0]]) == 2


def test_the_calibration_error_compares_confidence_and_truth_bin_by_bin():
    confidence = np.linspace(0.51, 1.0, 300)
    said = np.stack([confidence, 1 - confidence], axis=1)
    truth = np.arange(300) % 3 > 0
    expected = sum(
        abs((truth[rows] == 0).mean() - confidence[rows].mean()) * len(rows) / 300
        for rows in np.split(np.arange(300), 15)
    )
    assert metrics.calibration_error(truth.astype(int), said) == pytest.approx(expected)
    assert metrics.calibration_error([0, 0], [[1.0, 0.0], [1.0, 0.0]]) == 0
    assert metrics.calibration_error([1, 1], [[1.0, 0.0], [1.0, 0.0]]) == 1


def test_the_calibration_error_does_not_depend_on_the_order_of_rows_that_are_equally_sure():
    said = np.array([[0.9, 0.1], [0.6, 0.4]])[np.arange(200) % 2]
    truth = (np.arange(200) % 7 == 0).astype(int)
    order = np.random.default_rng(1).permutation(200)
    expected = metrics.calibration_error(truth, said)
    assert metrics.calibration_error(truth[order], said[order]) == pytest.approx(expected)
    right = [np.mean(truth[said[:, 0] == sure] == 0) for sure in (0.9, 0.6)]
    assert expected == pytest.approx((abs(0.9 - right[0]) + abs(0.6 - right[1])) / 2)


@pytest.mark.parametrize(
    ("truth", "said", "classes", "message"),
    [
        ([0, 1], [[0.5, 0.5]], None, "a row of probabilities for each"),
        ([], np.zeros((0, 2)), None, "at least one true class"),
        ([0], [[0.7, 0.7]], None, "add up to 1"),
        ([0], [[np.nan, 1.0]], None, "finite"),
        ([2], [[0.5, 0.5]], None, r"among \[0, 1\]; got \[2\] too"),
        (["x"], [[0.5, 0.5]], ["a"], "must name the 2 columns"),
    ],
)
def test_invalid_probabilities_are_rejected(truth, said, classes, message):
    for measure in (metrics.log_loss, metrics.brier_score, metrics.calibration_error):
        with pytest.raises(ValueError, match=message):
            measure(truth, said, classes)
