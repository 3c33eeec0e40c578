"""Reading stacks of grey images: a ``.tif`` of many pages, or a folder of numbered ``.png``."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from crisptree.datasets.errors import DataFormatError

if TYPE_CHECKING:
    from PIL.Image import Image


def read_tif(data: bytes, shown: str) -> npt.NDArray[np.uint8]:
    """All pages of a .tif, (n, height, width); ``shown`` names the file in messages."""
    images = pillow()
    try:
        # Pillow warns of odd tags, which ImageJ writes; the pixels are what counts, and the loader counts them.
        with warnings.catch_warnings(action="ignore"), images.open(io.BytesIO(data), formats=["TIFF"]) as image:
            pages = []
            for page in range(image.n_frames):
                image.seek(page)
                pages.append(_grey(image, shown))
    except DataFormatError:
        raise
    except Exception as error:  # Pillow has no one class for damage
        raise DataFormatError(f"{shown} is damaged or not a .tif file ({error}). Download it again.") from error
    return _stacked(pages, shown)


def read_png_folder(folder: Path) -> npt.NDArray[np.uint8]:
    """All ``.png`` of a folder in the order of the numbers in their names, (n, height, width)."""
    images = pillow()
    pages = []
    for path in _in_order(folder):
        try:
            with images.open(path, formats=["PNG"]) as image:
                pages.append(_grey(image, str(path)))
        except DataFormatError:
            raise
        except Exception as error:
            raise DataFormatError(f"{path} is damaged or not a .png file ({error}). Download it again.") from error
    return _stacked(pages, str(folder))


def pillow() -> ModuleType:
    """Pillow's images, or a sentence that says how to install them."""
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "reading .tif and .png needs Pillow; install it with: pip install 'crisptree[images]'", name=error.name
        ) from error
    return Image


def _in_order(folder: Path) -> list[Path]:
    """Slice 10 comes after slice 9, and no slice is missing: a gap would shift the official split."""
    numbered = {}
    for path in folder.glob("*.png"):
        numbers = re.findall(r"\d+", path.stem)
        if not numbers or int(numbers[-1]) in numbered:
            raise DataFormatError(f"{path} must have a number of its own in its name: the place of its slice.")
        numbered[int(numbers[-1])] = path
    order = sorted(numbered)
    gaps = sorted(set(range(order[0], order[-1])) - set(order)) if order else []
    if gaps:
        raise DataFormatError(f"{folder} must hold all slices of a stack; number {gaps[0]} is missing.")
    return [numbered[number] for number in order]


def _grey(image: Image, shown: str) -> npt.NDArray[np.uint8]:
    if image.mode not in ("1", "L"):
        raise DataFormatError(f"{shown} must hold grey images of 8 bits; got mode {image.mode}.")
    return np.array(image.convert("L"))


def _stacked(pages: list[npt.NDArray[np.uint8]], shown: str) -> npt.NDArray[np.uint8]:
    if len({page.shape for page in pages}) != 1:
        raise DataFormatError(f"{shown} must hold images of one size; got {len(pages)} images of several or none.")
    return np.stack(pages)
