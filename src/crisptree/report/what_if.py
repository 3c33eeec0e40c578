"""What the page needs to predict values that a reader edits: the tree itself, and the rows as it sees them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import FlatTree
from crisptree.inspection import ModelView
from crisptree.inspection.columns import find_preprocessing, list_columns
from crisptree.report.encoding import pack

MOST_WEIGHTS = 1_000_000
"""Larger trees are not written into the page a second time."""


def collect_what_if(view: ModelView, X: npt.NDArray[np.float32]) -> dict[str, Any] | None:
    """The model for ``export/predict.js`` and the features of the samples.

    None for what it cannot tell: images, modules, large trees.
    """
    tree = view.tree
    if not isinstance(tree, FlatTree) or view.image_shape is not None:
        return None
    models = _models_of(tree)
    if max(tree.weight.size, X.size, *(part.size for part in models.values())) > MOST_WEIGHTS:
        return None
    columns, stored, statistics = list_columns(view), find_preprocessing(view), tree.statistics
    fills = [math.nan] * len(columns) if stored is None else [column.mean for column in stored.columns]
    described = []
    for column, fill in zip(columns, fills, strict=True):
        first = column.features[0] if column.features else column.missing
        known = column.kind == "number" and statistics.lowest is not None and statistics.highest is not None
        described.append(
            {
                "name": column.name,
                "kind": column.kind,
                "feature": first,
                "categories": column.display_levels,
                "fill": None if math.isnan(fill) else fill,
                "missing": column.missing is not None,
                "low": float(statistics.lowest[first]) if known and statistics.lowest is not None else None,
                "high": float(statistics.highest[first]) if known and statistics.highest is not None else None,
                "whole": bool(statistics.whole[first]) if known and statistics.whole is not None else False,
            }
        )
    return {
        "columns": described,
        "left": pack(tree.left, "int32"),
        "right": pack(tree.right, "int32"),
        "weight": pack(tree.weight, "float32"),
        "bias": pack(tree.bias, "float32"),
        "rows": pack(X, "float32"),
        **{name: pack(part, "float64") for name, part in models.items()},
    }


def _models_of(tree: FlatTree) -> dict[str, npt.NDArray[np.float64]]:
    """Slopes and offsets of leaves that have linear models."""
    if tree.linear_weight is None or tree.linear_bias is None:
        return {}
    first = tree.structure.n_splits
    return {"slopes": tree.linear_weight[first:], "offsets": tree.linear_bias[first:]}
