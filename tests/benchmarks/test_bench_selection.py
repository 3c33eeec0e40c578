"""Rules of selection applied to recorded candidates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import bench_selection


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """Two tables: three depths of one candidate, and another whose accuracy is highest and whose log loss is worst."""
    for number, name in enumerate(("a-b", "c")):
        hits = np.random.default_rng(number).random((4, 50)) < np.array([[0.5], [0.7], [0.6], [0.9]])
        values = [{"split": "axis", "finetune_epochs": 0, "max_depth": depth} for depth in (1, 2, 3)]
        arrays = {
            "task": "classification",
            "values": [json.dumps(value) for value in [*values, {"split": "oblique", "max_depth": 4}]],
            "scores": hits.astype(np.float32),
            "losses": np.repeat(np.float32([[0.5], [0.4], [0.4], [3.0]]), 50, axis=1),
            "row_weights": np.ones(50),
            "candidate": [1, 1, 1, 2],
            "tests": np.array([[0.5, 0.5], [0.7, 0.4], [0.6, 0.4], [0.8, 2.0]]),
        }
        np.savez(tmp_path / f"{name}-20.npz", **arrays)
    return tmp_path


def test_compare_prints_rules_families_and_what_they_change(records: Path, capsys: pytest.CaptureFixture[str]):
    assert bench_selection.main(["compare", "--records", str(records)]) == 0
    printed = capsys.readouterr().out
    assert "classification: 2 fits" in printed
    assert "log-loss share 0.2, neighbours 0.5: +0.00 ± 0.00 points" in printed
    assert "log-loss share 0.0, neighbours 0.0: +20.00 ± 0.00 points, log loss +1.6000" in printed
    assert "without axis, constant leaves: +20.00" in printed


def test_the_lowest_log_loss_among_close_accuracies_is_selected(records: Path):
    record = bench_selection.Recorded.read(records / "a-b-20.npz")
    assert record.name == "a-b"
    assert bench_selection.select_close(record, 0.5).tolist() == [0.8, 2.0]
    assert bench_selection.select_close(record, 100.0).tolist() == [0.7, 0.4]
