"""Reading LIBSVM text: a label and ``index:value`` pairs per row, indices from 1, zeros left out."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.datasets import unpacking
from crisptree.datasets.errors import DataFormatError

_SPACE_BEFORE_VALUE = re.compile(rb":[ \t]+")


def read_libsvm(path: Path, n_features: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[Any]]:
    r"""Dense rows and their labels from the file, plain or .bz2.

    The publisher's Protein files write ``63: .50``, with a space that scikit-learn's reader does not take.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rows"
    >>> _ = path.write_bytes(b"2   1: .50   3:1.00 \n")
    >>> read_libsvm(path, 3)
    (array([[0.5, 0. , 1. ]], dtype=float32), array([2]))
    """
    from sklearn.datasets import load_svmlight_file

    text = _SPACE_BEFORE_VALUE.sub(b":", unpacking.read(path))
    try:
        rows, labels = load_svmlight_file(io.BytesIO(text), n_features=n_features, dtype=np.float32, zero_based=False)
    except (ValueError, OverflowError) as error:
        raise DataFormatError(
            f"{path} must be LIBSVM text with {n_features} features at most; {error}. Download it again."
        ) from error
    numbers = labels.astype(np.int64)
    if not np.array_equal(numbers, labels):
        raise DataFormatError(f"{path} must have whole numbers as labels; got {labels[numbers != labels][0]}.")
    X = rows.toarray()
    if not np.isfinite(X).all():
        raise DataFormatError(f"{path} must hold finite numbers; it does not. Download it again.")
    return X, numbers
