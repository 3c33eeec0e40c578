"""Published files: the bytes inside a compressed one, by the endings of its name, and the arrays of an .npz."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy.typing as npt

from crisptree import limits
from crisptree.datasets import lzw
from crisptree.datasets.errors import DataFormatError
from crisptree.encoding.array_files import read_npz
from crisptree.files import read_all, read_file, reading

UNPACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: read_all(gzip.GzipFile(fileobj=io.BytesIO(data)), len(data)),
    ".bz2": lambda data: read_all(bz2.BZ2File(io.BytesIO(data)), len(data)),
    ".Z": lambda data: lzw.decompress(data, limits.current().unpacked(len(data))),
}
"""How compressed bytes become plain ones, as many as the limits allow."""

AGAIN = " Download it again."


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
    ending = path.suffix
    with reading(path, DataFormatError, f"{ending} file", AGAIN):
        data = read_file(path)
        if ending == ".zip":
            return _from_zip(data, member, path)
        return UNPACK[ending](data) if ending in UNPACK else data


def _from_zip(data: bytes, member: str | None, path: Path) -> bytes:
    if member is None:
        raise ValueError("name the member that you want")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        for ending in ("", *UNPACK):
            for name in names:
                if PurePosixPath(name).name == member + ending:
                    with reading(f"{name} in {path}", DataFormatError, f"{ending} file", AGAIN):
                        with archive.open(name) as stream:
                            found = read_all(stream, len(data))
                        return UNPACK[ending](found) if ending else found
    raise DataFormatError(f"{path}: there is no {member} in it, only {', '.join(names[:20]) or 'nothing'}")


def read_compact(path: Path, *names: str) -> list[npt.NDArray[Any]]:
    """The compact form, the arrays of a data set in one ``.npz``: those of these names, in this order.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> path = Path(tempfile.mkdtemp()) / "rows.npz"
    >>> np.savez_compressed(path, X=np.zeros((2, 3)), y=np.arange(2))
    >>> [array.shape for array in read_compact(path, "X", "y")]
    [(2, 3), (2,)]
    """
    with reading(path, DataFormatError, ".npz file"):
        arrays = read_npz(path)
        if not set(names) <= set(arrays):
            raise DataFormatError(
                f"{path} must hold the arrays {', '.join(names)}; it holds {', '.join(arrays) or 'none'}."
            )
        return [arrays[name] for name in names]
