"""The steps of ``partial_fit`` on a fitted estimator. Imported only when something trains."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_random_state

from crisptree.data.sparse import SparseRows
from crisptree.estimators.constraints import by_number
from crisptree.estimators.fitting import spec_of
from crisptree.estimators.progress import recording
from crisptree.estimators.validation import TrainingData
from crisptree.inference import CrispTree
from crisptree.inference.statistics import inherit_ranges, record_ranges
from crisptree.learning.fitting import update_tree
from crisptree.learning.history import EpochRecord
from crisptree.learning.task import Problem
from crisptree.selection.parameters import apply_selected


def updated(estimator: Any, data: TrainingData, memory: float, grow: bool) -> tuple[CrispTree, list[EpochRecord]]:
    """The tree of a fitted estimator after some new rows, and the records of their epochs."""
    earlier = estimator.tree_
    given = by_number(estimator.get_params(deep=False), estimator)
    chosen, is_sparse = estimator.__dict__.get("chosen_", {}), isinstance(data.X, SparseRows)
    parameters = apply_selected(given, chosen, data.image_shape, is_sparse=is_sparse)
    if grow:
        parameters["max_depth"] = estimator.max_depth  # a choice of less was one for the first rows
    parameters |= {"grow": "keep", "early_stopping": False}
    seed = int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))
    problem = Problem(data.part, earlier.statistics.scaling, data.target)
    spec = spec_of(parameters, problem, data.image_shape, seed)
    with recording(estimator.verbose, estimator.callbacks) as recorder:
        tree = update_tree(earlier, spec, problem, memory=memory, grows=grow, on_epoch=recorder.record)
    if earlier.statistics.lowest is not None:
        tree = inherit_ranges(record_ranges(tree, data.X, data.holes), earlier, and_own=True)
    return tree, recorder.history
