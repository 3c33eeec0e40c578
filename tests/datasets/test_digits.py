import numpy as np

from crisptree.datasets import load_digits


def test_the_parts_hold_every_digit_once_and_all_classes():
    digits = load_digits()
    parts = [digits.X_train, digits.X_valid, digits.X_test]
    assert sum(map(len, parts)) == 1797
    assert all(set(y) == set(range(10)) for y in (digits.y_train, digits.y_valid, digits.y_test))
    assert np.prod(digits.image_shape) == digits.X_train.shape[1]


def test_the_seed_determines_the_split():
    assert np.array_equal(load_digits().X_test, load_digits().X_test)
    assert not np.array_equal(load_digits(seed=1).X_test, load_digits().X_test)
