"""Files of arrays without column names, read without pyarrow: .npz of NumPy and LIBSVM text.

No Python object is ever unpickled, and no array is read before it is known how large it claims to be.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from crisptree import limits
from crisptree.files import StrPath, checked_size

NPY_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}

BYTES_PER_BATCH = 2**20
DENSE_VALUES_PER_BATCH, MIN_DENSE_ROWS = 2**20, 64
"""How much is made dense at a time. A column of a few values takes hundreds of bytes beside them in a table."""

_SPACES = re.compile(rb"[ \t]*:[ \t]+")


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


class LibsvmBatch(NamedTuple):
    """Rows of a LIBSVM file: the first word of every line, and the values as a sparse CSR matrix."""

    labels: list[str]
    rows: Any

    @property
    def n_features(self) -> int:
        """Return the largest index, 0 where no row has a value."""
        return int(self.rows.indices.max(initial=-1)) + 1

    def to_dense(self, n_features: int) -> npt.NDArray[np.float64]:
        """Return the rows with their zeros.  (n, n_features)"""
        self.rows.resize(len(self.labels), n_features)
        return np.asarray(self.rows.toarray())

    def split(self, n_features: int) -> Iterator[LibsvmBatch]:
        """Split wide rows into smaller batches: a short text may stand for very many values."""
        step = max(MIN_DENSE_ROWS, DENSE_VALUES_PER_BATCH // max(1, n_features))
        for start in range(0, len(self.labels), step):
            rows = slice(start, start + step)
            yield LibsvmBatch(self.labels[rows], self.rows[rows])


def read_libsvm_batches(file: IO[bytes]) -> Iterator[LibsvmBatch]:
    r"""Read lines of a label and ``index:value`` pairs, about a megabyte of text at a time.

    Indices count from 1 and zeros are left out; scikit-learn parses the pairs. Labels stay text, for they may be words.
    The publisher's Protein files write ``63: .50``, with a space that scikit-learn does not accept, and indices may
    come in any order.

    Raises
    ------
    ValueError
        With what the file must hold, to be put behind its name.

    Examples
    --------
    >>> (batch,) = read_libsvm_batches(io.BytesIO(b"yes 1: .50 3:1  # the first row\nno 2:7\n"))
    >>> batch.labels, batch.to_dense(3).tolist()
    (['yes', 'no'], [[0.5, 0.0, 1.0], [0.0, 7.0, 0.0]])
    """
    n_rows = 0
    current = limits.current()
    while lines := file.readlines(BYTES_PER_BATCH):
        length = max(map(len, lines))
        current.check("line_bytes", length, f"has a line of {length:,} bytes")
        words = (line.partition(b"#")[0].split(None, 1) for line in lines)
        rows = [(row[0], _SPACES.sub(b":", row[1]) if len(row) > 1 else b"") for row in words if row]
        if not rows:
            continue
        try:
            yield LibsvmBatch([label.decode() for label, _ in rows], _parse_pairs([pairs for _, pairs in rows]))
        except (ValueError, OverflowError) as error:
            raise ValueError(
                f"must hold lines such as '1 3:0.5 7:1', with indices from 1; between rows {n_rows + 1} and "
                f"{n_rows + len(rows)} it does not ({error})."
            ) from error
        n_rows += len(rows)


def _parse_pairs(rows: list[bytes]) -> Any:
    from sklearn.datasets import load_svmlight_file  # takes a second to import

    def parse(rows: list[bytes]) -> Any:
        if any(pairs.startswith(b"qid:") for pairs in rows):
            raise ValueError("a pair must be index:value, there is no place for qid")
        text = b"".join(b"0 %b\n" % pairs for pairs in rows)
        return load_svmlight_file(io.BytesIO(text), dtype=np.float64, zero_based=False)[0]

    try:
        return parse(rows)
    except ValueError:  # scikit-learn accepts ascending indices only; anything else that is wrong stays so
        return parse(
            [b" ".join(sorted(pairs.split(), key=lambda pair: int(bytes(pair).split(b":")[0]))) for pairs in rows]
        )
