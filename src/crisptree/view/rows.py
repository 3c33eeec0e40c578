"""Rows in: one or many, tables, frames and images, through the steps of a Pipeline that stand before the tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Singles = npt.NDArray[np.float32]

MOST_VALUES = 2**27
"""Sparse rows of more values than these, zeros included, are not written down."""


def many_rows(estimator: Any, earlier: Sequence[Any], X: Any) -> Singles:
    """Finite float32 rows of the right width and names; images become rows.  (n, n_features)"""
    from sklearn.utils.validation import validate_data

    if not (earlier and hasattr(earlier[0], "steps")):  # a Pipeline's own steps know what they take
        X = estimator.in_training_order(X)
    for transformer in earlier:
        X = transformer.encoded(X) if hasattr(transformer, "encoded") else transformer.transform(X)
    n_features = estimator.tree_.n_features
    if _is_sparse(X):
        X = _with_zeros(X)
    elif not hasattr(X, "columns"):
        X = np.asarray(X)
        if X.shape[1:] in _image_shapes(estimator):
            X = X.reshape(len(X), n_features)
        elif X.ndim > 2:
            shape = estimator.image_shape_
            or_images = "" if shape is None else f", or images of shape {shape}"
            raise ValueError(f"X must be rows of {n_features} features{or_images}; got an array of shape {X.shape}.")
    with np.errstate(over="ignore", under="ignore"):
        return validate_data(estimator, X, dtype=np.float32, order="C", reset=False)


def one_row(estimator: Any, earlier: Sequence[Any], x: Any, name: str) -> Singles:
    """The row as (1, n_features): a vector, a table or frame of one row, a row taken out of a frame, or one image."""
    from sklearn.utils.validation import check_array

    if earlier and takes_texts(earlier[0]):
        texts = [x] if isinstance(x, str) else list(np.asarray(x, dtype=object).reshape(-1))
        if len(texts) != 1:
            raise ValueError(f"{name} must be one text; got {len(texts)}. Explain one at a time.")
        return many_rows(estimator, earlier, texts)
    if isinstance(x, Mapping) and earlier:
        x = {key: value if np.ndim(value) else [value] for key, value in x.items()}
        rows = many_rows(estimator, earlier, x)
        if len(rows) == 1:
            return rows
        raise ValueError(f"{name} must be one row; got {len(rows)}.")
    if hasattr(x, "to_frame") and hasattr(x, "index"):  # a row taken out of a frame carries its names as its index
        x = x.to_frame().T
        x = x.infer_objects() if earlier else x.astype(np.float64)
    if not hasattr(x, "columns") and not _is_sparse(x):
        x = np.asarray(x, dtype=object if earlier and isinstance(x, list | tuple) else None)
        n_features, shape = estimator.tree_.n_features, estimator.image_shape_
        if earlier:  # whose first step knows best what its rows are
            fits, what = x.ndim == 1 or x.shape[:1] == (1,), "as the first step of the Pipeline takes it"
        else:
            shapes = {(n_features,), *_image_shapes(estimator)}
            fits = x.shape in shapes | {(1, *one) for one in shapes}
            what = f"of {n_features} features" + ("" if shape is None else f" or of shape {shape}")
        if not fits:
            raise ValueError(
                f"{name} must be one row {what}; got an array of shape {x.shape}. Explain one row at a time, e.g. "
                f"X[{':1' if earlier else '0'}]."
            )
        if not earlier:
            with np.errstate(over="ignore", under="ignore"):
                return check_array(x.reshape(1, n_features), dtype=np.float32, order="C", input_name=name)
        x = x[None] if x.ndim == 1 else x
    rows = many_rows(estimator, earlier, x)
    if len(rows) != 1:
        raise ValueError(f"{name} must be one row; got {len(rows)}. Explain one row at a time, e.g. X[:1].")
    return rows


def takes_texts(transformer: Any) -> bool:
    """Whether a step takes texts and not rows of columns: a vectorizer such as TfidfVectorizer, or what begins so."""
    while not hasattr(transformer, "build_analyzer"):
        inside = getattr(transformer, "steps", None) or getattr(transformer, "transformer_list", None)
        if not inside:
            return False
        transformer = inside[0][1]
    return True


def _is_sparse(X: Any) -> bool:
    """Sparse rows know how to become an array; NumPy would wrap them up."""
    return hasattr(X, "toarray")


def _with_zeros(X: Any) -> Any:
    """Sparse rows written down, so long as they are few: what looks at rows looks at all of their features."""
    n, n_features = X.shape
    if n * n_features > MOST_VALUES:
        raise ValueError(
            f"sparse rows must be few to be looked at, as their zeros are written down; got {n:,} rows of "
            f"{n_features:,} features. Give at most {max(1, MOST_VALUES // n_features):,} of them at a time."
        )
    return X.toarray()


def _image_shapes(estimator: Any) -> set[tuple[int, ...]]:
    """How one image may come: grey ones with or without their channel."""
    shape = estimator.image_shape_
    if shape is None:
        return set()
    return {shape, (*shape[:2], 1), shape[:2]} if shape[2:] in ((), (1,)) else {shape}
