"""What the columns of a fitted model are called wherever a reader meets them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def feature_names(model: Any, given: Sequence[object] | None = None) -> list[str]:
    """One name for every feature: those given, the columns seen in ``fit``, pixels, or x0, x1, …

    Parameters
    ----------
    model : CrispTreeClassifier
        A fitted estimator.
    given : sequence, default=None
        Names that come before all others.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier
    >>> rows = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> model = CrispTreeClassifier(max_depth=1, epochs=1, finetune_epochs=0, image_shape=(1, 2)).fit(rows, [0, 1])
    >>> feature_names(model)
    ['pixel (0, 0)', 'pixel (0, 1)']
    >>> feature_names(model, ["ink", "paper"])
    ['ink', 'paper']
    """
    n_features = int(model.tree_.n_features)
    if given is not None:
        if len(given) != n_features:
            raise ValueError(f"`feature_names` must name all {n_features} features; got {len(given)} names.")
        return [str(name) for name in given]
    seen = getattr(model, "feature_names_in_", None)
    if seen is not None:
        return [str(name) for name in seen]
    if model.image_shape_ is not None:
        return [f"pixel {place}" for place in np.ndindex(*model.image_shape_)]
    return [f"x{feature}" for feature in range(n_features)]
