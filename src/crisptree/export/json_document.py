"""Export to JSON: everything that the model file stores, with exact numbers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import crisptree
from crisptree.export.formats import EncodedRows, Predictions, predict_with_model
from crisptree.export.portable import Portable
from crisptree.inspection.model_view import unwrap_model, view_model
from crisptree.persistence.model_file import Section, document_of, text_of


def json(model: Any) -> str:
    """Export a fitted model as a complete JSON document, which ``crisptree.load`` reads back.

    It holds structure, weights in raw units, leaf tables, statistics, the encoder and the parameters; the schema is
    on docs/guide/export/json.md. Numbers are exact.

    Parameters
    ----------
    model : CrispTreeClassifier, CrispSegmenter or Pipeline
        A fitted estimator, or a fitted Pipeline of a ``TableEncoder`` and one.

    Examples
    --------
    >>> import json as reader, numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y)
    >>> document = reader.loads(export.json(model))
    >>> document["sections"]["tree"]["arrays"]["left"]
    {'type': 'int32', 'shape': [1], 'values': [-1]}
    """
    portable = Portable.of(model, "export.json")  # rejects Pipelines with steps that a file cannot store
    estimator = model
    if hasattr(model, "named_steps") or hasattr(model, "best_estimator_"):
        estimator = unwrap_model(model)[1]
        stored = view_model(model, "export.json", forests=True).preprocessing
        if stored is not None:
            estimator = estimator.with_input_schema(encoded_by=stored)
    sections = estimator._sections()
    if portable.model_id is not None:
        about = {"model_id": portable.model_id, "crisptree": crisptree.__version__}
        sections = {**sections, "provenance": Section(about, {}, required=False)}
    return text_of(document_of(sections))


render = json


def run(portable: Portable, written: str, rows: EncodedRows) -> Predictions:
    """Predict with the model that is read back from the document."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        path.write_text(written, encoding="utf-8")
        return predict_with_model(crisptree.load(path), rows.X)
