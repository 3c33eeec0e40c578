"""L-BFGS against the objective that torch differentiates: where it ends, the gradient is zero."""

import numpy as np
import pytest
import torch

from crisptree import CrispTreeClassifier, CrispTreeRegressor, StopTraining, TrainingOptions
from crisptree.data.rows import ArrayRows, SelectedRows
from crisptree.equations.annealing import damped_steepness
from crisptree.equations.leaves import log_densities
from crisptree.equations.routing import log_path_probabilities
from crisptree.learning.engines.base import Groups, penalty_shares
from crisptree.learning.engines.native_engine import LbfgsEngine
from crisptree.learning.growth import Stumps
from crisptree.learning.loop import WholeTree
from crisptree.learning.options import LBFGS, LBFGS_PHASES, EpochSettings, Plan
from crisptree.learning.samples import Samples
from crisptree.native import training
from crisptree.splits import ObliqueSplits
from crisptree.targets import Classes, Gaussians
from crisptree.tree import Tree
from tests.toys import FIGURE_1, clouds, generator, random_gaussians, random_structure, random_tables

pytestmark = pytest.mark.skipif(training is None, reason="installed without the kernel")

N, P, K = 133, 4, 3
PENALTIES = [{"l2": 0.01}, {"l2": 0.003, "input_noise": 0.5}, {"l2": 0.01, "penalty_share": "none"}]


def samples(target, n=N, dtype=torch.float64, n_jobs=1):
    rng = np.random.default_rng(3)
    X = torch.from_numpy(rng.normal(size=(n, P))).to(dtype)
    weight = torch.from_numpy(rng.uniform(0.5, 1.5, n)).to(dtype)
    if isinstance(target, Classes):
        y = torch.from_numpy(rng.integers(K, size=n))
    else:
        y = torch.from_numpy(np.stack([np.sin(X[:, 0].numpy()), X[:, 1].numpy()], axis=1)) + 0.1 * torch.from_numpy(
            rng.normal(size=(n, 2))
        )
    return Samples(ArrayRows(X), y, weight, target, n_jobs)


def tables(target, n_leaves):
    if isinstance(target, Classes):
        return random_tables(n_leaves, K).double()
    return random_gaussians(n_leaves, 2)


def whole_tree(data, structure=FIGURE_1, zeros=None):
    splits = ObliqueSplits.initial(torch.zeros(structure.n_splits, P, dtype=data.weight.dtype), generator())
    leaves = tables(data.target, structure.n_leaves).to(data.weight)
    return WholeTree(Tree(structure, splits, leaves, data.target.name), data, zeros)


def minimise(state, data, plan, steepness=1.5):
    return LbfgsEngine(state, data, plan, fresh=True).epoch(EpochSettings(steepness, 0.0), state.groups.rows)


def objective(state, data, plan, shares, steepness=1.5):
    """The mean negative log-likelihood with its penalties, by the equations, and the parameters it depends on."""
    weight, bias = (state.splits.parameters[name].detach().clone().requires_grad_() for name in ("weight", "bias"))
    gamma = damped_steepness(steepness, plan.input_noise, (weight**2).sum(1))
    paths = log_path_probabilities((data.rows.values @ weight.T + bias) * gamma, state.structure, 1.0)
    leaves = state.leaves.detach()
    if isinstance(data.target, Classes):
        evidence = leaves.log().T[data.y]
    else:
        evidence = log_densities(data.y[:, None], leaves[:, :2], leaves[:, 2:])
    likelihood = (data.weight * torch.logsumexp(paths + evidence, dim=1)).sum() / data.weight.sum()
    return -likelihood + plan.l2 * (shares[:, None] * weight**2).sum(), weight, bias, likelihood.detach()


@pytest.mark.parametrize("target", [Classes(K), Gaussians(4)], ids=["classes", "gaussians"])
@pytest.mark.parametrize("penalties", PENALTIES, ids=str)
def test_the_gradient_of_the_definition_is_zero_at_the_minimum(target, penalties):
    data = samples(target)
    plan = Plan(optimizer=LBFGS, algorithm="likelihood", max_iterations=10_000, tolerance=0.0, **penalties)
    state = whole_tree(data)
    shares = penalty_shares(state, plan)
    before, *parts, _ = objective(state, data, plan, shares)
    first = max(float(part.abs().max()) for part in torch.autograd.grad(before, parts))
    result = minimise(state, data, plan)
    after, *parts, likelihood = objective(state, data, plan, shares)
    last = max(float(part.abs().max()) for part in torch.autograd.grad(after, parts))
    assert result.finite
    assert result.loss == pytest.approx(-float(likelihood), rel=1e-9)
    assert after < before
    assert last < 1e-4 * first


def test_a_minimum_with_l1_has_zeros_where_they_pay():
    data, l1 = samples(Classes(K)), 0.02
    plan = Plan(optimizer=LBFGS, algorithm="likelihood", max_iterations=3000, tolerance=0.0, l1=l1)
    state = whole_tree(data)
    shares = penalty_shares(state, plan)
    minimise(state, data, plan)
    value, weight, _, _ = objective(state, data, plan, shares)
    (gradient,) = torch.autograd.grad(value, weight)
    limit = l1 * shares[:, None]
    is_zero = weight == 0
    assert 0 < int(is_zero.sum()) < weight.numel()
    assert bool((gradient.abs() <= limit + 1e-4).masked_select(is_zero).all())
    moved = (gradient + limit * weight.detach().sign()).masked_select(~is_zero)
    assert float(moved.abs().max()) < 1e-4


def test_a_minimum_with_l1_drops_groups_as_a_whole():
    data, l1 = samples(Classes(K)), 0.04
    groups = {"feature_groups": ((0, 2), (2, 4)), "l1": l1}
    plan = Plan(optimizer=LBFGS, algorithm="likelihood", max_iterations=3000, tolerance=0.0, **groups)
    state = whole_tree(data)
    shares = penalty_shares(state, plan)
    minimise(state, data, plan)
    value, weight, _, _ = objective(state, data, plan, shares)
    (gradient,) = torch.autograd.grad(value, weight)
    gradient, weight, limit = gradient.reshape(-1, 2), weight.detach().reshape(-1, 2), l1 * shares.repeat_interleave(2)
    norm = weight.norm(dim=1)
    assert bool(((weight == 0).all(1) == (weight == 0).any(1)).all())
    assert 0 < int((norm == 0).sum()) < len(norm)
    assert bool((gradient.norm(dim=1) <= limit + 1e-4)[norm == 0].all())
    moved = (gradient + limit[:, None] * weight / norm[:, None])[norm > 0]
    assert float(moved.abs().max()) < 1e-4


def test_a_minimum_with_signs_has_zeros_where_the_gradient_points_to_the_forbidden_side():
    data, signs = samples(Classes(K)), torch.tensor([1, -1, 0, 1], dtype=torch.int8)
    plan = Plan(optimizer=LBFGS, algorithm="likelihood", max_iterations=3000, tolerance=0.0, l2=0.003)
    state = whole_tree(data)
    state.signs, weight = signs, state.splits.parameters["weight"]
    weight.data = torch.where(signs != 0, weight.data.abs() * signs, weight.data)
    shares = penalty_shares(state, plan)
    minimise(state, data, plan)
    value, weight, _, _ = objective(state, data, plan, shares)
    (gradient,) = torch.autograd.grad(value, weight)
    is_bound = (weight == 0) & (signs != 0)
    assert bool((weight * signs >= 0).all())
    assert 0 < int(is_bound.sum()) < weight.numel()
    assert float((gradient * signs)[is_bound].min()) > -1e-4
    assert float(gradient[~is_bound].abs().max()) < 1e-4


def test_leaf_statistics_are_those_of_the_responsibilities():
    data, plan = samples(Classes(K)), Plan(optimizer=LBFGS, algorithm="likelihood", max_iterations=0)
    state = whole_tree(data)
    counts, _, _ = minimise(state, data, plan)
    assert float(counts.sum()) == pytest.approx(float(data.weight.sum()))
    assert torch.allclose(counts.sum(0), torch.bincount(data.y, data.weight, K).double())


def test_weights_that_stay_zero_do():
    data, plan = samples(Classes(K)), Plan(optimizer=LBFGS, algorithm="likelihood")
    zeros = torch.zeros(FIGURE_1.n_splits, P, dtype=torch.bool)
    zeros[:, 1:3] = True
    state = whole_tree(data, zeros=zeros)
    state.splits.parameters["weight"].data[zeros] = 0.0
    minimise(state, data, plan)
    assert bool((state.splits.parameters["weight"][zeros] == 0).all())
    assert bool((state.splits.parameters["weight"][~zeros] != 0).all())


@pytest.mark.parametrize("target", [Classes(K), Gaussians(4)], ids=["classes", "gaussians"])
def test_results_do_not_depend_on_the_number_of_threads(target):
    plan = Plan(optimizer=LBFGS, algorithm="likelihood", input_noise=0.3)
    found = []
    for n_jobs in (1, 2, 3):
        data = samples(target, n=9000, dtype=torch.float32, n_jobs=n_jobs)
        state = whole_tree(data, random_structure(25, 1))
        counts, loss, _ = minimise(state, data, plan)
        found.append([*(value.detach() for value in state.splits.parameters.values()), state.leaves, counts, loss])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert np.array_equal(np.asarray(one), np.asarray(two))


def test_stumps_are_independent_problems():
    data, plan = samples(Classes(K), n=300), Plan(optimizer=LBFGS, algorithm="likelihood", l2=1e-3)
    sizes = [120, 100, 80]
    rows = torch.from_numpy(np.random.default_rng(0).permutation(300))
    splits = ObliqueSplits.initial(torch.zeros(3, P, dtype=torch.float64), generator())
    leaves = random_tables(6, K).double().reshape(2, -1)
    together = Stumps(splits, leaves, Groups(rows, torch.tensor(sizes)))
    counts, _, _ = minimise(together, data, plan)
    for node, own in enumerate(rows.split(sizes)):
        columns = slice(node * K, (node + 1) * K)
        picked = SelectedRows.of(data.rows, own)
        part = Samples(picked, data.y[own], data.weight[own], data.target)
        groups = Groups(torch.arange(len(own)), torch.tensor([len(own)]))
        alone = Stumps(splits.select([node]), leaves[:, columns].clone(), groups)
        own_counts, _, _ = minimise(alone, part, plan)
        assert torch.equal(alone.splits.parameters["weight"][0], together.splits.parameters["weight"][node])
        assert torch.equal(alone.leaves, together.leaves[:, columns])
        assert torch.equal(own_counts, counts[:, columns])


def correlated(n, seed=0):
    """Thirty columns that hardly differ; the class is the sign of a difference of two of them."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 1))
    X = common + 0.02 * rng.normal(size=(n, 30))
    return X, (X[:, 3] > X[:, 7]).astype(int)


def test_correlated_columns_are_no_obstacle():
    fixed = {"split": "oblique", "max_depth": 1, "input_noise": 0.0, "l1": 0.0, "shrinkage": 0.0, "random_state": 0}
    model = CrispTreeClassifier(**fixed).fit(*correlated(600))
    assert model.score(*correlated(600, seed=1)) > 0.95


FIXED = {"split": "oblique", "max_depth": 2, "input_noise": 0.3, "l1": 0.0, "random_state": 0}


def tuned(model):
    return [record for record in model.history_ if record.phase == "finetune"]


@pytest.mark.parametrize(
    ("options", "is_lbfgs"),
    [
        ({}, True),
        ({"optimizer": "lbfgs"}, True),
        ({"optimizer": "lbfgs", "epochs": 3}, True),
        ({"optimizer": "adam"}, False),
        ({"finetune_epochs": 7}, False),
        ({"batch_size": 100}, False),
        ({"algorithm": "em"}, False),
        ({"device": "cpu"}, True),
    ],
    ids=str,
)
def test_options_of_adam_resolve_the_optimizer_to_adam(options, is_lbfgs):
    X, y = clouds(80)
    model = CrispTreeClassifier(**FIXED, shrinkage=0.0, training=TrainingOptions(**options)).fit(X, y)
    assert (len(tuned(model)) == LBFGS_PHASES["finetuning"]["epochs"]) == is_lbfgs


def test_no_finetuning_keeps_the_stumps_of_lbfgs():
    X, y = clouds(80)
    model = CrispTreeClassifier(**FIXED, shrinkage=0.0, training=TrainingOptions(finetune_epochs=0)).fit(X, y)
    assert tuned(model) == []
    assert {record.epoch for record in model.history_} == {LBFGS_PHASES["growth"]["epochs"]}


@pytest.mark.parametrize(
    ("parameters", "options", "message"),
    [
        ({}, {"early_stopping": True}, "`early_stopping` must be False for optimizer='lbfgs'"),
        ({}, {"algorithm": "em"}, "`algorithm` must be 'likelihood' for optimizer='lbfgs'"),
    ],
)
def test_what_lbfgs_cannot_train_is_refused(parameters, options, message):
    X, y = clouds(60)
    model = CrispTreeClassifier(**FIXED | parameters, training=TrainingOptions(optimizer="lbfgs", **options))
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_small_tables_with_categories_or_signs_are_trained_by_lbfgs():
    table = {"plan": ["a", "b", "c", "c", "b"] * 18, "age": [7 * row % 31 for row in range(90)]}
    y = [int(row % 5 in (1, 4) or 7 * row % 31 > 20) for row in range(90)]
    for changes in ({"l1": 0.01}, {"monotonic_cst": {"age": 1}}):
        model = CrispTreeClassifier(**FIXED | changes, shrinkage=0.0).fit(table, y)
        assert len(tuned(model)) == LBFGS_PHASES["finetuning"]["epochs"]


def test_regression_leaves_fit_a_step():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 5))
    y = np.where(X[:, 0] + X[:, 1] > 0, 3.0, -1.0) + 0.1 * rng.normal(size=400)
    assert CrispTreeRegressor(**FIXED | {"input_noise": 0.0}, shrinkage=0.0).fit(X, y).score(X, y) > 0.98


def test_wide_tables_take_mini_batches():
    X, y = clouds(60, n_features=300)
    model = CrispTreeClassifier(**FIXED | {"max_depth": 1}, shrinkage=0.0).fit(X, y)
    assert len(tuned(model)) == TrainingOptions().finetune_epochs


def test_a_callback_may_stop_any_start_of_a_default_fit():
    X, y = clouds(80)
    for stop_at in (1, 4, 8, 13):
        calls = []

        def stop(record, calls=calls, stop_at=stop_at):
            calls.append(record)
            if len(calls) == stop_at:
                raise StopTraining

        options = TrainingOptions(callbacks=[stop])
        model = CrispTreeClassifier(**FIXED, shrinkage=0.0, training=options).fit(X, y)
        assert model.history_ == calls


def test_soft_labels_are_refused_by_lbfgs_alone():
    X, y = clouds(60)
    probabilities = np.eye(3)[y] * 0.8 + 0.2 / 3
    model = CrispTreeClassifier(**FIXED, shrinkage=0.0).fit(X, probabilities)
    assert len(tuned(model)) == TrainingOptions().finetune_epochs
    with pytest.raises(ValueError, match="'lbfgs' needs hyperplanes, class labels or numbers"):
        model.set_params(training__optimizer="lbfgs").fit(X, probabilities)


def test_several_starts_are_refused_on_batches():
    X, y = clouds(60)
    model = CrispTreeClassifier(**FIXED, shrinkage=0.0, training=TrainingOptions(n_init=2))
    with pytest.raises(ValueError, match="`n_init` must be 'auto' or 1 for a fit on batches"):
        model.fit(lambda: iter([(X, y)]))
