"""Files of arrays without column names, read without pyarrow: .npz of NumPy and LIBSVM text.

No Python object is ever unpickled, and no array is read before it is known how large it claims to be.
"""

from __future__ import annotations

import math
import zipfile
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from crisptree import limits
from crisptree.files import StrPath, checked_size

NPY_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_npz(path: StrPath) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays of a .npz file by name.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.npz"
    >>> np.savez(path, X=np.zeros((2, 3)), y=np.arange(2))
    >>> {name: array.shape for name, array in read_npz(path).items()}
    {'X': (2, 3), 'y': (2,)}
    """
    size, claimed = checked_size(path), 0
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            name = member.removesuffix(".npy")
            if name == member:
                continue
            with archive.open(member) as stream:
                claimed += _read_claimed_bytes(stream, name)
            limits.current().check_unpacked(claimed, size, f"says that its arrays hold {claimed:,} bytes")
            with archive.open(member) as stream:
                arrays[name] = npy.read_array(stream, allow_pickle=False)
    return arrays


def _read_claimed_bytes(stream: Any, name: str) -> int:
    """Return the size of an array; an axis of length 0 counts as 1, because other code iterates over the other axes."""
    version = npy.read_magic(stream)
    if version not in NPY_HEADERS:
        raise ValueError(f"the array {name!r} has version {version}")
    shape, _, dtype = NPY_HEADERS[version](stream)
    if dtype.hasobject or min(shape, default=0) < 0:
        raise ValueError(f"the array {name!r} holds Python objects or has a negative side")
    return max(1, dtype.itemsize) * math.prod(max(1, side) for side in shape)


def read_libsvm(file: IO[bytes]) -> tuple[Any, npt.NDArray[np.float64]]:
    r"""Read lines of a label and ``index:value`` pairs, with ascending indices from 1, as a CSR matrix and labels.

    Raises
    ------
    ValueError
        With what the file must hold, to be put behind its name.

    Examples
    --------
    >>> import io
    >>> rows, labels = read_libsvm(io.BytesIO(b"2 1:.50 3:1  # the first row\n1 2:7\n"))
    >>> rows.toarray().tolist(), labels.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 7.0, 0.0]], [2.0, 1.0])
    """
    from sklearn.datasets import load_svmlight_file  # takes a second to import

    try:
        rows, labels = load_svmlight_file(file, dtype=np.float64, zero_based=False)
    except limits.LimitError:
        raise
    except (ValueError, OverflowError) as error:
        raise ValueError(
            f"must hold lines such as '1 3:0.5 7:1', with ascending indices from 1; it does not ({error})."
        ) from error
    return rows, labels
