"""Model files of every kind, written once and kept, still load and still predict the same bits on every machine.

``python -m tests.golden.record files`` writes a kind that is missing; the files that are there are never written again,
because they stand for those that users have.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import crisptree
from crisptree.inspection.model_view import strip_encoder
from crisptree.parameters.training import RENAMED
from tests.encoding.writers import customers, write
from tests.golden import cases
from tests.golden.summary import assert_close, has_linear_leaves

FILES = Path(__file__).parent / "files"
SHOWN = 40
"""Predictions that are written out."""

MAX_FILE_BYTES = 50_000
MAX_TOTAL_BYTES = 500_000


def from_the_command_line() -> Any:
    from tests.cli.running import QUICK, done

    with tempfile.TemporaryDirectory() as folder:
        table, model = write(customers(160), Path(folder) / "table.csv"), Path(folder) / "model.crisp"
        done("fit", table, "--target", "buys", "-o", model, *QUICK)
        return crisptree.load(model)


def case(name: str) -> Callable[[], Any]:
    return lambda: cases.FITS[name]().model


KINDS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "classifier": (case("em"), lambda: cases.digits()[0]),
    "names": (case("axis"), lambda: cases.iris_names()[0]),
    "conv": (case("conv"), lambda: cases.small_images()[0]),
    "own-modules": (case("own modules"), lambda: cases.small_images()[0]),
    "simplified": (case("em"), lambda: cases.digits()[0]),
    "segmenter": (case("windows"), lambda: cases.cells()[0]),
    "stages": (case("windows, two stages"), lambda: cases.colour_cells()[0]),
    "scales": (case("windows, two scales, normalised"), lambda: cases.colour_cells()[0]),
    "table": (from_the_command_line, lambda: None),
    "constraints": (case("all constraints"), lambda: cases.iris()[0]),
    "selected": (case("selected"), lambda: cases.iris()[0]),
    "soft-labels": (case("soft labels"), lambda: cases.soft_labels()[0]),
    "updated": (case("partial_fit"), lambda: cases.iris()[0]),
    "batches": (case("batches, weights"), lambda: cases.iris()[0]),
    "sparse": (case("sparse"), lambda: cases.sparse_rows()[0]),
    "frame": (case("table"), lambda: cases.shop()[0]),
    "frame-regressor": (case("table, regression"), lambda: cases.shop_amount()[0]),
    "regressor": (case("regression"), lambda: cases.steps()[0]),
    "two-outputs": (case("regression, two outputs"), lambda: cases.two_outputs()[0]),
    "linear": (case("linear leaves"), lambda: cases.three_clouds()[0]),
    "linear-regressor": (case("regression, linear leaves"), lambda: cases.steps()[0]),
    "forest": (case("forest, em, balanced bootstrap"), lambda: cases.iris_names()[0]),
    "forest-linear": (case("forest, linear leaves"), lambda: cases.three_clouds()[0]),
    "forest-frame": (case("forest of a table"), lambda: cases.shop()[0]),
    "forest-regressor": (case("regression forest, two outputs"), lambda: cases.two_outputs()[0]),
    "pixel-regressor": (case("pixel regression"), lambda: cases.differences()[0]),
    "pixel-regressor-stages": (case("pixel regression, two stages"), lambda: cases.differences()[0]),
}
"""How a file was made, and the rows that it is asked about."""

CHECKSUMS: dict[str, Callable[[Any, Any], Any]] = {
    "leaf": lambda model, rows: np.asarray(model.leaf_indices(rows)).astype(np.int64),
    "greedy": lambda model, rows: np.asarray(model.before_finetuning().leaf_indices(rows)).astype(np.int64),
    "probabilities": lambda model, rows: np.asarray(model.predict_proba(rows)),
    "means": lambda model, rows: None if hasattr(model, "predict_proba") else np.asarray(model.predict(rows)),
    "standard deviations": lambda model, rows: np.asarray(model.predict_std(rows)),
}
"""Predictions that are compared bit by bit, where a model has them."""

LINEAR_ROUNDED = ("probabilities", "means")
"""Not bit by bit for linear leaves: the last bits of their products and exponentials depend on BLAS and NumPy."""

ROUNDED: dict[str, Callable[[Any, Any], Any]] = {
    "soft probabilities": lambda model, rows: model.soft_predict_proba(rows),
    "soft means": lambda model, rows: model.soft_predict(rows),
    "importances": lambda model, rows: model.feature_importances_,
}
"""Values of which a few are compared, up to rounding, where a model has them."""

RTOL = 1e-5
"""Soft predictions are computed in single precision."""


def checksum(array: Any) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


def answers(model: Any, rows: Any) -> dict[str, Any]:
    if rows is None:
        model = strip_encoder(model)
        rows = np.random.default_rng(0).normal(size=(50, model.n_features_in_)).astype(np.float32)
    found: dict[str, Any] = {}
    for name, predictions in (CHECKSUMS | ROUNDED).items():
        try:
            array = predictions(model, rows)
        except AttributeError:  # a regressor has no probabilities, a forest no greedy tree
            continue
        if array is None:
            continue
        exact = name in CHECKSUMS and not (name in LINEAR_ROUNDED and has_linear_leaves(model))
        found[name] = checksum(array) if exact else np.asarray(array).reshape(-1)[:SHOWN].tolist()
    return {
        **found,
        "predicted": np.asarray(model.predict(rows)).reshape(-1)[:SHOWN].tolist(),
        "parameters": {name: repr(value) for name, value in model.flat_parameters().items() if not callable(value)},
    }


def loaded(kind: str) -> Any:
    return crisptree.load(FILES / f"{kind}.crisp", split=cases.SmallNetwork if kind == "own-modules" else None)


def write_record() -> None:
    """Write the model files and the predictions that are missing."""
    FILES.mkdir(exist_ok=True)
    for kind, (make, rows) in KINDS.items():
        model, predictions = FILES / f"{kind}.crisp", FILES / f"{kind}.json"
        if not model.exists():
            make().save(model)
        if not predictions.exists():
            text = json.dumps(answers(loaded(kind), rows()), indent=1, ensure_ascii=False)
            predictions.write_text(text + "\n", encoding="utf-8")


def current_parameters(model: Any, recorded: dict[str, str]) -> dict[str, str]:
    """Recorded parameters by their present names, without those that the estimator no longer has."""
    renamed = {RENAMED.get(name, name): value for name, value in recorded.items()}
    return {name: value for name, value in renamed.items() if name in model.declared_parameters()}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_file_predicts_as_it_did(kind):
    before = json.loads((FILES / f"{kind}.json").read_text(encoding="utf-8"))
    model = loaded(kind)
    now = answers(model, KINDS[kind][1]())
    for name, value in before.items():
        if name == "parameters":
            assert current_parameters(model, value).items() <= now[name].items()
        elif name in ROUNDED or has_linear_leaves(model):
            assert_close(now[name], value, RTOL)
        else:
            assert now[name] == value


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_file_written_again_predicts_as_it_did(kind, tmp_path):
    again = tmp_path / "again.crisp"
    loaded(kind).save(again)
    model = crisptree.load(again, split=cases.SmallNetwork if kind == "own-modules" else None)
    rows = KINDS[kind][1]()
    assert answers(model, rows) == answers(loaded(kind), rows)


def test_kept_files_are_of_all_kinds_and_small():
    files = sorted(FILES.iterdir())
    assert {file.name for file in files} == {f"{kind}{ending}" for kind in KINDS for ending in (".crisp", ".json")}
    assert max(file.stat().st_size for file in files) < MAX_FILE_BYTES
    assert sum(file.stat().st_size for file in files) < MAX_TOTAL_BYTES
