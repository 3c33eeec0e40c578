"""Display names of the features and classes of a fitted model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crisptree.sanitization import sanitize

_ESCAPES = {ord(space): space.encode("unicode_escape").decode("ascii") for space in "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"}

Names = Sequence[Any] | None
"""One name per feature or class, of any type that has a text; None for the model's own."""


def resolve_feature_names(estimator: Any, names: Names = None, transformers: Sequence[Any] = ()) -> list[str]:
    """Return one name for every feature: ``names``, those that the earlier steps of a Pipeline output, the columns of
    ``fit``, the features of a stored preprocessing, pixels, or x0, x1, …

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier
    >>> rows = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> model = CrispTreeClassifier(max_depth=1, epochs=1, finetune_epochs=0, image_shape=(1, 2)).fit(rows, [0, 1])
    >>> resolve_feature_names(model)
    ['pixel (0, 0)', 'pixel (0, 1)']
    >>> resolve_feature_names(model, ["left", "right"])
    ['left', 'right']
    """
    n_features = int(estimator.tree_.n_features)
    if names is not None:
        return check_names(names, n_features, "feature_names", "features")
    numbered = [f"x{feature}" for feature in range(n_features)]
    output_names = _names_out(transformers)
    if len(output_names) == n_features and output_names != numbered:  # pixel positions say more than numbers
        return output_names
    seen = getattr(estimator, "feature_names_in_", None)
    if seen is not None:
        return [str(name) for name in seen]
    stored = estimator.__dict__.get("preprocessing_")
    if stored is not None and len(stored.feature_names) == n_features:
        return [str(name) for name in stored.feature_names]
    if estimator.image_shape_ is not None:
        return [f"pixel {position}" for position in np.ndindex(*estimator.image_shape_)]
    return numbered


def _names_out(transformers: Sequence[Any]) -> list[str]:
    """Return the names that the last transformer gives its output; an empty list where it has none."""
    names = None
    for transformer in transformers:
        names = _try_names_out(transformer, names)
        if names is None and hasattr(transformer, "steps"):  # a step in the middle may have no names
            names = _try_names_out(transformer.steps[-1][1], None)
    return [] if names is None else [str(name) for name in names]


def _try_names_out(transformer: Any, names: Any) -> Any:
    try:
        return transformer.get_feature_names_out(names)
    except Exception:  # a foreign transformer may raise anything; the features are numbered then
        return None


def check_names(names: Iterable[object], number: int, parameter: str, things: str) -> list[str]:
    """Sanitize names and check that there is one for each feature or class."""
    texts = sanitize_names(names)
    if len(texts) != number:
        raise ValueError(f"`{parameter}` must name all {number} {things}; got {len(texts)} names.")
    return texts


def sanitize_names(names: Iterable[object]) -> list[str]:
    r"""Make names safe for one line of text or of a plot, whatever characters they have.

    Line breaks and tabs become spaces, except where two names would become equal; those are escaped.

    Examples
    --------
    >>> sanitize_names(["go\nld", "ba sic"])
    ['go ld', 'ba sic']
    >>> sanitize_names(["ba\tsic", "ba sic"]) == [r"ba\tsic", "ba sic"]
    True
    """
    texts = [str(name) for name in names]
    shown = [" ".join(text.split()) for text in texts]
    if len(set(shown)) < len(set(texts)):
        behind = Counter(" ".join(text.split()) for text in set(texts))
        escaped = [text.translate(_ESCAPES) for text in texts]
        shown = [one if behind[one] == 1 else other for one, other in zip(shown, escaped, strict=True)]
    return [sanitize(text) for text in shown]


def sanitize_preprocessing(preprocessing: Any) -> Any:
    """Sanitize the names of the columns and categories of a stored preprocessing."""
    names = sanitize_names(column.name for column in preprocessing.columns)
    columns = (
        replace(column, name=name, categories=tuple(sanitize_names(column.categories)))
        for name, column in zip(names, preprocessing.columns, strict=True)
    )
    return replace(preprocessing, columns=tuple(columns), inputs=())
