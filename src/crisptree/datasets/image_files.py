"""Image files as arrays: folders of .png and .tif, or stacks of many pages; and arrays as .png. All through Pillow."""

from __future__ import annotations

import io
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree import limits
from crisptree.datasets.catalog import DataFormatError
from crisptree.files import checked_size, reading

ENDINGS = (".png", ".tif", ".tiff")
CONVERTED = {"P": "RGB", "1": "L"}
"""Modes that are turned into others before an image is an array; labels keep the numbers of a palette."""

MODES = ("L", "RGB", "I", "I;16", "I;16B", "F")
MODE_BYTES = {"1": 1, "L": 1, "P": 3, "RGB": 3}
"""What a pixel takes as an array; four bytes in other modes."""

LABEL_BYTES = 8
LABEL_MODES = ("1", "L", "P", "I", "I;16", "I;16B")


class NamedImage(NamedTuple):
    """An image, (height, width) or (height, width, 3), and a name for files that belong to it."""

    name: str
    array: npt.NDArray[Any]


def read_images(path: Path, *, labels: bool = False, floats: bool = False) -> list[NamedImage]:
    """All images of a folder of .png and .tif, in the order of the numbers in their names, or all pages of one file.

    With ``labels`` a pixel is a class: it must be one whole number, and a palette is passed over. With ``floats`` too
    it may have a fraction, in images of type F.
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
    images = []
    for file in files:
        pages = _pages(file, str(file), labels, floats)
        numbers = [""] if len(pages) == 1 else [f"-{page + 1:0{len(str(len(pages)))}d}" for page in range(len(pages))]
        images += [NamedImage(file.stem + number, page) for number, page in zip(numbers, pages, strict=True)]
    twice = [name for name, count in Counter(image.name for image in images).items() if count > 1]
    if twice:
        raise DataFormatError(f"{path} holds two images named {twice[0]}. Give every image a name of its own.")
    return images


def read_stack(files: Sequence[Path | io.BytesIO], shown: str) -> npt.NDArray[np.uint8]:
    """All pages of some files as one array of greys, (n, height, width); ``shown`` names the stack in messages."""
    pages = [page for file in files for page in _pages(file, str(file) if isinstance(file, Path) else shown)]
    if any(page.dtype != np.uint8 or page.ndim != 2 for page in pages):
        raise DataFormatError(f"{shown} must hold grey images of 8 bits; it holds others.")
    if len({page.shape for page in pages}) != 1:
        raise DataFormatError(f"{shown} must hold images of one size; got {len(pages)} images of several or none.")
    return np.stack(pages)


def find_numbered_files(folder: Path) -> list[Path]:
    """The ``.png`` of a folder by the last number in their names; none may be missing, which would shift the others."""
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


def write_png(path: Path, array: npt.NDArray[Any]) -> None:
    """A grey image, (height, width), of 8 or 16 bits by the type of the array."""
    _pillow().fromarray(np.ascontiguousarray(array)).save(path, format="PNG")


def write_tif(path: Path, array: npt.NDArray[Any]) -> None:
    """An image of numbers in single precision, (height, width)."""
    _pillow().fromarray(np.ascontiguousarray(array, dtype=np.float32)).save(path, format="TIFF")


def _pillow() -> ModuleType:
    """Pillow's images, or a sentence that says how to install them."""
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "reading .tif and .png needs Pillow; install it with: pip install 'crisptree[images]'", name=error.name
        ) from error
    return Image


def _natural(path: Path) -> tuple[Any, ...]:
    """Slice 10 comes after slice 9."""
    parts = re.split(r"(\d+)", path.name)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)


def _pages(file: Path | io.BytesIO, shown: str, labels: bool = False, floats: bool = False) -> list[npt.NDArray[Any]]:
    with reading(shown, DataFormatError, f"{Path(shown).suffix or 'image'} file", " Write or download it again."):
        size, most = checked_size(file) if isinstance(file, Path) else file.getbuffer().nbytes, limits.current()
        pages, n_bytes = list[npt.NDArray[Any]](), 0
        # Pillow warns of odd tags, which ImageJ writes.
        with warnings.catch_warnings(action="ignore"), _pillow().open(file, formats=["PNG", "TIFF"]) as image:
            n_pages = int(getattr(image, "n_frames", 1))
            most.check("pages", n_pages, f"has {n_pages:,} pages")
            for page in range(n_pages):
                image.seek(page)
                width, height = image.size
                n_bytes += width * height * (LABEL_BYTES if labels else MODE_BYTES.get(image.mode, 4))
                most.check_unpacked(n_bytes, size, f"says that its pages hold {n_bytes:,} bytes")
                pages.append(_array(image, shown, labels and not (floats and image.mode == "F")))
    return pages


def _array(image: Any, shown: str, labels: bool) -> npt.NDArray[Any]:
    if labels:
        if image.mode not in LABEL_MODES:
            raise DataFormatError(f"{shown} must have one whole number per pixel, its class; got mode {image.mode}.")
        return np.array(image).astype(np.int64)
    mode = CONVERTED.get(image.mode, image.mode)
    if mode not in MODES:
        raise DataFormatError(f"{shown} must be grey or RGB; got mode {image.mode}. Convert it first.")
    return np.array(image if mode == image.mode else image.convert(mode))
