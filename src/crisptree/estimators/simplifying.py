"""The steps of a simplification, in order: rows, stages, the crisp tree. Imported only when something is refitted."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_random_state

from crisptree.estimators.arguments import check_argument
from crisptree.estimators.constraints import by_number
from crisptree.estimators.fitting import ArrayDataset, spec_of
from crisptree.estimators.progress import recording
from crisptree.estimators.simplifying_mixin import Simplification
from crisptree.estimators.validation import check_validation
from crisptree.inference import CrispTree, FlatTree, route_rows
from crisptree.inference.shrinkage import shrink
from crisptree.inference.statistics import inherit_ranges
from crisptree.learning.simplification import simplify
from crisptree.learning.task import Part, Problem
from crisptree.one_thread import one_thread
from crisptree.selection.parameters import apply_selected

TOLERANCE = 0.01
"""The accuracy that may be lost where the caller names neither a tolerance nor a number of terms."""


@one_thread()
@np.errstate(under="ignore")  # as in every fit
def simplify_tree(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    max_terms: int | None,
    tolerance: float | None,
    validation: tuple[Any, Any] | None,
    epochs: int,
) -> Any:
    """A simplified twin of a fitted estimator; see its method ``simplified``."""
    for name, value in (("max_terms", max_terms), ("tolerance", tolerance), ("epochs", epochs)):
        check_argument(name, value)
    before = estimator.tree_
    if not isinstance(before, FlatTree):
        raise TypeError(
            "simplified needs hyperplanes; the splits of this tree are modules, which have no weight per feature to "
            "leave out. Train with split='oblique' or 'axis', or cut the tree at a depth with cut."
        )
    if before.is_linear:
        raise TypeError(
            "simplified needs constant leaves, whose tables are counted again; those of leaves='linear' are models. "
            "Train with leaves='constant', or cut the tree at a depth with cut."
        )
    data = estimator._more_rows(X, y, sample_weight)
    seed = int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))
    if validation is not None:
        held = check_validation(estimator, validation, data.encoding)
    elif len(data.y) < 2:
        raise ValueError("X must have at least 2 rows, because some judge; got 1. Give more, or `validation`.")
    else:
        rest, held = ArrayDataset(data).split_off(estimator.validation_fraction, seed)
        data = rest.data
    if max_terms is None and tolerance is None:
        tolerance = TOLERANCE
    # Shrinkage comes last: what the tolerance allows is measured with plain tables, as in the stages.
    plain = shrink(_scaled(before), None, estimator.leaf_prior)
    lowest = None if tolerance is None else _score(plain, held, estimator.n_jobs) - tolerance
    given = by_number(estimator.get_params(deep=False), estimator)
    parameters = apply_selected(given, estimator.__dict__.get("chosen_", {}), data.image_shape)
    parameters |= {"finetune_epochs": epochs, "grow": "keep", "upper_levels": None}
    problem = Problem(data.part, before.statistics.scaling, data.target)
    spec = replace(spec_of(parameters, problem, data.image_shape, seed), algorithm="em", patience=None)
    with recording(estimator.verbose, estimator.callbacks) as recorder:
        after = simplify(plain, spec, problem, held, max_terms=max_terms, lowest=lowest, on_epoch=recorder.record)
    if after is plain:
        after = before
    else:
        after = inherit_ranges(shrink(after, before.statistics.shrinkage, estimator.leaf_prior), before)
        after = data.encoding.restore_units(after)
    assert isinstance(after, FlatTree)
    twin = copy.copy(estimator)
    twin.tree_ = twin.greedy_tree_ = after
    twin.history_ = [*estimator.history_, *recorder.history]
    twin.simplification_ = Simplification(
        weights_before=int(np.count_nonzero(before.weight)),
        weights_after=int(np.count_nonzero(after.weight)),
        splits_before=before.structure.n_splits,
        splits_after=after.structure.n_splits,
        score_before=_score(_scaled(before), held, estimator.n_jobs),
        score_after=_score(_scaled(after), held, estimator.n_jobs),
        measure="R²" if data.encoding.classes is None else "accuracy",
    )
    return twin


def _scaled(tree: FlatTree) -> FlatTree:
    """The tree that answers in the units of training, in which its rows are."""
    return replace(tree, statistics=replace(tree.statistics, y_center=None, y_unit=None))


def _score(tree: CrispTree, rows: Part, n_jobs: int | None) -> float:
    right = tree.meaning.agreement(tree.labels(route_rows(tree, rows.X, n_jobs)), rows.y)
    return float(rows.weight @ right / rows.weight.sum())
