"""Prediction of plain arrays without scikit-learn's checks, which take longer than the tree does for a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn import get_config

from crisptree.inference import CrispTree, FlatTree, routing


def fast_leaves(tree: CrispTree | None, X: Any, n_jobs: int | None, *, has_names: bool) -> npt.NDArray[np.int64] | None:
    """The leaves of a plain array of the right width, checked for finite values while it is routed.

    None for anything else, or where a check fails: the generic way then raises scikit-learn's own error.
    """
    if not isinstance(tree, FlatTree) or has_names or not is_plain(X, tree.n_features):
        return None
    check_finite = not get_config()["assume_finite"]
    return routing.route_array(tree, X, n_jobs=n_jobs, check_finite=check_finite)


def is_plain(X: Any, n_features: int, known: Mapping[str, Any] | None = None) -> bool:
    """Whether X is floats or bytes of the right width, with some rows, for a model without names or an encoder."""
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype not in routing.TYPES:
        return False
    if X.shape[1] != n_features or not len(X):
        return False
    return known is None or not ("feature_names_in_" in known or "encoder_" in known)
