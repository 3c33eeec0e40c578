"""The front door of explanations: a fitted model, and the rows to explain as float32."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from crisptree.inference import CrispTree, FlatTree
from crisptree.naming import image_shape_of

Singles = npt.NDArray[np.float32]


def fitted_tree(model: Any) -> CrispTree:
    """The deterministic tree of a fitted estimator; a tree is taken as it is."""
    if isinstance(model, CrispTree):
        return model
    check_is_fitted(model, "tree_")
    return model.tree_


def linear_tree(model: Any, what: str) -> FlatTree:
    """The same where only a tree of hyperplanes will do."""
    tree = fitted_tree(model)
    if not isinstance(tree, FlatTree):
        raise TypeError(
            f"{what} needs hyperplanes; the splits of this tree are modules, which have no weight per feature. "
            "Train with split='oblique' or 'axis', or use sklearn.inspection.permutation_importance, path and blame, "
            "which work with modules too."
        )
    return tree


def one_row(model: Any, x: Any) -> Singles:
    """The row as (1, n_features): a vector, a table or frame of one row, a column of a frame, or one image."""
    n_features = fitted_tree(model).n_features
    if hasattr(x, "to_frame") and hasattr(x, "index") and not hasattr(x, "columns"):
        x = x.to_frame().T.astype(np.float64)  # a row taken out of a frame carries its names as its index
    if hasattr(x, "columns"):
        rows = many_rows(model, x)
    else:
        array = np.asarray(x)
        if array.shape not in _shapes_of_one(model, n_features):
            shape = image_shape_of(model)
            or_image = "" if shape is None else f" or of shape {shape}"
            raise ValueError(
                f"x must be one row of {n_features} features{or_image}; got an array of shape {array.shape}. "
                "Explain one row at a time, e.g. X[0]."
            )
        with np.errstate(over="ignore"):
            rows = check_array(array.reshape(1, n_features), dtype=np.float32, order="C", input_name="x")
    if len(rows) != 1:
        raise ValueError(f"x must be one row; got {len(rows)}. Explain one row at a time, e.g. X[:1].")
    return rows


def _shapes_of_one(model: Any, n_features: int) -> set[tuple[int, ...]]:
    shapes: set[tuple[int, ...]] = {(n_features,)}
    image = image_shape_of(model)
    if image is not None and math.prod(image) == n_features:
        shapes |= {image, image[:2] if image[2:] == (1,) else image, (*image[:2], *(image[2:] or (1,)))}
    return shapes | {(1, *shape) for shape in shapes}


def many_rows(model: Any, X: Any) -> Singles:
    """Finite float32 rows of the right width and names; images become rows.  (n, n_features)"""
    fitted_tree(model)
    if not hasattr(X, "columns"):
        X = np.asarray(X)
        if X.ndim > 2:
            X = X.reshape(len(X), -1)
    with np.errstate(over="ignore"):
        return validate_data(model, X, dtype=np.float32, order="C", reset=False)
