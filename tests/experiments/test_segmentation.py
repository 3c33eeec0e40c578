"""The experiment with segmentation on a handful of small images."""

import numpy as np
import pytest
from experiments.store import store_of

from crisptree.datasets import Dataset
from experiments import segmentation


@pytest.fixture
def few(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    y = (rng.random((5, 30, 30)) > 0.3).astype(np.int64)
    y[:, ::7] = 0
    X = (100.0 * y + rng.normal(size=y.shape)).astype(np.float32)
    parts = {f"{k}_{n}": v[s] for n, s in (("train", slice(0, 2)), ("valid", slice(2, 4)), ("test", slice(4, 5)))
             for k, v in (("X", X), ("y", y))}  # fmt: skip
    data = Dataset(**parts, class_names=("membrane", "cell"), image_shape=(30, 30))
    monkeypatch.setattr(segmentation, "load_isbi", lambda: data)
    quick = {"window": 5, "max_depth": 2, "epochs": 2, "pixels_per_epoch": 300, "learning_rate": 0.02}
    rows = {name: config | quick for name, config in segmentation.ROWS.items() if name != "forest"}
    rows["forest"] = {"window": 5, "n_estimators": 3, "pixels": 200}
    monkeypatch.setattr(segmentation, "ROWS", rows)
    for name, path in {"FOLDER": "cells", "PAGE": "page.md", "KEPT": "kept", "IMAGES": "images"}.items():
        monkeypatch.setattr(segmentation, name, tmp_path / path)
    monkeypatch.setattr("sys.argv", ["segmentation", "--seeds", "0,1"])
    return tmp_path


@pytest.mark.slow
def test_every_row_and_seed_becomes_a_record_and_every_row_a_line_and_none_runs_twice(few, monkeypatch):
    segmentation.main()
    assert [path.name for path in (few / "cells").iterdir()] == ["isbi.jsonl"]
    store = store_of("segmentation", few / "cells", "isbi")
    found = [(record["row"], record["seed"]) for record in store.records()]
    assert found == [(row, seed) for row in sorted(segmentation.ROWS) for seed in (0, 1)]
    page = (few / "page.md").read_text()
    assert all(page.count(f": {what} | 2 |") == 2 for what in segmentation.WHAT.values())
    record = store.get("stacked", 1)
    assert (record["parameters"]["stages"], record["parameters"]["split"]) == (2, "oblique")
    assert record["test"]["pixel_accuracy"] > 0.9
    assert record["config"]["stages"] == 2
    assert (few / "images" / "segmentation-paper.png").stat().st_size > 1000
    monkeypatch.setattr(segmentation, "MODELS", {})
    segmentation.main()


def test_a_row_of_another_configuration_is_run_again_and_replaces_its_record(few, monkeypatch):
    monkeypatch.setattr("sys.argv", ["segmentation", "--which", "paper"])
    segmentation.main()
    changed = {"paper": segmentation.ROWS["paper"] | {"max_depth": 1}}
    monkeypatch.setattr(segmentation, "ROWS", segmentation.ROWS | changed)
    segmentation.main()
    (record,) = store_of("segmentation", few / "cells", "isbi").records()
    assert record["config"]["max_depth"] == 1


def test_the_papers_statements_are_tested_under_its_own_protocol(few):
    store = store_of("segmentation", few / "cells", "isbi")
    assert "cannot be tested" in segmentation.verdict(store)[2]
    store.put({"row": "paper_sample", "seed": 0, "test": {"same_leaf": 0.9, "membrane_errors": 0.4}})
    assert "cannot be tested" in segmentation.verdict(store)[2]
    for row, same in (("paper", 0.3), ("finetuned", 0.8)):
        store.put({"row": row, "seed": 0, "test": {"same_leaf": same, "membrane_errors": 0.4}})
    said = "\n".join(segmentation.verdict(store))
    assert "same leaf”: **refuted**, 0.3000 (0.8000) of them" in said
    assert "identified”: **confirmed**, 0.4000 (0.4000) of the membrane pixels are missed" in said
    assert "as membrane”: **open**" in said
    whole = {"same_leaf": 0.6, "membrane_errors": 0.7, "inside_errors": 0.1, "dark_inside_errors": 0.3}
    store.put(*({"row": "paper", "seed": seed, "test": whole} for seed in (0, 1)))
    said = "\n".join(segmentation.verdict(store))
    assert "same leaf”: **confirmed**, 0.6000 ± 0.0000 (0.8000) of them" in said
    assert "identified”: **refuted**" in said
    assert "as membrane”: **confirmed**" in said


def test_dark_pixels_inside_cells_are_far_from_membranes():
    truth = np.ones((1, 60, 60), dtype=int)
    truth[:, 0] = 0
    images = np.ones((1, 60, 60))
    images[:, 40:50, 20:40] = 0.0
    inside, dark = segmentation.inside_cells(images, truth)
    assert not inside[0, : segmentation.FAR].any()
    assert inside[0, segmentation.FAR :].all()
    assert dark[0, 45, 30]
    assert not (dark & ~inside).any()


def test_the_numbers_of_a_perfect_model_are_perfect():
    truth = np.ones((1, 8, 8), dtype=int)
    truth[:, 4] = 0

    class Perfect:
        def probability(self, images):
            return 1.0 - images

        def leaves(self, images):
            return images

    found = segmentation.measure(Perfect(), truth.astype(float), truth)
    assert (found["pixel_accuracy"], found["roc_auc"], found["f1"], found["iou_membrane"]) == (1, 1, 1, 1)
    assert found["adapted_rand_error"] == found["membrane_errors"] == 0
