"""What the caller hands over, checked once: the model with its names, and the rows with their classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree import naming
from crisptree.explain.rows import check_takes_rows
from crisptree.inference import CrispTree


@dataclass(frozen=True, eq=False)
class Subject:
    """A fitted model and the words for its classes and features.

    Parameters
    ----------
    model : estimator
        Fitted.
    classes : list of str
        One name for every class.
    features : list of str
        One name for every feature.
    image_shape : (height, width, channels) or None
        None for tabular rows.
    """

    model: Any
    classes: list[str]
    features: list[str]
    image_shape: tuple[int, int, int] | None

    @property
    def tree(self) -> CrispTree:
        tree: CrispTree = self.model.tree_
        return tree


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that the model has not been trained on, or any others.

    Parameters
    ----------
    given : array-like
        As the caller gave them, names of columns included.
    X : ndarray of shape (n, n_features), float32
        The rows.
    leaf : ndarray of shape (n,)
        Where the tree sends each of them.
    predicted : ndarray of shape (n,)
        Class numbers.
    y : ndarray of shape (n,) or None
        Class numbers, where the caller knows them.
    """

    given: Any
    X: npt.NDArray[np.float32]
    leaf: npt.NDArray[np.int64]
    predicted: npt.NDArray[np.int64]
    y: npt.NDArray[np.int64] | None

    @property
    def labels(self) -> npt.NDArray[np.int64]:
        """The true classes, or the predicted ones where nobody knows the truth."""
        return self.predicted if self.y is None else self.y

    @property
    def wrong(self) -> npt.NDArray[np.bool_]:
        return np.zeros(len(self.X), dtype=bool) if self.y is None else self.predicted != self.y


def check_subject(model: Any, class_names: Sequence[str] | None, feature_names: Sequence[str] | None) -> Subject:
    """The fitted model with all its names."""
    tree: CrispTree | None = getattr(model, "tree_", None)
    if tree is None:
        raise ValueError("a report must have a fitted model; this one is not fitted. Call fit first.")
    names = [str(name) for name in (model.classes_ if class_names is None else class_names)]
    if len(names) != tree.n_outputs:
        raise ValueError(f"`class_names` must name all {tree.n_outputs} classes; got {len(names)} names.")
    return Subject(model, names, naming.feature_names(model, feature_names), _image_shape(model))


def check_rows(subject: Subject, X: Any, y: Any) -> Rows | None:
    """The rows and where they end; None where the caller has none."""
    if X is None:
        if y is not None:
            raise ValueError("`y` must come with the rows it belongs to; got y without X. Give both, or neither.")
        return None
    check_takes_rows(subject.model, "a report with rows")
    leaf = np.asarray(subject.model.apply(X), dtype=np.int64)  # raises for rows that the model cannot take
    dense = X.toarray() if hasattr(X, "toarray") else X
    rows = np.asarray(dense, dtype=np.float32).reshape(len(leaf), -1)
    predicted = subject.tree.labels(leaf).astype(np.int64)
    return Rows(X, rows, leaf, predicted, None if y is None else _class_numbers(subject, y, len(leaf)))


def check_max_samples(max_samples: Any) -> int:
    if isinstance(max_samples, bool) or not isinstance(max_samples, int | np.integer) or max_samples < 0:
        raise ValueError(f"`max_samples` must be a whole number of at least 0; got {max_samples!r}.")
    return int(max_samples)


def _image_shape(model: Any) -> tuple[int, int, int] | None:
    shape = getattr(model, "image_shape_", None)
    if shape is None:
        return None
    height, width, channels = (*shape, 1)[:3]
    return height, width, channels


def _class_numbers(subject: Subject, y: Any, n_rows: int) -> npt.NDArray[np.int64]:
    labels = np.asarray(y).reshape(-1).tolist()
    if len(labels) != n_rows:
        raise ValueError(f"`y` must have one class for each of the {n_rows} rows of X; got {len(labels)}.")
    known = {label: number for number, label in enumerate(subject.model.classes_.tolist())}
    strange = [label for label in labels if label not in known]
    if strange:
        raise ValueError(
            f"`y` must hold classes that the model was trained on; got {strange[0]!r}, which is not one of them. "
            "Leave such rows out."
        )
    return np.array([known[label] for label in labels], dtype=np.int64)
