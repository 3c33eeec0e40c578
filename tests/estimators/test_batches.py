"""Rows that are read in batches, in several passes."""

import subprocess
import sys
from itertools import islice

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import Ridge
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from crisptree import (
    Batches,
    CrispForestClassifier,
    CrispForestRegressor,
    CrispSegmenter,
    CrispTreeClassifier,
    CrispTreeRegressor,
    StopTraining,
    StreamError,
    TableEncoder,
    TrainingOptions,
)
from crisptree.persistence.checkpoints import CheckpointStore
from crisptree.pipeline import batches as streaming
from tests.toys import plain_tree

LABELS = np.array(["no", "some", "yes"])


def rows(n=2000, seed=0):
    X = np.random.default_rng(seed).normal([0, 5, -2, 0], [1, 3, 0.5, 1], size=(n, 4)).astype(np.float32)
    return X, LABELS[(X[:, 0] > 0).astype(int) + ((X[:, 0] > 0) & (X[:, 1] > 5))]


def in_batches(X, y, *more, at_once=300):
    def one_pass():
        for start in range(0, len(X), at_once):
            yield tuple(part[start : start + at_once] for part in (X, y, *more))

    return one_pass


def model(**more):
    quick = {"algorithm": "likelihood", "max_depth": 3, "epochs": 4, "finetune_epochs": 4, "random_state": 0}
    return plain_tree(**quick | more)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(streaming, "MAX_CHUNK_VALUES", 4 * 400)


def test_a_tree_of_batches_is_as_good_as_one_of_arrays():
    X, y = rows()
    learner = model().fit(in_batches(X, y))
    fresh = rows(seed=1)
    assert learner.score(*fresh) > model().fit(X, y).score(*fresh) - 0.02
    assert learner.score(*fresh) > 0.9
    assert learner.classes_.tolist() == LABELS.tolist()
    assert learner.n_features_in_ == 4
    assert {record.phase for record in learner.history_} == {"grow", "finetune"}


def test_counts_tables_and_ranges_are_those_of_all_rows():
    X, y = rows()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    tree = model(class_weight={"no": 2.0}).fit(in_batches(X, y, weight)).tree_
    weight = weight * np.where(y == "no", 2.0, 1.0)
    totals = [weight[y == label].sum() for label in LABELS]
    assert np.allclose(tree.statistics.node_counts[0], totals)
    leaf = model(epochs=1, finetune_epochs=0).fit(X, y)
    leaf.tree_ = tree
    reached = leaf.leaf_indices(X)
    counted = np.array(
        [
            [weight[(reached == number) & (y == label)].sum() for label in LABELS]
            for number in range(tree.structure.n_leaves)
        ]
    )
    assert np.allclose(tree.statistics.node_counts[tree.structure.n_splits :], counted)
    kept = weight > 0
    assert np.allclose(tree.statistics.lowest, X[kept].min(axis=0))
    scores = X @ tree.weight[0] + tree.bias[0]
    assert tree.statistics.score_mean[0] == pytest.approx(np.average(scores, weights=weight), rel=1e-3, abs=1e-3)


def bent_rows(n=2000, seed=0):
    X, _ = rows(n, seed)
    return X, X @ [1.0, 0.5, 0.0, -1.0] + 3 * np.abs(X[:, 0])


def test_without_splits_linear_leaves_of_batches_are_one_ridge_regression():
    X, y = bent_rows()
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    options = {"leaf_model": "linear", "max_depth": 0, "shrinkage": 0.0}
    linear = CrispTreeRegressor(**options, training=TrainingOptions(leaf_l2=5.0), random_state=0)
    linear.fit(in_batches(X, y, weight))
    spread = np.sqrt(np.average((X - np.average(X, axis=0, weights=weight)) ** 2, axis=0, weights=weight))
    ridge = Ridge(alpha=5.0).fit(X / spread, y, sample_weight=weight)
    np.testing.assert_allclose(linear.predict(X), ridge.predict(X / spread), atol=1e-3)
    error = np.average((ridge.predict(X / spread) - y) ** 2, weights=weight)
    np.testing.assert_allclose(linear.predict_std(X), np.sqrt(error), rtol=1e-3)


def test_candidates_of_linear_leaves_train_as_a_fit_of_batches_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 5)).astype(np.float32)
    y = 3 * np.abs(X[:, 0]) + X[:, 1]
    linear = CrispTreeRegressor(leaf_model="linear", split="oblique", max_depth=2, random_state=0)
    # Noise that suits only leaves whose models train with the splits costs a tenth of R².
    assert linear.fit(in_batches(X[:1000], y[:1000])).score(X[1000:], y[1000:]) > 0.88


def test_without_splits_linear_leaves_of_classes_in_batches_are_one_softmax():
    X, y = rows()
    linear = model(leaf_model="linear", leaf_l2=1.0, max_depth=0)
    found = clone(linear).fit(in_batches(X, y)).predict_proba(X)
    np.testing.assert_allclose(found, linear.fit(X, y).predict_proba(X), atol=5e-3)


@pytest.mark.parametrize("leaf_model", ["linear", "branch_linear"])
def test_trees_of_batches_have_linear_leaves(leaf_model):
    X, y = bent_rows()
    options = {"split": "oblique", "input_noise": 0.0, "l1": 0.0, "shrinkage": 0.0, "max_depth": 2}
    quick = TrainingOptions(epochs=6, finetune_epochs=2, min_updates=50, leaf_l2=1.0)
    linear = CrispTreeRegressor(**options, leaf_model=leaf_model, training=quick, random_state=0)
    linear.fit(in_batches(X, y))
    assert linear.tree_.structure.n_splits
    fresh = bent_rows(seed=1)
    constant = clone(linear).set_params(leaf_model="constant").fit(in_batches(X, y))
    assert linear.score(*fresh) > max(0.85, constant.score(*fresh))


def test_linear_leaves_of_batches_have_no_more_features_than_those_of_arrays():
    wide = np.zeros((20, 600), dtype=np.float32)
    with pytest.raises(ValueError, match="X must have at most 512 features for leaf_model='linear'"):
        model(leaf_model="linear").fit(in_batches(wide, LABELS[np.arange(20) % 3]))


def test_a_fit_on_batches_is_the_same_every_time_and_for_any_batches():
    X, y = rows(900)
    quick = model(max_depth=2, epochs=2, finetune_epochs=1, min_updates=0)
    one, again = (quick.fit(in_batches(X, y)).tree_ for _ in range(2))
    assert np.array_equal(one.weight, again.weight)
    other = quick.fit(in_batches(X, y, at_once=77)).tree_
    assert other.structure.n_leaves > 1


def test_auto_parameters_are_selected_on_a_sample_of_the_batches():
    X, y = rows(1200)
    learner = CrispTreeClassifier(
        max_depth=2, training=TrainingOptions(epochs=6, finetune_epochs=6, min_updates=60), random_state=0
    )
    learner.fit(in_batches(X, y))
    assert "input_noise" in learner.best_params_
    assert learner.score(X, y) > 0.8


def test_loaders_datasets_files_and_mapped_arrays_are_batches(tmp_path):
    X, y = rows(600)
    numbers = np.searchsorted(LABELS, y)
    tensors = TensorDataset(torch.from_numpy(X), torch.from_numpy(numbers))

    class Endless(IterableDataset):
        def __iter__(self):
            return islice(iter(tensors), None)

    names = [f"x{number}" for number in range(4)]
    for part in range(2):
        half = slice(300 * part, 300 * part + 300)
        columns = dict(zip(names, X[half].T, strict=True)) | {"y": y[half]}
        pq.write_table(pa.table(columns), tmp_path / f"{part}.parquet", row_group_size=100)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    for source in (
        tensors,
        Endless(),
        DataLoader(tensors, batch_size=128),
        Batches.from_parquet(tmp_path, "y"),
        Batches.from_arrays(mapped, y),
    ):
        learner = model(max_depth=2, epochs=2, finetune_epochs=2, min_updates=60).fit(source)
        truth = y if isinstance(source, Batches) else numbers
        learner.__dict__.pop("feature_names_in_", None)
        assert learner.score(X, truth) > 0.7, source
    assert Batches.from_parquet(tmp_path, "y").columns == names


def test_bad_batches_end_in_our_own_error(tmp_path):
    X, y = rows(600)

    def other_width():
        yield X[:300], y[:300]
        yield X[300:, :3], y[300:]

    def broken():
        yield X[:300], y[:300]
        raise EOFError("shard 2 is cut short")

    holes = X.copy()
    holes[7, 2] = np.nan
    for source, words in [
        (other_width, "batch 1 of the rows must have 4 features as those before; it has 3"),
        (broken, "batch 1 of the rows cannot be read: shard 2 is cut short"),
        (in_batches(holes, y), "row 7 has nan in column 2"),
        (in_batches(X, y[:, None, None]), r"must have X of \(n, n_features\), y of \(n,\) or \(n, n_outputs\)"),
        (lambda: iter([X]), r"must be \(X, y\)"),
        (lambda: iter([]), "at least one row"),
        (in_batches(X, y, -np.ones(600)), "finite weights of at least 0"),
        (in_batches(np.full((600, 2), "a"), y), "must hold numbers and labels"),
    ]:
        with pytest.raises(StreamError, match=words):
            model().fit(source)


def test_rows_that_change_between_passes_are_noticed(tmp_path):
    X, y = rows(600)
    passes = []

    def fewer():
        passes.append(None)
        n = 600 - len(passes)
        return in_batches(X[:n], y[:n])()

    with pytest.raises(StreamError, match="every pass must give the same rows; the first had 599"):
        model().fit(fewer)

    def other_class():
        passes.append(None)
        return in_batches(X, y if len(passes) == 1 else np.full(600, "new"))()

    passes.clear()
    with pytest.raises(StreamError, match="the first pass had no class 'new'"):
        model().fit(other_class)
    table = pa.table(dict(zip("abcd", X.T, strict=True)) | {"y": y})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=100)
    source = Batches.from_parquet(tmp_path / "t.parquet", "y")
    pq.write_table(table.slice(1), tmp_path / "t.parquet", row_group_size=100)
    with pytest.raises(StreamError, match=r"t\.parquet has changed since the first pass"):
        model().fit(source)
    data = bytearray((tmp_path / "t.parquet").read_bytes())
    data[200:900] = bytes(700)
    (tmp_path / "t.parquet").write_bytes(data)
    with pytest.raises(StreamError, match=r"t\.parquet"):
        model().fit(Batches.from_parquet(tmp_path / "t.parquet", "y"))
    (tmp_path / "t.parquet").write_bytes(data[:500])
    with pytest.raises(StreamError, match=r"t\.parquet is damaged or no Parquet file"):
        Batches.from_parquet(tmp_path / "t.parquet", "y")


def test_a_pass_that_cannot_be_repeated_is_refused_at_once():
    X, y = rows(600)
    with pytest.raises(TypeError, match="got generator, which can be gone through once at most"):
        model().fit(in_batches(X, y)())
    with pytest.raises(TypeError, match="got list, which can be gone through once at most"):
        Batches([(X, y)])
    once = in_batches(X, y)()

    def gone():
        raise OSError("the disk is gone")

    with pytest.raises(StreamError, match="returned the iterator of the pass before, which is used up"):
        model().fit(lambda: once)
    with pytest.raises(StreamError, match="a pass over the rows cannot begin: the disk is gone"):
        model().fit(gone)
    with pytest.raises(StreamError, match="cannot begin: 'NoneType' object is not iterable"):
        model().fit(lambda: None)


def test_labels_that_are_no_classes_are_refused_with_their_batch():
    X, y = rows(600)
    numbers = np.searchsorted(LABELS, y)
    holes = y.astype(object)
    holes[450] = None
    for labels, words in [
        (X[:, 0], "batch 0 of the rows must have a class for every row: y must hold classes"),
        (np.where(np.arange(600) == 350, np.nan, numbers), "batch 1 of the rows must have a class for every row"),
        (holes, "batch 1 of the rows must have a class for every row"),
    ]:
        with pytest.raises(StreamError, match=words):
            model().fit(in_batches(X, labels))

    def both():
        yield X[:300], y[:300]
        yield X[300:], numbers[300:]

    with pytest.raises(StreamError, match="labels of one type; some batches have text, some numbers"):
        model().fit(both)


def test_files_that_are_not_there_or_not_alike_are_named(tmp_path):
    X, y = rows(600)
    table = pa.table(dict(zip("abcd", X.T, strict=True)) | {"y": y})
    with pytest.raises(StreamError, match=r"none\.parquet must be a Parquet file or a folder of them; there is no"):
        Batches.from_parquet(tmp_path / "none.parquet", "y")
    with pytest.raises(StreamError, match=r"\(\*\.parquet\); there are none"):
        Batches.from_parquet(tmp_path, "y")
    pq.write_table(table, tmp_path / "0.parquet", row_group_size=100)
    with pytest.raises(StreamError, match=r"0\.parquet has no column 'z'; it has a, b, c, d, y"):
        Batches.from_parquet(tmp_path, "z")
    second = tmp_path / "1.parquet"
    pq.write_table(table.rename_columns([*"abce", "y"]), second)
    with pytest.raises(StreamError, match=r"1\.parquet must have the columns of the first file \(a, b, c, d, y\); it"):
        model().fit(Batches.from_parquet(tmp_path, "y"))
    pq.write_table(table, second, row_group_size=100)
    whole, source = second.read_bytes(), Batches.from_parquet(tmp_path, "y")
    second.unlink()
    with pytest.raises(StreamError, match=r"1\.parquet cannot be read"):
        model().fit(source)
    second.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StreamError, match=r"1\.parquet is damaged or no Parquet file"):
        model().fit(Batches.from_parquet(tmp_path, "y"))
    second.write_bytes(whole)
    batches = Batches.from_parquet(tmp_path, "y", at_once=100).one_pass()
    for _ in range(8):
        next(batches)
    second.touch()
    with pytest.raises(StreamError, match=r"1\.parquet has changed since the first pass"):
        list(batches)


def test_batches_are_refused_in_our_own_words_where_rows_must_be_in_memory():
    X, y = rows(300)
    source = in_batches(X, y)
    takers = [CrispForestClassifier, CrispForestRegressor, CrispSegmenter]
    for given in (Batches(source), source, source(), TensorDataset(torch.from_numpy(X))):
        for taker in takers:
            with pytest.raises(TypeError, match=f"{taker.__name__} must be given rows that are in memory"):
                taker().fit(given)
        with pytest.raises(TypeError, match="a table must be given rows that are in memory"):
            TableEncoder().fit(given)
    learner = model(max_depth=1, epochs=1, finetune_epochs=0, min_updates=0).fit(X, y)
    for method in (learner.predict, learner.partial_fit, learner.apply):
        with pytest.raises(TypeError, match="CrispTreeClassifier must be given rows that are in memory"):
            method(Batches(source))
    with pytest.raises(ValueError, match="`y` must be None for rows in batches"):
        model().fit(Batches(source), y)
    with pytest.raises(ValueError, match="`labels` must hold the class of every pixel; got None"):
        CrispSegmenter().fit(np.zeros((20, 20)))


def test_what_batches_cannot_do_is_refused():
    source = in_batches(*rows(300))
    for more in ({"split": "axis"}, {"grow": "cart"}, {"max_leaf_nodes": 4}):
        with pytest.raises(ValueError, match=f"`{next(iter(more))}` must be .* for a fit on batches"):
            model(**more).fit(source)
    with pytest.raises(ValueError, match="third part of a batch"):
        model().fit(source, sample_weight=np.ones(300))


class Crash(BaseException):
    pass


def test_a_fit_on_batches_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    source, keep, kept = in_batches(*rows(900)), CheckpointStore.keep, []
    monkeypatch.setattr("os.fsync", lambda handle: None)
    quick = model(max_depth=2, min_updates=0)
    whole = quick.fit(source).tree_

    def crash(self, *arguments, **more):
        keep(self, *arguments, **more)
        kept.append(None)
        if len(kept) == 7:
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "keep", crash)
        with pytest.raises(Crash):
            quick.fit(source, checkpoint=tmp_path, checkpoint_every=0)
    again = quick.fit(source, checkpoint=tmp_path, resume=True).tree_
    assert np.array_equal(again.weight, whole.weight)
    assert np.array_equal(again.leaves, whole.leaves)


PROGRAM = """
import resource, sys
import numpy as np
import crisptree.pipeline.batches
from pathlib import Path
from tests.toys import plain_tree
n_batches, n_rows, more, crisptree.pipeline.batches.MAX_CHUNK_VALUES = map(int, sys.argv[1:])
base = np.random.default_rng(0).standard_normal((n_rows, 100), dtype=np.float32)
def one_pass(n_batches=n_batches):
    for number in range(n_batches):
        X = base.copy()
        X[:, :4] = np.random.default_rng(number).standard_normal((n_rows, 4), dtype=np.float32)
        yield X, X[:, 0] > X[:, 1]
def pages(name):
    return 1024 * int(Path("/proc/self/status").read_text().split(name + ":")[1].split()[0])
quick = {"algorithm": "likelihood", "max_depth": 1, "epochs": 1, "finetune_epochs": 1}
model = plain_tree(**quick, random_state=0, batch_size=1000, n_jobs=1)
model.fit(lambda: one_pass(1))  # loads what a fit needs
before = pages("VmSize")
resource.setrlimit(resource.RLIMIT_AS, (before + more, before + more))
model.fit(one_pass)
X, y = next(one_pass())
print(n_batches * X.nbytes, pages("VmPeak") - before, model.score(X, y))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")
@pytest.mark.parametrize(
    ("n_batches", "n_rows", "more", "values_at_once"),
    [
        (50, 5_000, 50 * 10**6, 2**18),
        pytest.param(1000, 50_000, 2 * 10**9, 2**24, marks=pytest.mark.slow),
    ],
    ids=["100 MB under 50 MB", "20 GB under 2 GB"],
)
def test_a_stream_fits_into_a_fraction_of_its_size(n_batches, n_rows, more, values_at_once):
    words = [sys.executable, "-c", PROGRAM, *map(str, (n_batches, n_rows, more, values_at_once))]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    size, taken, score = map(float, done.stdout.split())
    assert size == 400 * n_rows * n_batches >= 2 * more
    assert taken <= more
    assert score > 0.9


def test_a_stump_with_a_bad_start_is_tried_again():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3)).astype(np.float32)
    batches = Batches.from_arrays(X, X[:, 0] + X[:, 1] > 0)
    given = {"split": "oblique", "l1": 0.03, "input_noise": 0.3, "shrinkage": 0.0, "max_depth": 2}
    given |= {"epochs": 3, "finetune_epochs": 1}
    leaves = [
        CrispTreeClassifier.from_flat(**given, random_state=seed).fit(batches).get_n_leaves() for seed in range(8)
    ]
    assert min(leaves) > 1


@pytest.mark.parametrize(
    ("weights", "words"), [({0: -1}, "at least 0"), ({1: np.nan}, "finite"), ({0: 1, 7: 2}, "got 7")]
)
def test_weights_of_classes_are_held_to_those_of_arrays(weights, words):
    X = np.arange(40, dtype=np.float32).reshape(20, 2)
    with pytest.raises(ValueError, match=words):
        CrispTreeClassifier(class_weight=weights).fit(Batches.from_arrays(X, np.arange(20) % 2))


def test_a_class_without_weight_is_none_on_batches_as_on_arrays():
    X, y = rows(900)
    given = {"class_weight": {"some": 0.0, "yes": 2.0}, "max_depth": 2}
    streamed, whole = model(**given).fit(in_batches(X, y)), model(**given).fit(X, y)
    assert streamed.classes_.tolist() == whole.classes_.tolist() == ["no", "yes"]
    assert np.allclose(streamed.tree_.statistics.node_counts[0], whole.tree_.statistics.node_counts[0])
    assert np.allclose(streamed.tree_.statistics.scaling.center, whole.tree_.statistics.scaling.center)


def numbers(n=2000, seed=0):
    X, _ = rows(n, seed)
    return X, 1000 + 10.0 * (X[:, 0] > 0) + X[:, 1]


def number_tree(**more):
    given = {"split": "oblique", "l1": 0.0, "input_noise": 0.3, "shrinkage": 0.0, "steepness_step": 0.1, "max_depth": 3}
    return CrispTreeRegressor.from_flat(**given | {"epochs": 4, "finetune_epochs": 6, "random_state": 0} | more)


def test_a_regression_tree_in_batches_is_as_good_as_one_of_arrays():
    X, y = numbers(1200)
    learner, fresh = number_tree().fit(in_batches(X, y)), numbers(seed=1)
    assert learner.score(*fresh) > number_tree().fit(X, y).score(*fresh) - 0.03
    assert learner.score(*fresh) > 0.8
    assert learner.n_outputs_ == 1
    tree = learner.tree_
    assert tree.statistics.y_center[0] == pytest.approx(y.mean())
    assert tree.statistics.y_unit[0] == pytest.approx(y.std())
    assert tree.statistics.node_counts[0, 0] == len(y)
    low, high = learner.predict_interval(X[:5])
    assert (low < high).all()


def test_several_and_constant_outputs_come_in_batches_too():
    X, y = numbers(600)
    both = np.stack([y, np.full(len(y), 0.1)], axis=1)
    learner = number_tree(max_depth=2, epochs=2, finetune_epochs=1).fit(in_batches(X, both))
    assert learner.n_outputs_ == 2
    assert (learner.predict(X)[:, 1] == 0.1).all()
    assert (learner.predict_std(X)[:, 1] == 0).all()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda y: np.array(["many"] * len(y)), "batch 0 of the rows must have a number for every row"),
        (lambda y: np.where(y == y.max(), np.inf, y), "must have a number for every row"),
    ],
)
def test_batches_without_numbers_are_refused_by_name(wrong, words):
    X, y = numbers(400)
    with pytest.raises(StreamError, match=words):
        number_tree().fit(in_batches(X, wrong(y), at_once=400))


def test_numbers_that_change_between_passes_are_noticed():
    X, y = numbers(400)
    passes = []

    def one_pass():
        passes.append(1)
        yield X, y + (len(passes) > 2) * (np.arange(len(y)) == 7)

    with pytest.raises(StreamError, match="every pass must give the same rows; the first had 400 rows"):
        number_tree().fit(one_pass)


def test_classes_must_be_one_for_every_row_of_a_batch():
    X, y = rows(100)
    with pytest.raises(StreamError, match=r"one class for every row, \(n,\); got shape \(100, 2\)"):
        model().fit(in_batches(X, np.stack([y, y], axis=1)))


def test_a_fit_of_numbers_in_batches_goes_on_from_a_checkpoint(tmp_path):
    X, y = numbers(600)
    quick = number_tree(max_depth=2, epochs=2, finetune_epochs=2)
    given = {"checkpoint": tmp_path / "folder", "checkpoint_every": 0, "resume": True}
    first, again = (quick.fit(in_batches(X, y), **given).tree_ for _ in range(2))
    assert np.array_equal(first.weight, again.weight)
    assert np.array_equal(first.leaves, again.leaves)


def test_a_large_tree_of_batches_is_finetuned_from_above(monkeypatch):
    monkeypatch.setattr("crisptree.learning.loop.MIN_SPLITS_OF_LARGE_TREE", 2)
    monkeypatch.setattr("crisptree.learning.loop.MAX_ROWS_PER_SPLIT", 1000)
    X, _ = rows(900)
    y = np.random.default_rng(0).integers(2, size=len(X))

    def tuned(**more):
        history = model(**{"upper_levels": 1, "min_updates": 0} | more).fit(in_batches(X, y)).history_
        return [record.level for record in history if record.phase == "finetune" and record.epoch == 1]

    def stop(record):
        if record.phase == "finetune":
            raise StopTraining

    assert tuned() == [1, 2, 3]
    assert tuned(callbacks=[stop]) == [1]
    assert tuned(upper_levels=None) == [3]
