"""The compact form: the arrays of a data set in one ``.npz``."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.datasets.errors import DataFormatError


def read_compact(path: Path, *names: str) -> list[npt.NDArray[Any]]:
    """The named arrays of the file, in this order.

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
