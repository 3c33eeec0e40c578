import numpy as np
import pytest
from sklearn import metrics as theirs

from crisptree import metrics

RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 3, (4, 20, 30))
FOUND = np.where(RNG.random(TRUTH.shape) < 0.7, TRUTH, RNG.integers(0, 3, TRUTH.shape))
SCORE = np.round(RNG.random(TRUTH.shape) + (TRUTH == 2), 1)


def test_accuracy_f1_recall_and_overlap_are_those_of_scikit_learn():
    flat = TRUTH.ravel(), FOUND.ravel()
    assert metrics.pixel_accuracy(TRUTH, FOUND) == pytest.approx(theirs.accuracy_score(*flat))
    overlap = metrics.intersection_over_union(TRUTH, FOUND)
    for label in range(3):
        assert metrics.f1(TRUTH, FOUND, label) == pytest.approx(theirs.f1_score(*flat, labels=[label], average="macro"))
        assert metrics.recall(TRUTH, FOUND, label) == pytest.approx(
            theirs.recall_score(*flat, labels=[label], average="macro")
        )
        assert overlap[label] == pytest.approx(theirs.jaccard_score(*flat, labels=[label], average="macro"))
    assert np.array_equal(metrics.confusion(TRUTH, FOUND)[1], theirs.confusion_matrix(*flat))


def test_the_area_under_the_curve_counts_ties_half_as_scikit_learn_does():
    expected = theirs.roc_auc_score(TRUTH.ravel() == 2, SCORE.ravel())
    assert metrics.roc_auc(TRUTH, SCORE, positive=2) == pytest.approx(expected)
    assert metrics.roc_auc([0, 1], [0.5, 0.5]) == 0.5
    assert metrics.roc_auc([0, 0, 1], [0.1, 0.9, 0.5]) == 0.5


def test_the_adapted_rand_error_is_that_of_all_pairs_of_pixels():
    truth, found = RNG.integers(0, 4, (6, 7)), RNG.integers(1, 4, (6, 7))
    true, seen = truth[truth > 0], found[truth > 0]
    in_truth, in_found = (values[:, None] == values for values in (true, seen))  # every pixel with every pixel
    both = (in_truth & in_found).sum()
    precision, recall = both / in_found.sum(), both / in_truth.sum()
    expected = 1 - 2 * precision * recall / (precision + recall)
    assert metrics.adapted_rand_error(truth, found) == pytest.approx(expected)


def test_equal_segments_have_no_error_whatever_their_numbers():
    truth = np.array([[1, 1, 0, 2], [1, 0, 3, 3]])
    assert metrics.adapted_rand_error(truth, np.array([[7, 7, 0, 5], [7, 0, 9, 9]])) == 0.0
    assert metrics.adapted_rand_error([truth, truth], [truth, truth]) == 0.0
    assert metrics.adapted_rand_error(np.stack([truth, truth]), np.stack([truth, truth])) == 0.0


def test_a_pixel_between_the_found_segments_is_a_segment_of_its_own():
    numbered = metrics.adapted_rand_error([[1, 1, 1, 1]], [[1, 2, 3, 4]])
    assert metrics.adapted_rand_error([[1, 1, 1, 1]], [[0, 0, 0, 0]]) == pytest.approx(numbered)


def test_a_merged_and_a_split_cell_cost_alike():
    apart, joined = np.array([[1, 1, 2, 2]]), np.array([[1, 1, 1, 1]])
    assert metrics.adapted_rand_error(apart, joined) == pytest.approx(metrics.adapted_rand_error(joined, apart))


def test_segments_hang_together_by_their_sides_not_by_their_corners():
    assert metrics.segments([[1, 0], [0, 1]]).max() == 2
    assert metrics.segments([[1, 1], [0, 1]]).max() == 1


def test_neighbours_are_counted_in_every_image_and_never_across_two():
    flat, board = np.zeros((3, 3)), np.indices((3, 3)).sum(axis=0) % 2
    assert metrics.neighbours_in_same_leaf(flat) == 1.0
    assert metrics.neighbours_in_same_leaf(board) == 0.0
    assert metrics.neighbours_in_same_leaf([flat, board]) == 0.5
    assert metrics.neighbours_in_same_leaf(np.stack([flat, flat + 1])) == 1.0


def test_ignored_pixels_do_not_count():
    truth, found = np.array([0, 1, 9, 9]), np.array([0, 0, 1, 0])
    assert metrics.pixel_accuracy(truth, found, ignore_label=9) == 0.5
    assert metrics.roc_auc(truth, np.array([0.2, 0.1, 5.0, 5.0]), ignore_label=9) == 0.0
    assert set(metrics.intersection_over_union(truth, found, ignore_label=9)) == {0, 1}


def test_lists_of_images_of_unequal_size_are_counted_together():
    truth, found = [TRUTH[0], TRUTH[1, :5]], [FOUND[0], FOUND[1, :5]]
    joined = [np.concatenate([image.ravel() for image in images]) for images in (truth, found)]
    assert metrics.pixel_accuracy(truth, found) == metrics.pixel_accuracy(*joined)


def test_strings_are_labels_too():
    assert metrics.pixel_accuracy(np.array(["a", "b"]), np.array(["a", "a"])) == 0.5


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: metrics.pixel_accuracy([0, 1], [0]), "same shapes"),
        (lambda: metrics.pixel_accuracy([9], [0], ignore_label=9), "at least one labelled pixel"),
        (lambda: metrics.roc_auc([1, 1], [0.1, 0.2]), "and of others"),
        (lambda: metrics.roc_auc([0, 1], [0.1, np.nan]), "finite"),
        (lambda: metrics.recall([0, 0], [0, 1]), "no pixel of class 1"),
        (lambda: metrics.adapted_rand_error([[0, 0]], [[1, 1]]), "at least one segment"),
        (lambda: metrics.adapted_rand_error([1, 1], [1, 1]), "height, width"),
        (lambda: metrics.neighbours_in_same_leaf([[1]]), "two pixels"),
    ],
)
def test_what_cannot_be_counted_is_refused_with_a_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_pixels_whose_label_is_not_a_number_can_be_left_out():
    truth, found = np.array([0.0, 1.0, np.nan]), np.array([0.0, 0.0, 1.0])
    assert metrics.pixel_accuracy(truth, found, ignore_label=np.nan) == 0.5
    assert metrics.roc_auc(truth, np.array([0.1, 0.9, 0.5]), ignore_label=float("nan")) == 1.0
    assert metrics.pixel_accuracy(np.array([0, 1]), np.array([0, 0]), ignore_label=np.nan) == 0.5
