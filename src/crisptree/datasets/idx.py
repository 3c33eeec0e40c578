"""Reading idx files, the form of MNIST: two zeros, the type, the number of axes, their lengths, then the bytes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crisptree.datasets import unpacking
from crisptree.datasets.errors import DataFormatError

UNSIGNED_BYTE = 0x08


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """The array of unsigned bytes in the file, plain or .gz.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels-idx1-ubyte"
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> read_idx(path)
    array([7, 2, 1], dtype=uint8)
    """
    data = unpacking.read(path)
    if len(data) < 4 or data[:3] != bytes([0, 0, UNSIGNED_BYTE]):
        raise DataFormatError(f"{path} must begin with 00 00 08, as idx files of bytes do; got {data[:3].hex(' ')}.")
    begin = 4 + 4 * data[3]
    shape = tuple(int.from_bytes(data[at : at + 4], "big") for at in range(4, begin, 4))
    if len(data) != begin + math.prod(shape):
        raise DataFormatError(
            f"{path} must hold {begin + math.prod(shape):,} bytes for an array of shape {shape}; it holds "
            f"{len(data):,}. Download it again."
        )
    return np.frombuffer(data, dtype=np.uint8, offset=begin).reshape(shape)
