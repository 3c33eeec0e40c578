import numpy as np
import pytest

from crisptree.plots.weights import as_image, rescale_to_unit, side_by_side


def test_weights_fill_the_grey_range():
    drawn = rescale_to_unit(np.array([-3.0, 1.0, 5.0]))
    assert drawn.tolist() == [0.0, 0.5, 1.0]


def test_equal_weights_are_grey():
    assert rescale_to_unit(np.zeros(3)).tolist() == [0.5] * 3


def test_constant_pixels_do_not_take_the_range_of_the_others():
    counts = np.array([False, True, True])
    assert rescale_to_unit(np.array([0.0, 100.0, 101.0]), counts).tolist() == [0.0, 0.0, 1.0]
    assert rescale_to_unit(np.array([2.0, 2.0, 2.0]), np.zeros(3, bool)).tolist() == [0.5] * 3


@pytest.mark.parametrize(
    ("shape", "size"), [((2, 3), (2, 3)), ((2, 3, 1), (2, 3)), ((2, 3, 3), (2, 3, 3)), ((2, 3, 2), (2, 7))]
)
def test_channels_are_grey_colours_or_side_by_side(shape, size):
    drawn = as_image(np.arange(float(np.prod(shape))), shape)
    assert drawn.shape == size
    assert (np.nanmin(drawn), np.nanmax(drawn)) == (0, 1)


def test_many_channels_make_a_sheet():
    sheet = side_by_side(np.arange(20.0), (2, 2, 5))
    assert sheet.shape == (5, 8)
    assert sheet[:2, :2].ravel().tolist() == [0, 5, 10, 15]
    assert np.isnan(sheet[3:, 6:]).all()  # there is no sixth
