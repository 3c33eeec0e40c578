"""The rows of a published LIBSVM file."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crisptree.datasets import unpacking
from crisptree.datasets.errors import DataFormatError
from crisptree.libsvm import read_pieces


def read_libsvm(path: Path, n_features: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    r"""Dense rows and their labels from the file, plain or .bz2.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows"
    >>> _ = path.write_bytes(b"2   1: .50   3:1.00 \n")
    >>> read_libsvm(path, 3)
    (array([[0.5, 0. , 1. ]], dtype=float32), array([2]))
    """
    text = io.BytesIO(unpacking.read(path))
    blocks, labels = [np.zeros((0, n_features), dtype=np.float32)], list[str]()
    try:
        for piece in read_pieces(text):
            if piece.n_features > n_features:
                raise ValueError(f"must have {n_features} features at most; it has a feature {piece.n_features:,}.")
            with np.errstate(over="ignore"):  # what is too large for single precision is not finite, see below
                blocks.append(piece.dense(n_features).astype(np.float32))
            labels += piece.labels
    except ValueError as error:
        raise DataFormatError(f"{path} {error} Download it again.") from error
    X = np.concatenate(blocks)
    if not np.isfinite(X).all():
        raise DataFormatError(f"{path} must hold finite numbers; it does not. Download it again.")
    numbers = {label: _whole(label, path) for label in set(labels)}
    return X, np.array([numbers[label] for label in labels], dtype=np.int64)


def _whole(label: str, path: Path) -> int:
    try:
        number = int(float(label))
        if number == float(label):
            return number
    except (ValueError, OverflowError):
        pass
    raise DataFormatError(f"{path} must have whole numbers as labels; got {label!r}.")
