"""SensIT Vehicle and Protein: two data sets in LIBSVM's form."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crisptree.datasets.catalog import CATALOG
from crisptree.datasets.dataset import Dataset, in_parts
from crisptree.datasets.errors import DataFormatError
from crisptree.datasets.places import StrPath, locate
from crisptree.datasets.reading import AGAIN, read_bytes
from crisptree.encoding.array_files import read_libsvm_batches
from crisptree.files import reading


def load_sensit(data_home: StrPath | None = None, *, seed: int = 0) -> Dataset:
    """78,823 rows for training and validation and the official 19,705 for testing, in three classes.

    Parameters
    ----------
    data_home : path, optional
        The folder of data; by default $CRISPTREE_DATA, then the user's cache.
    seed : int
        Draws the 20 % of the training rows that are for validation.

    Returns
    -------
    Dataset
        Rows of 100 features, unscaled.

    Examples
    --------
    >>> load_sensit().X_test.shape  # doctest: +SKIP
    (19705, 100)
    """
    return _load("sensit", data_home, 100, ("1", "2", "3"), seed)


def load_protein(data_home: StrPath | None = None) -> Dataset:
    """14,895 rows for training, 2,871 for validation, 6,621 for testing: the official split, in three classes.

    Neighbouring rows are overlapping windows of one chain. A random split would put parts of a chain on both sides, so
    LIBSVM's ``protein.tr`` and ``protein.val`` are needed; their union ``protein`` is not enough.

    Parameters
    ----------
    data_home : path, optional
        The folder of data; by default $CRISPTREE_DATA, then the user's cache.

    Returns
    -------
    Dataset
        Rows of 357 features: 21 for each of 17 positions.

    Examples
    --------
    >>> load_protein().X_valid.shape  # doctest: +SKIP
    (2871, 357)
    """
    return _load("protein", data_home, 357, ("0", "1", "2"))


def _load(name: str, data_home: StrPath | None, n_features: int, labels: tuple[str, ...], seed: int = 0) -> Dataset:
    """The publisher's labels are whole numbers without a gap; the first is class 0."""
    parts = {}
    for part, path in zip(CATALOG[name].rows, locate(name, data_home).paths, strict=True):
        X, y = read_libsvm(path, n_features)
        parts[part] = (X, y - int(labels[0]))
    return in_parts(name, parts, labels, (n_features,), seed)


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
    text = io.BytesIO(read_bytes(path))
    blocks, labels = [np.zeros((0, n_features), dtype=np.float32)], list[str]()
    with reading(path, DataFormatError, "LIBSVM file", AGAIN):
        for piece in read_libsvm_batches(text):
            if piece.n_features > n_features:
                raise ValueError(f"it must have {n_features} features at most, not a feature {piece.n_features:,}")
            with np.errstate(over="ignore"):  # what is too large for single precision is not finite, see below
                blocks.append(piece.to_dense(n_features).astype(np.float32))
            labels += piece.labels
    X = np.concatenate(blocks)
    if not np.isfinite(X).all():
        raise DataFormatError(f"{path} must hold finite numbers; it does not. Download it again.")
    numbers = {label: _whole(label, path) for label in set(labels)}
    return X, np.array([numbers[label] for label in labels], dtype=np.int64)


def _whole(label: str, path: Path) -> int:
    try:
        number = int(float(label))
        if number == float(label) and abs(number) < 2**62:
            return number
    except (ValueError, OverflowError):
        pass
    raise DataFormatError(f"{path} must have whole numbers as labels; got {label!r}.")
