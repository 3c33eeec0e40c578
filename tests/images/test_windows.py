import numpy as np
import pytest

from crisptree.data.raw_rows import Canvas, WindowView, smooth_image


def images_of(*shapes, channels=1, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(*shape, channels)).astype(np.float32) for shape in shapes]


def window_by_hand(image, view, y, x):
    """The definition: every sample looked up by itself, coordinates folded back at the borders."""

    def fold(place, side):
        place = abs(place)
        return place if place < side else 2 * (side - 1) - place

    half, planes = view.window // 2, [smooth_image(image, scale) for scale in view.scales]
    values = [
        plane[fold(y + dy * scale, image.shape[0]), fold(x + dx * scale, image.shape[1]), channel]
        for dy in range(-half, half + 1)
        for dx in range(-half, half + 1)
        for plane, scale in zip(planes, view.scales, strict=True)
        for channel in range(image.shape[2])
    ]
    return np.array(values, dtype=np.float32)


@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("scales", [(1,), (1, 2), (3,)])
def test_the_window_of_every_pixel_is_what_lies_around_it_mirrored_at_the_borders(channels, scales):
    images, view = images_of((8, 9), (10, 7), channels=channels), WindowView(5, scales, channels)
    rows = Canvas.of(images, view).windows()[:]
    expected = [
        window_by_hand(image, view, y, x) for image in images for y in range(len(image)) for x in range(image.shape[1])
    ]
    assert np.array_equal(rows, np.array(expected))


def test_windows_of_one_pixel_are_the_pixels():
    image = images_of((4, 5), channels=2)[0]
    assert np.array_equal(Canvas.of([image], WindowView(1, (1,), 2)).windows()[:], image.reshape(-1, 2))


def test_windows_of_selected_pixels():
    canvas = Canvas.of(images_of((6, 6), (7, 5)), WindowView(3, (1,), 1))
    everything, some = canvas.windows()[:], canvas.windows(canvas.places(1)[2:4, 1])[:]
    assert np.array_equal(some, everything[36:].reshape(7, 5, 9)[2:4, 1])


def test_a_canvas_returns_its_images():
    images = images_of((6, 9), (7, 5))
    canvas = Canvas.of(images, WindowView(3, (1,), 1))
    for number, image in enumerate(images):
        assert np.array_equal(canvas.image(number), image)


def test_smoothing_keeps_a_plane_and_the_sum_of_a_dot():
    plane = np.full((9, 9, 1), 3.0, dtype=np.float32)
    assert np.allclose(smooth_image(plane, 4), 3.0)
    dot = np.zeros((31, 31, 1), dtype=np.float32)
    dot[15, 15] = 1
    spread = smooth_image(dot, 4)[:, :, 0]
    assert spread.sum() == pytest.approx(1, abs=1e-6)
    assert np.allclose(spread, spread.T)
    assert np.allclose(spread, spread[::-1])
    rows = np.arange(31) - 15
    assert (spread.sum(axis=1) * rows**2).sum() == pytest.approx(4.0, rel=0.03)  # standard deviation 4 / 2


def test_the_shape_of_a_row_counts_scales_as_channels():
    assert WindowView(5, (1,), 1).image_shape == (5, 5)
    assert WindowView(5, (1, 4), 3).image_shape == (5, 5, 6)
    assert WindowView(5, (1, 4), 3).margin == 8
