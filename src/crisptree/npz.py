"""NumPy's .npz: the arrays in it, once it is known how large they say they are. No Python object is ever unpickled."""

from __future__ import annotations

import math
import zipfile
from typing import Any

import numpy.typing as npt
from numpy.lib import format as npy

from crisptree import limits
from crisptree.files import StrPath, checked_size

ENDING = ".npy"
HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def read_arrays(path: StrPath) -> dict[str, npt.NDArray[Any]]:
    """The arrays by their names.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.npz"
    >>> np.savez(path, X=np.zeros((2, 3)), y=np.arange(2))
    >>> {name: array.shape for name, array in read_arrays(path).items()}
    {'X': (2, 3), 'y': (2,)}
    """
    size, claimed = checked_size(path), 0
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            name = member.removesuffix(ENDING)
            if not member.endswith(ENDING):
                continue
            with archive.open(member) as stream:
                claimed += _claimed_bytes(stream, name)
            said = f"says that its arrays hold {claimed:,} bytes"
            limits.current().check_unpacked(claimed, size, said)
            with archive.open(member) as stream:
                arrays[name] = npy.read_array(stream, allow_pickle=False)
    return arrays


def _claimed_bytes(stream: Any, name: str) -> int:
    """What an array would take; a side of no length counts as one, for whoever goes along the others."""
    version = npy.read_magic(stream)
    if version not in HEADERS:
        raise ValueError(f"the array {name!r} has version {version}")
    shape, _, dtype = HEADERS[version](stream)
    if dtype.hasobject or min(shape, default=0) < 0:
        raise ValueError(f"the array {name!r} holds Python objects or has a negative side")
    return max(1, dtype.itemsize) * math.prod(max(1, side) for side in shape)
