"""Rows as shards, sums in whole units, and gradients that are added up: without a second process."""

import os

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

from crisptree import CheckpointError, CrispTreeClassifier, CrispTreeRegressor, StopTraining
from crisptree.data.rows import ArrayRows
from crisptree.distributed import single_process
from crisptree.learning.engines.base import Groups
from crisptree.learning.engines.cuda_engine import kernels
from crisptree.learning.engines.cuda_part_sums import CudaPartSums
from crisptree.learning.engines.native_engine import NativePartSums
from crisptree.learning.engines.torch_engine import TorchPartSums
from crisptree.learning.growth import SummedLevel
from crisptree.learning.loop import DivergenceError, WholeTree
from crisptree.learning.options import EpochSettings, Plan
from crisptree.learning.process_group import ProcessGroup, ShardedGroups, ShardedRows, Shards
from crisptree.learning.samples import LeafGroups, RowSet, Samples
from crisptree.splits import resolve_kind
from crisptree.structure import TreeStructure
from crisptree.targets import Classes
from crisptree.tree import Tree
from tests.distributed.cases import PLAIN, QUICK, digest, fit_case, rows

pytestmark = pytest.mark.usefixtures("group_of_one")
interpreted = pytest.mark.skipif(
    kernels is None or os.environ.get("TRITON_INTERPRET") != "1", reason="needs Triton's interpreter"
)


class Crowd(ProcessGroup):
    """One process that stands for some: what it would send away is looked at."""

    def __init__(self, rank, counts):
        super().__init__()
        self.rank, self.size, self.counts = rank, len(counts), counts

    def gather(self, mine):
        return self.counts

    def exchange(self, values, to, come):
        assert sum(to) == len(values)
        return np.zeros((sum(come), *values.shape[1:]), values.dtype)


@pytest.mark.parametrize("counts", [[10, 0, 3], [5, 5, 5, 5], [1], [0, 0, 17], [3] * 12])
@pytest.mark.parametrize("n_shards", [1, 3, 8])
def test_every_row_is_in_one_shard_and_every_shard_in_one_process(counts, n_shards):
    sizes, numbers = [], []
    for rank, n in enumerate(counts):
        part = RowSet(np.zeros((n, 2), np.float32), np.zeros(n, np.int64), np.zeros(n))
        shards = Shards.of(part, Crowd(rank, counts), n_shards)
        sizes += [len(one.y) for one in shards.parts]
        numbers += shards.numbers
    n = sum(counts)
    assert numbers == list(range(n_shards))
    assert sizes == [n * (s + 1) // n_shards - n * s // n_shards for s in range(n_shards)]


def test_reduction_in_integer_units_is_independent_of_the_order():
    parts = np.random.default_rng(0).standard_normal((50, 7)) * 10.0 ** np.arange(-20, 15, 5)
    group = ProcessGroup()
    totals = [group.total(list(parts[order]), (7,)) for order in map(np.random.default_rng(1).permutation, [50] * 5)]
    assert all(np.array_equal(total, totals[0]) for total in totals)
    np.testing.assert_allclose(totals[0], parts.sum(axis=0), rtol=1e-12)


def test_reduction_of_nan_is_nan():
    total = ProcessGroup().total([np.array([1.0, np.inf]), np.array([2.0, 1.0])], (2,))
    assert total[0] == 3
    assert np.isnan(total[1])


def test_batches_have_all_rows_of_every_shard_once_and_are_of_nearly_one_size():
    sizes = np.random.default_rng(0).integers(0, 40, (8, 5))
    groups = ShardedGroups([], sizes, 0)
    active, whole = np.arange(5), np.array([1, 2, 3, 7, 9])
    lengths = []
    for batch in range(9):
        begin, end = groups.ranges(active, batch % whole, whole)
        lengths.append((end - begin).sum(axis=0))
    for group in range(5):
        first, last = (groups.ranges(active, batch, whole) for batch in (np.zeros(5, int), whole - 1))
        assert (first[0][:, group] == 0).all()
        assert (last[1][:, group] == sizes[:, group]).all()
        own = [length[group] for length in lengths[: whole[group]]]
        assert sum(own) == sizes[:, group].sum()
        assert max(own) - min(own) <= 8


def test_orders_on_a_device_are_those_of_every_shard_in_any_process():
    lengths = np.array([[5, 30], [40, 2], [0, 25], [31, 31]])
    own = [Groups(torch.arange(sizes.sum()), torch.from_numpy(sizes)) for sizes in lengths]
    whole = ShardedGroups(own, lengths, 0).hash_order(7)
    first, others = ShardedGroups(own[:1], lengths, 0).hash_order(7), ShardedGroups(own[1:], lengths, 1).hash_order(7)
    assert torch.equal(torch.cat([first, others + len(first)]), whole)
    assert not torch.equal(ShardedGroups(own, lengths, 0).hash_order(8), whole)
    cells = np.repeat(np.arange(8), lengths.ravel())
    assert np.array_equal(cells[whole.numpy()], cells)
    assert np.array_equal(np.sort(whole.numpy()), np.arange(len(cells)))


def sharded_rows(n_shards, dtype=torch.float32):
    random = torch.Generator().manual_seed(0)
    x = torch.randn(203, 6, generator=random, dtype=dtype)
    y = (x[:, 0] > 0).long() + (x[:, 1] > 0.5)
    weight = torch.rand(203, generator=random, dtype=dtype) + 0.5
    cuts = np.array([203 * shard // n_shards for shard in range(n_shards + 1)])
    return ShardedRows(ProcessGroup(), Samples(ArrayRows(x), y, weight, Classes(3)), cuts, 0, n_shards)


def trainee_of(rows, what):
    random, kind, dtype = torch.Generator().manual_seed(1), resolve_kind("oblique", (6,)), rows.weight.dtype
    if what == "tree":
        splits = kind.initial(torch.zeros(3, 6, dtype=dtype), random)
        return WholeTree(Tree(TreeStructure.balanced(2), splits, Classes(3).random_tables(4, random).to(dtype)), rows)
    splits, tables = kind.initial(torch.zeros(1, 6, dtype=dtype), random), Classes(3).random_tables(2, random)
    stump = Tree(TreeStructure.stump(), splits, tables.to(dtype))
    left, right = rows.sides(Tree(TreeStructure.single_leaf(), splits.select([]), tables[:1].to(dtype)), [0], splits)
    states = [side.leaf(0, rows.target, rows.weight) for side in (left, right)]
    tables = Classes(3).random_tables(4, random).reshape(2, -1).to(dtype)
    at_leaves = kind.candidates(torch.zeros(2, 6, dtype=dtype), random)
    return SummedLevel(rows, LeafGroups(stump, [0, 1], states), at_leaves, tables)


@pytest.mark.parametrize("what", ["tree", "stumps"])
@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("other_engine", [NativePartSums, pytest.param(CudaPartSums, marks=interpreted)])
def test_shard_gradients_of_all_engines_are_equal(other_engine, what, noise, monkeypatch):
    plan = Plan(epochs=10, batch_size=64, l2=0.01, l1=0.001, input_noise=noise, mass_threshold=0.0)
    found = []
    for engine in (other_engine, TorchPartSums):
        monkeypatch.setattr(engine, "supports", staticmethod(lambda *_: True))
        monkeypatch.setattr("crisptree.learning.process_group.PART_SUMS", (engine,))
        rows = sharded_rows(3, torch.float64)
        trainee = trainee_of(rows, what)
        steps = rows.make_engine(trainee, plan, torch.Generator().manual_seed(0), fresh=False)
        results = [steps.epoch(EpochSettings(1.5 + epoch, 0.05), None) for epoch in range(3)]
        found.append((trainee.splits.parameters["weight"].detach(), results[-1]))
    (weights, one), (by_torch, other) = found
    torch.testing.assert_close(weights, by_torch, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(one.counts, other.counts, rtol=1e-6, atol=1e-8)
    assert one.loss == pytest.approx(other.loss, rel=1e-6)


def test_gradients_beyond_their_units_end_the_training():
    rows = sharded_rows(2)
    trainee = trainee_of(rows, "tree")
    steps = rows.make_engine(trainee, Plan(batch_size=64), torch.Generator().manual_seed(0), fresh=True)
    trainee.splits.parameters["bias"].data[:] = torch.nan
    with pytest.raises(DivergenceError, match="must stay within"):
        steps.epoch(EpochSettings(1.0, 0.02), None)


REFUSED = {
    "grow": "balanced",
    "n_init": 3,
    "max_shift": 1,
    "warm_start": True,
}


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_parameters_are_refused_by_name(name):
    X, y, _ = rows("level by level")
    with pytest.raises(ValueError, match=f"`{name}`.* must be .* for a fit by several processes"):
        CrispTreeClassifier.from_flat(**QUICK | PLAIN | {name: REFUSED[name]}).fit(X, y)


@pytest.mark.parametrize("given", [{"shards": 0}, {"shards": 5000}, {"shards": True}])
def test_invalid_numbers_of_shards_are_refused(given):
    X, y, _ = rows("level by level")
    with pytest.raises(ValueError, match=f"`{next(iter(given))}` must be"):
        CrispTreeClassifier.from_flat(**QUICK | PLAIN).fit(X, y, **given)


def test_tables_forests_and_more_are_refused_with_a_reason():
    X, y, _ = rows("level by level")
    with pytest.raises(ValueError, match="must be all finite numbers for a fit by several processes"):
        CrispTreeClassifier().fit([["a"], ["b"]] * 75, y)
    with pytest.raises(ValueError, match="partial_fit is not distributed"):
        CrispTreeClassifier().partial_fit(X, y, classes=["a"])
    with pytest.raises(ValueError, match="distill is not distributed"):
        CrispTreeRegressor().distill(LinearRegression().fit(X, y == y[0]), X)


def test_a_callback_stops_a_distributed_fit_and_keeps_the_tree():
    X, y, _ = rows("level by level")

    def stop(record):
        if record.phase == "finetune" and record.epoch == 2:
            raise StopTraining

    model = CrispTreeClassifier.from_flat(**QUICK | PLAIN, callbacks=[stop]).fit(X, y)
    assert model.history_[-1].epoch == 2
    assert model.score(X, y) > 0.8


def test_a_distributed_fit_stops_early_and_accepts_fractions():
    model = fit_case("stopped early, fractions")
    scores = [record.validation_score for record in model.history_ if record.phase == "finetune"]
    assert len(scores) == model.best_iteration_ + 2 < 12
    X, _, _ = rows("stopped early, fractions")
    n_rows = np.bincount(model.before_finetuning().leaf_indices(X))
    assert n_rows.min() >= 0.1 * 0.9 * 150  # of the rows that are not held out


def test_a_distributed_fit_is_comparable_to_a_single_process_and_keeps_names():
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True, as_frame=True)
    short = {"split": "oblique", "max_depth": 3, "epochs": 6, "finetune_epochs": 8, "min_updates": 100}
    model = CrispTreeClassifier.from_flat(**PLAIN, **short).fit(X, y)
    assert model.score(X, y) > 0.95
    assert model.feature_names_in_.tolist() == X.columns.tolist()


def test_a_distributed_regression_tree_is_comparable_to_a_single_process():
    X, _, _ = rows("level by level")
    y = 100 + 3 * X[:, 2] + (X[:, 0] > 5.8)
    short = {"split": "oblique", "max_depth": 3, "epochs": 6, "finetune_epochs": 8, "min_updates": 40}
    model = CrispTreeRegressor.from_flat(**PLAIN, **short).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.predict(X).mean() == pytest.approx(y.mean(), abs=0.05)
    with single_process():
        assert model.score(X, y) > CrispTreeRegressor.from_flat(**PLAIN, **short).fit(X, y).score(X, y) - 0.05


def test_constraints_hold_in_a_distributed_fit():
    X, y, _ = rows("level by level")
    held = {"monotonic_cst": {2: -1, 3: 1}, "max_features_per_split": 2}
    tree = CrispTreeClassifier.from_flat(**QUICK | PLAIN | held).fit(X, y == y[0]).tree_
    assert tree.statistics.monotonic is not None
    assert tree.structure.n_splits > 1
    assert (tree.weight[:, 2] <= 0).all()
    assert (tree.weight[:, 3] >= 0).all()
    assert ((tree.weight != 0).sum(axis=1) <= 2).all()


def test_a_class_without_weight_is_dropped_in_a_distributed_fit():
    X, y, _ = rows("level by level")
    model = CrispTreeClassifier.from_flat(**QUICK | PLAIN, class_weight={"versicolor": 0.0}).fit(X, y)
    assert model.classes_.tolist() == ["setosa", "virginica"]
    assert model.tree_.statistics.node_counts[0].tolist() == [50.0, 50.0]


def test_the_number_of_shards_is_part_of_the_model():
    assert digest(fit_case("level by level")) != digest(fit_case("level by level", shards=5))


@pytest.fixture
def communicating(monkeypatch):
    """A process that asks the group even where it is alone in it."""
    begin = ProcessGroup.__init__

    def begun(self, *given, **named):
        begin(self, *given, **named)
        self.communicates = True

    monkeypatch.setattr(ProcessGroup, "__init__", begun)


def test_collectives_return_objects_unchanged(communicating, tmp_path):
    given = {"checkpoint": tmp_path / "folder", "resume": True}
    spoken = digest(fit_case("weights and early stopping", **given))
    assert digest(fit_case("weights and early stopping", **given)) == spoken


def test_a_group_of_one_does_not_communicate(communicating, monkeypatch):
    spoken = digest(fit_case("best first, em"))
    monkeypatch.undo()
    assert digest(fit_case("best first, em")) == spoken


def test_a_checkpoint_of_other_shards_is_refused(tmp_path):
    fit_case("level by level", checkpoint=tmp_path / "folder")
    with pytest.raises(CheckpointError, match="differs in rows, shards"):
        fit_case("level by level", shards=4, checkpoint=tmp_path / "folder", resume=True)


def test_a_large_distributed_tree_is_finetuned_from_the_top(monkeypatch):
    monkeypatch.setattr("crisptree.learning.loop.MIN_SPLITS_OF_LARGE_TREE", 2)
    monkeypatch.setattr("crisptree.learning.loop.MAX_ROWS_PER_SPLIT", 100)
    X, _, _ = rows("level by level")
    y = np.random.default_rng(0).integers(2, size=len(X))
    model = CrispTreeClassifier.from_flat(**QUICK | PLAIN, upper_levels=1).fit(X, y)
    found = [record.level for record in model.history_ if record.phase == "finetune" and record.epoch == 1]
    assert found == [1, 2, 3]

    def stop(record):
        if record.phase == "finetune":
            raise StopTraining

    model = CrispTreeClassifier.from_flat(**QUICK | PLAIN, upper_levels=1, callbacks=[stop]).fit(X, y)
    assert (model.history_[-1].level, model.history_[-1].epoch) == (1, 1)
