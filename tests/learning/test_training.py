"""Stumps and whole trees in the one epoch loop."""

import numpy as np
import pytest
import torch

from crisptree.data.raw_rows import Scaling
from crisptree.equations.routing import log_likelihoods
from crisptree.learning.engines.base import Groups, PendingEpoch, penalty_shares
from crisptree.learning.engines.torch_engine import TorchEngine, add_penalty_gradient
from crisptree.learning.fitting import MAX_VALUES_FOR_CPU, resolve_device
from crisptree.learning.growth import Stumps
from crisptree.learning.loop import ALGORITHMS, DivergenceError, WholeTree, finetune, hard_score, train
from crisptree.learning.options import Plan, Spec
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.splits import AxisCandidates, ObliqueSplits
from crisptree.targets import Classes, Gaussians
from tests.toys import FIGURE_1, class_samples, clouds, generator, plain_regressor, random_tree

CENTERS = torch.zeros(3, 5, dtype=torch.float64)


def samples(n=120, seed=0, dtype=torch.float64):
    X, y = clouds(n, seed=seed)
    weight = torch.rand(n, generator=generator(seed), dtype=dtype) + 0.5
    return class_samples(torch.from_numpy(X).to(dtype), torch.from_numpy(y), weight, 3)


def stump_tables(n, seed=0):
    raw = torch.rand(2, n, 3, generator=generator(seed), dtype=torch.float64) + 0.1
    return raw / raw.sum(dim=2, keepdim=True)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("penalties", [{}, {"l1": 0.01, "l2": 0.1}])
@pytest.mark.parametrize("min_updates", [0, 7])
def test_batched_stumps_equal_stumps_trained_one_by_one(algorithm, penalties, min_updates):
    data, sizes = samples(), [60, 45, 15]
    plan = Plan(algorithm, epochs=3, learning_rate=0.05, batch_size=1000, min_updates=min_updates, **penalties)
    tables, splits = stump_tables(3), ObliqueSplits.initial(CENTERS, generator())
    together = Stumps(splits, tables.reshape(2, -1), Groups(torch.arange(120), torch.tensor(sizes)))
    train(together, data, plan, generator=generator())
    for number, rows in enumerate(torch.arange(120).split(sizes)):
        one = Stumps(splits.select([number]), tables[:, number], Groups(rows, torch.tensor([len(rows)])))
        train(one, data, plan, generator=generator())
        for name in ("weight", "bias"):
            difference = one.splits.parameters[name] - together.splits.parameters[name][[number]]
            assert difference.abs().max() < 1e-10
        assert (one.leaves - together.leaves.reshape(2, 3, 3)[:, number]).abs().max() < 1e-10


def test_axis_candidates_equal_one_feature_stumps_trained_one_by_one():
    data, plan = samples(), Plan(epochs=3, learning_rate=0.05)
    groups = Groups(torch.arange(120), torch.tensor([80, 40]))
    tables = stump_tables(10)
    candidates = AxisCandidates.initial(CENTERS[:2], generator())
    together = Stumps(candidates, tables.reshape(2, -1), groups, n_candidates=5)
    train(together, data, plan, generator=generator())
    node, feature = 1, 3
    rows = torch.arange(80, 120)
    alone_data = class_samples(data.rows.values[:, [feature]], data.y, data.weight, 3)
    alone = Stumps(
        ObliqueSplits(
            *(
                candidates.parameters[name][node, feature].reshape(shape)
                for name, shape in (("weight", (1, 1)), ("bias", (1,)))
            )
        ),
        tables[:, node * 5 + feature],
        Groups(rows, torch.tensor([40])),
    )
    train(alone, alone_data, plan, generator=generator())
    assert torch.allclose(
        alone.splits.parameters["weight"][0, 0], together.splits.parameters["weight"][node, feature], atol=1e-10
    )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_training_raises_the_likelihood_of_a_whole_tree(algorithm):
    data, tree = samples(), random_tree(FIGURE_1, 5, 3)
    plan = Plan(algorithm, epochs=30, learning_rate=0.02, steepness_step=0.0)

    def likelihood(tree):
        return log_likelihoods(
            tree.log_path_probabilities(data.rows.values, 1.0), data.target.evidence(tree.leaves, data.y)
        ).mean()

    tuned = finetune(tree, data, plan, generator=generator()).tree
    assert likelihood(tuned) > likelihood(tree) + 0.1


def test_alternating_leaves_the_class_frequencies_of_the_deterministic_tree_in_the_leaves():
    data, tree = samples(), random_tree(FIGURE_1, 5, 3)
    tuned = finetune(tree, data, Plan("alternating", epochs=4), generator=generator()).tree
    counts = data.hard_counts(tuned)
    reached = counts.sum(dim=1) > 0
    frequencies = counts / counts.sum(dim=1, keepdim=True)
    torch.testing.assert_close(tuned.leaves[reached], frequencies[reached], atol=1e-6, rtol=0)


def test_ems_responsibilities_come_from_the_start_of_the_epoch():
    # One epoch of several batches: the leaf tables depend on the start alone, whatever the splits' steps are.
    data, tree = samples(), random_tree(FIGURE_1, 5, 3)
    tables = []
    for rate in (1e-6, 0.5):
        trainee = WholeTree(tree, data)
        train(trainee, data, Plan("em", epochs=1, learning_rate=rate, batch_size=20), generator=generator())
        tables.append(trainee.leaves)
    torch.testing.assert_close(tables[0], tables[1])
    fresh = WholeTree(tree, data)
    train(fresh, data, Plan("likelihood", epochs=1, learning_rate=0.5, batch_size=20), generator=generator())
    assert not torch.allclose(fresh.leaves, tables[0], atol=1e-3)


@pytest.mark.parametrize("change", [{"l2": 1.0}, {"spatial_penalty": 1.0, "image_shape": (5, 1)}, {"l1": 0.5}])
def test_penalties_act_on_every_split(change):
    data, tree = samples(), random_tree(FIGURE_1, 5, 3)
    plans = [Plan(epochs=20, learning_rate=0.05, **extra) for extra in ({}, change)]
    plain, held = (finetune(tree, data, plan, generator=generator()).tree.splits for plan in plans)
    for split in range(4):
        a, b = plain.parameters["weight"][split], held.parameters["weight"][split]
        measure = {"l2": torch.Tensor.norm, "spatial_penalty": lambda w: w.diff().norm(), "l1": lambda w: w.abs().sum()}
        assert measure[next(iter(change))](b) < measure[next(iter(change))](a)


def test_the_batch_size_acts_on_every_stump():
    groups = Groups(torch.arange(120), torch.tensor([60, 60]))
    results = []
    for batch_size in (60, 10):
        stumps = Stumps(ObliqueSplits.initial(CENTERS[:2], generator()), stump_tables(2).reshape(2, -1), groups)
        start = stumps.splits.parameters["weight"].detach().clone()
        train(stumps, samples(), Plan(epochs=1, learning_rate=0.01, batch_size=batch_size), generator=generator())
        results.append((stumps.splits.parameters["weight"] - start).norm(dim=1))
    assert (results[1] > 2 * results[0]).all()  # six steps go further than one


def test_a_step_in_pieces_equals_a_step_at_once(monkeypatch):
    results = []
    for at_once in (2**22, 7 * 5):
        monkeypatch.setattr("crisptree.learning.engines.torch_engine.VALUES_AT_ONCE", at_once)
        tree = finetune(random_tree(FIGURE_1, 5, 3), samples(), Plan(epochs=2), generator=generator()).tree
        results.append(tree.splits.parameters["weight"])
    torch.testing.assert_close(results[0], results[1], rtol=1e-10, atol=1e-12)


def test_a_loss_that_is_not_finite_stops_with_the_phase_and_the_epoch():
    data = samples()
    broken = class_samples(torch.full_like(data.rows.values, float("nan")), data.y, data.weight, 3)
    with pytest.raises(DivergenceError, match=r"finetuning stopped in epoch 1 \(steepness 1\)"):
        finetune(random_tree(FIGURE_1, 5, 3), broken, Plan(epochs=2), generator=generator())


class PendingEngine(TorchEngine):
    """The steps of torch, whose results are waited for when they are read."""

    def epoch(self, settings, order):
        result = super().epoch(settings, order)
        return PendingEpoch(result.counts, lambda: (result.loss, result.finite))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_results_that_are_waited_for_train_the_same_tree(algorithm, monkeypatch):
    found = []
    for engine in (TorchEngine, PendingEngine):
        monkeypatch.setattr("crisptree.learning.loop.select_engine", lambda *arguments, engine=engine: engine)
        random = generator()
        plan, records = Plan(algorithm, epochs=4, batch_size=20), []
        tree = finetune(random_tree(FIGURE_1, 5, 3), samples(), plan, generator=random, on_epoch=records.append).tree
        found.append((tree, [record.loss for record in records], random.get_state()))
    (one, losses, state), (other, other_losses, other_state) = found
    assert losses == other_losses
    assert torch.equal(state, other_state)
    assert torch.equal(one.splits.parameters["weight"], other.splits.parameters["weight"])
    assert torch.equal(one.leaves, other.leaves)


def test_a_loss_that_is_waited_for_stops_the_training_where_it_is_not_finite(monkeypatch):
    monkeypatch.setattr("crisptree.learning.loop.select_engine", lambda *arguments: PendingEngine)
    data = samples()
    broken = class_samples(torch.full_like(data.rows.values, float("nan")), data.y, data.weight, 3)
    with pytest.raises(DivergenceError, match=r"finetuning stopped in epoch 1 \(steepness 1\)"):
        finetune(random_tree(FIGURE_1, 5, 3), broken, Plan(epochs=2), generator=generator())


def test_the_best_epoch_by_hard_validation_score_is_restored():
    data, validation = samples(), samples(60, seed=9)
    records = []
    tuned = finetune(
        random_tree(FIGURE_1, 5, 3),
        data,
        Plan(epochs=40, learning_rate=0.3),
        generator=generator(),
        validation=validation,
        patience=100,
        on_epoch=records.append,
    )
    best = max(record.validation_score for record in records)
    assert hard_score(tuned.tree, data, validation) == best
    first = next(record for record in records if record.validation_score == best)
    assert tuned.steepness == first.steepness


def test_the_hard_score_counts_rows_by_their_weight():
    data, tree = samples(), random_tree(FIGURE_1, 5, 3)
    leaf = tree.route(data.rows.values)
    guesses = data.hard_counts(tree).argmax(dim=1)[leaf]
    expected = np.average((guesses == data.y).numpy(), weights=data.weight.numpy())
    assert hard_score(tree, data, data) == pytest.approx(expected)


def test_a_single_leaf_has_nothing_to_finetune():
    tree = random_tree(FIGURE_1, 5, 3)
    assert finetune(tree, samples(), Plan(epochs=0), generator=generator()).tree is tree


def test_a_penalty_counts_beside_the_mean_loss_of_the_rows_that_a_split_sees():
    data, tree = samples(), random_tree(FIGURE_1, 5, 3)
    trainee = WholeTree(tree, data)
    visits = FIGURE_1.sums_below(data.hard_counts(tree).double().numpy()).sum(axis=1)[: FIGURE_1.n_splits]
    expected = np.maximum(visits / visits[0], 1 / len(data))
    np.testing.assert_allclose(trainee.penalty_shares.numpy(), expected, rtol=1e-6)
    add_penalty_gradient(trainee.splits, Plan(l2=0.5), trainee.penalty_shares)
    weight = trainee.splits.parameters["weight"]
    torch.testing.assert_close(weight.grad, weight.detach() * trainee.penalty_shares[:, None].to(weight))


def test_one_strength_for_all_splits_is_a_choice():
    trainee = WholeTree(random_tree(FIGURE_1, 5, 3), samples())
    shared, same = (penalty_shares(trainee, Plan(l2=0.5, penalty_share=share)) for share in ("rows", "none"))
    assert torch.equal(shared, trainee.penalty_shares)
    assert same.tolist() == [1] * FIGURE_1.n_splits


def test_a_stump_has_its_penalties_to_itself():
    groups = Groups(torch.arange(120), torch.tensor([100, 20]))
    stumps = Stumps(ObliqueSplits.initial(CENTERS[:2], generator()), stump_tables(2).reshape(2, -1), groups)
    assert stumps.penalty_shares.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("n_rows", "target", "split", "has_kernels", "device"),
    [
        (100, Classes(2), "oblique", True, "cpu"),
        (MAX_VALUES_FOR_CPU // 2, Classes(2), "oblique", True, "cuda"),
        (MAX_VALUES_FOR_CPU // 2, Gaussians(2), "oblique", True, "cuda"),
        (MAX_VALUES_FOR_CPU // 2, Gaussians(2), "oblique", False, "cpu"),
        (100, Gaussians(2), "oblique", True, "cpu"),
        (100, Classes(2), torch.nn.Linear, False, "cuda"),
    ],
    ids=["few rows", "many rows", "numbers", "numbers without kernels", "few numbers", "modules"],
)
def test_auto_is_the_device_that_is_quicker(n_rows, target, split, has_kernels, device, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    X = np.broadcast_to(np.float32(0), (n_rows, 2))
    part = RowSet(X, np.zeros(n_rows, dtype=np.int64), np.ones(n_rows))
    problem = TrainingTask(part, Scaling.none(2), target)
    assert resolve_device("auto", problem, split, has_kernels=has_kernels).type == device


@pytest.mark.parametrize(
    ("changes", "has_kernels"),
    [
        ({}, True),
        ({"l1": 0.1}, True),
        ({"l1": 0.1, "feature_groups": ((0, 2),)}, False),
        ({"monotonic_cst": {0: 1}}, False),
        ({"leaf_model": "linear"}, False),
        ({"split": "axis"}, False),
    ],
    ids=str,
)
def test_a_spec_resolves_what_the_kernels_on_cuda_can_do(changes, has_kernels):
    values = plain_regressor(steepness_step=0.1).training_parameters() | changes
    assert (
        Spec.of(values, input_norm=4, mean_weight=1.0, n_rows=100, image_shape=None, seed=0).has_kernels == has_kernels
    )
