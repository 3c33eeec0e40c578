"""What y may be, labels or numbers, and what is wrong with one that is neither: the row, the value, what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

from crisptree.encoding.column_values import is_missing

LARGEST_CLASS = 2.0**63
REMEDY = "For numbers use CrispTreeRegressor; of classes make text first, for example with y.astype(str)."


def check_as_many(X: Any, y: Any) -> None:
    """Refuse an X and a y that are not of one length."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) > 1 and hasattr(y, "__len__") and len(y) != shape[0]:
        raise ValueError(
            f"X and y must be of one length; got {shape[0]} rows of X and {len(y)} of y (Found "
            f"input variables with inconsistent numbers of samples: {[shape[0], len(y)]})."
        )


def check_labels_present(y: Any) -> None:
    """Refuse labels of which some are missing or infinite."""
    array = _as_array(y)
    if array is not None and array.ndim == 1:
        _check_present(array, "y", "a label")


def check_classes(y: npt.NDArray[Any]) -> None:
    """Refuse what is no class: numbers with fractions or without end, or values of types that do not go together."""
    if y.ndim == 1 and y.dtype.kind == "f" and (np.abs(y) >= LARGEST_CLASS).any():
        row = int((np.abs(y) >= LARGEST_CLASS).argmax())
        raise ValueError(
            f"y must hold classes; it holds numbers beyond the whole numbers of 64 bits, such as {y[row]!s} in row "
            f"{row}. {REMEDY}"
        )
    if y.ndim == 1 and y.dtype.kind == "S":  # scikit-learn's trees take them too, but not its check
        return
    try:
        check_classification_targets(y)
    except (ValueError, TypeError) as error:
        if y.ndim == 1 and y.dtype.kind == "f":
            row = int((y != np.rint(y)).argmax())
            raise ValueError(
                f"y must hold classes; it holds numbers with fractions, such as {y[row]!s} in row {row}. {REMEDY} "
                f"({error})"
            ) from None
        kinds = sorted({type(value).__name__ for value in y.ravel().tolist()})
        raise ValueError(
            "y must hold classes: one label in every row, of text, whole numbers, booleans or NumPy's dates; it has "
            f"the shape {y.shape} and holds {', '.join(kinds[:4])}. Make text of them first, for example with "
            f"y.astype(str), or of dates an array of the type 'datetime64[D]'. ({error})"
        ) from None


def check_holds_numbers(y: Any, name: str = "y") -> None:
    """Refuse dates, text, and numbers of which some are missing or infinite."""
    array = _as_array(y)
    if array is None or array.dtype.kind in "biuc" or array.ndim not in (1, 2):
        return
    if array.dtype.kind in "mM":
        raise ValueError(
            f"{name} must hold numbers; it holds dates or durations ({array.dtype}). Make numbers of them first, in a "
            "unit of your choice, such as days since an event: (y - y.min()).dt.days."
        )
    _check_present(array, name, "a number")
    if array.dtype.kind == "f":
        return
    for row, value in enumerate(array.reshape(len(array), -1).tolist()):
        for one in value:
            try:
                float(one)
            except (TypeError, ValueError):
                raise ValueError(
                    f"{name} must hold numbers; row {row} has {one!r} ({type(one).__name__}). If these are classes, "
                    "use CrispTreeClassifier; otherwise make numbers of them first."
                ) from None


def _as_array(y: Any) -> npt.NDArray[Any] | None:
    """The values, where NumPy can hold them; what else may be wrong with y is scikit-learn's to say."""
    try:
        return None if y is None or hasattr(y, "toarray") else np.asarray(y)
    except (ValueError, TypeError):
        return None


def _check_present(array: npt.NDArray[Any], name: str, what: str) -> None:
    rows = array.reshape(len(array), -1) if len(array) else array.reshape(0, 1)
    if array.dtype.kind == "O":
        absent = np.array([any(map(is_missing, row)) for row in rows.tolist()], dtype=bool)
    elif array.dtype.kind == "f":
        absent = np.isnan(rows).any(axis=1)
    elif array.dtype.kind in "mM":
        absent = np.isnat(rows).any(axis=1)
    else:
        return
    if absent.any():
        raise ValueError(
            f"{name} must have {what} in every row; row {int(absent.argmax())} has none (Input y contains NaN). Leave "
            "such rows out of X and y."
        )
    endless = np.isinf(rows).any(axis=1) if array.dtype.kind == "f" else np.zeros(len(rows), dtype=bool)
    if endless.any():
        raise ValueError(
            f"{name} must be finite; row {int(endless.argmax())} is not (Input y contains infinity or a value too "
            f"large for {array.dtype!r}). Correct it, or leave the row out of X and y."
        )
