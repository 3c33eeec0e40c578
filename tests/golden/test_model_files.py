"""Model files of every kind, written once and kept, still load and still answer with the same bits.

``python -m tests.golden.test_model_files NAME`` writes a kind that is missing; the files that are there are never
written again, because they stand for those that users have.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crisptree
from crisptree.view.model import without_encoder
from tests.golden import cases
from tests.tables.writers import customers, write

FILES = Path(__file__).parent / "files"


def from_the_command_line() -> Any:
    from tests.cli.running import QUICK, done

    with tempfile.TemporaryDirectory() as folder:
        table, model = write(customers(160), Path(folder) / "table.csv"), Path(folder) / "model.crisp"
        done("fit", table, "--target", "buys", "-o", model, *QUICK)
        return crisptree.load(model)


KINDS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "classifier": (cases.FITS["em"], lambda: cases.digits()[0]),
    "names": (cases.FITS["axis"], lambda: cases.iris_names()[0]),
    "conv": (cases.FITS["conv"], lambda: cases.small_images()[0]),
    "own-modules": (cases.FITS["own modules"], lambda: cases.small_images()[0]),
    "simplified": (cases.FITS["simplified"], lambda: cases.digits()[0]),
    "segmenter": (cases.FITS["windows"], lambda: cases.cells()[0]),
    "stages": (cases.FITS["windows, two stages"], lambda: cases.colour_cells()[0]),
    "scales": (cases.FITS["windows, two scales, normalised"], lambda: cases.colour_cells()[0]),
    "table": (from_the_command_line, lambda: None),
}
"""How a file was made, and the rows that it is asked about."""


def answers(model: Any, rows: Any) -> dict[str, Any]:
    if rows is None:
        model = without_encoder(model)
        rows = np.random.default_rng(0).normal(size=(50, model.n_features_in_)).astype(np.float32)
    leaf, table = np.asarray(model.apply(rows)), np.asarray(model.predict_proba(rows))
    greedy = np.asarray(model.greedy().apply(rows))
    return {
        "leaf": hashlib.sha256(leaf.astype(np.int64).tobytes()).hexdigest(),
        "greedy": hashlib.sha256(greedy.astype(np.int64).tobytes()).hexdigest(),
        "probabilities": hashlib.sha256(table.tobytes()).hexdigest(),
        "predicted": np.asarray(model.predict(rows)).reshape(-1)[:40].tolist(),
        "parameters": {name: repr(value) for name, value in model.get_params().items() if not callable(value)},
    }


def loaded(kind: str) -> Any:
    return crisptree.load(FILES / f"{kind}.crisp", split=cases.SmallNetwork if kind == "own-modules" else None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_file_answers_as_it_did(kind):
    before = json.loads((FILES / f"{kind}.json").read_text())
    now = answers(loaded(kind), KINDS[kind][1]())
    for name, value in before.items():
        if name == "parameters":
            assert value.items() <= now[name].items()
        else:
            assert now[name] == value


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_file_written_again_answers_as_it_did(kind, tmp_path):
    again = tmp_path / "again.crisp"
    loaded(kind).save(again)
    model = crisptree.load(again, split=cases.SmallNetwork if kind == "own-modules" else None)
    rows = KINDS[kind][1]()
    assert answers(model, rows) == answers(loaded(kind), rows)


if __name__ == "__main__":
    FILES.mkdir(exist_ok=True)
    for kind in sys.argv[1:]:
        model, rows = KINDS[kind][0](), KINDS[kind][1]()
        model.save(FILES / f"{kind}.crisp")
        (FILES / f"{kind}.json").write_text(json.dumps(answers(loaded(kind), rows), indent=1) + "\n")
