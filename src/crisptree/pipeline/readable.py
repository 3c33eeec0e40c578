"""Selection of a readable tree: the trained one, CART's thresholds, and both with alternately optimised splits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import CrispTree, FlatTree, round_splits, route_rows
from crisptree.inference.finalization import empty_statistics
from crisptree.inference.flat_tree import SPARSE_LINEAR
from crisptree.inference.rounding import MAX_REROUTED
from crisptree.learning.alternating_splits import GrownSplits, SplitSearch, alternate_splits, grow_sums
from crisptree.learning.fitting import add_leaf_statistics, fit_tree
from crisptree.learning.options import Spec
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.learning.sparse_leaves import round_sparse_models, with_sparse_models
from crisptree.selection.candidates import CART_SPLITS, LOSS_SHARE
from crisptree.selection.search import make_folds
from crisptree.structure import TreeStructure

MIN_PROBABILITY = 1e-3
"""Log losses count to here: the leaves of the candidates are not shrunk yet."""

CART_PARAMETERS: dict[str, Any] = CART_SPLITS | {"grow": "cart", "finetune_epochs": 0, "max_depth": None}
MIN_SAMPLES_OF_CART = 5

SHARES_REROUTED, MAX_LOSS_BY_ROUNDING = (MAX_REROUTED, MAX_REROUTED / 8, 0.0), 0.002
"""Shares of the rows of a split that rounding may send to the other side, tried in turn, and what it may cost on the
training rows: accuracy less a share of the log loss, or R²."""

SIZE_DIVISORS = (1, 2, 4)
"""Candidates have the most leaves that are allowed, half and a quarter of them."""

MakeSpec = Callable[[Mapping[str, Any], TrainingTask], Spec]


def improve_readable(
    tree: FlatTree,
    parameters: Mapping[str, Any],
    task: TrainingTask,
    make_spec: MakeSpec,
    seed: int,
    source: npt.NDArray[np.intp] | None = None,
) -> FlatTree:
    """Return the best of several trees of at most as many leaves and terms, compared on held-out rows.

    Every candidate is trained on every fold. The trained tree is kept unless another one scores higher. ``source`` is
    the row that each row is a copy of, so that no fold has copies of held-out rows.
    """
    if not _is_searchable(parameters, task):
        return tree
    folds = make_folds(task, seed, source)
    if not folds:
        return tree
    merits: dict[str, list[float]] = {}
    for fold in folds:
        trained = fit_tree(make_spec(parameters, fold.problem), fold.problem).tree
        assert isinstance(trained, FlatTree)
        for name, candidate in list_candidates(trained, parameters, fold.problem, make_spec).items():
            merits.setdefault(name, []).append(_score(candidate, fold.held_out))
    candidates = list_candidates(tree, parameters, task, make_spec)
    merits = {name: values for name, values in merits.items() if len(values) == len(folds) and name in candidates}
    best = max(merits, key=lambda name: np.mean(merits[name]))  # the first of equals: the trained tree
    return candidates[best]


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
    max_leaves = spec.limits.max_leaf_nodes or len(task.training.y)
    sizes = sorted({max(2, max_leaves // divisor) for divisor in SIZE_DIVISORS}, reverse=True)
    max_terms = parameters.get("max_features_per_split") or trained.n_features
    if parameters["split"] == "axis" and not parameters.get("max_features_per_split"):
        max_terms = 1
    leaf_terms = max_terms if parameters["leaf_model"] == SPARSE_LINEAR else 0
    search = SplitSearch.of(task.training, task.target, spec.limits, max_terms, leaf_terms)
    candidates = {"trained": trained}
    for size in sizes:
        candidates[f"cart {size}"] = _fit_cart({**parameters, "max_leaf_nodes": size}, task, make_spec)
    for name in ("trained", f"cart {sizes[0]}"):
        if candidates[name].structure.n_splits:
            candidates[f"alternating {name}"] = _count(alternate_splits(candidates[name], search), spec, task)
    for size, grown in grow_sums(search, sizes).items():
        candidates[f"sums {size}"] = _count(_replace_splits(trained, grown, task), spec, task)
    if not leaf_terms:
        return candidates
    single = GrownSplits(TreeStructure.single_leaf(), trained.weight[:0], trained.bias[:0])
    candidates["single leaf"] = _count(_replace_splits(trained, single, task), spec, task)
    linear = {
        f"{name}, linear": with_sparse_models(tree, task.training, leaf_terms) for name, tree in candidates.items()
    }
    return candidates | linear


def _fit_cart(parameters: Mapping[str, Any], task: TrainingTask, make_spec: MakeSpec) -> FlatTree:
    values = dict(parameters) | CART_PARAMETERS
    if isinstance(values["min_samples_leaf"], int):
        values["min_samples_leaf"] = max(values["min_samples_leaf"], MIN_SAMPLES_OF_CART)
    cart = fit_tree(make_spec(values, task), task).tree
    assert isinstance(cart, FlatTree)
    return cart


def _replace_splits(tree: FlatTree, grown: GrownSplits, task: TrainingTask) -> FlatTree:
    """Return a tree with other splits, which waits for its leaf statistics."""
    statistics = empty_statistics(
        grown.structure,
        tree.statistics.scaling,
        np.zeros((grown.structure.n_leaves, tree.n_values)),
        tree.statistics.steepness,
        task.target.n_statistics,
    )
    return replace(tree, leaves=statistics.soft_leaves, statistics=statistics, **grown._asdict())


def count_rounded(tree: FlatTree, parameters: Mapping[str, Any], spec: Spec, task: TrainingTask) -> FlatTree:
    """Round the splits of a tree, and give it the leaf statistics and leaf models of the rows that reach them then.

    Fewer rows may change sides where those that do cost more than ``MAX_LOSS_BY_ROUNDING``.
    """
    rows, max_terms = task.training, parameters["max_features_per_split"] or tree.n_features
    assert isinstance(rows.X, np.ndarray)
    least = _score(tree, rows) - MAX_LOSS_BY_ROUNDING
    counted = tree
    for max_rerouted in SHARES_REROUTED:
        rounded = add_leaf_statistics(round_splits(tree, rows.X, rows.weight, max_rerouted), spec, task)[0]
        assert isinstance(rounded, FlatTree)
        counted = rounded
        if tree.is_linear:
            counted = with_sparse_models(counted, rows, max_terms)
        if _score(counted, rows) >= least:
            break
    return counted


def round_leaves(tree: CrispTree, task: TrainingTask) -> CrispTree:
    """Round linear leaves in the units of y; constant ones stay."""
    return round_sparse_models(tree, task.training) if isinstance(tree, FlatTree) and tree.is_linear else tree


def _count(tree: FlatTree, spec: Spec, task: TrainingTask) -> FlatTree:
    counted = add_leaf_statistics(tree, spec, task)[0]
    assert isinstance(counted, FlatTree)
    return replace(counted, statistics=replace(counted.statistics, soft_leaves=counted.leaves))


def _score(tree: FlatTree, rows: RowSet) -> float:
    """Score held-out rows: accuracy less a share of the log loss, or 1 − the squared error of scaled y."""
    X = np.ascontiguousarray(rows.X[:], dtype=np.float32)
    leaf = route_rows(tree, X)
    tables = tree.scaled_values(leaf, X)
    scores = np.asarray(tree.target.score_predictions(tree.target.predict(tables), rows.y), dtype=np.float64)
    if not tree.target.is_regression:
        own = tables[np.arange(len(leaf)), rows.y]
        scores = scores + LOSS_SHARE * np.log(np.maximum(own, MIN_PROBABILITY))
    return float(np.average(scores, weights=rows.weight))
