"""The experiment with CNN splits on a handful of images."""

import numpy as np
import pytest
from experiments.store import store_of

from crisptree.datasets import Dataset
from experiments import cnn


@pytest.fixture
def few(monkeypatch):
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = (random.random((60, 784)) * 50 + 60 * (y[:, None] == np.arange(784) // 262)).astype(np.uint8)
    parts = dict(zip(("train", "valid", "test"), ((0, 30), (30, 40), (40, 60)), strict=True))
    fields = {f"{kind}_{name}": values[a:b] for name, (a, b) in parts.items() for kind, values in (("X", X), ("y", y))}
    monkeypatch.setattr(cnn, "load_mnist", lambda: Dataset(**fields, class_names=("0", "1", "2"), image_shape=(28, 28)))
    quick = {"epochs": 1, "finetune_epochs": 1}
    rows = {name: (title, {**settings, **quick}, copies) for name, (title, settings, copies) in cnn.ROWS.items()}
    monkeypatch.setattr(cnn, "ROWS", rows)


def test_every_row_becomes_a_record_and_a_line_of_the_page_and_none_runs_twice(few, tmp_path, monkeypatch):
    arguments = ["cnn", "--seeds", "0", "--device", "cpu", "--results", str(tmp_path / "cnn"), "--commit", "none"]
    monkeypatch.setattr("sys.argv", arguments)
    cnn.main()
    assert [file.name for file in (tmp_path / "cnn").iterdir()] == ["mnist.jsonl"]
    records = store_of("cnn", tmp_path / "cnn", "mnist").records()
    assert [(record["row"], record["seed"]) for record in records] == [(row, 0) for row in sorted(cnn.ROWS)]
    assert records[1]["parameters"]["learning_rate"] == 0.001
    page = (tmp_path / "cnn.md").read_text()
    assert "| — |" not in page
    assert "one-vs-one 45" in page
    assert "| `split` | 'conv' | 'conv' | 'with_dropout' |" in page
    assert "`max_leaf_nodes=10`" in page
    monkeypatch.setattr(cnn, "run", None)
    cnn.main()


def test_a_dry_run_lists_what_is_missing_and_guesses_from_records_of_the_same_row(tmp_path, monkeypatch, capsys):
    made = {"row": "paper", "seed": 0, "seconds": 90.0}
    store_of("cnn", tmp_path / "cnn", "mnist").put(made)
    arguments = ["cnn", "--rows", "paper,protocol", "--seeds", "0,1", "--results", str(tmp_path / "cnn"), "--dry-run"]
    monkeypatch.setattr("sys.argv", arguments)
    cnn.main()
    said = capsys.readouterr().out
    assert "3 records to make (protocol, seed 0; paper, seed 1; protocol, seed 1)" in said
    assert "about 90 s on the machines of the records" in said
    assert "no record to guess the time from: protocol" in said


def test_a_row_that_has_not_run_is_shown_as_missing(tmp_path):
    assert cnn.page(tmp_path).count("| — | — |") >= len(cnn.ROWS)


def test_copies_stand_after_the_images_and_differ_from_them():
    images = np.random.default_rng(0).random((4, 28, 28)).astype(np.float32)
    copies = cnn.with_copies(images, 0)
    assert copies.shape == (4 * cnn.COPIES, 28, 28)
    np.testing.assert_array_equal(copies[:4], images)
    assert not np.allclose(copies[4:8], images)
