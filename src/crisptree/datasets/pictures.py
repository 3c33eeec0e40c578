"""Image files of one's own: folders of .png and .tif, or stacks of many pages, as arrays, and arrays as .png."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.datasets.errors import DataFormatError
from crisptree.datasets.stacks import pillow

ENDINGS = (".png", ".tif", ".tiff")
COLOR = {"P": "RGB", "1": "L"}
"""Modes that are turned into others before an image is an array; labels keep the numbers of a palette."""

MODES = ("L", "RGB", "I", "I;16", "I;16B", "F")
LABEL_MODES = ("1", "L", "P", "I", "I;16", "I;16B")


@dataclass(frozen=True, eq=False)
class Picture:
    """An image, (height, width) or (height, width, 3), and a name for files that belong to it."""

    name: str
    array: npt.NDArray[Any]


def read_pictures(path: Path, *, labels: bool = False) -> list[Picture]:
    """All images of a folder, in the order of the numbers in their names, or all pages of one file.

    Parameters
    ----------
    path : Path
        A folder of .png and .tif, or one of them.
    labels : bool, default=False
        Whether a pixel is a class: then it must be one whole number, and a palette is passed over.
    """
    if path.is_dir():
        files = sorted((file for file in path.iterdir() if file.suffix.lower() in ENDINGS), key=_natural)
        if not files:
            raise DataFormatError(f"{path} must hold {', '.join(ENDINGS)} files; it holds none.")
    elif not path.exists():
        raise DataFormatError(f"there is no file or folder {path}.")
    elif path.suffix.lower() not in ENDINGS:
        raise DataFormatError(f"{path} must be a folder of images or end in {', '.join(ENDINGS)}.")
    else:
        files = [path]
    pictures = [picture for file in files for picture in _pages(file, labels)]
    twice = [name for name, count in Counter(picture.name for picture in pictures).items() if count > 1]
    if twice:
        raise DataFormatError(f"{path} holds two images named {twice[0]}. Give every image a name of its own.")
    return pictures


def write_png(path: Path, array: npt.NDArray[Any]) -> None:
    """A grey image, (height, width), of 8 or 16 bits by the type of the array."""
    pillow().fromarray(np.ascontiguousarray(array)).save(path, format="PNG")


def _natural(path: Path) -> tuple[Any, ...]:
    """Slice 10 comes after slice 9."""
    parts = re.split(r"(\d+)", path.name)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)


def _pages(path: Path, labels: bool) -> list[Picture]:
    try:
        # Pillow warns of odd tags, which ImageJ writes.
        with warnings.catch_warnings(action="ignore"), pillow().open(path, formats=["PNG", "TIFF"]) as image:
            count = getattr(image, "n_frames", 1)
            pages = []
            for page in range(count):
                image.seek(page)
                name = path.stem if count == 1 else f"{path.stem}-{page + 1:0{len(str(count))}d}"
                pages.append(Picture(name, _array(image, path, labels)))
    except (DataFormatError, ModuleNotFoundError, MemoryError):
        raise
    except Exception as error:  # Pillow has no one class for damage
        raise DataFormatError(f"{path} is damaged or not a {path.suffix} file ({error}).") from error
    return pages


def _array(image: Any, path: Path, labels: bool) -> npt.NDArray[Any]:
    if labels:
        if image.mode not in LABEL_MODES:
            raise DataFormatError(f"{path} must have one whole number per pixel, its class; got mode {image.mode}.")
        return np.array(image).astype(np.int64)
    mode = COLOR.get(image.mode, image.mode)
    if mode not in MODES:
        raise DataFormatError(f"{path} must be grey or RGB; got mode {image.mode}. Convert it first.")
    return np.array(image if mode == image.mode else image.convert(mode))
