"""Labels as probabilities of all classes: what counts as such, and its checks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crisptree.estimators.parameters import RIVALS

if TYPE_CHECKING:
    from crisptree.learning.task import Part

Doubles = npt.NDArray[np.float64]

ROUNDING = 1e-3
"""Sums may be so far from 1 and probabilities so far below 0, as half-precision softmaxes are; then they are mended."""


@dataclass(frozen=True, eq=False)
class Probabilities:
    """A matrix with the class of every column, for callers without a table.

    ``source`` says which row a row is a copy of, where some are copies: a row and its copies judge no tree that one of
    them trained.
    """

    values: Doubles
    columns: npt.NDArray[Any]
    source: npt.NDArray[np.intp] | None = None

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.values, dtype=dtype) if copy else np.asarray(self.values, dtype=dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape


def are_soft(y: Any) -> bool:
    """Whether y is a matrix of floats with several columns; whole numbers and booleans are no probabilities."""
    if isinstance(y, list | tuple):
        # Only rows of numbers may be made an array: other lists are labels, whatever they hold.
        if not (len(y) and isinstance(y[0], list | tuple | np.ndarray)):
            return False
        try:
            y = np.asarray(y)
        except ValueError:
            return False
    shape: Any = getattr(y, "shape", ())
    return len(shape) == 2 and bool(shape[1] > 1) and np.asarray(y).dtype.kind == "f"


def column_classes(y: Any) -> npt.NDArray[Any]:
    """The classes behind the columns: their names in a table, 0, 1, … in a plain matrix."""
    columns = getattr(y, "columns", None)
    return np.arange(np.shape(y)[1]) if columns is None else np.asarray(columns)


def check_trainable(parameters: Any) -> None:
    """Refuse what needs one label per row."""
    if parameters.class_weight is not None:
        raise ValueError(
            f"`class_weight` must be None where y are probabilities; got {parameters.class_weight!r}. Weigh rows by "
            "sample_weight, or give one label per row, such as y.argmax(axis=1)."
        )
    for name, words in (("grow", RIVALS), ("algorithm", ("non_greedy",))):
        if getattr(parameters, name) in words:
            raise ValueError(
                f"y must be one label per row for {name}={getattr(parameters, name)!r}, which counts rows by class; "
                "got probabilities. Give y.argmax(axis=1), or train by 'em' or 'likelihood'."
            )


def check_probabilities(y: npt.NDArray[Any], name: str = "y") -> Doubles:
    """Rows that are not negative and sum to 1 up to rounding, made to do so exactly."""
    y = np.asarray(y, dtype=np.float64)
    sums = y.sum(axis=1)
    # What is not a number is neither at least 0 nor near 1, so rows are asked to be good rather than bad.
    bad = np.flatnonzero(~((y >= -ROUNDING).all(axis=1) & (np.abs(sums - 1) <= ROUNDING)))
    if len(bad):
        row = int(bad[0])
        shown = ", ".join(f"{value:.3g}" for value in y[row, :6]) + ", …" * (y.shape[1] > 6)
        raise ValueError(
            f"{name} as a matrix must hold probabilities of {y.shape[1]} classes, rows of numbers of at least 0 that "
            f"sum to 1; row {row} is [{shown}] with the sum {sums[row]:.4g}. Divide scores by their sum, or give one "
            "label per row."
        )
    y = np.maximum(y, 0.0)
    return y / y.sum(axis=1, keepdims=True)


def by_class(
    parameters: Any, y: npt.NDArray[Any], columns: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Sorted classes, and checked probabilities in their order; labels where every row is certain of its class.

    Certain rows are plain labels, which everything else trains on too, and faster.
    """
    try:
        classes, order = np.unique(columns, return_index=True)
    except TypeError as error:
        raise ValueError(
            f"the column names of y, which are its classes, must be of one type that can be sorted; got "
            f"{columns.tolist()}. Make text of them, for example with y.columns = y.columns.astype(str)."
        ) from error
    y = check_probabilities(y)[:, order]
    if ((y == 0) | (y == 1)).all():
        return classes, classes[y.argmax(axis=1)]
    check_trainable(parameters)
    return classes, y


def in_order_of(y: Any, classes: npt.NDArray[Any], name: str) -> Doubles:
    """Checked probabilities with a column for each of the classes: a table's by name, a plain matrix's in order."""
    columns = column_classes(y) if hasattr(y, "columns") else classes
    found = np.asarray(y)
    places = {label: place for place, label in enumerate(columns.tolist())}
    if found.shape[1] != len(classes) or places.keys() != set(classes.tolist()):
        came = columns.tolist() if hasattr(y, "columns") else f"{found.shape[1]} columns"
        raise ValueError(
            f"{name} as a matrix must have a column for each of the training classes {classes.tolist()}; got {came}."
        )
    return check_probabilities(found[:, [places[label] for label in classes.tolist()]], name)


def likeliest(part: Part) -> Part:
    """The rows with the class that is most probable for each, for what counts whole rows."""
    return part if part.y.ndim == 1 else replace(part, y=part.y.argmax(axis=1))


def one_hot(numbers: npt.NDArray[np.int64], n_classes: int) -> Doubles:
    """Class numbers as probabilities.  (n,) → (n, n_classes); what are probabilities already stays."""
    return numbers if numbers.ndim == 2 else np.eye(n_classes)[numbers]  # type: ignore[return-value]
