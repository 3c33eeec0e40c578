"""Training of a fitted tree on further rows: simplification and ``partial_fit``. Imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from crisptree.data.raw_rows import SparseRows
from crisptree.inference import CrispTree, FlatTree, route_rows
from crisptree.inference.finalization import inherit_ranges, record_ranges, shrink
from crisptree.learning.fitting import update_tree
from crisptree.learning.history import EpochRecord
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.learning.simplification import simplify
from crisptree.pipeline.monitoring import record_epochs
from crisptree.pipeline.trees import ArrayDataset, spec_of
from crisptree.pipeline.validation import TrainingData, draw_seed
from crisptree.selection.parameters import apply_selected, resolve_depth

DEFAULT_TOLERANCE = 0.01
"""Acceptable loss of accuracy without ``tolerance`` and ``max_terms``."""


@dataclass(frozen=True)
class Simplification:
    """Result of a simplification; ``print`` it for a text.

    Parameters
    ----------
    weights_before, weights_after : int
        Weights of all splits that are not zero.
    splits_before, splits_after : int
        Splits of the tree.
    score_before, score_after : float
        Accuracy on the validation rows; in regression 1 − squared error / variance of y in training.
    measure : str
        Name of the score.
    """

    weights_before: int
    weights_after: int
    splits_before: int
    splits_after: int
    score_before: float
    score_after: float
    measure: str = "accuracy"

    def __str__(self) -> str:
        return (
            f"weights {self.weights_before:,} -> {self.weights_after:,}, splits {self.splits_before:,} -> "
            f"{self.splits_after:,}, {self.measure} on validation rows {self.score_before:.2%} -> "
            f"{self.score_after:.2%}"
        )


class Refit(NamedTuple):
    """A tree that was trained further, and the records of its epochs."""

    tree: CrispTree
    history: list[EpochRecord]


def check_simplifiable(tree: CrispTree) -> FlatTree:
    """Return the tree if its splits are hyperplanes and its leaves constant."""
    if not isinstance(tree, FlatTree):
        raise TypeError(
            "simplify needs hyperplanes; the splits of this tree are modules, which have no weight per feature to "
            "leave out. Train with split='oblique' or 'axis', or shorten the tree with truncate(depth)."
        )
    if tree.is_linear:
        raise TypeError(
            "simplify needs constant leaves, whose tables are counted again; those of leaf_model='linear' are models. "
            "Train with leaf_model='constant', or shorten the tree with truncate(depth)."
        )
    return tree


def simplify_tree(
    before: FlatTree,
    parameters: Mapping[str, Any],
    selected: Mapping[str, Any],
    data: TrainingData,
    held_out: RowSet | None,
    max_terms: int | None,
    tolerance: float | None,
    epochs: int,
) -> tuple[Refit, Simplification]:
    """Simplify a fitted tree; see the method ``simplify`` of its estimator.

    ``parameters`` are those of the estimator, ``selected`` the values that its fit selected for "auto". Without
    ``held_out`` rows, some of the data are held out.
    """
    seed = draw_seed(parameters["random_state"])
    if held_out is None:
        if len(data.y) < 2:
            raise ValueError("X must have at least 2 rows to hold some out; got 1. Give more, or `eval_set`.")
        rest, held_out = ArrayDataset(data).split_off(parameters["validation_fraction"], seed)
        data = rest.data
    if max_terms is None and tolerance is None:
        tolerance = DEFAULT_TOLERANCE
    prior, n_jobs = parameters["leaf_prior"], parameters["n_jobs"]
    # Shrinkage comes last: what the tolerance allows is measured with plain tables, as in the stages.
    plain = shrink(_scaled(before), None, prior)
    lowest = None if tolerance is None else _score(plain, held_out, n_jobs) - tolerance
    values = apply_selected(parameters, selected, data.image_shape)
    values |= {"finetune_epochs": epochs, "grow": "keep", "upper_levels": None, "optimizer": "adam"}
    task = TrainingTask(data.part, before.statistics.scaling, data.target)
    spec = replace(spec_of(values, task, data.image_shape, seed), algorithm="em", patience=None)
    with record_epochs(values["verbose"], values["callbacks"]) as recorder:
        after = simplify(plain, spec, task, held_out, max_terms=max_terms, lowest=lowest, on_epoch=recorder.record)
    if after is plain:
        after = before
    else:
        after = inherit_ranges(shrink(after, before.statistics.shrinkage, prior), before)
        after = data.encoding.restore_units(after)
    assert isinstance(after, FlatTree)
    simplification = Simplification(
        weights_before=int(np.count_nonzero(before.weight)),
        weights_after=int(np.count_nonzero(after.weight)),
        splits_before=before.structure.n_splits,
        splits_after=after.structure.n_splits,
        score_before=_score(_scaled(before), held_out, n_jobs),
        score_after=_score(_scaled(after), held_out, n_jobs),
        measure="R²" if data.encoding.classes is None else "accuracy",
    )
    return Refit(after, recorder.history), simplification


def _scaled(tree: FlatTree) -> FlatTree:
    """Return the tree that predicts in the units of training, in which its rows are."""
    return replace(tree, statistics=replace(tree.statistics, y_center=None, y_unit=None))


def _score(tree: CrispTree, rows: RowSet, n_jobs: int | None) -> float:
    right = tree.target.score_predictions(tree.labels(route_rows(tree, rows.X, n_jobs)), rows.y)
    return float(rows.weight @ right / rows.weight.sum())


def update_fitted_tree(
    earlier: CrispTree,
    parameters: Mapping[str, Any],
    selected: Mapping[str, Any],
    data: TrainingData,
    memory: float,
    grow: bool,
) -> Refit:
    """Train a fitted tree on new rows; see the method ``partial_fit`` of its estimator."""
    values = apply_selected(parameters, selected, data.image_shape, is_sparse=isinstance(data.X, SparseRows))
    if grow:
        # A smaller depth was selected for the first rows.
        values["max_depth"] = resolve_depth(parameters, data.target.name)["max_depth"]
    values |= {"grow": "keep", "early_stopping": False, "optimizer": "adam"}
    task = TrainingTask(data.part, earlier.statistics.scaling, data.target)
    spec = spec_of(values, task, data.image_shape, draw_seed(parameters["random_state"]))
    with record_epochs(values["verbose"], values["callbacks"]) as recorder:
        tree = update_tree(earlier, spec, task, memory=memory, grows=grow, on_epoch=recorder.record)
    if earlier.statistics.lowest is not None:
        tree = inherit_ranges(record_ranges(tree, data.X, data.missing_indicators), earlier, and_own=True)
    return Refit(data.encoding.restore_units(tree), recorder.history)
