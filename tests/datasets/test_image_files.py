import numpy as np
import pytest
from PIL import Image

from crisptree.datasets.catalog import DataFormatError
from crisptree.datasets.files import read_images, write_png

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (5, 7), dtype=np.uint8)
COLOR = RNG.integers(0, 256, (5, 7, 3), dtype=np.uint8)
DEEP = RNG.integers(0, 2**16, (5, 7), dtype=np.uint16)


def test_folders_are_read_in_the_order_of_their_numbers(tmp_path):
    for number in (10, 9, 1):
        write_png(tmp_path / f"slice {number}.png", np.full((2, 3), number, dtype=np.uint8))
    (tmp_path / "notes.txt").write_text("no image")
    images = read_images(tmp_path)
    assert [image.name for image in images] == ["slice 1", "slice 9", "slice 10"]
    assert [int(image.array[0, 0]) for image in images] == [1, 9, 10]


@pytest.mark.parametrize("array", [GREY, COLOR, DEEP], ids=["grey", "color", "16 bits"])
@pytest.mark.parametrize("ending", ["png", "tif"])
def test_pixel_values_are_read_unchanged(tmp_path, array, ending):
    path = tmp_path / f"ä.{ending}"
    Image.fromarray(array).save(path)
    (found,) = read_images(path)
    assert np.array_equal(found.array, array)


def test_a_stack_gives_its_pages(tmp_path):
    pages = [Image.fromarray(GREY + np.uint8(page)) for page in range(11)]
    pages[0].save(tmp_path / "s.tif", save_all=True, append_images=pages[1:])
    images = read_images(tmp_path / "s.tif")
    assert [image.name for image in images][::10] == ["s-01", "s-11"]
    assert np.array_equal(images[3].array, GREY + np.uint8(3))


def test_labels_are_the_numbers_of_a_palette_and_images_its_colors(tmp_path):
    image = Image.fromarray(GREY % 3, mode=None).convert("P")
    image.putdata((GREY % 3).ravel().tolist())
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    image.save(tmp_path / "p.png")
    assert np.array_equal(read_images(tmp_path / "p.png", labels=True)[0].array, GREY % 3)
    assert read_images(tmp_path / "p.png")[0].array.shape == (5, 7, 3)


def test_images_round_trip(tmp_path):
    for array in (GREY, DEEP):
        write_png(tmp_path / "x.png", array)
        assert np.array_equal(read_images(tmp_path / "x.png", labels=True)[0].array, array)


def test_files_that_are_no_images_are_rejected(tmp_path):
    with pytest.raises(DataFormatError, match="there is no file or folder"):
        read_images(tmp_path / "none")
    with pytest.raises(DataFormatError, match=r"must hold \.png, \.tif, \.tiff files; it holds none"):
        read_images(tmp_path)
    (tmp_path / "x.jpg").write_bytes(b"")
    with pytest.raises(DataFormatError, match="must be a folder of images or end in"):
        read_images(tmp_path / "x.jpg")
    (tmp_path / "x.png").write_bytes(b"not really")
    with pytest.raises(DataFormatError, match=r"is damaged or not a \.png file"):
        read_images(tmp_path)
    Image.fromarray(COLOR).save(tmp_path / "x.png")
    with pytest.raises(DataFormatError, match="must have one whole number per pixel, its class; got mode RGB"):
        read_images(tmp_path, labels=True)
    Image.fromarray(COLOR).convert("RGBA").save(tmp_path / "x.png")
    with pytest.raises(DataFormatError, match="must be grey or RGB; got mode RGBA"):
        read_images(tmp_path)
    Image.fromarray(GREY).save(tmp_path / "x.png")
    Image.fromarray(GREY).save(tmp_path / "x.tif")
    with pytest.raises(DataFormatError, match="holds two images named x"):
        read_images(tmp_path)
