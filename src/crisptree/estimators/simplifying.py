"""The steps of a simplification, in order: rows, stages, the crisp tree. Imported only when something is refitted."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.validation import check_random_state

from crisptree.estimators import validation as checks
from crisptree.estimators.fitting import Held, device_of, plan_of, rates_of, samples_of, split_off, threads_for
from crisptree.estimators.inspecting import Simplification
from crisptree.estimators.parameters import check_argument
from crisptree.estimators.progress import recording
from crisptree.inference import CrispTree, FlatTree, route_rows
from crisptree.inference.statistics import settled
from crisptree.learning.finetuning import Finetuned
from crisptree.learning.simplifying import Counted, Task, simplify
from crisptree.learning.train import torch_threads
from crisptree.splits import LINEAR, ObliqueSplits
from crisptree.tree import Tree

TOLERANCE = 0.01
"""The accuracy that may be lost where the caller names neither a tolerance nor a number of terms."""


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
    data = checks.check_more_rows(estimator, X, y, sample_weight)
    seed = int(check_random_state(estimator.random_state).randint(np.iinfo(np.int32).max))
    held: Held
    if validation is None:
        if len(data.y) < 2:
            raise ValueError("X must have at least 2 rows, because some judge; got 1. Give more, or `validation`.")
        data, held = split_off(data, estimator.validation_fraction, seed)
    else:
        rows, labels = checks.check_validation(estimator, validation, estimator.classes_)
        held = (rows, labels, np.ones(len(labels)))
    if max_terms is None and tolerance is None:
        tolerance = TOLERANCE
    score = _accuracy(before, held, estimator.n_jobs)
    lowest = None if tolerance is None else score - tolerance
    after, history = _simplified(estimator, before, data, held, max_terms, lowest, epochs, seed)
    twin = copy.copy(estimator)
    twin.tree_ = twin.greedy_tree_ = after
    twin.history_ = [*estimator.history_, *history]
    twin.simplification_ = Simplification(
        weights_before=int(np.count_nonzero(before.weight)),
        weights_after=int(np.count_nonzero(after.weight)),
        splits_before=before.structure.n_splits,
        splits_after=after.structure.n_splits,
        score_before=score,
        score_after=_accuracy(after, held, estimator.n_jobs),
    )
    return twin


def _simplified(
    estimator: Any,
    before: FlatTree,
    data: checks.TrainingData,
    held: Held,
    max_terms: int | None,
    lowest: float | None,
    epochs: int,
    seed: int,
) -> tuple[FlatTree, list[Any]]:
    device, scaling = device_of(estimator.device), before.statistics.scaling
    n_jobs, n_classes = estimator.n_jobs, len(data.classes)

    def count(tree: Tree) -> Counted:
        crisp = tree.crisp(scaling, 1.0)
        training = (data.X, data.y, data.weight)
        return Counted(*(_leaf_counts(crisp, rows, n_jobs) for rows in (training, held)))

    with (
        torch.enable_grad(),
        torch_threads(threads_for(n_jobs, data.X.size)),
        recording(estimator.verbose, estimator.callbacks) as recorder,
    ):
        task = Task(
            samples=samples_of(scaling, data.X, data.y, data.weight, n_classes, device, n_jobs),
            plan=plan_of(
                estimator,
                data.image_shape,
                epochs,
                rates_of(estimator, data.X.shape[1])[1],
                estimator.leaf_prior / float(data.weight.mean()),
            ),
            count=count,
            spread=torch.as_tensor(scaling.spread * scaling.factor, dtype=torch.float32, device=device),
        )
        soft = Tree.soft(before, device, LINEAR.get(str(estimator.split), ObliqueSplits))
        found = simplify(
            Finetuned(soft, before.statistics.steepness),
            task,
            max_terms=max_terms,
            lowest=lowest,
            generator=torch.Generator().manual_seed(seed),
            on_epoch=recorder.record,
        )
    if found.tree is soft:
        return before, recorder.history
    crisp = found.tree.crisp(scaling, found.steepness)
    assert isinstance(crisp, FlatTree)
    return settled(crisp, data.X, data.y, data.weight, estimator.leaf_prior, n_jobs), recorder.history


def _leaf_counts(tree: CrispTree, rows: Held, n_jobs: int | None) -> npt.NDArray[np.float64]:
    X, y, weight = rows
    counts = np.zeros_like(tree.leaves)
    np.add.at(counts, (route_rows(tree, X, n_jobs), y), weight)
    return counts


def _accuracy(tree: CrispTree, rows: Held, n_jobs: int | None) -> float:
    X, y, weight = rows
    right = tree.labels(route_rows(tree, X, n_jobs)) == y
    return float(weight @ right / weight.sum())
