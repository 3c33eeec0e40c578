"""Training tables: process groups, disk cache, checkpoints."""

import json
import os

import numpy as np
import pytest

import crisptree
from crisptree import CrispTreeClassifier, CrispTreeRegressor
from crisptree.cli import training
from crisptree.data.batches import Batches
from crisptree.encoding.table_encoder import RowEncoder
from crisptree.encoding.table_files import open_table
from crisptree.persistence.checkpoints import CheckpointStore
from tests.cli.running import QUICK, done, run
from tests.cli.test_fit import small

BATCHED = ("--algorithm", "likelihood")


def fitted(shop, model, *more):
    return done("fit", shop.csv, "-t", "buys", "--drop", "id", "-o", model, *QUICK, *BATCHED, *more)


def test_the_streamed_model_is_that_of_batches_of_the_encoded_rows(shop, tmp_path):
    fitted(shop, tmp_path / "m.crisp", "--stream")
    model = crisptree.load(tmp_path / "m.crisp")
    X = RowEncoder(model.encoder_.preprocessing_, open_table(shop.csv)).encode_all()
    parameters = {"max_depth": 2, "epochs": 2, "finetune_epochs": 2, "l1": 0.0, "input_noise": 0.0, "shrinkage": 0.0}
    twin = CrispTreeClassifier.from_flat(**parameters, random_state=0)
    twin.fit(Batches.from_arrays(X, np.array(shop.table["buys"].to_pylist())))
    assert np.array_equal(twin.tree_.weight, model.tree_.weight)
    assert np.array_equal(twin.tree_.leaves, model.tree_.leaves)
    assert model.feature_names_in_.tolist() == ["id", "age", "income", "color", "member"]


def test_rows_held_out_are_scored_from_disk_and_a_refit_takes_all(shop, tmp_path):
    result = fitted(shop, tmp_path / "m.crisp", "--stream", "--holdout", "0.25", "--refit")
    assert "without the 40 held-out rows" in result.text
    assert "then trained on all 160 rows" in result.text


def test_rows_go_to_disk_if_memory_is_short(shop, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "usable_memory", lambda: 1000.0)
    assert "they stay on disk and train in batches (--stream)" in fitted(shop, tmp_path / "a.crisp").stderr
    assert "on disk" not in fitted(shop, tmp_path / "b.crisp", "--no-stream").stderr
    assert (tmp_path / "a.crisp").read_bytes() != (tmp_path / "b.crisp").read_bytes()


def test_nothing_is_left_behind(shop, tmp_path, monkeypatch):
    monkeypatch.setattr(training.tempfile, "tempdir", str(tmp_path))
    fitted(shop, tmp_path / "m.crisp", "--stream", "--holdout", "0.25")
    assert [path.name for path in tmp_path.iterdir()] == ["m.crisp"]


@pytest.mark.parametrize("flag", ["--trees 3", "--paper", "--validation other.csv", "--image-shape 2x4"])
def test_what_batches_cannot_do_is_refused_by_its_flag(flag, shop, tmp_path):
    result = run("fit", shop.csv, "-t", "buys", "-o", tmp_path / "m.crisp", "--stream", *flag.split())
    assert result.exit_code == 2
    assert f"leave out {flag.split()[0]}" in result.text


def test_regression_trains_from_disk(shop, tmp_path):
    flags = [*QUICK, *BATCHED, "--stream", "--holdout", "0.25", "--refit"]
    result = done("fit", shop.csv, "-t", "income", "--drop", "id", "-o", tmp_path / "m.crisp", *flags)
    assert "then trained on all 160 rows" in result.text
    model = crisptree.load(tmp_path / "m.crisp")
    assert isinstance(model, CrispTreeRegressor)
    assert model.n_outputs_ == 1


def test_a_full_disk_is_an_error_that_names_tmpdir(shop, tmp_path, monkeypatch):
    def full(self, file):
        raise OSError(28, "No space left on device")

    held = np.zeros(1, dtype=bool)
    kind = type("Block", (), {"__len__": lambda self: 1, "__getitem__": lambda self, key: self, "tofile": full})
    with pytest.raises(crisptree.exceptions.TableError, match="TMPDIR"):
        training.DiskCache(tmp_path, always=True, can_stream=lambda: True).write([kind()], [~held, held], 1)


def test_what_cannot_train_in_batches_stays_in_memory_by_itself(shop, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "usable_memory", lambda: 1000.0)
    assert "on disk" not in fitted(shop, tmp_path / "m.crisp", "--early-stopping").stderr


def test_a_class_without_weight_does_not_change_what_is_right(shop, tmp_path):
    known = fitted(shop, tmp_path / "m.crisp", "--class-weight", "no=0", "--json")
    accuracy = json.loads(known.stdout)["accuracy"]["training"]["hard"]
    share = np.mean(np.array(shop.table["buys"].to_pylist()) != "no")
    assert accuracy == pytest.approx(share), "the model knows the other class only"


def test_a_process_group_is_refused(shop, tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    result = run("fit", shop.csv, "-t", "buys", "-o", tmp_path / "m.crisp")
    assert result.exit_code == 2
    assert "several processes train a tree from Python" in result.text


class Crash(BaseException):
    pass


def test_a_crashed_training_resumes_to_the_same_file(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    table, keep = small(tmp_path / "t.csv", n=60), CheckpointStore.keep
    words = ("fit", table, "-t", "y", *QUICK, "--holdout", "0.2", "--refit")
    done(*words, "-o", tmp_path / "at-once.crisp")
    words = (*words, "-o", tmp_path / "parts.crisp", "--checkpoint", tmp_path / "parts", "--checkpoint-every", "0")
    kept = []

    def crash(self, *arguments, **more):
        keep(self, *arguments, **more)
        kept.append(arguments)
        if len(kept) == 9:
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "keep", crash)
        with pytest.raises(Crash):
            run(*words)
    assert (tmp_path / "parts" / "refit").is_dir()  # the second training was at work
    assert "continue it with --resume" in run(*words).text.lower()
    done(*words, "--resume")
    assert (tmp_path / "parts.crisp").read_bytes() == (tmp_path / "at-once.crisp").read_bytes()


def test_resume_needs_a_checkpoint_folder(tmp_path):
    result = run("fit", small(tmp_path / "t.csv"), "-t", "y", "-o", tmp_path / "m.crisp", "--resume")
    assert result.exit_code == 2
    assert "--checkpoint" in result.text
