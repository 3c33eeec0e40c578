"""A row with probabilities is K rows with labels, of these weights, whoever trains on it."""

import numpy as np
import pytest
import torch

from crisptree.data.rows import ArrayRows
from crisptree.equations.routing import log_path_probabilities
from crisptree.learning.engines.base import Groups
from crisptree.learning.growth import Stumps
from crisptree.learning.loop import ENGINES, WholeTree, hard_score, select_engine
from crisptree.learning.options import Plan
from crisptree.learning.samples import Samples
from crisptree.splits import AxisCandidates, ConvNet, ModuleSplits, ObliqueSplits
from crisptree.targets import TARGETS, Classes, SoftClasses
from crisptree.tree import Tree
from tests.learning.comparing import largest_difference, trained
from tests.toys import FIGURE_1, clouds, generator, random_tables, random_tree

N, K, FEATURES = 90, 4, 6
SIZES = [40, 30, 20]


def soft_rows(n_features=FEATURES):
    """Rows with probabilities, a few of them zero, and weights."""
    X, _ = clouds(N, n_features=n_features, n_classes=K)
    P = np.random.default_rng(0).dirichlet(np.full(K, 0.3), N)
    P[::5, 1] = 0.0
    P /= P.sum(axis=1, keepdims=True)
    weight = torch.rand(N, generator=generator(), dtype=torch.float64) + 0.5
    return Samples(ArrayRows(torch.from_numpy(X).double()), torch.from_numpy(P), weight, SoftClasses(K))


def repeated(soft):
    """The K rows that every row stands for, without those of weight zero, and the row that each came from."""
    row, label = torch.nonzero(soft.y > 0, as_tuple=True)
    x = soft.batch(row)
    return Samples(ArrayRows(x), label, soft.weight[row] * soft.y[row, label], Classes(K)), row


def labelled(soft):
    """The rows with their likeliest class, as probabilities and as labels."""
    label = soft.y.argmax(dim=1)
    one_hot = torch.nn.functional.one_hot(label, K).double()
    return (
        Samples(soft.rows, one_hot, soft.weight, SoftClasses(K)),
        Samples(soft.rows, label, soft.weight, Classes(K)),
    )


def tree(data, row):
    return WholeTree(random_tree(FIGURE_1, FEATURES, K), data)


def groups(row):
    """Three stumps with 40, 30 and 20 of the rows."""
    owner = torch.repeat_interleave(torch.arange(3), torch.tensor(SIZES))[row]
    return Groups(torch.arange(len(row)), torch.bincount(owner))


def stumps(data, row):
    splits = ObliqueSplits.initial(torch.zeros(3, FEATURES, dtype=torch.float64), generator())
    return Stumps(splits, random_tables(6, K).reshape(2, -1), groups(row))


def thresholds(data, row):
    splits = AxisCandidates.initial(torch.zeros(3, FEATURES, dtype=torch.float64), generator())
    return Stumps(splits, random_tables(6 * FEATURES, K).reshape(2, -1), groups(row), FEATURES)


def difference(one, other):
    if isinstance(one.splits, AxisCandidates):
        pairs = [(one.splits.parameters[name], other.splits.parameters[name]) for name in one.splits.parameters]
        return max((a - b).abs().max().item() for a, b in [*pairs, (one.leaves, other.leaves)])
    return largest_difference(one, other)


@pytest.mark.parametrize("make", [stumps, tree, thresholds])
@pytest.mark.parametrize("algorithm", ["em", "likelihood", "alternating"])
@pytest.mark.parametrize("changes", [{}, {"l2": 0.1, "leaf_prior": 0.5, "input_noise": 0.3}])
def test_training_on_probabilities_is_training_on_the_repeated_rows(make, algorithm, changes, monkeypatch):
    soft = soft_rows()
    plain, row = repeated(soft)
    plan = Plan(algorithm, epochs=5, batch_size=10_000, min_updates=20, learning_rate=0.05, steepness=2.0, **changes)
    steps = ENGINES["torch"]
    ours = trained(steps, make(soft, torch.arange(N)), soft, plan, monkeypatch)
    theirs = trained(steps, make(plain, row), plain, plan, monkeypatch)
    assert difference(ours, theirs) < 1e-9


@pytest.mark.parametrize("make", [stumps, tree, thresholds])
@pytest.mark.parametrize("algorithm", ["em", "likelihood", "alternating"])
def test_training_on_certain_probabilities_is_training_on_labels(make, algorithm, monkeypatch):
    soft, plain = labelled(soft_rows())
    plan = Plan(algorithm, epochs=5, batch_size=16, min_updates=20, learning_rate=0.05, mass_threshold=1e-3)
    row = torch.arange(N)
    ours, theirs = (trained(ENGINES["torch"], make(data, row), data, plan, monkeypatch) for data in (soft, plain))
    assert difference(ours, theirs) < 1e-9


@pytest.mark.parametrize("make", [stumps, tree])
def test_modules_train_on_the_repeated_rows_too(make, monkeypatch):
    soft = soft_rows(n_features=256)
    plain, row = repeated(soft)

    def networks(n):
        splits = ModuleSplits.build(ConvNet, n, (1, 16, 16), generator())
        return splits.replace_parameters({name: value.double() for name, value in splits.parameters.items()})

    def trainee(data, row):
        if make is stumps:
            return Stumps(networks(3), random_tables(6, K).reshape(2, -1), groups(row))
        return WholeTree(Tree(FIGURE_1, networks(4), random_tables(5, K)), data)

    plan = Plan("em", epochs=2, batch_size=10_000, learning_rate=0.01)
    ours = trained(ENGINES["torch"], trainee(soft, torch.arange(N)), soft, plan, monkeypatch)
    theirs = trained(ENGINES["torch"], trainee(plain, row), plain, plan, monkeypatch)
    for name, value in ours.splits.parameters.items():
        torch.testing.assert_close(value, theirs.splits.parameters[name], rtol=0, atol=1e-7)


def test_the_e_step_sums_over_the_repeated_rows():
    soft = soft_rows()
    plain, row = repeated(soft)
    some = random_tree(FIGURE_1, FEATURES, K)
    ours, theirs = (
        data.target.e_step(
            log_path_probabilities(some.splits(data.rows.values), FIGURE_1, 2.0), some.leaves, data.y, data.weight
        )
        for data in (soft, plain)
    )
    share = soft.y[row, plain.y]
    together = torch.zeros(N, FIGURE_1.n_leaves, dtype=torch.float64)
    together.index_add_(0, row, theirs.responsibilities * share[:, None])
    torch.testing.assert_close(ours.responsibilities, together)
    torch.testing.assert_close(ours.responsibilities.sum(dim=1), torch.ones(N, dtype=torch.float64))
    torch.testing.assert_close(ours.statistics, theirs.statistics)
    likelihood = torch.zeros(N, dtype=torch.float64).index_add_(0, row, theirs.log_likelihoods * share)
    torch.testing.assert_close(ours.log_likelihoods, likelihood)


def test_rows_with_places_count_in_their_own_tables_only():
    soft, group = soft_rows(), torch.arange(N) % 3
    log_paths = torch.log_softmax(torch.randn(N, 2, generator=generator(), dtype=torch.float64), dim=1)
    tables = random_tables(6, K).reshape(2, -1)
    together = soft.target.e_step(log_paths, tables, soft.y, soft.weight, group, 3)
    for number in range(3):
        here, columns = group == number, slice(K * number, K * number + K)
        alone = soft.target.e_step(log_paths[here], tables[:, columns], soft.y[here], soft.weight[here])
        torch.testing.assert_close(together.responsibilities[here], alone.responsibilities)
        torch.testing.assert_close(together.statistics[:, columns], alone.statistics)
        torch.testing.assert_close(together.log_likelihoods[here], alone.log_likelihoods)


def test_hard_counts_and_scores_are_those_of_the_repeated_rows():
    soft = soft_rows()
    plain, _ = repeated(soft)
    some = random_tree(FIGURE_1, FEATURES, K)
    torch.testing.assert_close(soft.hard_counts(some), plain.hard_counts(some))
    assert hard_score(some, soft, soft) == pytest.approx(hard_score(some, plain, plain))


def test_a_tally_of_arrays_is_a_tally_of_tensors():
    soft, group = soft_rows(), torch.arange(N) % 3
    arrays = soft.target.tally(soft.y.numpy(), soft.weight.numpy(), group.numpy(), 3)
    tensors = soft.target.tally(soft.y, soft.weight, group, 3)
    np.testing.assert_allclose(arrays, tensors.numpy())
    both = soft.target.tally(soft.y, torch.stack([soft.weight, 2 * soft.weight], dim=1), group, 3)
    np.testing.assert_allclose(both.numpy(), np.stack([arrays, 2 * arrays], axis=1))


def test_the_evidence_of_a_certain_row_is_that_of_its_label():
    soft, plain = labelled(soft_rows())
    tables, group = random_tables(6, K).reshape(2, -1), torch.arange(N) % 3
    ours, theirs = (data.target.evidence(tables, data.y, group) for data in (soft, plain))
    torch.testing.assert_close(ours, theirs)


def test_vanishing_paths_leave_everything_finite():
    log_paths = torch.tensor([[0.0, -1e4], [-1e4, 0.0]])
    tables = Classes(2).update(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.ones(2, 2) / 2)
    found = SoftClasses(2).e_step(log_paths, tables, torch.tensor([[0.0, 1.0], [0.5, 0.5]]), torch.ones(2))
    for part in found:
        assert torch.isfinite(part).all()


def test_soft_labels_train_in_torch_and_give_a_tree_of_classes():
    soft = soft_rows()
    assert select_engine(tree(soft, None), soft, Plan()) is ENGINES["torch"]
    assert TARGETS[SoftClasses.name] is Classes
