"""What the features and classes of a fitted model are called wherever a reader meets them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crisptree.visible import visible

_ESCAPES = {ord(space): space.encode("unicode_escape").decode("ascii") for space in "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"}

Names = Sequence[Any] | None
"""One for each thing, of any type that has a text; None for the model's own."""


def feature_names(estimator: Any, given: Names = None, earlier: Sequence[Any] = ()) -> list[str]:
    """One name for every feature: those given, those that the earlier steps of a Pipeline hand on, the columns of
    ``fit``, what a stored preprocessing makes of a table, pixels, or x0, x1, …

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier
    >>> rows = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> model = CrispTreeClassifier(max_depth=1, epochs=1, finetune_epochs=0, image_shape=(1, 2)).fit(rows, [0, 1])
    >>> feature_names(model)
    ['pixel (0, 0)', 'pixel (0, 1)']
    >>> feature_names(model, ["left", "right"])
    ['left', 'right']
    """
    n_features = int(estimator.tree_.n_features)
    if given is not None:
        return one_name_each(given, n_features, "feature_names", "features")
    numbered = [f"x{feature}" for feature in range(n_features)]
    coming_out = _names_out(earlier)
    if len(coming_out) == n_features and coming_out != numbered:  # mere numbers say less than pixels do
        return coming_out
    seen = getattr(estimator, "feature_names_in_", None)
    if seen is not None:
        return [str(name) for name in seen]
    stored = estimator.__dict__.get("preprocessing_")
    if stored is not None and len(stored.feature_names) == n_features:
        return [str(name) for name in stored.feature_names]
    if estimator.image_shape_ is not None:
        return [f"pixel {place}" for place in np.ndindex(*estimator.image_shape_)]
    return numbered


def _names_out(earlier: Sequence[Any]) -> list[str]:
    """What the last of the transformers calls its columns; nothing where it does not say."""
    names = None
    for transformer in earlier:
        names = _asked(transformer, names)
        if names is None and hasattr(transformer, "steps"):  # one step in the middle that does not say spoils it
            names = _asked(transformer.steps[-1][1], None)
    return [] if names is None else [str(name) for name in names]


def _asked(transformer: Any, names: Any) -> Any:
    try:
        return transformer.get_feature_names_out(names)
    except Exception:  # whatever a transformer of others raises: without names there are still numbers
        return None


def one_name_each(names: Iterable[object], number: int, parameter: str, things: str) -> list[str]:
    """Names as lines of text, one for each thing, or an error that says how many there must be."""
    texts = on_one_line(names)
    if len(texts) != number:
        raise ValueError(f"`{parameter}` must name all {number} {things}; got {len(texts)} names.")
    return texts


def on_one_line(names: Iterable[object]) -> list[str]:
    r"""Names as they can stand in a line of text or of a drawing, whatever characters they have.

    Line breaks and tabs become spaces, except where two names would become the same by it.

    Examples
    --------
    >>> on_one_line(["go\nld", "ba sic"])
    ['go ld', 'ba sic']
    >>> on_one_line(["ba\tsic", "ba sic"]) == [r"ba\tsic", "ba sic"]
    True
    """
    texts = [str(name) for name in names]
    shown = [" ".join(text.split()) for text in texts]
    if len(set(shown)) < len(set(texts)):
        behind = Counter(" ".join(text.split()) for text in set(texts))
        escaped = [text.translate(_ESCAPES) for text in texts]
        shown = [one if behind[one] == 1 else other for one, other in zip(shown, escaped, strict=True)]
    return [visible(text) for text in shown]


def in_lines(table: Any) -> Any:
    """A stored preprocessing whose columns and levels are called as they can stand in a line of text."""
    names = on_one_line(column.name for column in table.columns)
    columns = (
        replace(column, name=name, categories=tuple(on_one_line(column.categories)))
        for name, column in zip(names, table.columns, strict=True)
    )
    return replace(table, columns=tuple(columns), inputs=())
