"""Selection of a readable tree: the trained one, CART's thresholds, and both with alternately optimised splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from crisptree.inference import FlatTree, route_rows
from crisptree.inference.finalization import empty_statistics
from crisptree.learning.alternating_splits import SplitSearch, alternate_splits, grow_sums
from crisptree.learning.fitting import add_leaf_statistics, fit_tree
from crisptree.learning.options import Spec
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.selection.candidates import CART_SPLITS, LOSS_SHARE
from crisptree.selection.search import make_folds

MIN_PROBABILITY = 1e-3
"""Log losses count to here: the leaves of the candidates are not shrunk yet."""

CART_PARAMETERS: dict[str, Any] = CART_SPLITS | {"grow": "cart", "finetune_epochs": 0, "max_depth": None}
MIN_SAMPLES_OF_CART = 5

MakeSpec = Callable[[Mapping[str, Any], TrainingTask], Spec]


def improve_readable(
    tree: FlatTree, parameters: Mapping[str, Any], task: TrainingTask, make_spec: MakeSpec, seed: int
) -> FlatTree:
    """Return the best of several trees of at most as many leaves and terms, compared on held-out rows.

    Every candidate is trained on every fold. The trained tree is kept unless another one scores higher.
    """
    if not _is_searchable(parameters, task):
        return tree
    folds = make_folds(task, seed)
    if not folds:
        return tree
    merits: dict[str, list[float]] = {}
    for fold in folds:
        trained = fit_tree(make_spec(parameters, fold.problem), fold.problem).tree
        assert isinstance(trained, FlatTree)
        for name, candidate in list_candidates(trained, parameters, fold.problem, make_spec).items():
            merits.setdefault(name, []).append(_score(candidate, fold.held_out))
    best = max(merits, key=lambda name: np.mean(merits[name]))  # the first of equals: the trained tree
    return list_candidates(tree, parameters, task, make_spec)[best]


def _is_searchable(parameters: Mapping[str, Any], task: TrainingTask) -> bool:
    """Return True for arrays and hard labels without other constraints than the number of terms."""
    is_constrained = parameters.get("monotonic_cst") is not None or parameters.get("interaction_cst") is not None
    is_plain = isinstance(task.training.X, np.ndarray) and task.target.hard is task.target
    return is_plain and not is_constrained and parameters["split"] in ("oblique", "axis")


def list_candidates(
    trained: FlatTree, parameters: Mapping[str, Any], task: TrainingTask, make_spec: MakeSpec
) -> dict[str, FlatTree]:
    """Make the candidates from the tree that was trained on the rows of a task."""
    spec = make_spec(parameters, task)
    values = dict(parameters) | CART_PARAMETERS
    if isinstance(values["min_samples_leaf"], int):
        values["min_samples_leaf"] = max(values["min_samples_leaf"], MIN_SAMPLES_OF_CART)
    cart = fit_tree(make_spec(values, task), task).tree
    assert isinstance(cart, FlatTree)
    max_terms = parameters.get("max_features_per_split") or trained.n_features
    if parameters["split"] == "axis" and not parameters.get("max_features_per_split"):
        max_terms = 1
    candidates = {"trained": trained, "cart": cart}
    search = SplitSearch.of(task.training, task.target, spec.limits, max_terms)
    for name, start in (("alternating", trained), ("alternating cart", cart)):
        if start.structure.n_splits:
            candidates[name] = _count(alternate_splits(start, search), spec, task)
    grown = grow_sums(search, spec.limits.max_leaf_nodes or len(task.training.y))
    if grown is not None:
        structure, weight, bias = grown
        statistics = empty_statistics(
            structure,
            trained.statistics.scaling,
            np.zeros((structure.n_leaves, trained.n_values)),
            trained.statistics.steepness,
            task.target.n_statistics,
        )
        center, unit = trained.statistics.y_center, trained.statistics.y_unit
        statistics = replace(statistics, y_center=center, y_unit=unit)
        tables = statistics.soft_leaves
        sums = replace(trained, structure=structure, leaves=tables, statistics=statistics, weight=weight, bias=bias)
        candidates["sums"] = _count(sums, spec, task)
    return candidates


def _count(tree: FlatTree, spec: Spec, task: TrainingTask) -> FlatTree:
    counted = add_leaf_statistics(tree, spec, task)[0]
    assert isinstance(counted, FlatTree)
    return replace(counted, statistics=replace(counted.statistics, soft_leaves=counted.leaves))


def _score(tree: FlatTree, rows: RowSet) -> float:
    """Score held-out rows: accuracy less a share of the log loss, or 1 − the squared error of scaled y."""
    leaf = route_rows(tree, np.ascontiguousarray(rows.X[:], dtype=np.float32))
    tables = tree.leaves[leaf]
    scores = np.asarray(tree.target.score_predictions(tree.target.predict(tables), rows.y), dtype=np.float64)
    if not tree.target.is_regression:
        own = tables[np.arange(len(leaf)), rows.y]
        scores = scores + LOSS_SHARE * np.log(np.maximum(own, MIN_PROBABILITY))
    return float(np.average(scores, weights=rows.weight))
