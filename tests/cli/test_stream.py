"""``crisptree fit --stream``: encoded rows stay on disk and train in batches."""

import json

import numpy as np
import pytest

import crisptree
from crisptree import CrispTreeClassifier, CrispTreeRegressor
from crisptree.cli import spool
from crisptree.encoding.preprocessing import RowEncoder
from crisptree.encoding.table_files import open_table
from crisptree.streams import Batches
from tests.cli.running import QUICK, done, run


def fitted(shop, model, *more):
    return done("fit", shop.csv, "-t", "buys", "--drop", "id", "-o", model, *QUICK, *more)


def test_the_streamed_model_is_that_of_batches_of_the_encoded_rows(shop, tmp_path):
    fitted(shop, tmp_path / "m.crisp", "--stream")
    model = crisptree.load(tmp_path / "m.crisp")
    X = RowEncoder(model.encoder_.preprocessing_, open_table(shop.csv)).encode_all()
    parameters = {"max_depth": 2, "epochs": 2, "finetune_epochs": 2, "l1": 0.0, "input_noise": 0.0, "shrinkage": 0.0}
    twin = CrispTreeClassifier(**parameters, algorithm="em", random_state=0)
    twin.fit(Batches.from_arrays(X, np.array(shop.table["buys"].to_pylist())))
    assert np.array_equal(twin.tree_.weight, model.tree_.weight)
    assert np.array_equal(twin.tree_.leaves, model.tree_.leaves)
    assert model.feature_names_in_.tolist() == ["id", "age", "income", "color", "member"]


def test_rows_held_out_are_scored_from_disk_and_a_refit_takes_all(shop, tmp_path):
    answer = fitted(shop, tmp_path / "m.crisp", "--stream", "--holdout", "0.25", "--refit")
    assert "without the 40 rows held out" in answer.said
    assert "then trained on all 160 rows" in answer.said


def test_rows_go_to_disk_by_themselves_where_memory_is_short(shop, tmp_path, monkeypatch):
    monkeypatch.setattr(spool, "usable_memory", lambda: 1000.0)
    assert "they stay on disk and train in batches (--stream)" in fitted(shop, tmp_path / "a.crisp").notes
    assert "on disk" not in fitted(shop, tmp_path / "b.crisp", "--no-stream").notes
    assert (tmp_path / "a.crisp").read_bytes() != (tmp_path / "b.crisp").read_bytes()


def test_nothing_is_left_behind(shop, tmp_path, monkeypatch):
    monkeypatch.setattr(spool.tempfile, "tempdir", str(tmp_path))
    fitted(shop, tmp_path / "m.crisp", "--stream", "--holdout", "0.25")
    assert [path.name for path in tmp_path.iterdir()] == ["m.crisp"]


@pytest.mark.parametrize("flag", ["--trees 3", "--paper", "--validation other.csv", "--image-shape 2x4"])
def test_what_batches_cannot_do_is_refused_by_its_flag(flag, shop, tmp_path):
    answer = run("fit", shop.csv, "-t", "buys", "-o", tmp_path / "m.crisp", "--stream", *flag.split())
    assert answer.code == 2
    assert f"leave {flag.split()[0]} away" in answer.said


def test_numbers_train_from_disk_too(shop, tmp_path):
    flags = [*QUICK, "--stream", "--holdout", "0.25", "--refit"]
    answer = done("fit", shop.csv, "-t", "income", "--drop", "id", "-o", tmp_path / "m.crisp", *flags)
    assert "then trained on all 160 rows" in answer.said
    model = crisptree.load(tmp_path / "m.crisp")
    assert isinstance(model, CrispTreeRegressor)
    assert model.n_outputs_ == 1


def test_a_full_disk_is_told(shop, tmp_path, monkeypatch):
    def full(self, file):
        raise OSError(28, "No space left on device")

    held = np.zeros(1, dtype=bool)
    kind = type("Block", (), {"__len__": lambda self: 1, "__getitem__": lambda self, key: self, "tofile": full})
    with pytest.raises(crisptree.encoding.errors.TableError, match="TMPDIR"):
        spool.Spool(tmp_path, always=True).written([kind()], held, 1)


def test_what_cannot_train_in_batches_stays_in_memory_by_itself(shop, tmp_path, monkeypatch):
    monkeypatch.setattr(spool, "usable_memory", lambda: 1000.0)
    assert "on disk" not in fitted(shop, tmp_path / "m.crisp", "--early-stopping").notes


def test_a_class_without_weight_does_not_change_what_is_right(shop, tmp_path):
    known = fitted(shop, tmp_path / "m.crisp", "--class-weight", "no=0", "--json")
    accuracy = json.loads(known.raw)["accuracy"]["training"]["hard"]
    share = np.mean(np.array(shop.table["buys"].to_pylist()) != "no")
    assert accuracy == pytest.approx(share), "the model knows the other class only"
