"""The front door of explanations: a fitted model, and the rows to explain as float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from crisptree.inference import CrispTree, FlatTree

Singles = npt.NDArray[np.float32]


def fitted_tree(model: Any) -> CrispTree:
    """The deterministic tree of a fitted estimator."""
    if isinstance(model, CrispTree):
        raise TypeError("`model` must be the fitted estimator, which knows its classes; got its tree. Give the model.")
    check_is_fitted(model, "tree_")
    if not isinstance(model.tree_, CrispTree):
        raise TypeError(f"`model` must be a fitted crisptree estimator; got a {type(model).__name__}.")
    return model.tree_


def linear_tree(model: Any, what: str, *, or_tree: bool = False) -> FlatTree:
    """The same where only a tree of hyperplanes will do; with ``or_tree`` a tree is taken as it is."""
    tree = model if or_tree and isinstance(model, CrispTree) else fitted_tree(model)
    if not isinstance(tree, FlatTree):
        raise TypeError(
            f"{what} needs hyperplanes; the splits of this tree are modules, which have no weight per feature. "
            "Train with split='oblique' or 'axis', or use sklearn.inspection.permutation_importance, path and blame, "
            "which work with modules too."
        )
    return tree


def check_takes_rows(model: Any, what: str) -> None:
    """Refuse a segmenter where rows with a class each are meant: it takes images, and labels their pixels."""
    if not is_classifier(model):
        raise TypeError(
            f"{what} must have a classifier of rows; got a {type(model).__name__}. Of a segmenter compare the pixels "
            "themselves, labels with predict(images)."
        )


def check_top(top: Any) -> None:
    """How many features to name."""
    if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 0:
        raise ValueError(f"`top` must be a whole number of at least 0; got {top!r}.")


def one_row(model: Any, x: Any, name: str = "x") -> Singles:
    """The row as (1, n_features): a vector, a table or frame of one row, a row taken out of a frame, or one image.

    ``name`` is what errors call it.
    """
    n_features = fitted_tree(model).n_features
    if hasattr(x, "to_frame") and hasattr(x, "index"):
        x = x.to_frame().T.astype(np.float64)  # a row taken out of a frame carries its names as its index
    if hasattr(x, "columns") or _is_sparse(x):
        rows = many_rows(model, x)
    else:
        array = np.asarray(x)
        shapes = {(n_features,), *_image_shapes(model)}
        if array.shape not in shapes | {(1, *shape) for shape in shapes}:
            or_image = "" if model.image_shape_ is None else f" or of shape {model.image_shape_}"
            raise ValueError(
                f"{name} must be one row of {n_features} features{or_image}; got an array of shape {array.shape}. "
                "Explain one row at a time, e.g. X[0]."
            )
        with np.errstate(over="ignore"):
            rows = check_array(array.reshape(1, n_features), dtype=np.float32, order="C", input_name=name)
    if len(rows) != 1:
        raise ValueError(f"{name} must be one row; got {len(rows)}. Explain one row at a time, e.g. X[:1].")
    return rows


def many_rows(model: Any, X: Any) -> Singles:
    """Finite float32 rows of the right width and names; images become rows.  (n, n_features)"""
    tree = fitted_tree(model)
    if not hasattr(X, "columns") and not _is_sparse(X):
        X = np.asarray(X)
        if X.shape[1:] in _image_shapes(model):
            X = X.reshape(len(X), tree.n_features)
        elif X.ndim > 2:
            or_images = "" if model.image_shape_ is None else f", or images of shape {model.image_shape_}"
            raise ValueError(
                f"X must be rows of {tree.n_features} features{or_images}; got an array of shape {X.shape}."
            )
    with np.errstate(over="ignore"):
        return validate_data(model, X, dtype=np.float32, order="C", reset=False)


def _is_sparse(X: Any) -> bool:
    """Sparse rows are left to scikit-learn, which says what to do about them; NumPy would wrap them up."""
    return hasattr(X, "toarray")


def _image_shapes(model: Any) -> set[tuple[int, ...]]:
    """How one image may come: grey ones with or without their channel."""
    shape = model.image_shape_
    if shape is None:
        return set()
    return {shape, (*shape[:2], 1), shape[:2]} if shape[2:] in ((), (1,)) else {shape}
