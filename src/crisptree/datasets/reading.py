"""Published files: the bytes inside a compressed one, by the endings of its name, and the arrays of an .npz."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.datasets import lzw
from crisptree.datasets.errors import DataFormatError

UNPACK: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".Z": lzw.decompress}


def read_bytes(path: Path, member: str | None = None) -> bytes:
    """What the file holds once nothing is compressed any more.

    It may end in .gz, .bz2, .Z or .zip. ``member`` is which file of a .zip; its folder does not matter, and it may
    itself be compressed.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.txt.gz"
    >>> _ = path.write_bytes(gzip.compress(b"1 2 3"))
    >>> read_bytes(path)
    b'1 2 3'
    """
    return unpacked(path.name, path.read_bytes(), member, shown=str(path))


def unpacked(name: str, data: bytes, member: str | None = None, *, shown: str = "") -> bytes:
    """``data`` without the compressions that the endings of ``name`` speak of."""
    ending = PurePosixPath(name).suffix
    try:
        if ending == ".zip":
            return _from_zip(data, member, shown or name)
        return UNPACK[ending](data) if ending in UNPACK else data
    except DataFormatError as error:
        raise DataFormatError(f"{shown or name}: {error}") from error
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, ValueError) as error:
        raise DataFormatError(
            f"{shown or name} is damaged or not a {ending} file ({error}). Download it again."
        ) from error


def _from_zip(data: bytes, member: str | None, shown: str) -> bytes:
    if member is None:
        raise ValueError(f"name the member of {shown} that you want")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        for ending in ("", *UNPACK):
            for name in names:
                if PurePosixPath(name).name == member + ending:
                    return unpacked(name, archive.read(name), shown=f"{name} in {shown}")
    raise DataFormatError(f"there is no {member} in it, only {', '.join(names) or 'nothing'}")


def read_compact(path: Path, *names: str) -> list[npt.NDArray[Any]]:
    """The compact form, the arrays of a data set in one ``.npz``: those of these names, in this order.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows.npz"
    >>> np.savez_compressed(path, X=np.zeros((2, 3)), y=np.arange(2))
    >>> [array.shape for array in read_compact(path, "X", "y")]
    [(2, 3), (2,)]
    """
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
            missing = [name for name in names if name not in arrays.files]
            if missing:
                raise DataFormatError(
                    f"{path} must hold the arrays {', '.join(names)}; it holds {', '.join(arrays.files) or 'none'}."
                )
            return [arrays[name] for name in names]
    except DataFormatError:
        raise
    except (OSError, EOFError, ValueError, AttributeError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise DataFormatError(f"{path} is damaged or not an .npz file ({error}).") from error
