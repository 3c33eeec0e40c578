"""The native steps against their definition with torch."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from crisptree.equations.routing import log_likelihoods
from crisptree.learning import loop as training_loop
from crisptree.learning.engines.base import Groups
from crisptree.learning.engines.native_engine import NativeEngine, best_entries
from crisptree.learning.engines.torch_engine import TorchEngine
from crisptree.learning.growth import Stumps
from crisptree.learning.loop import WholeTree
from crisptree.learning.options import Plan
from crisptree.native import training
from crisptree.splits import AxisCandidates, ObliqueSplits
from tests.learning.comparing import largest_difference, trained
from tests.toys import (
    CHAIN,
    FIGURE_1,
    class_samples,
    clouds,
    generator,
    random_structure,
    random_tables,
    random_tree,
)

if training is None:
    pytest.skip("crisptree was installed without its kernel", allow_module_level=True)


def samples(n=150, n_features=6, dtype=torch.float64):
    X, y = clouds(n, n_features=n_features, n_classes=4)
    weight = torch.rand(n, generator=generator(), dtype=dtype) + 0.5
    return class_samples(torch.from_numpy(X).to(dtype), torch.from_numpy(y), weight, 4)


@pytest.mark.parametrize("threshold", [1e-4, 1e-3])
def test_a_small_mass_threshold_changes_little_and_saves_much(threshold, monkeypatch):
    data, tree = samples(), random_tree(random_structure(25, 1), 6, 4)
    exact, sparse = (
        Plan(epochs=3, learning_rate=0.01, steepness=4.0, mass_threshold=mass) for mass in (0.0, threshold)
    )
    whole = trained(NativeEngine, WholeTree(tree, data), data, exact, monkeypatch)
    part = trained(NativeEngine, WholeTree(tree, data), data, sparse, monkeypatch)
    likelihood = [
        log_likelihoods(
            trainee.tree().log_path_probabilities(data.rows.values, 4.0), data.target.evidence(trainee.leaves, data.y)
        )
        .mean()
        .item()
        for trainee in (whole, part)
    ]
    assert likelihood[0] == pytest.approx(likelihood[1], abs=0.01)
    steps = NativeEngine(WholeTree(tree, data), data, sparse, fresh=False)
    steps.epoch(sparse.settings_at(0), whole.groups.rows)
    assert steps.pairs < 0.6 * len(data) * tree.structure.n_splits


def whole_tree(data):
    return WholeTree(random_tree(CHAIN, 6, 4), data)


def two_stumps(data):
    splits = ObliqueSplits.initial(torch.zeros(2, 6, dtype=torch.float64), generator())
    groups = Groups(torch.arange(len(data)), torch.tensor([len(data) // 3, len(data) - len(data) // 3]))
    return Stumps(splits, random_tables(4, 4).reshape(2, -1), groups)


@pytest.mark.parametrize("make", [whole_tree, two_stumps])
@pytest.mark.parametrize(("n_rows", "batch_size"), [(150, 70), (1201, 1201)])  # tasks of 32 rows, few and many
def test_the_number_of_threads_does_not_change_a_bit(make, n_rows, batch_size, monkeypatch):
    monkeypatch.setattr("crisptree.threads.available_cores", lambda: 5)
    monkeypatch.setattr("crisptree.learning.samples.MIN_VALUES_FOR_THREADS", 0)
    results = []
    for threads in (1, 2, 5):
        data = replace(samples(n_rows), n_jobs=threads)
        assert data.threads == threads
        trainee = make(data)
        training_loop.train(trainee, data, Plan(epochs=3, batch_size=batch_size), generator=generator())
        results.append(trainee.splits.parameters["weight"].detach().clone())
    assert torch.equal(results[0], results[1])
    assert torch.equal(results[0], results[2])


def test_steep_splits_and_far_rows_stay_finite():
    data, tree = samples(), random_tree(FIGURE_1, 6, 4)
    far = class_samples(data.rows.values * 1e6, data.y, data.weight, 4)
    trainee = WholeTree(tree, far)
    training_loop.train(trainee, far, Plan(epochs=2, steepness=1e3), generator=generator())
    assert torch.isfinite(trainee.splits.parameters["weight"]).all()
    assert torch.isfinite(trainee.leaves).all()


def test_only_hyperplanes_on_the_cpu_train_natively():
    data = samples()
    assert NativeEngine.supports(WholeTree(random_tree(FIGURE_1, 6, 4), data), data, Plan())
    candidates = AxisCandidates.initial(torch.zeros(1, 6, dtype=torch.float64), generator())
    groups = Groups(torch.arange(150), torch.tensor([150]))
    assert not NativeEngine.supports(Stumps(candidates, random_tables(12, 4).reshape(2, -1), groups, 6), data, Plan())


def test_the_best_entry_under_a_node_is_that_of_its_best_leaf():
    tables = random_tables(5, 3).numpy()
    best = best_entries(FIGURE_1, tables)
    for node, (start, stop) in enumerate(FIGURE_1.leaf_spans):
        below = FIGURE_1.leaves_left_to_right[start:stop]
        assert np.array_equal(best[node], tables[below].max(axis=0))


def test_scores_that_are_no_numbers_show_in_the_loss():
    data, tree = samples(), random_tree(FIGURE_1, 6, 4)
    huge = class_samples(
        torch.where(data.y[:, None] > 1, data.rows.values.sign() * 1e308, data.rows.values), data.y, data.weight, 4
    )
    plan = Plan(epochs=2, mass_threshold=1e-3)
    with pytest.raises(training_loop.DivergenceError):
        training_loop.train(WholeTree(tree, huge), huge, plan, generator=generator())


def test_weights_that_are_not_contiguous_are_trained_too():
    data, tree = samples(), random_tree(FIGURE_1, 6, 4)
    trainee = WholeTree(tree, data)
    strided = torch.empty(6, FIGURE_1.n_splits, dtype=torch.float64).T.copy_(tree.splits.parameters["weight"])
    trainee.splits = ObliqueSplits(strided, tree.splits.parameters["bias"].clone())
    training_loop.train(trainee, data, Plan(epochs=1, learning_rate=0.05), generator=generator())
    assert (trainee.splits.parameters["weight"] - tree.splits.parameters["weight"]).abs().max() > 0.01


def test_a_leaf_whose_rows_are_all_far_away_still_counts_its_share():
    data = samples(n_features=1)
    far = class_samples(torch.ones_like(data.rows.values), data.y, data.weight, 4)
    groups = Groups(torch.arange(150), torch.tensor([150]))
    tables = random_tables(2, 4).reshape(2, -1).to(far.rows.values)
    counts = []
    for make in (NativeEngine, TorchEngine):
        splits = ObliqueSplits(torch.tensor([[50.0]]).double(), torch.zeros(1).double())
        steps = make(Stumps(splits, tables, groups), far, Plan(epochs=1), fresh=False)
        counts.append(steps.epoch(Plan().settings_at(0), groups.rows).counts)
    torch.testing.assert_close(*counts, rtol=1e-9, atol=0)


def test_a_soft_tree_goes_through_in_pieces_and_takes_the_same_step(monkeypatch):
    X, y = clouds(400, n_features=6, n_classes=4)
    data = class_samples(torch.from_numpy(X).double(), torch.from_numpy(y), torch.ones(400, dtype=torch.float64), 4)
    tree = random_tree(random_structure(400, 1), 6, 4)
    plan = Plan(epochs=2, learning_rate=0.01, steepness=0.1)
    native, by_torch = (
        trained(make, WholeTree(tree, data), data, plan, monkeypatch) for make in (NativeEngine, TorchEngine)
    )
    assert largest_difference(native, by_torch) < 1e-9
