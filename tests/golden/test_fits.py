"""Training gives the same bits as the record, ``fits.json``; ``python -m tests.golden.record fits`` writes it anew.

Bits depend on the instruction sets of kernels and torch, on libraries and on the processor, so they are compared where
all of these are those of the record. On other machines the numbers that a user sees are compared instead.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

from crisptree import CrispTreeClassifier
from crisptree.datasets import DataNotFoundError
from tests.golden.cases import CHECKPOINTS, FITS, REAL_FITS, RESOLVED, SLOW_FITS, digits, interrupted
from tests.golden.machine import machine
from tests.golden.summary import summarize

RECORD = Path(__file__).parent / "fits.json"
SCORE_TOLERANCE = 0.1
"""How far accuracy or R² on the training rows may differ on another machine."""


def load_record() -> dict[str, Any]:
    return json.loads(RECORD.read_text())


def checkpoint_format() -> dict[str, Any]:
    """The files of a checkpoint in the second level of growth, and the arrays in them."""
    X, y = digits()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "checkpoint"
        interrupted(CrispTreeClassifier.from_flat(**RESOLVED), X, y, folder, 5)
        return {
            path.name: {name: f"{array.dtype} {list(array.shape)}" for name, array in sorted(load_file(path).items())}
            for path in sorted(folder.glob("*.safetensors"))
        }


def make_record() -> dict[str, Any]:
    """All fits as they are now; where real data is missing, its record stays, less the bits of another machine."""
    fits = {name: summarize(*case()) for name, case in (FITS | SLOW_FITS).items()}
    for name, case in REAL_FITS.items():
        try:
            fits[name] = summarize(*case())
        except DataNotFoundError:
            before = load_record()
            same = before["machine"] == machine()
            fits[name] = {key: value for key, value in before["fits"][name].items() if same or key != "bits"}
    return {"machine": machine(), "checkpoint": checkpoint_format(), "fits": fits}


def check_same(now: dict[str, Any], before: dict[str, Any], same_machine: bool) -> None:
    """Compare the summary of a fit with its record."""
    if same_machine and "bits" in before:
        assert now == before
    else:
        assert now["epochs"] == pytest.approx(before["epochs"], rel=0.5, abs=3)
        assert now["score"] == pytest.approx(before["score"], abs=SCORE_TOLERANCE)


@pytest.mark.parametrize(
    "name", [*FITS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW_FITS | REAL_FITS)]
)
def test_fit_matches_its_record(name):
    record = load_record()
    now = summarize(*(FITS | SLOW_FITS | REAL_FITS)[name]())
    check_same(now, record["fits"][name], record["machine"] == machine())


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_fit_resumed_from_checkpoints_equals_the_uninterrupted_one(name):
    assert summarize(*CHECKPOINTS[name]()) == summarize(*FITS[name]())


def test_checkpoint_has_the_recorded_format():
    assert checkpoint_format() == load_record()["checkpoint"]


def test_every_recorded_fit_is_a_case():
    assert set(load_record()["fits"]) == {*FITS, *SLOW_FITS, *REAL_FITS}


def test_no_two_cases_train_the_same_model():
    """A case whose option has no effect on its data tests nothing."""
    names: dict[str, list[str]] = {}
    for name, fit in load_record()["fits"].items():
        names.setdefault(str(fit.get("bits", name)), []).append(name)
    assert [same for same in names.values() if len(same) > 1] == []
