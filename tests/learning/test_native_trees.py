"""Trees of the kernel: their random numbers, their minimisations by the other engine, limits, threads, signals."""

import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from crisptree.data.rows import ArrayRows, SelectedRows
from crisptree.learning.cart import fit_cart
from crisptree.learning.engines.native_engine import LbfgsEngine
from crisptree.learning.growth import Stumps
from crisptree.learning.history import StopTraining
from crisptree.learning.loop import finetune
from crisptree.learning.native_trees import TreeJob, make_job, merge_growth, train_trees
from crisptree.learning.options import (
    LBFGS_PHASES,
    LBFGS_PLAN,
    EpochSettings,
    GrowthLimits,
    Plan,
    Spec,
    WeightConstraints,
)
from crisptree.learning.samples import Samples
from crisptree.native import training
from crisptree.splits import ObliqueSplits
from crisptree.targets import Classes, Gaussians
from tests.toys import generator

pytestmark = pytest.mark.skipif(training is None, reason="installed without the kernel")

N, P = 240, 5
TARGETS = [Classes(3), Gaussians(4)]
STEP = np.uint64(0x9E3779B97F4A7C15)


def make_samples(target, n=N, dtype=torch.float64):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, P))
    noisy = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n)
    if isinstance(target, Classes):
        y = torch.from_numpy(np.digitize(noisy, [-0.5, 0.7]))
    else:
        y = torch.from_numpy(np.stack([noisy, np.sin(X[:, 3])], axis=1))
    weight = torch.from_numpy(rng.uniform(0.5, 1.5, n)).to(dtype)
    return Samples(ArrayRows(torch.from_numpy(X).to(dtype)), y, weight, target)


def make_spec(phases=None, **changes):
    common = {"algorithm": "likelihood", "input_noise": 0.3, "l2": 1e-4} | LBFGS_PLAN | (phases or {})
    growth, finetuning = (Plan(**common | LBFGS_PHASES[name]) for name in ("growth", "finetuning"))
    spec = Spec(
        growth,
        finetuning,
        GrowthLimits(max_depth=3),
        **{"split": "oblique", "grow": "greedy", "algorithm": "likelihood", "patience": None},
        **{"leaf_prior": 0.0, "image_shape": None, "shifts": 0, "device": "cpu", "n_jobs": 1, "seed": 0},
    )
    return replace(spec, **changes)


def train(spec, data, n_trees=1, *, tunes=True, **options):
    return train_trees(spec, data, [make_job(data, 7, start) for start in range(n_trees)], tunes=tunes, **options)


def arrays_of(tree):
    parts = (tree.structure.left, tree.structure.right, *tree.splits.parameters.values(), tree.leaves)
    return [np.asarray(part.detach() if isinstance(part, torch.Tensor) else part) for part in parts]


def mixed(z):
    with np.errstate(over="ignore"):
        z = z + STEP
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniforms(n, seed, start=0, node=1, attempt=0):
    """SplitMix64, its state begun by the seed, the start, the node and the try.  (n,), in [0, 1)"""
    state = np.uint64(seed)
    for part in (start, node, attempt):
        state = mixed(state) ^ np.uint64(part)
    with np.errstate(over="ignore"):
        words = mixed(mixed(state) + STEP * np.arange(n, dtype=np.uint64))
    return (words >> np.uint64(11)) * 2.0**-53


def normals(n, **key):
    u = uniforms(2 * n, **key).reshape(n, 2)
    return np.sqrt(-2 * np.log(1 - u[:, 0])) * np.cos(2 * np.pi * u[:, 1])


def first_stump(data):
    """The start of the stump at the root, for classes."""
    direction = normals(P, seed=7)
    direction /= np.linalg.norm(direction)
    raw = 1 - uniforms(2 * P + 6, seed=7)[2 * P :].reshape(2, 3)
    X, weight = data.rows.values.numpy(), data.weight.numpy()
    bias = -direction @ np.average(X, axis=0, weights=weight)
    splits = ObliqueSplits(torch.from_numpy(direction[None]), torch.tensor([bias]))
    return Stumps(splits, torch.from_numpy(raw / raw.sum(1, keepdims=True)), data.as_one_group())


def test_a_stump_begins_at_the_random_numbers_of_its_node_and_ends_where_the_engine_does():
    data, spec = make_samples(Classes(3)), make_spec(limits=GrowthLimits(max_depth=1))
    for max_iterations in (0, 25):
        plan = replace(spec.growth, max_iterations=max_iterations)
        (found,) = train(replace(spec, growth=plan), data, tunes=False)
        stumps = first_stump(data)
        engine = LbfgsEngine(stumps, data, plan, fresh=True)
        engine.epoch(EpochSettings(plan.steepness, 0.0), stumps.groups.rows)
        for name, value in stumps.splits.parameters.items():
            np.testing.assert_allclose(found.greedy.tree.splits.parameters[name], value.detach(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("target", TARGETS, ids=["classes", "numbers"])
@pytest.mark.parametrize("phases", [{}, {"l1": 1e-3}, {"penalty_share": "none"}], ids=str)
@pytest.mark.parametrize("n_drawn", [None, 2])
def test_finetuning_is_that_of_the_other_engine(target, phases, n_drawn):
    data, spec = make_samples(target), make_spec({"max_iterations": 6} | phases, n_drawn=n_drawn)
    (found,) = train(spec, data)
    greedy = found.greedy.tree
    zeros = None if n_drawn is None else greedy.splits.parameters["weight"] == 0
    other = finetune(greedy, data, spec.finetuning, generator=generator(), zeros=zeros)
    for one, two in zip(arrays_of(found.tuned.tree), arrays_of(other.tree), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-5)
    assert found.tuned.steepness == other.steepness


@pytest.mark.parametrize("target", TARGETS, ids=["classes", "numbers"])
def test_a_given_tree_is_finetuned_as_by_the_other_engine_and_keeps_its_zeros(target):
    data, spec = make_samples(target), make_spec({"max_iterations": 6}, split="axis", grow="cart")
    tree = fit_cart(data, GrowthLimits(max_depth=3), None, 0)
    job = make_job(data, 7)._replace(tree=tree, keeps_zeros=True)
    (found,) = train_trees(spec, data, [job], tunes=True)
    zeros = tree.splits.parameters["weight"] == 0
    other = finetune(tree, data, spec.finetuning, generator=generator(), zeros=zeros)
    assert found.greedy.tree is tree
    assert torch.equal(found.tuned.tree.splits.parameters["weight"] == 0, zeros)
    for one, two in zip(arrays_of(found.tuned.tree), arrays_of(other.tree), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-5)


def test_trees_with_numbers_of_their_own_are_those_of_samples_with_these():
    data, spec = make_samples(TARGETS[1]), make_spec()
    other = replace(data, y=data.y.flip(0))
    job = make_job(data, 7)
    mixed_trees = train_trees(spec, data, [job, job._replace(y=other.y.numpy())], tunes=True)
    for one, own in zip(mixed_trees, (data, other), strict=True):
        (alone,) = train_trees(spec, own, [job], tunes=True)
        assert all(map(np.array_equal, arrays_of(one.tuned.tree), arrays_of(alone.tuned.tree)))


@pytest.mark.parametrize("target", TARGETS, ids=["classes", "numbers"])
def test_weights_have_the_signs_that_they_must_have(target):
    signs = torch.tensor([1, 1, -1, 0, 0], dtype=torch.int8)
    constraints = WeightConstraints(signs, torch.ones(P), None, ())
    data = make_samples(target)
    spec = make_spec(limits=GrowthLimits(max_depth=None, min_samples_leaf=5))
    (found,) = train_trees(spec, data, [make_job(data, 7)], tunes=True, constraints=constraints)
    (free,) = train_trees(spec, data, [make_job(data, 7)], tunes=True)
    for tree in (found.greedy.tree, found.tuned.tree):
        assert tree.structure.n_splits > 3
        assert bool((tree.splits.parameters["weight"] * signs >= 0).all())
    assert bool((free.tuned.tree.splits.parameters["weight"] * signs < 0).any())


@pytest.mark.parametrize("target", TARGETS, ids=["classes", "numbers"])
def test_the_score_is_that_of_the_deterministic_tree(target):
    data = make_samples(target)
    (found,) = train(make_spec(), data)
    tree = found.tuned.tree
    tables = tree.hard_tables(data.hard_counts(tree))
    assert found.score == pytest.approx(data.score(tree, tables))


@pytest.mark.parametrize("target", TARGETS, ids=["classes", "numbers"])
@pytest.mark.parametrize("max_depth", [4, None])
def test_bits_do_not_depend_on_the_number_of_threads_or_on_other_trees(target, max_depth):
    spec = make_spec(limits=GrowthLimits(max_depth=max_depth, min_samples_leaf=3))
    data = make_samples(target, 1200, torch.float32)
    some = [train(replace(spec, n_jobs=n_jobs), data, 5) for n_jobs in (1, 2, 4)]
    (alone,) = train_trees(spec, data, [make_job(data, 7, 3)], tunes=True)
    for one, *others in zip(*some, strict=True):
        for other in others:
            assert all(map(np.array_equal, arrays_of(one.tuned.tree), arrays_of(other.tuned.tree)))
            assert one.records == other.records
    assert all(map(np.array_equal, arrays_of(some[0][3].tuned.tree), arrays_of(alone.tuned.tree)))


def test_every_tree_is_trained_once_whichever_thread_begins_first(monkeypatch):
    monkeypatch.setattr("crisptree.learning.native_trees.n_threads", lambda n_jobs: 4)
    data, spec = make_samples(Classes(3), 1000, torch.float32), make_spec(limits=GrowthLimits(max_depth=1))
    (first,) = train_trees(spec, data, [make_job(data, 7)], tunes=False)
    for _ in range(150):  # threads that begin late, or take all tasks, are a matter of chance
        for found in train_trees(spec, data, [make_job(data, 7)] * 4, tunes=False):
            assert found.records == first.records
            assert found.score == first.score


@settings(deadline=None, max_examples=40)
@given(
    target=st.sampled_from(TARGETS),
    max_depth=st.none() | st.integers(0, 6),
    max_leaf_nodes=st.none() | st.integers(1, 12),
    min_samples_leaf=st.integers(1, 40),
    min_samples_split=st.integers(2, 100),
    min_weight=st.sampled_from([0.0, 0.05, 0.2]),
    min_decrease=st.sampled_from([0.0, 0.01, 0.05]),
    n_drawn=st.none() | st.integers(1, P),
    seed=st.integers(0, 2**62),
)
def test_limits_hold(
    target, max_depth, max_leaf_nodes, min_samples_leaf, min_samples_split, min_weight, min_decrease, n_drawn, seed
):
    data = make_samples(target)
    limits = GrowthLimits(max_depth, max_leaf_nodes, min_samples_split, min_samples_leaf, min_weight, min_decrease)
    spec = make_spec(limits=limits, n_drawn=n_drawn)
    (found,) = train_trees(spec, data, [make_job(data, seed)], tunes=False)
    tree = found.greedy.tree
    structure, leaf = tree.structure, data.all_leaves(tree).numpy()
    rows, weight = np.bincount(leaf, minlength=structure.n_leaves), np.bincount(leaf, data.weight, structure.n_leaves)
    assert max_depth is None or structure.depth <= max_depth
    assert max_leaf_nodes is None or structure.n_leaves <= max_leaf_nodes
    assert rows.min() >= min(min_samples_leaf, N)
    assert weight.min() >= min(min_weight, 1) * weight.sum() - 1e-9
    assert (structure.sums_below(rows.astype(float))[: structure.n_splits] >= min_samples_split).all()
    counts = structure.sums_below(data.hard_counts(tree).numpy())
    below = target.impurity(counts)
    gains = below[: structure.n_splits] - below[structure.left_nodes] - below[structure.right_nodes]
    assert (gains / weight.sum() >= min_decrease - 1e-9).all()
    if n_drawn is not None and max_depth is not None:
        assert (np.count_nonzero(tree.splits.parameters["weight"], axis=1) <= n_drawn).all()


def test_without_a_depth_growth_ends_where_leaves_are_pure():
    data = make_samples(Classes(3))
    (found,) = train(make_spec(limits=GrowthLimits()), data, tunes=False)
    assert ((data.hard_counts(found.greedy.tree) > 0).sum(1) == 1).all()
    assert found.score == pytest.approx(1)


@pytest.mark.parametrize("target", TARGETS, ids=["classes", "numbers"])
def test_a_row_of_weight_two_is_two_rows(target):
    data, spec = make_samples(target), make_spec({"tolerance": 0.0}, limits=GrowthLimits(max_depth=2))
    times = 1 + np.arange(N) % 2
    once = TreeJob(np.arange(N), times.astype(float), 3)
    copies = TreeJob(np.repeat(np.arange(N), times), np.ones(times.sum()), 3)
    heavy, twice = train_trees(spec, data, [once, copies], tunes=True)
    assert heavy.greedy.tree.structure == twice.greedy.tree.structure
    assert heavy.tuned.record.loss == pytest.approx(twice.tuned.record.loss, rel=1e-3)
    assert heavy.score == pytest.approx(twice.score, abs=0.01)


def test_selected_rows_are_those_of_the_array():
    data = make_samples(Classes(3))
    index = torch.from_numpy(np.random.default_rng(0).permutation(N)[:150])
    picked = Samples(SelectedRows.of(data.rows, index), data.y[index], data.weight[index], data.target)
    copied = replace(picked, rows=ArrayRows(data.rows.values[index]))
    one, two = (train(make_spec(), samples)[0].tuned.tree for samples in (picked, copied))
    assert all(map(np.array_equal, arrays_of(one), arrays_of(two)))


def test_a_listener_is_called_at_every_stage_and_stops_the_training_there():
    data, spec = make_samples(Classes(3)), make_spec()
    heard = []
    (whole,) = train(spec, data, on_epoch=heard.append)
    assert heard == whole.records
    assert [record.epoch for record in heard if record.phase == "finetune"] == [1, 2, 3, 4]
    for last in range(1, len(heard) + 1):
        records = []

        def stop(record, records=records, last=last):
            records.append(record)
            if len(records) == last:
                raise StopTraining

        (found, *_) = train(spec, data, 3, on_epoch=stop)
        assert records == heard[:last] == found.records
        is_tuned = heard[last - 1].phase == "finetune"
        assert (found.tuned.record == heard[last - 1]) == is_tuned
        if not is_tuned:
            assert found.tuned.tree.structure.depth == heard[last - 1].level - 1


def test_an_error_of_a_listener_comes_out():
    def fail(record):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train(make_spec(n_jobs=2), make_samples(Classes(3)), 4, on_epoch=fail)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_signal_ends_the_training(n_jobs):
    data = make_samples(Gaussians(4), 20_000, torch.float32)
    spec = make_spec({"tolerance": 0.0, "max_iterations": 300}, limits=GrowthLimits(max_depth=5), n_jobs=n_jobs)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        train(spec, data, 50)
    timer.join()


def test_merged_records_count_the_splits_of_all_trees():
    data = make_samples(Classes(3))
    trees = train(make_spec(), data, 3)
    merged = merge_growth(trees)
    assert merged[0].n_splits == 3
    assert sum(record.n_splits for record in merged) == sum(
        record.n_splits for tree in trees for record in tree.records if record.phase == "grow"
    )
    assert [record.level for record in merged] == sorted(record.level for record in merged)
    losses = [tree.records[0].loss for tree in trees]
    assert merged[0].loss == pytest.approx(np.mean(losses))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": np.array([0, N])}, "a row must exist"),
        ({"rows": np.array([0])}, "a tree must have rows, with one weight each"),
    ],
    ids=["rows", "weights"],
)
def test_what_cannot_be_trained_is_refused(changes, message):
    job = TreeJob(np.array([0, 1]), np.ones(2), 0)._replace(**changes)
    with pytest.raises(ValueError, match=message):
        train_trees(make_spec(), make_samples(Classes(3)), [job], tunes=True)
