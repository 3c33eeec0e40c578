"""Rows in: one or many, tables, frames and images, through the steps of a Pipeline that stand before the tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Singles = npt.NDArray[np.float32]


def many_rows(estimator: Any, earlier: Sequence[Any], X: Any) -> Singles:
    """Finite float32 rows of the right width and names; images become rows.  (n, n_features)"""
    from sklearn.utils.validation import validate_data

    for transformer in earlier:
        X = transformer.transform(X)
    n_features = estimator.tree_.n_features
    if not hasattr(X, "columns") and not _is_sparse(X):
        X = np.asarray(X)
        if X.shape[1:] in _image_shapes(estimator):
            X = X.reshape(len(X), n_features)
        elif X.ndim > 2:
            shape = estimator.image_shape_
            or_images = "" if shape is None else f", or images of shape {shape}"
            raise ValueError(f"X must be rows of {n_features} features{or_images}; got an array of shape {X.shape}.")
    with np.errstate(over="ignore"):
        return validate_data(estimator, X, dtype=np.float32, order="C", reset=False)


def one_row(estimator: Any, earlier: Sequence[Any], x: Any, name: str) -> Singles:
    """The row as (1, n_features): a vector, a table or frame of one row, a row taken out of a frame, or one image."""
    if hasattr(x, "to_frame") and hasattr(x, "index"):  # a row taken out of a frame carries its names as its index
        x = x.to_frame().T
        x = x.infer_objects() if earlier else x.astype(np.float64)
    if earlier:
        rows = many_rows(estimator, earlier, x if hasattr(x, "columns") else _as_table(x, name))
    elif hasattr(x, "columns") or _is_sparse(x):
        rows = many_rows(estimator, (), x)
    else:
        rows = _vector(estimator, np.asarray(x), name)
    if len(rows) != 1:
        raise ValueError(f"{name} must be one row; got {len(rows)}. Explain one row at a time, e.g. X[:1].")
    return rows


def _vector(estimator: Any, array: npt.NDArray[Any], name: str) -> Singles:
    """A row without names."""
    from sklearn.utils.validation import check_array

    n_features = estimator.tree_.n_features
    shapes = {(n_features,), *_image_shapes(estimator)}
    if array.shape not in shapes | {(1, *shape) for shape in shapes}:
        or_image = "" if estimator.image_shape_ is None else f" or of shape {estimator.image_shape_}"
        raise ValueError(
            f"{name} must be one row of {n_features} features{or_image}; got an array of shape {array.shape}. "
            "Explain one row at a time, e.g. X[0]."
        )
    with np.errstate(over="ignore"):
        return check_array(array.reshape(1, n_features), dtype=np.float32, order="C", input_name=name)


def _as_table(x: Any, name: str) -> Any:
    """One row as a table for the first step of a Pipeline, which knows best what its rows are."""
    if _is_sparse(x):
        return x
    array = np.asarray(x)
    if array.ndim == 1:
        return array[None]
    if array.ndim == 0 or len(array) != 1:
        raise ValueError(
            f"{name} must be one row as the first step of the Pipeline takes it; got an array of shape {array.shape}. "
            "Explain one row at a time, e.g. X[:1]."
        )
    return array


def _is_sparse(X: Any) -> bool:
    """Sparse rows are left to scikit-learn, which says what to do about them; NumPy would wrap them up."""
    return hasattr(X, "toarray")


def _image_shapes(estimator: Any) -> set[tuple[int, ...]]:
    """How one image may come: grey ones with or without their channel."""
    shape = estimator.image_shape_
    if shape is None:
        return set()
    return {shape, (*shape[:2], 1), shape[:2]} if shape[2:] in ((), (1,)) else {shape}
