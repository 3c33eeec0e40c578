"""The experiment with the spatial penalty on a handful of small images."""

import numpy as np
import pytest
from experiments.store import store_of

from crisptree.datasets import Dataset
from experiments import roughness
from tests.toys import plain_tree


@pytest.fixture
def few(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 36)).astype(np.float32)
    y = (X[:, 14] + X[:, 15] > X[:, 20] + X[:, 21]).astype(np.int64)
    parts = {"train": slice(0, 100), "valid": slice(100, 160), "test": slice(160, 240)}
    rows = {f"{name}_{part}": value[rows] for part, rows in parts.items() for name, value in (("X", X), ("y", y))}
    data = Dataset(**rows, class_names=("dark", "light"), image_shape=(6, 6))
    monkeypatch.setattr(roughness, "LOADERS", {"toy": lambda: data})
    quick = {"max_depth": 3, "epochs": 3, "finetune_epochs": 3, "learning_rate": 0.05, "batch_size": 50}
    monkeypatch.setattr(roughness, "SETTINGS", quick)
    monkeypatch.setattr(roughness, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(roughness, "IMAGES", tmp_path)
    results = tmp_path / "results" / "roughness"
    monkeypatch.setattr("sys.argv", ["roughness", "toy", "--seeds", "0,1", "--results", str(results)])
    return results


def test_every_fit_becomes_a_record_every_group_a_line_and_none_runs_twice(few, monkeypatch):
    roughness.main()
    n_choices = len(roughness.WAYS) * len(roughness.STRENGTHS) * len(roughness.CHOOSING_SEEDS)
    assert [file.name for file in few.iterdir()] == ["toy.jsonl"]
    store = store_of("roughness", few, "toy")
    assert len(store.records(part="validation")) == n_choices
    assert len(store.records(part="test")) == len(roughness.WAYS) * 2 * 2
    page = (few.parent / roughness.PAGE).read_text()
    for way in roughness.WAYS:
        assert page.count(f"| toy | {way} | 0 | 2 |") == 1
        assert page.count(f"| toy | {way} |") == 2 + len(roughness.STRENGTHS)
    monkeypatch.setattr(roughness, "measured", None)
    roughness.main()


def test_shallow_trees_with_one_strength_for_all_splits_are_drawn(few, monkeypatch):
    quick = roughness.SHALLOW_SETTINGS | {"epochs": 3, "finetune_epochs": 3, "learning_rate": 0.05, "batch_size": 50}
    monkeypatch.setattr(roughness, "SHALLOW_SETTINGS", quick)
    monkeypatch.setattr("sys.argv", ["roughness", "toy", "--shallow", "--seeds", "0", "--results", str(few)])
    roughness.main()
    found = store_of("roughness", few, "toy").records()
    assert [(one["way"], one["part"], one["roughness"]) for one in found] == [
        ("shallow", "test", 0.0),
        ("shallow", "test", roughness.SHALLOW_STRENGTH),
    ]
    assert (few.parents[1] / "weights-toy.png").stat().st_size > 1000
    assert found[1]["parameters"]["penalty_share"] == "none"
    page = (few.parent / roughness.PAGE).read_text()
    assert f"| toy | shallow | {roughness.SHALLOW_STRENGTH:g} | 1 |" in page
    assert "## Without decreasing accuracy" in page


def test_the_clearest_splits_resemble_what_they_part():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 36)).astype(np.float32)
    y = (X[:, 14] + X[:, 15] > X[:, 20] + X[:, 21]).astype(np.int64)
    model = plain_tree(max_depth=2, image_shape=(6, 6), random_state=0).fit(X, y)
    clear = roughness.resemblance(model, (X, y))
    assert clear[0] > 0.9
    chosen = roughness.clearest(model, (X, y))
    assert chosen[0] == (0, 0)
    assert [depth for depth, _ in chosen] == [0, 1]
    _, split = chosen[1]
    assert clear[split] == max(clear[1:])


def test_the_strength_of_the_test_is_the_best_on_validation_rows(few):
    roughness.main()
    for way in roughness.WAYS:
        means = {
            strength: np.mean([one["hard"] for one in found])
            for (_, name, strength), found in roughness._groups(few, "validation").items()
            if name == way
        }
        tested = {one["roughness"] for one in store_of("roughness", few, "toy").records(way=way, part="test")}
        assert tested == {0.0, max(means, key=lambda strength: means[strength])}


def test_windows_of_the_segmentation_stand_in_the_table(few):
    roughness.main()
    for row, correlation in (("unsmoothed", 0.1), ("finetuned", 0.9)):
        numbers = {"test": {"pixel_accuracy": 0.88, "roc_auc": 0.91}, "neighbour_correlation": correlation}
        store_of("segmentation", few.parent / "segmentation", "isbi").put({"row": row, "seed": 0, **numbers})
    page = roughness.page(few)
    assert "| 0 | 1 | 88.00 | 91.00 | 0.10 |" in page
    assert "| 0.01 | 1 | 88.00 | 91.00 | 0.90 |" in page
