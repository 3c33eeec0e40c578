"""The command line on stored model files: output, flags and exit codes are those of the record, ``cli.json``.

``python -m tests.golden.record cli`` writes the record anew. Commands run in a folder with copies of the stored models,
so that no bits of a training enter; of commands that train only the structure of the JSON document is compared.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.main import get_command

from crisptree.cli.app import app, load_command
from crisptree.datasets.files import write_png
from tests.cli.running import FOREST_QUICK, QUICK, done, run
from tests.encoding.writers import customers, text, write
from tests.golden import cases
from tests.golden.summary import assert_close
from tests.golden.test_model_files import FILES, KINDS

RECORD = Path(__file__).parent / "cli.json"
RTOL = 1e-5
"""Soft predictions are computed in single precision."""

TABLE = ("predict", "table.crisp", "new.csv")

DOCUMENTS: dict[str, tuple[str, ...]] = {
    **{f"inspect {kind}": ("inspect", f"{kind}.crisp", "--json") for kind in KINDS if kind != "own-modules"},
    "evaluate a classifier": ("evaluate", "table.crisp", "table.csv", "--json"),
    "evaluate other columns": (
        "evaluate",
        "frame.crisp",
        "table.csv",
        "--target",
        "buys",
        "--drop",
        "amount",
        "--json",
    ),
    "evaluate a regressor": ("evaluate", "frame-regressor.crisp", "table.csv", "--target", "amount", "--json"),
    "evaluate a forest": ("evaluate", "forest-frame.crisp", "table.csv", "--target", "buys", "--json"),
    "evaluate an array": ("evaluate", "sparse.crisp", "boards.npz", "--target", "y", "--json"),
    "evaluate linear leaves": ("evaluate", "linear.crisp", "clouds.npz", "--target", "y", "--json"),
    "predict": (*TABLE, "-o", "predicted.csv", "--json"),
    "export": ("export", "table.crisp", "--to", "sql", "-o", "table.sql", "--check", "new.csv", "--json"),
    "plot": ("plot", "table.crisp", "-o", "tree.svg", "--json"),
    "report": ("report", "table.crisp", "table.csv", "-o", "report.html", "--json"),
    "segment predict": ("segment", "predict", "segmenter.crisp", "images", "-o", "labelled", "--proba", "--json"),
    "segment predict numbers": ("segment", "predict", "pixel-regressor.crisp", "images", "-o", "n", "--std", "--json"),
}
"""Commands whose JSON document is compared in structure and values."""

TABLES: dict[str, tuple[str, ...]] = {
    "predict": TABLE,
    "predict with everything": (*TABLE, "--proba", "--leaf", "--keep", "age,color"),
    "predict with paths": (*TABLE, "--explain"),
    "predict a regressor": ("predict", "frame-regressor.crisp", "new.csv", "--interval", "0.8", "--leaf"),
    "predict a forest": ("predict", "forest-frame.crisp", "new.csv", "--proba", "--leaf"),
    "predict an array": ("predict", "sparse.crisp", "boards.npz", "--proba"),
}
"""Commands whose table on stdout is compared: the header, and a checksum of the rows."""

STRUCTURES: dict[str, tuple[str, ...]] = {
    "fit": ("fit", "table.csv", "-t", "buys", "--drop", "amount", "-o", "f.crisp", *QUICK, "--json"),
    "fit with held-out rows": (
        *("fit", "table.csv", "-t", "buys", "--drop", "amount", "-o", "h.crisp", *QUICK, "--holdout", "0.3", "--json"),
    ),
    "fit numbers": ("fit", "table.csv", "-t", "amount", "--drop", "buys", "-o", "n.crisp", *QUICK, "--json"),
    "fit a forest": ("fit", "table.csv", "-t", "buys", "-o", "t.crisp", *FOREST_QUICK, "--trees", "2", "--json"),
    "fit batches": (
        *("fit", "table.csv", "-t", "buys", "-o", "b.crisp", *QUICK, "--algorithm", "likelihood", "--stream", "--json"),
    ),
    "segment fit": (
        *("segment", "fit", "images", "labels", "-o", "s.crisp", "--window", "3", "--depth", "1"),
        *("--epochs", "1", "--finetune-epochs", "1", "--json"),
    ),
}
"""Commands that train or look around: names and types of what their JSON document holds."""

EXIT_CODES: dict[str, tuple[str, ...]] = {
    "help": ("--help",),
    "version": ("--version",),
    "success": TABLE,
    "no command": (),
    "unknown command": ("dance",),
    "unknown flag": (*TABLE, "--dance"),
    "missing argument": ("predict", "table.crisp"),
    "value out of range": ("plot", "table.crisp", "-o", "range.svg", "--dpi", "1"),
    "wrong ending": ("fit", "table.csv", "-t", "buys", "-o", "model.pickle"),
    "flag for other models": ("predict", "frame-regressor.crisp", "new.csv", "--proba"),
    "flags that exclude each other": ("fit", "table.csv", "-t", "buys", "-o", "r.crisp", "--resume"),
    "parameter that breaks its rule": ("fit", "table.csv", "-t", "buys", "-o", "e.crisp", "--epochs", "0"),
    "unknown export": ("export", "table.crisp", "--to", "cobol", "-o", "table.cob"),
    "unknown data set": ("data", "fetch", "imagenet"),
    "no such model": ("inspect", "none.crisp"),
    "no such table": ("predict", "table.crisp", "none.csv"),
    "a folder in place of a file": ("predict", "table.crisp", "images"),
    "a damaged model": ("inspect", "damaged.crisp"),
    "a damaged table": ("predict", "table.crisp", "damaged.parquet"),
    "no such column": ("fit", "table.csv", "-t", "sells", "-o", "c.crisp"),
    "a column is missing": ("predict", "table.crisp", "other.csv"),
    "a target of one class": ("fit", "other.csv", "-t", "same", "-o", "o.crisp"),
    "a file that is there": (*TABLE, "-o", "table.csv"),
    "a model of images for rows": ("predict", "segmenter.crisp", "new.csv"),
    "a model of rows for images": ("segment", "predict", "table.crisp", "images", "-o", "rows"),
    "an export that cannot hold it": ("export", "table.crisp", "--to", "sklearn", "-o", "table.joblib"),
    "split modules of one's own": ("inspect", "own-modules.crisp"),
}
"""0: done, 1: the work failed, 2: wrong use. ``tests/cli/test_process.py`` interrupts commands: 130."""


@contextmanager
def workspace() -> Iterator[None]:
    """A new folder with models, tables and images as the working directory."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in KINDS:
            shutil.copy(FILES / f"{kind}.crisp", folder)
        for table, data in {"table.csv": customers(160), "new.csv": customers(30, seed=1)}.items():
            amount = pa.array(np.asarray(data["income"]) / 1e4 + 2.0 * (np.asarray(data["buys"]) == "yes"))
            write(data.append_column("amount", amount), folder / table)
        text(folder / "other.csv", "age,same", "1,yes", "2,yes", "3,yes")
        (folder / "damaged.crisp").write_bytes((FILES / "table.crisp").read_bytes()[:-100])
        (folder / "damaged.parquet").write_bytes(b"PAR1 and nothing else PAR1")
        boards, winners = cases.connect4()
        np.savez(folder / "boards.npz", X=boards, y=winners)
        points, classes = cases.three_clouds()
        np.savez(folder / "clouds.npz", X=points, y=classes)
        for kind in ("images", "labels"):
            (folder / kind).mkdir()
        for number, image in enumerate(np.random.default_rng(0).integers(0, 256, (2, 12, 14), dtype=np.uint8)):
            write_png(folder / "images" / f"{number}.png", image)
            write_png(folder / "labels" / f"{number}.png", np.where(image > 127, 200, 7).astype(np.uint8))
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def document_of(arguments: tuple[str, ...]) -> Any:
    """The JSON document, without what wording and constructor parameters say."""
    document = json.loads(done(*arguments).stdout)
    if isinstance(document, dict):
        document["notes"] = len(document["notes"])
        for key in ("parameters", "changed"):
            document.pop(key, None)
        if document.get("agreement"):
            document["agreement"].pop("notes")
    return document


def table_of(arguments: tuple[str, ...]) -> dict[str, Any]:
    header, *rows = done(*arguments).stdout.splitlines()
    checksum = hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]
    return {"header": header, "rows": len(rows), "first": rows[0], "checksum": checksum}


def structure_of(value: Any) -> Any:
    """Names and types of a JSON document; of a list those of its first element."""
    if isinstance(value, dict):
        return {name: structure_of(part) for name, part in value.items()}
    if isinstance(value, list):
        return [structure_of(value[0])] if value else []
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def flags() -> dict[str, list[str]]:
    """The arguments and flags of every command, in the order of its help."""

    def listed(command: Any, name: str) -> Iterator[tuple[str, list[str]]]:
        yield name, [word for option in command.params for word in (*option.opts, *option.secondary_opts)]
        for sub in getattr(command, "commands", {}):
            loaded = load_command(sub) if name == "crisptree" else command.commands[sub]
            yield from listed(loaded, f"{name} {sub}")

    return dict(listed(get_command(app), "crisptree"))


def exit_code(arguments: tuple[str, ...]) -> int:
    result = run(*arguments)
    if result.exit_code != 0 and arguments:  # without arguments stdout has the help
        assert result.stderr, "a failure must say something on stderr"
        assert not result.stdout, "a failure must leave stdout alone"
    return result.exit_code


def make_record() -> dict[str, Any]:
    with workspace():
        return {
            "documents": {name: document_of(arguments) for name, arguments in DOCUMENTS.items()},
            "tables": {name: table_of(arguments) for name, arguments in TABLES.items()},
            "structures": {name: structure_of(document_of(arguments)) for name, arguments in STRUCTURES.items()},
            "exit codes": {name: exit_code(arguments) for name, arguments in EXIT_CODES.items()},
            "flags": flags(),
        }


@pytest.fixture(scope="module", autouse=True)
def _in_a_workspace():
    with workspace():
        yield


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return json.loads(RECORD.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_json_document_of_a_stored_model_matches_its_record(name, record):
    assert_close(document_of(DOCUMENTS[name]), record["documents"][name], RTOL)


@pytest.mark.parametrize("name", TABLES)
def test_predicted_table_matches_its_record(name, record):
    assert table_of(TABLES[name]) == record["tables"][name]


@pytest.mark.parametrize("name", STRUCTURES)
def test_json_document_of_a_training_has_the_recorded_structure(name, record):
    assert structure_of(document_of(STRUCTURES[name])) == record["structures"][name]


@pytest.mark.parametrize("name", EXIT_CODES)
def test_exit_code_matches_its_record(name, record):
    assert exit_code(EXIT_CODES[name]) == record["exit codes"][name]


def test_commands_have_the_recorded_flags(record):
    assert flags() == record["flags"]
