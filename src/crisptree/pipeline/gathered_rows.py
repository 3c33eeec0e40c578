"""Rows of all processes of a group, for a forest, whose trees each draw from all of them. Imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from crisptree.data.validation import is_sparse
from crisptree.encoding.containers import materialize
from crisptree.learning.process_group import ProcessGroup
from crisptree.pipeline.forests import Workers
from crisptree.pipeline.monitoring import Checkpoints, describe_value
from crisptree.pipeline.validation import RowModel, check_same_parameters, validation_pair
from crisptree.targets.base import detach


def gather_rows(
    estimator: RowModel, rows: tuple[Any, Any, Any], eval_set: Any, checkpoints: Checkpoints
) -> tuple[tuple[Any, Any, Any], Any, Workers]:
    """Give every process the rows (X, y, sample_weight) of all, and the validation rows, for a forest.

    A tree of a forest draws from all rows, and trees are independent: the processes share the trees.
    """
    group, parameters = ProcessGroup(), estimator.training_parameters()
    check_same_parameters(group, {name: describe_value(value) for name, value in parameters.items()})

    def read() -> tuple[list[Any], list[Any] | None]:
        if checkpoints.folder is not None:
            raise ValueError("`checkpoint` must be None for a forest by several processes; fit it in a single process.")
        pair = None if eval_set is None else [detach(part) for part in validation_pair(eval_set)]
        return [materialize(detach(part)) for part in rows], pair

    gathered = group.gather(group.run_on_all(read))
    X, y, weight = (_concatenate(parts) for parts in zip(*(own for own, _ in gathered), strict=True))
    pairs = [pair for _, pair in gathered if pair is not None]
    validation = tuple(_concatenate(parts) for parts in zip(*pairs, strict=True)) if pairs else None
    return (X, y, weight), validation, Workers(group)


def _concatenate(parts: Sequence[Any]) -> Any:
    """Concatenate the rows of all processes: DataFrames, sparse matrices, or anything that becomes an array."""
    missing = [part is None for part in parts]
    if any(missing):
        if not all(missing):
            raise ValueError("all processes must give y and sample_weight, or none; some gave None.")
        return None
    if hasattr(parts[0], "iloc"):
        import pandas
        from pandas.api.types import union_categoricals

        rows = pandas.concat(parts, ignore_index=True)
        for name in getattr(rows, "columns", ()):
            if all(isinstance(part[name].dtype, pandas.CategoricalDtype) for part in parts):
                rows[name] = union_categoricals([part[name] for part in parts], ignore_order=True)
        return rows
    return sparse.vstack(parts, format="csr") if is_sparse(parts[0]) else np.concatenate([*map(np.asarray, parts)])
