"""Input noise on large data, compared on a small table of the same name."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest
from benchmarks.bench_noise import list_cells, select_noise, select_setting

from benchmarks import bench_noise


def make_record(noise: float, n_right: int, log_loss: float = 0.5, scale: str = "feature") -> bench_noise.Values:
    """A setting whose only trial is right on the first of 1,000 rows."""
    right = base64.b64encode(np.packbits(np.arange(1000) < n_right)).decode()
    trial = {"length": 0.3, "score": n_right / 1000, "log_loss": log_loss, "right": right}
    return {"scale": scale, "input_noise": noise, "l2": 0.0, "n_scored": 1000, "trials": [trial]}


def test_the_most_noise_within_some_errors_of_the_best_is_selected():
    # Two wrong rows of 1,000 are 1.4 standard errors of the difference.
    best, close, far = make_record(0.3, 802), make_record(0.7, 800), make_record(1.4, 700)
    assert select_noise([best, close, far], 0.3, 0.0) is best
    assert select_noise([best, close, far], 0.3, 1.0) is best
    assert select_noise([best, close, far], 0.3, 2.0) is close


def test_a_scale_is_selected_at_the_noise_of_the_first_one():
    first, other = make_record(0.7, 800), make_record(0.7, 810, scale="global")
    better = make_record(0.3, 820, scale="global")
    assert select_setting([make_record(0.3, 790), first, other, better], 0.3, 0.0) is other


def test_every_setting_is_fitted_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(160, 4))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=160) > 2).astype(int)
    (tmp_path / "classification").mkdir()
    np.savez(tmp_path / "classification" / "connect4.npz", X=X, y=y, columns=list("pqrs"))
    records = tmp_path / "records" / "noise.jsonl"
    arguments = ["--records", str(records), "--tables", "connect4", "--seeds", "30"]
    assert bench_noise.main(["fit", "--data", str(tmp_path), *arguments]) == 0
    assert records.read_text().count("\n") == len(list_cells("connect4"))
    assert bench_noise.main(["compare", *arguments]) == 0
    printed = capsys.readouterr().out
    assert "connect4: 1 of 1 seeds complete" in printed
    assert "\n  epochs 0.3, 0.0 errors: " in printed
    assert "\n  with l2: " in printed
