"""A model as one ES module without dependencies, which reaches the same leaf on every row."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.agreement import Answers, Rows, no_classes
from crisptree.export.escaping import javascript as quoted
from crisptree.export.portable import ExportError, Input, Portable, PortableTree

LARGEST_SAFE = 2**53

RUNNER = """\
import { readFileSync, writeFileSync } from "node:fs";
import * as model from "./model.mjs";
const rows = JSON.parse(readFileSync(process.argv[2], "utf8"));
const classOf = (row) => model.classes.indexOf(model.predict(row));
const found = rows.map((row) => [model.leaves(row), classOf(row), [...model.predictProba(row)]]);
writeFileSync(process.argv[3], JSON.stringify(found));
"""


def js(model: Any) -> str:
    """A fitted model as an ES module without dependencies, for browsers, Node.js and the like.

    It does the same arithmetic in the same order, in single precision, so that every row reaches the leaf that it
    reaches here. It exports ``predict(row)``, ``predictProba(row)``, ``leaf(row)``, ``classes`` and ``columns``; a row
    is an object with the columns by name, an array of them in their order, or a typed array of the features. Missing
    values are null, categories are text. ``leaves(row)`` has the leaf in every tree of a forest; of a regression
    ``predict`` gives the number, or all of them.

    Parameters
    ----------
    model : CrispTreeClassifier, CrispForestClassifier or Pipeline
        A fitted estimator with linear splits, or a fitted Pipeline of a ``TableEncoder`` and one.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y)
    >>> print(export.js(model).splitlines()[-1])
    export const { predict, predictProba, leaf, leaves } = crispModel(MODEL);
    """
    from crisptree.export.support import target_named

    return str(target_named("js").write(model))


def runtime() -> str:
    """The code without any model, which the report shares."""
    return files("crisptree.export").joinpath("predict.js").read_text(encoding="utf-8")


def write(portable: Portable) -> str:
    """The module: the code, the model as data, and what others call."""
    return (
        f"// {portable.words}, by crisptree.\n"
        f"{runtime()}\n"
        f"const MODEL = {_spec(portable)};\n\n"
        "export const classes = MODEL.classes;\n"
        "export const columns = MODEL.columns;\n"
        "export const { predict, predictProba, leaf, leaves } = crispModel(MODEL);\n"
    )


def answers(portable: Portable, written: str, rows: Rows) -> Answers:
    """What Node.js answers for the columns of rows."""
    node = shutil.which("node")
    if node is None:
        raise ExportError("to check JavaScript, Node.js must be installed as `node`; it is not. Install it.")
    columns = [rows.columns[column.name] for column in portable.inputs]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "model.mjs").write_text(written, encoding="utf-8")
        (place / "run.mjs").write_text(RUNNER, encoding="utf-8")
        (place / "rows.json").write_text(json.dumps(list(zip(*columns, strict=True))), encoding="utf-8")
        command = [node, str(place / "run.mjs"), str(place / "rows.json"), str(place / "found.json")]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise ExportError(f"Node.js failed: {run.stderr.strip()[-500:]}")
        found = json.loads((place / "found.json").read_text(encoding="utf-8"))
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    leaves, classes, tables = (np.array(part) for part in zip(*found, strict=True))
    if not portable.classes:
        classes = no_classes(len(rows))
    return Answers(leaves, classes, tables, (f"run with Node.js {version}",))


def _spec(portable: Portable) -> str:
    """The model as an object literal; names are strings of JSON, which are strings of JavaScript."""
    columns = ",\n    ".join(_column(column) for column in portable.inputs)
    trees = ",\n    ".join(_tree(tree) for tree in portable.trees)
    return (
        "{\n"
        f"  nFeatures: {portable.n_features},\n"
        f"  classes: [{', '.join(map(_label, portable.classes))}],\n"
        f"  missingTexts: [{', '.join(map(quoted, portable.missing_texts))}],\n"
        f"  columns: [\n    {columns}\n  ],\n"
        f"  trees: [\n    {trees}\n  ],\n"
        "}"
    )


def _column(column: Input) -> str:
    fill = "null" if column.fill is None else repr(column.fill)
    return (
        f"{{ name: {quoted(column.name)}, kind: {quoted(column.kind)}, feature: {column.feature}, "
        f"categories: [{', '.join(map(quoted, column.categories))}], fill: {fill}, "
        f"missing: {'true' if column.missing else 'false'} }}"
    )


def _tree(tree: PortableTree) -> str:
    dense = 2 * int(tree.terms.sum()) > tree.weight.size
    index, start, weight = "null", "null", tree.weight.reshape(-1)
    if not dense:
        splits, features = np.nonzero(tree.weight)
        index = _typed("Int32", features)
        start = _typed("Int32", np.concatenate([[0], np.cumsum(tree.terms)]))
        weight = tree.weight[splits, features]
    return (
        "{\n"
        f"      left: {_typed('Int32', tree.structure.left)},\n"
        f"      right: {_typed('Int32', tree.structure.right)},\n"
        f"      index: {index},\n"
        f"      start: {start},\n"
        f"      weight: {_typed('Float32', weight)},\n"
        f"      bias: {_typed('Float32', tree.bias)},\n"
        f"      tables: {_typed('Float64', tree.tables.reshape(-1))},\n"
        f"{_models(tree)}"
        "    }"
    )


def _models(tree: PortableTree) -> str:
    """The linear models of leaves that have some."""
    if tree.linear is None:
        return ""
    slopes, offsets = (_typed("Float64", part.reshape(-1)) for part in tree.linear)
    return f"      slopes: {slopes},\n      offsets: {offsets},\n"


def _typed(kind: str, values: npt.NDArray[Any]) -> str:
    """A typed array; the shortest digits that give the very number back."""
    if kind == "Float32":
        texts = [str(value) for value in values.astype(np.float32)]
    else:
        texts = [repr(value) for value in values.tolist()]
    return f"new {kind}Array([{', '.join(text.removesuffix('.0') for text in texts)}])"


def _label(label: Any) -> str:
    if isinstance(label, bool):
        return "true" if label else "false"
    if isinstance(label, int) and abs(label) > LARGEST_SAFE:
        return f"{label}n"
    return quoted(label) if isinstance(label, str) else repr(label)
