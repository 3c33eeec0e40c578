"""Validation of what callers pass: rows, which go through the earlier steps of a Pipeline, and plain arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.targets.base import detach

Singles = npt.NDArray[np.float32]

MAX_DENSE_VALUES = 2**27
"""Sparse rows of more values than this, zeros included, are not converted to dense ones."""


@dataclass(frozen=True, eq=False)
class Pixel:
    """A pixel of an image, which a segmenter or a pixel regressor takes in the place of a row.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, channels)
        The image, as ``predict`` takes it.
    row, column : int
        The position of the pixel.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispSegmenter, explain
    >>> image = np.random.default_rng(0).normal(size=(40, 40))
    >>> labels = (image < np.roll(image, 1, axis=1)).astype(int)
    >>> model = CrispSegmenter(window=3, max_depth=2, normalise_images=True, random_state=0).fit(image, labels)
    >>> path = explain.path(model, explain.Pixel(image, 7, 12))
    >>> bool(path.leaf == model.leaf_indices(image)[7, 12]), bool(path.predicted == model.predict(image)[7, 12])
    (True, True)
    """

    image: Any
    row: int
    column: int


def validate_rows(estimator: Any, transformers: Sequence[Any], X: Any) -> Singles:
    """Transform and validate rows: finite float32, named and as wide as in training.  (n, n_features)

    Missing numbers are replaced where ``predict`` does so.
    """
    from sklearn.utils.validation import validate_data

    check_takes_windows(estimator)
    if not (transformers and hasattr(transformers[0], "steps")):  # the steps of a Pipeline check their own input
        X = estimator.in_training_order(X)
    for transformer in transformers:
        X = transformer.encode_rows(X) if hasattr(transformer, "encode_rows") else transformer.transform(X)
    n_features = estimator.tree_.n_features
    if _is_sparse(X):
        X = _to_dense(X)
    elif not hasattr(X, "columns"):
        X = np.asarray(detach(X))
        if X.shape[1:] in _image_shapes(estimator):
            X = X.reshape(len(X), n_features)
        elif X.ndim > 2:
            shape = estimator.image_shape_
            or_images = "" if shape is None else f", or images of shape {shape}"
            raise ValueError(f"X must be rows of {n_features} features{or_images}; got an array of shape {X.shape}.")
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):  # scikit-learn sums all values: inf − inf
        rows = validate_data(estimator, X, dtype=np.float32, order="C", reset=False, **_allow_missing(estimator))
    return np.asarray(estimator.input_schema.fill_missing(rows))


def _allow_missing(estimator: Any) -> dict[str, Any]:
    """Return the argument by which scikit-learn's checks accept missing numbers, where these are replaced."""
    return {} if estimator.input_schema.means is None else {"ensure_all_finite": "allow-nan"}


def validate_row(estimator: Any, transformers: Sequence[Any], x: Any, name: str) -> Singles:
    """Transform and validate one row: a vector, a table or frame of one row, a Series, an image, a ``Pixel``.

    → (1, n_features)
    """
    from sklearn.utils.validation import check_array

    if isinstance(x, Pixel):
        if transformers or not hasattr(estimator, "window_at"):
            raise TypeError(
                f"explain.Pixel is for a segmenter or a pixel regressor; got a {type(estimator).__name__}"
                f"{' behind the steps of a Pipeline' if transformers else ''}. Pass a row."
            )
        row, column = check_integer("row", x.row, 0), check_integer("column", x.column, 0)
        return np.asarray(estimator.window_at(x.image, row, column))
    check_takes_windows(estimator)
    if transformers and is_text_transformer(transformers[0]):
        texts = [x] if isinstance(x, str) else list(np.asarray(x, dtype=object).reshape(-1))
        if len(texts) != 1:
            raise ValueError(f"{name} must be one text; got {len(texts)}. Explain one at a time.")
        return validate_rows(estimator, transformers, texts)
    if isinstance(x, Mapping) and transformers:
        x = {key: value if np.ndim(value) else [value] for key, value in x.items()}
        rows = validate_rows(estimator, transformers, x)
        if len(rows) == 1:
            return rows
        raise ValueError(f"{name} must be one row; got {len(rows)}.")
    if hasattr(x, "to_frame") and hasattr(x, "index"):  # a row of a frame has its names in its index
        x = x.to_frame().T
        x = x.infer_objects() if transformers else x.astype(np.float64)
    if not hasattr(x, "columns") and not _is_sparse(x):
        x = np.asarray(detach(x), dtype=object if transformers and isinstance(x, list | tuple) else None)
        n_features, shape = estimator.tree_.n_features, estimator.image_shape_
        if transformers:  # the first step checks its own input
            fits, what = x.ndim == 1 or x.shape[:1] == (1,), "as the first step of the Pipeline takes it"
        else:
            shapes = {(n_features,), *_image_shapes(estimator)}
            fits = x.shape in shapes | {(1, *one) for one in shapes}
            what = f"of {n_features} features" + ("" if shape is None else f" or of shape {shape}")
        if not fits:
            raise ValueError(
                f"{name} must be one row {what}; got an array of shape {x.shape}. Explain one row at a time, e.g. "
                f"X[{':1' if transformers else '0'}]."
            )
        if not transformers:
            row, allowed = x.reshape(1, n_features), _allow_missing(estimator)
            with np.errstate(over="ignore", under="ignore"):
                row = check_array(row, dtype=np.float32, order="C", input_name=name, **allowed)
            return np.asarray(estimator.input_schema.fill_missing(row))
        x = x[None] if x.ndim == 1 else x
    rows = validate_rows(estimator, transformers, x)
    if len(rows) != 1:
        raise ValueError(f"{name} must be one row; got {len(rows)}. Explain one row at a time, e.g. X[:1].")
    return rows


def check_takes_windows(estimator: Any) -> None:
    """Refuse windows cut out of an image where the tree sees more than the window: only the entire image has that."""
    if not hasattr(estimator, "looks_at_"):
        return
    _, scales, is_normalised, _ = estimator.looks_at_
    stages = 1 + len(estimator.earlier_trees_)
    reasons = {"normalise_images=True": is_normalised, f"{scales=}": scales != (1,), f"{stages=}": stages > 1}
    names = [name for name, holds in reasons.items() if holds]
    if names:
        raise ValueError(
            f"a window cannot be taken alone with {' and '.join(names)}, because the tree sees values that depend on "
            "the rest of the image. Pass one pixel of an image, explain.Pixel(image, row, column)."
        )


def is_text_transformer(transformer: Any) -> bool:
    """Return True if a step takes texts and not rows of columns: a vectorizer such as TfidfVectorizer."""
    while not hasattr(transformer, "build_analyzer"):
        inside = getattr(transformer, "steps", None) or getattr(transformer, "transformer_list", None)
        if not inside:
            return False
        transformer = inside[0][1]
    return True


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "toarray")


def _to_dense(X: Any) -> Any:
    """Convert sparse rows to dense ones, because explanations use all features; refuse too many."""
    n, n_features = X.shape
    if n * n_features > MAX_DENSE_VALUES:
        raise ValueError(
            f"sparse rows must be few, because explanations and plots convert them to dense rows; got {n:,} rows of "
            f"{n_features:,} features. Give at most {max(1, MAX_DENSE_VALUES // n_features):,} of them at a time."
        )
    return X.toarray()


def _image_shapes(estimator: Any) -> set[tuple[int, ...]]:
    """Return the accepted shapes of one image: grey ones with or without their channel."""
    shape = estimator.image_shape_
    if shape is None:
        return set()
    return {shape, (*shape[:2], 1), shape[:2]} if shape[2:] in ((), (1,)) else {shape}


def check_integer(name: str, value: Any, low: int, otherwise: str = "") -> int:
    """Check that a parameter is an integer of at least ``low``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        raise ValueError(f"`{name}` must be a whole number of at least {low}{otherwise}; got {value!r}.")
    return int(value)


def check_optional_integer(name: str, value: Any, low: int) -> int | None:
    """Check that a parameter is an integer of at least ``low``, or None."""
    return None if value is None else check_integer(name, value, low, ", or None for all")


def check_boolean(name: str, value: Any) -> bool:
    """Check that a parameter is True or False.

    Examples
    --------
    >>> check_boolean("legend", 2.0)
    Traceback (most recent call last):
    ...
    ValueError: `legend` must be True or False; got 2.0.
    """
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"`{name}` must be True or False; got {value!r}.")
    return bool(value)
