"""Exports of the stored model files are those of the record, ``exports.json``: no bits of a training enter here.

``python -m tests.golden.record exports`` writes the record anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import crisptree
from crisptree import export
from crisptree.export import ExportError
from tests.golden.summary import digest
from tests.golden.test_model_files import KINDS, loaded

RECORD = Path(__file__).parent / "exports.json"


def text_of(function: Callable[..., str], **options: Any) -> Callable[[Any], str]:
    """A checksum of the exported text without the version."""
    written = f"written by crisptree {crisptree.__version__}."

    def checksum(model: Any) -> str:
        return hashlib.sha256(function(model, **options).replace(written, "").encode()).hexdigest()[:16]

    return checksum


def document_of(model: Any) -> str:
    """A checksum of the JSON document without the constructor's parameters, which later versions may rename."""
    document = json.loads(export.json(model))
    del document["sections"]["estimator"]["content"]["parameters"]
    document["sections"].get("provenance", {"content": {}})["content"].pop("crisptree", None)
    return hashlib.sha256(json.dumps(document).encode()).hexdigest()[:16]


def graph_of(**options: Any) -> Callable[[Any], str]:
    """A checksum of the operators and constants of the ONNX graph, which does not depend on the version of onnx."""

    def summary(model: Any) -> str:
        onnx = pytest.importorskip("onnx")
        graph = onnx.load_from_string(export.onnx(model, **options)).graph
        constants = [onnx.numpy_helper.to_array(constant) for constant in graph.initializer]
        operators = [f"{node.op_type} {list(node.input)} {list(node.output)}" for node in graph.node]
        return digest([operators, *constants])

    return summary


def nodes_of(model: Any) -> str:
    """A checksum of the nodes of scikit-learn's tree."""
    tree = export.sklearn_tree(model).tree_
    return digest([tree.children_left, tree.children_right, tree.feature, tree.threshold, tree.value])


FORMS: dict[str, Callable[[Any], str]] = {
    "text": text_of(export.text),
    "text, two terms": text_of(export.text, terms=2),
    "dot": text_of(export.dot),
    "c": text_of(export.c),
    "c, int8": text_of(export.c, integer="int8"),
    "c, int16, scaled": text_of(export.c, integer="int16", inputs="scaled", name="tree"),
    "js": text_of(export.js),
    "sql": text_of(export.sql),
    "sql, table": text_of(export.sql, table="customers"),
    "json": document_of,
    "onnx": graph_of(),
    "onnx, paths": graph_of(form="paths"),
    "sklearn": nodes_of,
}


def exported(kind: str) -> dict[str, str]:
    """Every form of a stored model; an error's type where the form cannot hold it."""
    model, forms = loaded(kind), {}
    for name, form in FORMS.items():
        try:
            forms[name] = form(model)
        except (ExportError, TypeError, ValueError) as error:
            forms[name] = type(error).__name__
    return forms


def make_record() -> dict[str, Any]:
    return {kind: exported(kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
def test_exports_of_a_stored_model_match_their_record(kind):
    assert exported(kind) == json.loads(RECORD.read_text())[kind]
