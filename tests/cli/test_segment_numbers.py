"""``crisptree segment`` with numbers in the place of classes."""

import json

import numpy as np
import pytest

import crisptree
from crisptree.datasets.image_files import read_images, write_png, write_tif
from tests.cli.running import done, run

QUICK = ("--window", "3", "--depth", "2", "--epochs", "3", "--finetune-epochs", "3", "--jobs", "1")


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    """Grey images, their halves as numbers with fractions, and a model of these."""
    folder = tmp_path_factory.mktemp("scäns 2")
    rng = np.random.default_rng(0)
    for kind in ("images", "halves"):
        (folder / kind).mkdir()
    for number in range(3):
        image = rng.integers(0, 256, (20 + number, 24), dtype=np.uint8)
        write_png(folder / "images" / f"s{number}.png", image)
        write_tif(folder / "halves" / f"s{number}.tif", np.where(image == 7, np.nan, image / 2))
    fit = ("segment", "fit", folder / "images", folder / "halves", "-o", folder / "m.crisp", *QUICK, "--holdout", 1)
    answer = done(*fit, "--json")
    folder.joinpath("said.json").write_text(answer.raw)
    folder.joinpath("notes.txt").write_text(answer.notes)
    return folder


def test_fractions_are_recognised_as_numbers_and_that_is_said(scans):
    assert (
        "holds numbers with fractions, so this is a regression (--task regression)" in (scans / "notes.txt").read_text()
    )
    said = json.loads((scans / "said.json").read_text())
    assert (said["task"], said["outputs"], said["images"]) == ("regression", 1, 2)
    assert said["r2"]["held out"] > 0.8
    images = [picture.array for picture in read_images(scans / "images")]
    halves = [picture.array for picture in read_images(scans / "halves", labels=True, floats=True)]
    twin = crisptree.CrispPixelRegressor(window=3, max_depth=2, epochs=3, finetune_epochs=3, n_jobs=1, random_state=0)
    twin.fit(images[:2], halves[:2])
    assert np.array_equal(twin.tree_.weight, crisptree.load(scans / "m.crisp").tree_.weight)


def test_numbers_spreads_and_leaves_are_written_under_the_names_of_the_images(scans, tmp_path):
    command = ("segment", "predict", scans / "m.crisp", scans / "images", "-o", tmp_path / "out")
    said = json.loads(done(*command, "--std", "--leaf", "--json").raw)
    assert sorted(said["files"]) == sorted(path.name for path in (tmp_path / "out").iterdir())
    model = crisptree.load(scans / "m.crisp")
    for picture in read_images(scans / "images"):
        for ending, expected in ((".tif", model.predict), (".std.tif", model.predict_std)):
            found = read_images(tmp_path / "out" / f"{picture.name}{ending}")[0].array
            assert np.array_equal(found, expected(picture.array).astype(np.float32))


def test_whole_numbers_are_classes_until_the_user_says_otherwise(scans, tmp_path):
    images = scans / "images"
    answer = done("segment", "fit", images, images, "-o", tmp_path / "c.crisp", *QUICK[:2], "--depth", "1")
    assert "different values, each of them a class. If they are quantities, use --task regression." in answer.notes
    done("segment", "fit", images, images, "-o", tmp_path / "n.crisp", *QUICK, "--task", "regression")
    assert isinstance(crisptree.load(tmp_path / "n.crisp"), crisptree.CrispPixelRegressor)
    ignore = ("--task", "regression", "--ignore-label", "0")
    done("segment", "fit", images, images, "-o", tmp_path / "i.crisp", *QUICK, *ignore)
    assert crisptree.load(tmp_path / "i.crisp").ignore_value == 0
    answer = run(
        "segment", "fit", images, scans / "halves", "-o", tmp_path / "x.crisp", *QUICK, "--task", "classification"
    )
    assert "must have one whole number per pixel, its class" in answer.notes


def test_colours_are_three_numbers(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (20, 24, 3), dtype=np.uint8)
    write_png(tmp_path / "a.png", image)
    fit = ("segment", "fit", tmp_path / "a.png", tmp_path / "a.png", "-o", tmp_path / "m.crisp")
    assert json.loads(done(*fit, *QUICK, "--task", "regression", "--json").raw)["outputs"] == 3
    done("segment", "predict", tmp_path / "m.crisp", tmp_path / "a.png", "--std", "-o", tmp_path / "out")
    model = crisptree.load(tmp_path / "m.crisp")
    assert np.array_equal(np.load(tmp_path / "out" / "a.npy"), model.predict(image).astype(np.float32))
    assert np.load(tmp_path / "out" / "a.std.npy").shape == image.shape


def test_what_is_for_classes_and_what_is_for_rows_says_so(scans, shop, tmp_path):
    fit = ("segment", "fit", scans / "images", scans / "halves", "-o", tmp_path / "m.crisp", *QUICK)
    assert "--balanced is for classification" in run(*fit, "--balanced").notes
    predict = ("segment", "predict", scans / "m.crisp", scans / "images", "-o", tmp_path / "out")
    assert "--proba is for classification; the model is a regression" in run(*predict, "--proba").notes
    answer = run("predict", scans / "m.crisp", shop.csv)
    assert "must hold a model of rows; it holds a CrispPixelRegressor. Use crisptree segment" in answer.notes


def test_it_is_inspected_and_drawn(scans, tmp_path):
    said = json.loads(done("inspect", scans / "m.crisp", "--json").raw)
    assert (said["kind"], said["outputs"], said["stages"]) == ("CrispPixelRegressor", 1, 1)
    text = done("inspect", scans / "m.crisp").said
    assert "windows of 3 × 3" in text
    assert "in training" in text
    done("plot", scans / "m.crisp", "-o", tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").stat().st_size > 1000
