"""Sparse rows in training: the native steps against the definition, which writes a few rows down at a time."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse

from crisptree.data.raw_rows import Scaling, SparseRows
from crisptree.data.rows import SparseTrainingRows
from crisptree.learning.engines.base import Groups
from crisptree.learning.growth import Stumps, grow, single_leaf
from crisptree.learning.loop import ENGINES, WholeTree, select_engine
from crisptree.learning.options import GrowthLimits, Plan
from crisptree.native import training
from crisptree.splits import KINDS, ObliqueSplits
from crisptree.tree import Tree
from tests.learning.comparing import largest_difference, trained
from tests.toys import FIGURE_1, class_samples, generator, random_structure, random_tables

pytestmark = pytest.mark.skipif(training is None, reason="installed without the kernel")

N, P = 150, 30
PENALTIES = [{}, {"l1": 0.02}, {"l2": 0.1}, {"input_noise": 0.7}, {"input_noise": 0.3, "l2": 0.1, "l1": 0.01}]


def matrix(density=0.15, seed=0):
    found = sparse.random(N, P, density=density, random_state=seed, format="csr")
    found.data -= 0.3
    return found


def samples(X=None, n_jobs=1):
    rows = SparseTrainingRows(SparseRows.of(matrix() if X is None else X))
    weight = torch.rand(N, generator=generator(), dtype=torch.float64) + 0.5
    return replace(class_samples(rows, torch.arange(N) % 4, weight, 4), n_jobs=n_jobs)


def hyperplanes(n):
    return ObliqueSplits.initial(torch.zeros(n, P, dtype=torch.float64), generator())


def held(n, constraint):
    zeros = torch.rand(n, P, generator=generator(3)) < 0.4 if "zeros" in constraint else None
    signs = (torch.arange(P) % 3 - 1).to(torch.int8) if "signs" in constraint else None
    return {"zeros": zeros, "signs": signs}


def stumps(data, constraint=""):
    groups = Groups(torch.arange(N), torch.tensor([70, 50, 30]))
    tables = random_tables(6, 4).reshape(2, -1).to(data.weight)
    return Stumps(hyperplanes(3), tables, groups, **held(3, constraint))


def tree(data, constraint="", structure=FIGURE_1):
    leaves = random_tables(structure.n_leaves, 4).to(data.weight)
    soft = Tree(structure, hyperplanes(structure.n_splits), leaves)
    return WholeTree(soft, data, **held(structure.n_splits, constraint))


def both(make_trainee, data, plan, monkeypatch, constraint=""):
    return [
        trained(ENGINES[name], make_trainee(data, constraint), data, plan, monkeypatch) for name in ("native", "torch")
    ]


@pytest.mark.parametrize("make_trainee", [stumps, tree])
@pytest.mark.parametrize("algorithm", ["em", "likelihood", "alternating"])
@pytest.mark.parametrize("penalties", PENALTIES)
@pytest.mark.parametrize(("epochs", "batch_size", "bound"), [(1, 1000, 1e-10), (5, 40, 1e-6)])
def test_sparse_rows_train_natively_as_defined(
    make_trainee, algorithm, penalties, epochs, batch_size, bound, monkeypatch
):
    data = samples()
    steps = {"learning_rate": 0.05, "min_updates": 6, "decay": "linear"}
    plan = Plan(algorithm, epochs=epochs, batch_size=batch_size, **steps, **penalties)
    ours, definition = both(make_trainee, data, plan, monkeypatch)
    assert largest_difference(ours, definition) < bound


@pytest.mark.parametrize("make_trainee", [stumps, tree])
@pytest.mark.parametrize("constraint", ["zeros", "signs", "zeros and signs"])
def test_constraints_hold_on_sparse_rows_natively_and_by_definition(make_trainee, constraint, monkeypatch):
    data = samples()
    plan = Plan("likelihood", epochs=3, batch_size=40, learning_rate=0.05, input_noise=0.3)
    ours, definition = both(make_trainee, data, plan, monkeypatch, constraint)
    assert largest_difference(ours, definition) < 1e-6


@pytest.mark.parametrize("make_trainee", [stumps, tree])
def test_where_every_value_is_there_sparse_steps_are_dense_ones(make_trainee, monkeypatch):
    full = sparse.csr_matrix(np.random.default_rng(0).normal(size=(N, P)))
    data = samples(full)
    dense = class_samples(torch.from_numpy(full.toarray()), data.y, data.weight, 4)
    plan = Plan("em", epochs=4, batch_size=40, learning_rate=0.05, l1=0.01, input_noise=0.4)
    ours = trained(ENGINES["native"], make_trainee(data), data, plan, monkeypatch)
    usual = trained(ENGINES["torch"], make_trainee(dense), dense, plan, monkeypatch)
    assert largest_difference(ours, usual) < 1e-6


def test_a_weight_moves_only_where_a_row_has_a_value(monkeypatch):
    X = matrix().tolil()
    X[:70, 5], X[70:, 7] = 0, 0
    data = samples(X.tocsr())
    plan = Plan("likelihood", epochs=3, batch_size=40, learning_rate=0.05, l2=0.1, input_noise=0.5)
    for name in ("native", "torch"):
        found = trained(ENGINES[name], stumps(data), data, plan, monkeypatch).splits.parameters["weight"]
        moved = found != hyperplanes(3).parameters["weight"]
        assert not moved[0, 5]
        assert not moved[1:, 7].any()
        assert moved[0, 7]


@pytest.mark.parametrize("structure", [FIGURE_1, random_structure(25, 1)])
def test_sparse_rows_take_the_same_steps_for_any_number_of_threads(structure, monkeypatch):
    monkeypatch.setattr("crisptree.learning.samples.MIN_VALUES_FOR_THREADS", 0)
    monkeypatch.setattr("crisptree.threads.available_cores", lambda: 3)
    plan = Plan("likelihood", epochs=3, batch_size=60, learning_rate=0.05, input_noise=0.3, mass_threshold=1e-3)
    found = []
    for n_jobs in (1, 3):
        data = samples(n_jobs=n_jobs)
        assert data.threads == n_jobs
        found.append(trained(ENGINES["native"], tree(data, "", structure), data, plan, monkeypatch))
    assert largest_difference(*found) == 0


def test_sparse_rows_are_routed_in_place_as_they_are_when_written_down():
    data = samples()
    soft = tree(data).tree()
    dense = soft.route(data.batch(torch.arange(N)))
    assert torch.equal(data.leaves(soft, torch.arange(N)), dense)


def test_means_of_sparse_groups_are_those_of_the_rows():
    data = samples()
    groups = Groups(torch.randperm(N, generator=generator()), torch.tensor([70, 50, 30]))
    dense = class_samples(data.batch(torch.arange(N)), data.y, data.weight, 4)
    assert torch.allclose(data.group_means(groups), dense.group_means(groups))


def test_a_grown_split_has_no_weights_for_features_that_its_rows_do_not_have():
    X = matrix(density=0.3).tolil()
    X[:, 11] = 0
    data, kind = samples(X.tocsr()), KINDS["oblique"]
    plan, limits = Plan(epochs=2, learning_rate=0.05), GrowthLimits(max_depth=2)
    found = grow(single_leaf(data, kind, generator()), data, plan, limits, kind, generator=generator())
    assert found.structure.n_splits > 1
    weight = found.splits.parameters["weight"]
    assert not weight[:, 11].any()
    assert weight[:, :11].any()


def test_the_quickest_backend_of_sparse_rows_is_native():
    data = samples()
    assert select_engine(tree(data), data, Plan()) is ENGINES["native"]


def test_sparse_scaling_divides_by_the_spread_and_keeps_zeros():
    X = matrix().astype(np.float32)
    weight = np.random.default_rng(0).uniform(0.5, 2, N)
    for kind in ("feature", "global", None):
        found, dense = SparseRows.of(X).learn_scaling(weight, kind), Scaling.learn(X.toarray(), weight, kind)
        assert not found.center.any()
        for part in ("factor", "mean", "spread"):
            assert np.allclose(getattr(found, part), getattr(dense, part), rtol=1e-6)
        assert np.allclose(SparseRows.of(X).scale(found).dense(), X.toarray() * found.factor, rtol=1e-6)


def test_constant_columns_have_no_scale_whether_they_are_zeros_or_not():
    X = np.zeros((20, 3), dtype=np.float32)
    X[:, 1], X[::2, 2] = 7, 1e-3
    factor = SparseRows.of(sparse.csr_matrix(X)).learn_scaling(np.ones(20), "feature").factor
    assert (factor > 0).tolist() == [False, False, True]


def test_rows_are_taken_out_by_numbers_masks_and_slices():
    X = matrix()
    rows = SparseRows.of(X)
    for which in ([3, 3, 149, 0], np.arange(N) % 3 == 0, slice(5, 20), np.zeros(0, dtype=int)):
        assert np.array_equal(rows[which].dense(), X.toarray()[which])


def test_duplicates_are_added_up_and_the_matrix_of_the_caller_stays():
    X = sparse.csr_matrix((np.array([1.0, 2.0, 0.0, 4.0]), np.array([2, 0, 1, 2]), np.array([0, 4])), (1, 3))
    before = X.data.copy()
    rows = SparseRows.of(X)
    assert rows.dense().tolist() == [[2.0, 0.0, 5.0]]
    assert rows.index.tolist() == [0, 2]
    assert np.array_equal(X.data, before)
