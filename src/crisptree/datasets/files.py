"""Files of data sets: compressed ones, arrays in an .npz, and images (.png, .tif) through Pillow."""

from __future__ import annotations

import io
import re
import subprocess
import warnings
import zipfile
from collections import Counter
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree.datasets.catalog import DataFormatError
from crisptree.files import DECOMPRESSORS, check_members, decompress, read_npz, reading
from crisptree.limits import BoundedReader, LimitError

DOWNLOAD_AGAIN = " Download it again."

IMAGE_SUFFIXES = (".png", ".tif", ".tiff")
CONVERTED = {"P": "RGB", "1": "L"}
"""Modes that are converted to others first; labels keep the indices of a palette."""

MODES = ("L", "RGB", "I", "I;16", "I;16B", "F")
LABEL_MODES = ("1", "L", "P", "I", "I;16", "I;16B")


def read_bytes(path: Path, member: str | None = None) -> bytes:
    """Read a file and decompress it by its ending: .gz, .bz2, .xz, .Z or .zip.

    ``member`` names a file of a .zip; its folder does not matter, and it may itself be compressed.
    """
    ending = path.suffix
    with reading(path, DataFormatError, f"{ending} file", DOWNLOAD_AGAIN):
        data = path.read_bytes()
        if ending == ".zip":
            return _from_zip(data, member, path)
        return _decompress(data, ending)


def _from_zip(data: bytes, member: str | None, path: Path) -> bytes:
    if member is None:
        raise ValueError("name the member that you want")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        check_members(archive)
        names = archive.namelist()
        for ending in ("", ".Z", *DECOMPRESSORS):
            for name in names:
                if PurePosixPath(name).name == member + ending:
                    with reading(f"{name} in {path}", DataFormatError, f"{ending} file", DOWNLOAD_AGAIN):
                        return _decompress(archive.read(name), ending)
    raise DataFormatError(f"{path}: there is no {member} in it, only {', '.join(names[:20]) or 'nothing'}")


def read_compact(path: Path, *names: str) -> list[npt.NDArray[Any]]:
    """Read the compact form of a data set: arrays of an ``.npz`` by name, in this order."""
    with reading(path, DataFormatError, ".npz file"):
        arrays = read_npz(path)
        if not set(names) <= set(arrays):
            raise DataFormatError(
                f"{path} must hold the arrays {', '.join(names)}; it holds {', '.join(arrays) or 'none'}."
            )
        return [arrays[name] for name in names]


def _decompress_z(data: bytes) -> bytes:
    """Decompress a ``.Z`` file (the UCI repository has older files of this kind) with the gzip program."""
    with TemporaryFile() as packed:
        packed.write(data)
        packed.seek(0)
        try:
            program = subprocess.Popen(["gzip", "-dc"], stdin=packed, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        except FileNotFoundError:
            raise DataFormatError("a .Z file needs the gzip program. Install it, or unpack the file first.") from None
        with program:
            try:
                unpacked = io.BufferedReader(BoundedReader(program.stdout, len(data))).read()
            except LimitError:
                program.kill()
                raise
    if program.returncode:
        raise ValueError("gzip cannot decompress it")
    return unpacked


def _decompress(data: bytes, suffix: str) -> bytes:
    """Decompress data; return it as it is if the suffix is not that of a compressed file."""
    if suffix == ".Z":
        return _decompress_z(data)
    return decompress(io.BytesIO(data), suffix, len(data)).read()


class NamedImage(NamedTuple):
    """An image, (height, width) or (height, width, 3), and a name for files that belong to it."""

    name: str
    array: npt.NDArray[Any]


def read_images(path: Path, *, labels: bool = False, floats: bool = False) -> list[NamedImage]:
    """Read all images of a folder of .png and .tif, in the order of the numbers in their names, or all pages of a file.

    With ``labels``, every pixel is a class index, and a palette is ignored; with ``floats`` too, images of type F are
    read as floats.
    """
    if path.is_dir():
        files = sorted((file for file in path.iterdir() if file.suffix.lower() in IMAGE_SUFFIXES), key=_natural_key)
        if not files:
            raise DataFormatError(f"{path} must hold {', '.join(IMAGE_SUFFIXES)} files; it holds none.")
    elif not path.exists():
        raise DataFormatError(f"there is no file or folder {path}.")
    elif path.suffix.lower() not in IMAGE_SUFFIXES:
        raise DataFormatError(f"{path} must be a folder of images or end in {', '.join(IMAGE_SUFFIXES)}.")
    else:
        files = [path]
    images = []
    for file in files:
        pages = _read_pages(file, str(file), labels, floats)
        numbers = [""] if len(pages) == 1 else [f"-{page + 1:0{len(str(len(pages)))}d}" for page in range(len(pages))]
        images += [NamedImage(file.stem + number, page) for number, page in zip(numbers, pages, strict=True)]
    duplicates = [name for name, count in Counter(image.name for image in images).items() if count > 1]
    if duplicates:
        raise DataFormatError(f"{path} holds two images named {duplicates[0]}. Give every image a name of its own.")
    return images


def read_stack(file: Path | io.BytesIO, shown: str) -> npt.NDArray[np.uint8]:
    """Read all pages of a file as one array of grey values, (n, height, width); ``shown`` names it in errors."""
    pages = _read_pages(file, shown)
    if any(page.dtype != np.uint8 or page.ndim != 2 for page in pages):
        raise DataFormatError(f"{shown} must hold grey images of 8 bits; it holds others.")
    if len({page.shape for page in pages}) != 1:
        raise DataFormatError(f"{shown} must hold images of one size; got {len(pages)} images of several or none.")
    return np.stack(pages)


def write_png(path: Path, array: npt.NDArray[Any]) -> None:
    """Write a grey image, (height, width), of 8 or 16 bits by the type of the array."""
    _import_pillow().fromarray(np.ascontiguousarray(array)).save(path, format="PNG")


def write_tif(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an image of float32, (height, width)."""
    _import_pillow().fromarray(np.ascontiguousarray(array, dtype=np.float32)).save(path, format="TIFF")


def _import_pillow() -> ModuleType:
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "reading .tif and .png needs Pillow; install it with: pip install 'crisptree[images]'", name=error.name
        ) from error
    return Image


def _natural_key(path: Path) -> tuple[Any, ...]:
    """Sort key by which slice 10 comes after slice 9."""
    parts = re.split(r"(\d+)", path.name)
    return tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)


def _read_pages(
    file: Path | io.BytesIO, shown: str, labels: bool = False, floats: bool = False
) -> list[npt.NDArray[Any]]:
    with reading(shown, DataFormatError, f"{Path(shown).suffix or 'image'} file", " Write or download it again."):
        pages = list[npt.NDArray[Any]]()
        # Pillow warns of odd tags, which ImageJ writes.
        with warnings.catch_warnings(action="ignore"), _import_pillow().open(file, formats=["PNG", "TIFF"]) as image:
            for page in range(int(getattr(image, "n_frames", 1))):
                image.seek(page)
                pages.append(_to_array(image, shown, labels and not (floats and image.mode == "F")))
    return pages


def _to_array(image: Any, shown: str, labels: bool) -> npt.NDArray[Any]:
    if labels:
        if image.mode not in LABEL_MODES:
            raise DataFormatError(f"{shown} must have one whole number per pixel, its class; got mode {image.mode}.")
        return np.array(image).astype(np.int64)
    mode = CONVERTED.get(image.mode, image.mode)
    if mode not in MODES:
        raise DataFormatError(f"{shown} must be grey or RGB; got mode {image.mode}. Convert it first.")
    return np.array(image if mode == image.mode else image.convert(mode))
