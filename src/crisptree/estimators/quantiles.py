"""Rows with known y from which conditional quantiles are taken."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length

from crisptree.inference import CrispTree
from crisptree.targets.regression import check_numbers
from crisptree.targets.weights import check_sample_weight

Doubles = npt.NDArray[np.float64]


def check_reference_rows(
    estimator: Any, trees: Iterable[CrispTree], quantiles: Any, among: Any
) -> tuple[Doubles, npt.NDArray[np.int64], Doubles, Doubles]:
    """Quantiles from 0 to 1, and rows with known y: the leaves that they reach, y and weights."""
    if any(tree.is_linear for tree in trees):
        raise TypeError(
            "predict_quantiles must have constant leaves; those of leaves='linear' have no one y. Take "
            "predict_interval, or train with leaves='constant'."
        )
    wanted = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    if wanted.ndim != 1 or not ((wanted >= 0) & (wanted <= 1)).all():
        raise ValueError(f"`quantiles` must be numbers from 0 to 1; got {quantiles!r}.")
    if not isinstance(among, tuple | list) or len(among) not in (2, 3):
        raise ValueError("`among` must be (X, y) or (X, y, sample_weight), rows with known y.")
    known, weight = check_numbers(among[1]), among[2] if len(among) == 3 else None
    there = estimator.apply(among[0])
    check_consistent_length(there, known)
    if known.shape[1] != estimator.n_outputs_:
        raise ValueError(f"y of `among` must have {estimator.n_outputs_} columns as in training; got {known.shape[1]}.")
    return wanted, there, known, check_sample_weight(weight, there.reshape(len(there), -1))
