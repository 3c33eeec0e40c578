"""LIBSVM text: a label and ``index:value`` pairs in every line, indices from 1, zeros left out."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crisptree import limits

BYTES_AT_ONCE = 2**20
VALUES_AT_ONCE, FEWEST_ROWS_AT_ONCE = 2**20, 64
"""How much is made dense at a time. A column of a few values takes hundreds of bytes beside them in a table."""

_SPACES = re.compile(rb"[ \t]*:[ \t]+")


class Piece(NamedTuple):
    """Some rows of a file: the first word of every line, and the values as a sparse CSR matrix, wide enough for all."""

    labels: list[str]
    rows: Any

    @property
    def n_features(self) -> int:
        """The largest index, 0 where no row has a value."""
        return int(self.rows.indices.max(initial=-1)) + 1

    def dense(self, n_features: int) -> npt.NDArray[np.float64]:
        """The rows with their zeros.  (n, n_features)"""
        self.rows.resize(len(self.labels), n_features)
        return np.asarray(self.rows.toarray())

    def parts(self, n_features: int) -> Iterator[Piece]:
        """The same rows, fewer at a time where they are wide: a short text may stand for very many values."""
        step = max(FEWEST_ROWS_AT_ONCE, VALUES_AT_ONCE // max(1, n_features))
        for start in range(0, len(self.labels), step):
            rows = slice(start, start + step)
            yield Piece(self.labels[rows], self.rows[rows])


def read_pieces(file: IO[bytes]) -> Iterator[Piece]:
    r"""The rows of an open file, about a megabyte of text at a time; scikit-learn reads the pairs.

    Labels stay text, for they may be words. The publisher's Protein files write ``63: .50``, with a space that
    scikit-learn does not take, and indices may stand in any order.

    Raises
    ------
    ValueError
        With what the file must hold, to be put behind its name.

    Examples
    --------
    >>> (piece,) = read_pieces(io.BytesIO(b"yes 1: .50 3:1  # the first row\nno 2:7\n"))
    >>> piece.labels, piece.dense(3).tolist()
    (['yes', 'no'], [[0.5, 0.0, 1.0], [0.0, 7.0, 0.0]])
    """
    n_rows = 0
    longest = limits.current()
    while lines := file.readlines(BYTES_AT_ONCE):
        length = max(map(len, lines))
        longest.check("line_bytes", length, f"has a line of {length:,} bytes")
        words = (line.partition(b"#")[0].split(None, 1) for line in lines)
        rows = [(row[0], _SPACES.sub(b":", row[1]) if len(row) > 1 else b"") for row in words if row]
        if not rows:
            continue
        try:
            yield Piece([label.decode() for label, _ in rows], _read_pairs([pairs for _, pairs in rows]))
        except (ValueError, OverflowError) as error:
            raise ValueError(
                f"must hold lines such as '1 3:0.5 7:1', with indices from 1; between rows {n_rows + 1} and "
                f"{n_rows + len(rows)} it does not ({error})."
            ) from error
        n_rows += len(rows)


def _read_pairs(rows: list[bytes]) -> Any:
    from sklearn.datasets import load_svmlight_file  # takes a second to import

    def read(rows: list[bytes]) -> Any:
        if any(pairs.startswith(b"qid:") for pairs in rows):
            raise ValueError("a pair must be index:value, there is no place for qid")
        text = b"".join(b"0 %b\n" % pairs for pairs in rows)
        return load_svmlight_file(io.BytesIO(text), dtype=np.float64, zero_based=False)[0]

    try:
        return read(rows)
    except ValueError:  # scikit-learn takes ascending indices only; anything else that is wrong stays so
        return read(
            [b" ".join(sorted(pairs.split(), key=lambda pair: int(bytes(pair).split(b":")[0]))) for pairs in rows]
        )
