"""The studies of the paper's extension, on the bundled digits."""

import pytest
from experiments.store import store_of

from experiments import extension


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(extension, "SETS", {"digits": (2, {"patches": (4, 4), "features": 16, "everything": None})})
    monkeypatch.setattr(extension, "TITLES", {"digits": "Digits"})
    monkeypatch.setattr(extension, "DATA", {extension.FORESTS: ("digits",), extension.STEEPNESS: ("digits",)})
    few = {"epochs": 2, "finetune_epochs": 2, "max_depth": 3, "min_updates": 60}
    monkeypatch.setattr(extension, "FOREST", extension.FOREST | few)
    schedules = {name: extension.SCHEDULES[name] | few for name in (extension.PAPER, extension.FIXED)}
    monkeypatch.setattr(extension, "SCHEDULES", schedules)


def run(monkeypatch, capsys, folder, *arguments):
    monkeypatch.setattr("sys.argv", ["extension", "--results", str(folder), "--device", "cpu", *arguments])
    extension.main()
    return capsys.readouterr().out


def test_every_row_is_recorded_once_and_stands_on_the_page(small, monkeypatch, capsys, tmp_path):
    folder = tmp_path / "extension"
    assert "6 records to make" in run(monkeypatch, capsys, folder, "--seeds", "0", "--dry-run")
    run(monkeypatch, capsys, folder, "--seeds", "0", "--commit", "abc")
    records = store_of("extension", folder, "digits").records()
    assert {record["row"] for record in records} == {
        *("patches", "features", "everything", extension.BASELINE, extension.PAPER, extension.FIXED)
    }
    seen = {record["row"]: record["parameters"].get("max_features") for record in records}
    assert (seen["patches"], seen["features"], seen["everything"]) == ([4, 4], 16, None)
    assert all(0.3 < value <= 1 for record in records for value in record["metrics"].values())
    page = folder.with_suffix(".md").read_text(encoding="utf-8")
    assert "| Digits | 2 | 4 × 4 pixels, a patch at a random place | 1 |" in page
    assert "a forest whose splits see patches reaches" in page
    assert "with the best of 2 schedules." in " ".join(page.split())
    assert "0 records to make" in run(monkeypatch, capsys, folder, "--seeds", "0", "--dry-run")


def test_a_page_without_records_is_marked(small, tmp_path):
    page = extension.page(tmp_path / "extension")
    assert "No comparison has all of its records yet" in page
    assert "were not at hand: Digits" in page
