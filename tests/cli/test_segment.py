"""Segmentation and regression of pixels."""

import json

import numpy as np
import pytest

import crisptree
from crisptree import TrainingOptions
from crisptree.datasets.files import read_images, write_png, write_tif
from tests.cli.running import done, run

QUICK = ("--window", "3", "--depth", "2", "--epochs", "3", "--finetune-epochs", "3")


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    """Images whose bright pixels are labelled 200, the others 7, and a model of them."""
    folder = tmp_path_factory.mktemp("scäns 1")
    rng = np.random.default_rng(0)
    for kind in ("images", "labels"):
        (folder / kind).mkdir()
    for number in range(3):
        image = rng.integers(0, 256, (20 + number, 24), dtype=np.uint8)
        write_png(folder / "images" / f"s{number}.png", image)
        write_png(folder / "labels" / f"s{number}.png", np.where(image > 127, 200, 7).astype(np.uint8))
    result = done(
        "segment",
        "fit",
        folder / "images",
        folder / "labels",
        "-o",
        folder / "m.crisp",
        *QUICK,
        "--holdout",
        1,
        "--json",
    )
    folder.joinpath("said.json").write_text(result.stdout)
    return folder


def test_the_model_is_that_of_the_python_interface(scans):
    said = json.loads((scans / "said.json").read_text())
    assert said["images"] == 2
    assert said["classes"] == [7, 200]
    assert said["pixel_accuracy"]["held out"] > 0.9
    images = [picture.array for picture in read_images(scans / "images")]
    labels = [picture.array for picture in read_images(scans / "labels", labels=True)]
    twin = crisptree.CrispSegmenter(
        window=3, max_depth=2, training=TrainingOptions(epochs=3, finetune_epochs=3), random_state=0
    )
    twin.fit(images[:2], labels[:2])
    assert np.array_equal(twin.tree_.weight, crisptree.load(scans / "m.crisp").tree_.weight)


def test_labels_probabilities_and_leaves_are_written_under_the_names_of_the_images(scans, tmp_path):
    out = tmp_path / "new" / "out"
    result = done("segment", "predict", scans / "m.crisp", scans / "images", "-o", out, "--proba", "--leaf", "--json")
    said = json.loads(result.stdout)
    assert sorted(said["files"]) == sorted(path.name for path in out.iterdir())
    assert said["values"] == {"7": 7, "200": 200}
    model = crisptree.load(scans / "m.crisp")
    for picture in read_images(scans / "images"):
        found = read_images(out / f"{picture.name}.png", labels=True)[0].array
        assert np.array_equal(found, model.predict(picture.array))
        tables = np.load(out / f"{picture.name}.proba.npy")
        assert np.array_equal(tables, model.predict_proba(picture.array).astype(np.float32))
        grey = read_images(out / f"{picture.name}.leaf.png")[0].array
        assert np.array_equal(grey, np.round(255 * model.leaf_image(picture.array)))


def test_labels_that_are_there_are_kept_without_force(scans, tmp_path):
    (tmp_path / "s1.png").write_text("precious")
    command = ("segment", "predict", scans / "m.crisp", scans / "images", "-o", tmp_path)
    result = run(*command)
    assert result.exit_code == 1
    assert result.stderr == f"error: {tmp_path / 's1.png'} already exists and is kept. Use --force to replace it.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["s1.png"]
    done(*command, "--force")
    assert (tmp_path / "s1.png").read_bytes().startswith(b"\x89PNG")


def test_unequal_numbers_and_sizes_are_refused(scans, tmp_path):
    labels = tmp_path / "labels"
    labels.mkdir()
    write_png(labels / "a.png", np.zeros((20, 24), dtype=np.uint8))
    result = run("segment", "fit", scans / "images", labels, "-o", tmp_path / "m.crisp")
    assert result.exit_code == 1
    assert "there must be as many labels as images" in result.stderr
    assert "holds 3 images and" in result.stderr
    for name in "bc":
        write_png(labels / f"{name}.png", np.zeros((20, 24), dtype=np.uint8))
    result = run("segment", "fit", scans / "images", labels, "-o", tmp_path / "m.crisp")
    assert "image s1 is 21 × 24, labels b are 20 × 24" in result.stderr


def test_files_of_the_other_kind_of_model_are_refused(scans, shop, tmp_path):
    result = run("segment", "predict", shop.model, scans / "images", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "must hold a segmenter or a pixel regressor; it holds a CrispTreeClassifier" in result.stderr
    assert not (tmp_path / "out").exists()
    result = run("predict", scans / "m.crisp", shop.csv)
    assert result.exit_code == 1
    assert "must hold a model of rows; it holds a CrispSegmenter" in result.stderr


def test_images_of_other_channels_are_refused_and_not_taken_for_a_stack(scans, tmp_path):
    write_png(tmp_path / "color.png", np.zeros((20, 24, 3), dtype=np.uint8))
    result = run("segment", "predict", scans / "m.crisp", tmp_path / "color.png", "-o", tmp_path / "out")
    assert result.exit_code == 1
    assert "images must have no axis for channels, as in training; got 3" in result.stderr
    assert not list((tmp_path / "out").iterdir())


def test_a_segmenter_is_inspected(scans):
    said = json.loads(done("inspect", scans / "m.crisp", "--json").stdout)
    assert said["kind"] == "CrispSegmenter"
    assert said["features"] == 9
    assert "windows of 3 × 3" in done("inspect", scans / "m.crisp").text


def test_images_are_normalised_one_by_one_on_demand(scans, tmp_path):
    made = tmp_path / "m.crisp"
    done("segment", "fit", scans / "images", scans / "labels", "-o", made, *QUICK, "--normalise")
    assert crisptree.load(made).normalise_images
    assert not crisptree.load(scans / "m.crisp").normalise_images


def test_the_papers_settings_can_be_changed_by_other_options(scans, tmp_path):
    fit = ("segment", "fit", scans / "images", scans / "labels", "-o", tmp_path / "m.crisp", "--paper")
    done(*fit, "--window", "3", "--depth", "2", "--epochs", "3")
    model = crisptree.load(tmp_path / "m.crisp")
    assert (model.window, model.max_depth, model.pixels_per_epoch) == (3, 2, None)
    assert (model.training.algorithm, model.training.epochs, model.training.finetune_epochs) == ("em", 3, 0)


def test_wrong_use_is_reported(scans, tmp_path):
    fit = ("segment", "fit", scans / "images", scans / "labels", "-o", tmp_path / "m.crisp")
    assert run(*fit, "--scales", "a").exit_code == 2
    everything = (*fit, "--holdout", "3")
    assert "--holdout must leave at least one image" in run(*everything).stderr
    (tmp_path / "file").write_text("")
    result = run("segment", "predict", scans / "m.crisp", scans / "images", "-o", tmp_path / "file")
    assert "must be a folder; it is a file" in result.stderr


def test_a_pixel_is_explained(scans, tmp_path):
    made = tmp_path / "m.crisp"
    done("segment", "fit", scans / "images", scans / "labels", "-o", made, *QUICK, "--normalise")
    model, picture = crisptree.load(made), read_images(scans / "images")[1]
    explain = ("segment", "explain", made, "--row", 5, "--column", 17)
    said = json.loads(done(*explain, scans / "images" / "s1.png", "--json").stdout)
    assert said["leaf"] == model.leaf_indices(picture.array)[5, 17]
    assert said["predicted"] == model.predict(picture.array)[5, 17]
    assert json.loads(done(*explain, scans / "images", "--image", "s1", "--json").stdout)["steps"] == said["steps"]
    assert f"leaf {said['leaf']}: {said['predicted']}" in done(*explain, scans / "images" / "s1.png").text
    assert "holds 3. Name one of them with --image." in run(*explain, scans / "images").text
    assert "--image must be one of 's0', 's1', 's2'; got 's9'" in run(*explain, scans / "images", "--image", "s9").text


@pytest.mark.parametrize("command", ["fit", "predict", "explain"])
def test_all_commands_have_examples(command):
    assert f"crisptree segment {command} " in done("segment", command, "--help").text.split("Example")[1]


def test_the_tree_of_a_segmenter_is_inspected_and_drawn(scans, tmp_path):
    said = done("inspect", scans / "m.crisp").stdout
    assert "windows of 3 × 3" in said
    assert "Images must have no axis for channels." in said
    assert "rows must be numbers" not in said
    for kind in ("tree", "weights"):
        done("plot", scans / "m.crisp", "--kind", kind, "-o", tmp_path / f"{kind}.svg")
        assert (tmp_path / f"{kind}.svg").stat().st_size > 1000


SERIAL = ("--window", "3", "--depth", "2", "--epochs", "3", "--finetune-epochs", "3", "--jobs", "1")


@pytest.fixture(scope="module")
def noisy(tmp_path_factory):
    """Grey images, their halves as numbers with fractions, and a model of these."""
    folder = tmp_path_factory.mktemp("scäns 2")
    rng = np.random.default_rng(0)
    for kind in ("images", "halves"):
        (folder / kind).mkdir()
    for number in range(3):
        image = rng.integers(0, 256, (20 + number, 24), dtype=np.uint8)
        write_png(folder / "images" / f"s{number}.png", image)
        write_tif(folder / "halves" / f"s{number}.tif", np.where(image == 7, np.nan, image / 2))
    fit = (
        "segment",
        "fit",
        folder / "images",
        folder / "halves",
        "-o",
        folder / "m.crisp",
        *SERIAL,
        "--holdout",
        1,
    )
    result = done(*fit, "--json")
    folder.joinpath("said.json").write_text(result.stdout)
    folder.joinpath("notes.txt").write_text(result.stderr)
    return folder


def test_labels_with_fractions_are_a_regression_and_noted(noisy):
    assert (
        "holds numbers with fractions, so this is a regression (--task regression)" in (noisy / "notes.txt").read_text()
    )
    said = json.loads((noisy / "said.json").read_text())
    assert (said["task"], said["outputs"], said["images"]) == ("regression", 1, 2)
    assert said["r2"]["held out"] > 0.8
    images = [picture.array for picture in read_images(noisy / "images")]
    halves = [picture.array for picture in read_images(noisy / "halves", labels=True, floats=True)]
    twin = crisptree.CrispPixelRegressor(
        window=3, max_depth=2, training=TrainingOptions(epochs=3, finetune_epochs=3), n_jobs=1, random_state=0
    )
    twin.fit(images[:2], halves[:2])
    assert np.array_equal(twin.tree_.weight, crisptree.load(noisy / "m.crisp").tree_.weight)


def test_values_deviations_and_leaves_are_written_under_the_names_of_the_images(noisy, tmp_path):
    command = ("segment", "predict", noisy / "m.crisp", noisy / "images", "-o", tmp_path / "out")
    said = json.loads(done(*command, "--std", "--leaf", "--json").stdout)
    assert sorted(said["files"]) == sorted(path.name for path in (tmp_path / "out").iterdir())
    model = crisptree.load(noisy / "m.crisp")
    for picture in read_images(noisy / "images"):
        for ending, expected in ((".tif", model.predict), (".std.tif", model.predict_std)):
            found = read_images(tmp_path / "out" / f"{picture.name}{ending}")[0].array
            assert np.array_equal(found, expected(picture.array).astype(np.float32))


def test_whole_numbers_are_classes_by_default(noisy, tmp_path):
    images = noisy / "images"
    result = done("segment", "fit", images, images, "-o", tmp_path / "c.crisp", *SERIAL[:2], "--depth", "1")
    assert "different values, each of them a class. If they are quantities, use --task regression." in result.stderr
    done("segment", "fit", images, images, "-o", tmp_path / "n.crisp", *SERIAL, "--task", "regression")
    assert isinstance(crisptree.load(tmp_path / "n.crisp"), crisptree.CrispPixelRegressor)
    ignore = ("--task", "regression", "--ignore-label", "0")
    done("segment", "fit", images, images, "-o", tmp_path / "i.crisp", *SERIAL, *ignore)
    assert crisptree.load(tmp_path / "i.crisp").ignore_value == 0
    result = run(
        "segment",
        "fit",
        images,
        noisy / "halves",
        "-o",
        tmp_path / "x.crisp",
        *SERIAL,
        "--task",
        "classification",
    )
    assert "must have one whole number per pixel, its class" in result.stderr


def test_colours_are_three_numbers(tmp_path):
    image = np.random.default_rng(0).integers(0, 256, (20, 24, 3), dtype=np.uint8)
    write_png(tmp_path / "a.png", image)
    fit = ("segment", "fit", tmp_path / "a.png", tmp_path / "a.png", "-o", tmp_path / "m.crisp")
    assert json.loads(done(*fit, *SERIAL, "--task", "regression", "--json").stdout)["outputs"] == 3
    done("segment", "predict", tmp_path / "m.crisp", tmp_path / "a.png", "--std", "-o", tmp_path / "out")
    model = crisptree.load(tmp_path / "m.crisp")
    assert np.array_equal(np.load(tmp_path / "out" / "a.npy"), model.predict(image).astype(np.float32))
    assert np.load(tmp_path / "out" / "a.std.npy").shape == image.shape


def test_options_for_classes_or_rows_name_their_scope(noisy, shop, tmp_path):
    fit = (
        "segment",
        "fit",
        noisy / "images",
        noisy / "halves",
        "-o",
        tmp_path / "m.crisp",
        *SERIAL,
    )
    assert "--balanced is for classification" in run(*fit, "--balanced").stderr
    predict = ("segment", "predict", noisy / "m.crisp", noisy / "images", "-o", tmp_path / "out")
    assert "--proba is for classification; the model is a regression" in run(*predict, "--proba").stderr
    result = run("predict", noisy / "m.crisp", shop.csv)
    assert "must hold a model of rows; it holds a CrispPixelRegressor. Use crisptree segment" in result.stderr


def test_it_is_inspected_and_drawn(noisy, tmp_path):
    said = json.loads(done("inspect", noisy / "m.crisp", "--json").stdout)
    assert (said["kind"], said["outputs"], said["stages"]) == ("CrispPixelRegressor", 1, 1)
    text = done("inspect", noisy / "m.crisp").text
    assert "windows of 3 × 3" in text
    assert "in training" in text
    done("plot", noisy / "m.crisp", "-o", tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").stat().st_size > 1000
