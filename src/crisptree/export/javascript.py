"""Export to JavaScript: one ES module without dependencies, which reaches the same leaf on every row."""

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

from crisptree.export.escaping import quote_javascript as quote
from crisptree.export.formats import EncodedRows, Predictions, find_format
from crisptree.export.portable import ExportError, Portable, PortableTree
from crisptree.inspection.model_view import InputColumn

MAX_SAFE_INTEGER = 2**53

RUNNER = """\
import { readFileSync, writeFileSync } from "node:fs";
import * as model from "./model.mjs";
const rows = JSON.parse(readFileSync(process.argv[2], "utf8"));
const classOf = (row) => model.classes.indexOf(model.predict(row));
const found = rows.map((row) => [model.leaves(row), [...model.predictProba(row)], classOf(row)]);
writeFileSync(process.argv[3], JSON.stringify(found));
"""


def js(model: Any) -> str:
    """Export a fitted model as an ES module without dependencies, for browsers, Node.js and the like.

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
    return str(find_format("js").write(model))


def read_runtime() -> str:
    """Read the code without any model, which the report shares."""
    return files("crisptree.export").joinpath("predict.js").read_text(encoding="utf-8")


def render(portable: Portable) -> str:
    """Write the module: the code, the model as data, and the exported functions."""
    return (
        f"// {portable.description}.\n"
        + "".join(f"// {line}\n" for line in portable.provenance)
        + f"{read_runtime()}\n"
        f"const MODEL = {_model(portable)};\n\n"
        f'export const modelId = "{portable.model_id}";\n'
        "export const classes = MODEL.classes;\n"
        "export const columns = MODEL.columns;\n"
        "export const { predict, predictProba, leaf, leaves } = crispModel(MODEL);\n"
    )


def run(portable: Portable, written: str, rows: EncodedRows) -> Predictions:
    """Predict the columns of rows with Node.js."""
    node = shutil.which("node")
    if node is None:
        raise ExportError("to check JavaScript, Node.js must be installed as `node`; it is not. Install it.")
    columns = [rows.columns[column.name] for column in portable.inputs]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "model.mjs").write_text(written, encoding="utf-8")
        (root / "run.mjs").write_text(RUNNER, encoding="utf-8")
        (root / "rows.json").write_text(json.dumps(list(zip(*columns, strict=True))), encoding="utf-8")
        command = [node, str(root / "run.mjs"), str(root / "rows.json"), str(root / "found.json")]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise ExportError(f"Node.js failed: {result.stderr.strip()[-500:]}")
        results = json.loads((root / "found.json").read_text(encoding="utf-8"))
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    leaves, outputs, classes = (np.array(part) for part in zip(*results, strict=True))
    return Predictions.of(leaves, outputs, classes, range(len(portable.classes)), (f"run with Node.js {version}",))


def _model(portable: Portable) -> str:
    """Write the model as an object literal; names are JSON strings, which are JavaScript strings."""
    columns = ",\n    ".join(_column(column) for column in portable.inputs)
    trees = ",\n    ".join(_tree(tree) for tree in portable.trees)
    return (
        "{\n"
        f"  nFeatures: {portable.n_features},\n"
        f"  classes: [{', '.join(map(_label, portable.classes))}],\n"
        f"  missingTexts: [{', '.join(map(quote, portable.missing_texts))}],\n"
        f"  columns: [\n    {columns}\n  ],\n"
        f"  trees: [\n    {trees}\n  ],\n"
        "}"
    )


def _column(column: InputColumn) -> str:
    fill = "null" if column.fill is None else repr(column.fill)
    return (
        f"{{ name: {quote(column.name)}, kind: {quote(column.kind)}, feature: {column.feature}, "
        f"categories: [{', '.join(map(quote, column.categories))}], fill: {fill}, "
        f"missing: {'true' if column.missing else 'false'} }}"
    )


def _tree(tree: PortableTree) -> str:
    dense = 2 * int(tree.n_terms.sum()) > tree.weight.size
    index, start, weight = "null", "null", tree.weight.reshape(-1)
    if not dense:
        splits, features = np.nonzero(tree.weight)
        index = _typed("Int32", features)
        start = _typed("Int32", np.concatenate([[0], np.cumsum(tree.n_terms)]))
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
        f"{_linear_models(tree)}"
        "    }"
    )


def _linear_models(tree: PortableTree) -> str:
    """Write linear models of leaves, if any."""
    if tree.linear is None:
        return ""
    slopes, offsets = (_typed("Float64", part.reshape(-1)) for part in tree.linear)
    return f"      slopes: {slopes},\n      offsets: {offsets},\n"


def _typed(kind: str, values: npt.NDArray[Any]) -> str:
    """Write a typed array with the shortest digits that round-trip."""
    if kind == "Float32":
        texts = [str(value) for value in values.astype(np.float32)]
    else:
        texts = [repr(value) for value in values.tolist()]
    return f"new {kind}Array([{', '.join(text.removesuffix('.0') for text in texts)}])"


def _label(label: Any) -> str:
    if isinstance(label, bool):
        return "true" if label else "false"
    if isinstance(label, int) and abs(label) > MAX_SAFE_INTEGER:
        return f"{label}n"
    return quote(label) if isinstance(label, str) else repr(label)
