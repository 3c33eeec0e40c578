import numpy as np
import pytest

from crisptree.report.encoding import DTYPE_CODES, downsample, find_step, gray_bytes, pack, signed_bytes
from tests.report.conftest import unpacked


@pytest.mark.parametrize("dtype", DTYPE_CODES)
@pytest.mark.parametrize("shape", [(0,), (5,), (2, 3, 4), (0, 7)])
def test_a_packed_array_comes_back(dtype, shape):
    array = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    assert np.array_equal(unpacked(pack(array, dtype)), array)
    assert unpacked(pack(array, dtype)).shape == shape


def test_signed_bytes_keep_zero_and_the_largest_size_of_every_row():
    values, largest = signed_bytes(np.array([[0.0, -2.0, 1.0], [0.0, 0.0, 0.0]]))
    assert values.tolist() == [[0, -127, 64], [0, 0, 0]]
    assert largest.tolist() == [2.0, 0.0]


def test_grey_runs_from_the_smallest_to_the_largest_value():
    assert gray_bytes(np.array([-1.0, 0.0, 1.0]))[0].tolist() == [0, 128, 255]
    assert gray_bytes(np.full(3, 7.0))[0].tolist() == [0, 0, 0]
    assert gray_bytes(np.zeros((0, 2)))[0].shape == (0, 2)


def test_images_shrink_to_means_of_blocks():
    image = np.arange(12, dtype=float).reshape(1, 3, 4, 1)
    assert np.array_equal(downsample(image, 1), image)
    assert downsample(image, 2)[0, :, :, 0].tolist() == [[2.5, 4.5], [8.5, 10.5]]


def test_images_shrink_just_enough():
    assert find_step(100, (28, 28, 1), 100 * 784) == 1
    assert find_step(100, (28, 28, 1), 100 * 784 - 1) == 2
    assert find_step(10**9, (28, 28, 1), 10) == 28
