"""Fits that are interrupted anywhere and go on from their checkpoint."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import sparse

from crisptree import (
    CheckpointError,
    CrispForestClassifier,
    CrispForestRegressor,
    CrispSegmenter,
    CrispTreeClassifier,
    TrainingOptions,
)
from crisptree.learning.history import StopTraining
from crisptree.persistence import checkpoints, model_file
from crisptree.persistence.checkpoints import CheckpointStore
from crisptree.pipeline.monitoring import _check_same, fingerprint


class Crash(BaseException):
    """The power fails."""


def rows(n=90, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int) + (X[:, 3] > 1)


QUICK = {"max_depth": 3, "epochs": 3, "finetune_epochs": 4, "min_updates": 8, "batch_size": 32, "random_state": 3}
RESOLVED = QUICK | {"split": "oblique", "input_noise": 0.0, "l1": 0.0}
PLAIN = RESOLVED | {"shrinkage": 0.0}
FOREST = RESOLVED | {"n_estimators": 3}


def dropout(shape):
    return torch.nn.Sequential(torch.nn.Dropout(0.3), torch.nn.Linear(shape[0], 1))


CASES = {
    "noise chosen": PLAIN | {"input_noise": "auto", "shrinkage": "auto", "epochs": 1, "finetune_epochs": 1},
    "best first": PLAIN | {"max_leaf_nodes": 5},
    "best epoch": PLAIN | {"early_stopping": True},
    "EM with noise": PLAIN | {"algorithm": "em", "input_noise": 0.4, "l1": 0.01, "l2": 0.01},
    "alternating": PLAIN | {"algorithm": "alternating"},
    "thresholds": PLAIN | {"split": "axis", "max_depth": 2},
    "dropout": PLAIN | {"split": dropout, "max_depth": 2},
    "few weights": PLAIN | {"max_features_per_split": 2, "max_depth": 2},
    "pruned on held-out rows": PLAIN | {"ccp_alpha": "auto", "max_depth": 2},
    "linear leaves": PLAIN | {"leaf_model": "linear", "leaf_l2": 1.0, "max_depth": 2},
}


def crash_after(monkeypatch, number):
    """Crash when so many epochs, of trials too, have been kept; without a number, count them."""
    kept, keep = [], CheckpointStore.keep

    def and_crash(self, *arguments, **more):
        keep(self, *arguments, **more)
        kept.append(None)
        if len(kept) == number:
            raise Crash

    monkeypatch.setattr(CheckpointStore, "keep", and_crash)
    return kept


def saved(model, folder):
    model.save(folder / "model.crisp")
    return (folder / "model.crisp").read_bytes(), model.history_


def interrupted(model, data, folder, monkeypatch, moments):
    """Fit, crash after so many epochs, go on, crash again …"""
    for number in moments:
        with monkeypatch.context() as patch:
            crash_after(patch, number)
            with pytest.raises(Crash):
                model.fit(*data, checkpoint=folder, checkpoint_every=0, resume=True)
    return model.fit(*data, checkpoint=folder, checkpoint_every=0, resume=True)


@pytest.mark.parametrize("case", CASES)
def test_an_interrupted_fit_goes_on_to_the_same_tree_bit_for_bit(case, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # only the tests of real crashes need it
    data, model = rows(), CrispTreeClassifier.from_flat(**CASES[case])
    at_once = saved(model.fit(*data), tmp_path)
    with monkeypatch.context() as patch:
        kept = crash_after(patch, None)
        assert saved(model.fit(*data, checkpoint=tmp_path / "whole", checkpoint_every=0), tmp_path) == at_once
    first, second = sorted(np.random.default_rng(len(kept)).integers(1, max(len(kept) // 2, 2), 2).tolist())
    again = interrupted(model, data, tmp_path / "parts", monkeypatch, [first, second])
    assert saved(again, tmp_path) == at_once


@pytest.mark.parametrize("kind", [CrispForestClassifier, CrispForestRegressor])
def test_an_interrupted_forest_goes_on_to_the_same_trees(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    data, model = rows(), kind.from_flat(**FOREST, n_jobs=2)
    at_once = saved(model.fit(*data), tmp_path)
    with monkeypatch.context() as patch:
        kept = crash_after(patch, None)
        assert saved(model.fit(*data, checkpoint=tmp_path / "whole", checkpoint_every=0), tmp_path) == at_once
    assert len(kept) > 15  # growth and the finetuning of three trees
    again = interrupted(model, data, tmp_path / "parts", monkeypatch, [4, len(kept) - 4])
    assert saved(again, tmp_path) == at_once


def test_sparse_rows_and_shifted_images_go_on_too(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    X, y = rows()
    images = np.random.default_rng(0).random((90, 4, 4)).astype(np.float32)
    fits = {"sparse": (sparse.csr_matrix(np.where(X > 0.5, X, 0)), y, {}), "shifted": (images, y, {"max_shift": 1})}
    for name, (features, labels, more) in fits.items():
        model = CrispTreeClassifier.from_flat(**PLAIN, **more)
        at_once = saved(model.fit(features, labels), tmp_path)
        again = interrupted(model, (features, labels), tmp_path / name, monkeypatch, [4])
        assert saved(again, tmp_path) == at_once, name


def test_a_share_of_the_rows_per_epoch_walks_on_through_its_order(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    from crisptree.learning.options import Spec
    from crisptree.pipeline import trees as fitting

    class Sharing(Spec):
        @classmethod
        def of(cls, *arguments, **more):
            from dataclasses import replace

            spec = Spec.of(*arguments, **more)
            shared = (replace(plan, rows_per_epoch=40) for plan in (spec.growth, spec.finetuning))
            return replace(spec, **dict(zip(("growth", "finetuning"), shared, strict=True)))

    monkeypatch.setattr(fitting, "Spec", Sharing)
    data, model = rows(), CrispTreeClassifier.from_flat(**PLAIN)
    at_once = saved(model.fit(*data), tmp_path)
    assert saved(interrupted(model, data, tmp_path / "parts", monkeypatch, [2, 1, 9]), tmp_path) == at_once


def test_a_segmenter_goes_on_in_its_second_stage(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    images = np.random.default_rng(0).random((2, 8, 8)).astype(np.float32)
    labels = (images > 0.6).astype(int)
    model = CrispSegmenter(
        window=3, stages=2, max_depth=2, training=TrainingOptions(epochs=2, finetune_epochs=2), random_state=0
    )
    at_once = saved(model.fit(images, labels), tmp_path)
    again = interrupted(model, (images, labels), tmp_path / "parts", monkeypatch, [10])
    assert saved(again, tmp_path) == at_once


def test_a_random_seed_is_that_of_the_checkpoint(tmp_path, monkeypatch):
    model = CrispTreeClassifier.from_flat(**PLAIN | {"random_state": None})
    again = interrupted(model, rows(), tmp_path / "parts", monkeypatch, [5])
    whole = saved(again, tmp_path)
    assert saved(model.fit(*rows(), checkpoint=tmp_path / "parts", resume=True), tmp_path) == whole


def test_callbacks_are_called_for_all_epochs_again_and_may_stop_where_they_did(tmp_path, monkeypatch):
    heard = []

    def stop(record):
        heard.append(record)
        if len(heard) == 11:
            raise StopTraining

    model = CrispTreeClassifier.from_flat(**PLAIN, callbacks=[stop])
    at_once = saved(model.fit(*rows()), tmp_path)
    heard.clear()
    with monkeypatch.context() as patch:
        crash_after(patch, 10)
        with pytest.raises(Crash):
            model.fit(*rows(), checkpoint=tmp_path / "parts", checkpoint_every=0)
    heard.clear()
    assert saved(model.fit(*rows(), checkpoint=tmp_path / "parts", resume=True), tmp_path) == at_once
    assert heard == at_once[1]


def begun(folder, monkeypatch, **changes):
    model = CrispTreeClassifier.from_flat(**PLAIN | changes)
    with monkeypatch.context() as patch:
        crash_after(patch, 5)
        with pytest.raises(Crash):
            model.fit(*rows(), checkpoint=folder, checkpoint_every=0)
    return model


def test_a_checkpoint_of_another_fit_is_refused_and_what_differs_is_named(tmp_path, monkeypatch):
    model, (X, y) = begun(tmp_path, monkeypatch), rows()
    other = CrispTreeClassifier.from_flat(**PLAIN | {"learning_rate": 0.5, "random_state": 4})
    for data, one, words in [
        ((X + 1, y), model, "X"),
        ((X, 1 - y.clip(0, 1)), model, "classes, y"),
        ((X, y, np.arange(1, 91)), model, "sample_weight"),
        ((X, y), other, "learning_rate, random_state"),
    ]:
        with pytest.raises(CheckpointError, match=f"differs in {words}\\. Give fit what it had"):
            one.fit(*data, checkpoint=tmp_path, resume=True)
    monkeypatch.setattr("crisptree.pipeline.monitoring.version", lambda name: "0")
    with pytest.raises(CheckpointError, match="version of crisptree, version of torch"):
        model.fit(X, y, checkpoint=tmp_path, resume=True)


def test_a_checkpoint_records_the_device_that_auto_means_for_its_rows(tmp_path, monkeypatch):
    X, y = rows()
    given = {"checkpoint": tmp_path / "folder", "resume": True}
    on_cpu = CrispTreeClassifier.from_flat(**PLAIN, device="cpu").fit(X, y, **given)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)  # so few rows train on the CPU all the same
    again = CrispTreeClassifier.from_flat(**PLAIN, device="auto").fit(X, y, **given)
    assert np.array_equal(on_cpu.tree_.weight, again.tree_.weight)
    known = {name: value for name, value in again.get_params().items() if name != "device"}
    assert fingerprint({**known, "device": "auto"}, {"device": "cuda"}, 0)["device"] == "cuda"


def test_differences_to_a_checkpoint_are_listed_once():
    with pytest.raises(CheckpointError, match=r"differs in X, others\. Give"):
        _check_same({"X": "1", "image_shape of X": "2", "warm_start": "3"}, {"X": "0"}, "folder")


def test_a_fit_that_begins_leaves_an_earlier_checkpoint_alone(tmp_path, monkeypatch):
    model = begun(tmp_path, monkeypatch)
    with pytest.raises(CheckpointError, match=r"must hold no checkpoint.*resume=True"):
        model.fit(*rows(), checkpoint=tmp_path)
    with pytest.raises(ValueError, match="`resume` must come with `checkpoint`"):
        model.fit(*rows(), resume=True)
    with pytest.raises(ValueError, match="`checkpoint_every` must be seconds"):
        model.fit(*rows(), checkpoint=tmp_path, checkpoint_every=-1)


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of this kind")
def test_two_fits_do_not_share_a_folder(tmp_path):
    with checkpoints.CheckpointFolder(tmp_path).lock(), pytest.raises(CheckpointError, match="another process"):
        CrispTreeClassifier.from_flat(**PLAIN).fit(*rows(), checkpoint=tmp_path)


def test_a_full_disk_ends_the_fit_and_the_last_good_checkpoint_stays(tmp_path, monkeypatch):
    data, model = rows(), CrispTreeClassifier.from_flat(**PLAIN)
    at_once = saved(model.fit(*data), tmp_path)
    written, write = [], checkpoints.write

    def until_full(path, sections):
        written.append(path)
        if len(written) > 6:
            Path(path).with_name("half").write_bytes(b"half a file")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        write(path, sections)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "write", until_full)
        with pytest.raises(CheckpointError, match=r"have room.*No space left.*resume=True"):
            model.fit(*data, checkpoint=tmp_path / "parts", checkpoint_every=0)
    assert saved(model.fit(*data, checkpoint=tmp_path / "parts", resume=True), tmp_path) == at_once


def test_an_unusable_checkpoint_folder_is_reported(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(CheckpointError, match=r"must be writable.*file"):
        CrispTreeClassifier.from_flat(**PLAIN).fit(*rows(), checkpoint=tmp_path / "file" / "inside")


def test_a_damaged_checkpoint_is_reported_and_not_resumed(tmp_path, monkeypatch):
    model = begun(tmp_path, monkeypatch)
    working = tmp_path / "working.safetensors"
    page = model_file.read(working, {"page"}).section("page")

    def damaged(content=None, **arrays):
        changed = model_file.Section(page.content | (content or {}), page.arrays | arrays)
        model_file.write(working, {"page": changed})
        return pytest.raises(CheckpointError)

    weight = page.arrays["splits.weight"]
    for content, arrays in [
        (None, {"splits.weight": np.full_like(weight, np.nan)}),
        (None, {"splits.weight": weight[:, 1:]}),
        (None, {"generator.0": np.zeros_like(page.arrays["generator.0"])}),
        (None, {"ends.loss": np.zeros(1)}),
        ({"epochs": 77}, {}),
        ({"epochs": "2"}, {}),
        ({"name": "another"}, {}),
    ]:
        with damaged(content, **arrays):
            model.fit(*rows(), checkpoint=tmp_path, resume=True)
    working.write_bytes(working.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"cannot be read.*working.*Begin anew"):
        model.fit(*rows(), checkpoint=tmp_path, resume=True)


def killed(folder, noise, moments):
    """Fits in processes of their own, killed at these moments and resumed."""
    words = [sys.executable, "-m", "tests.estimators.killed_fits", str(folder), noise, *map(str, moments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are copies")
def test_a_fit_killed_while_it_writes_goes_on_to_the_same_tree(tmp_path):
    """SIGKILL at writings: before the data are on the disk, and between them and their new name."""
    assert "2 kills, the same tree" in killed(tmp_path, "0", ["fsync:4", "replace:5"])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are copies")
def test_a_fit_killed_at_twenty_random_moments_goes_on_to_the_same_tree(tmp_path):
    moments = np.random.default_rng().uniform(0.02, 1.0, 20).round(3)
    assert "20 kills, the same tree" in killed(tmp_path, "auto", moments.tolist()), moments


def test_a_deep_tree_whose_batches_go_in_pieces_goes_on_to_the_same_bits(tmp_path):
    """How large a piece is hangs on the rows before it, which a resumed fit has not seen."""

    def crash(record):
        if record.epoch == 2:
            raise Crash

    deep = PLAIN | {"grow": "balanced", "max_depth": 11, "finetune_epochs": 3, "min_updates": 0, "batch_size": 300}
    data, folder = rows(300), tmp_path / "folder"
    with pytest.raises(Crash):
        CrispTreeClassifier.from_flat(**deep, callbacks=[crash]).fit(*data, checkpoint=folder, checkpoint_every=0)
    resumed = CrispTreeClassifier.from_flat(**deep).fit(*data, checkpoint=folder, resume=True)
    assert saved(resumed, tmp_path) == saved(CrispTreeClassifier.from_flat(**deep).fit(*data), tmp_path)


@pytest.mark.gpu
def test_a_fit_on_cuda_goes_on_to_the_same_tree(tmp_path, monkeypatch):
    model = CrispTreeClassifier.from_flat(**PLAIN | {"device": "cuda"})
    at_once = saved(model.fit(*rows()), tmp_path)
    assert saved(interrupted(model, rows(), tmp_path / "parts", monkeypatch, [4, 5]), tmp_path) == at_once


@pytest.mark.gpu
def test_modules_on_cuda_go_on_to_the_same_losses_up_to_rounding(tmp_path, monkeypatch):
    """Torch adds up some sums there in the order of threads: even two whole fits differ in the last digits."""
    model = CrispTreeClassifier.from_flat(**PLAIN | {"device": "cuda", "split": dropout, "max_depth": 2})
    losses = [epoch.loss for epoch in model.fit(*rows()).history_]
    resumed = interrupted(model, rows(), tmp_path, monkeypatch, [4, 5])
    assert [epoch.loss for epoch in resumed.history_] == pytest.approx(losses, rel=1e-5)
