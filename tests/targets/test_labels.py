import datetime
import fractions

import numpy as np
import pytest

from crisptree import CrispSegmenter, CrispTreeClassifier
from crisptree.targets.base import class_numbers


def by_definition(labels, classes):
    classes = list(classes)
    return [classes.index(label) if label in classes else -1 for label in labels]


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([3, 1, 2, 3], [1, 2, 3]),
        ([3, 1, 9], [3, 1]),
        ([1, 2, 0], [1.0, 2.0]),
        ([1.0, 2.5, 2.0], [1, 2]),
        ([True, False, True], [False, True]),
        ([True, False], [0, 1]),
        ([1, 0, 2], [False, True]),
        (["b", "a", "c", ""], ["a", "b"]),
        (["1", "2"], [1, 2]),
        ([1, 2], ["1", "2"]),
        ([-1, 255], [0, 255]),
        ([], [1, 2]),
    ],
)
def test_a_label_gets_the_place_of_the_class_that_equals_it(labels, classes):
    numbers = class_numbers(np.array(labels), np.array(classes))
    assert numbers.tolist() == by_definition(labels, classes)
    assert numbers.dtype == np.int64


def test_object_arrays_may_mix_types_without_an_order():
    labels = np.array(["a", 1, None, 2.0, True], dtype=object)
    assert class_numbers(labels, np.array([1, "a", 2], dtype=object)).tolist() == [1, 0, -1, 2, 0]
    assert class_numbers(labels, [1, 2]).tolist() == [-1, 0, -1, 1, 0]


def test_small_types_are_compared_by_value():
    assert class_numbers(np.array([200, 7], dtype=np.uint8), np.array([-56, 7], dtype=np.int8)).tolist() == [-1, 1]
    assert class_numbers(np.array([0.5], dtype=np.float32), [0.5]).tolist() == [0]


def test_integers_beyond_double_precision_are_distinguished():
    large = 2**53
    assert class_numbers(np.array([large, large + 1]), [float(large)]).tolist() == [0, -1]


def test_nan_is_no_class():
    assert class_numbers([np.nan, 1.0], [1.0, np.nan]).tolist() == [-1, 0]


def test_label_images_are_read_as_one_row_of_labels():
    assert class_numbers(np.array([[2, 1], [1, 3]]), [1, 2]).tolist() == [1, 0, 0, -1]


@pytest.mark.parametrize(
    "labels",
    [
        np.array([datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)], dtype=object),
        np.array([fractions.Fraction(1, 2), fractions.Fraction(1, 3)], dtype=object),
    ],
    ids=["dates", "fractions"],
)
def test_labels_that_no_file_could_keep_are_refused_by_fit(labels):
    X = np.arange(8.0)[:, None]
    with pytest.raises(ValueError, match=r"must be numbers, booleans, strings|Unknown label type"):
        CrispTreeClassifier(max_depth=1).fit(X, labels[np.arange(8) % 2])
    image = np.arange(64.0).reshape(8, 8)
    with pytest.raises(ValueError, match=r"must be numbers, booleans, strings|Unknown label type"):
        CrispSegmenter(window=1, max_depth=1).fit(image, labels[(image > 30).astype(int)])
