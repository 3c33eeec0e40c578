"""A model as one JSON document: everything that its file keeps, every number exact."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import crisptree
from crisptree.export.agreement import Answers, Rows, expected
from crisptree.export.forests import first_view, last_step
from crisptree.export.portable import Portable
from crisptree.inspection.columns import find_preprocessing
from crisptree.persistence.document import document_of, text_of


def json(model: Any) -> str:
    """A fitted model as a JSON document, complete: ``crisptree.load`` reads it back, and saves the same file again.

    It holds structure, weights in raw units, leaf tables, statistics, the encoder and the parameters; the schema is
    on docs/export/json.md. Numbers are exact.

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
    Portable.of(model, "export.json")  # which refuses Pipelines with steps that a file cannot keep
    estimator = model
    if hasattr(model, "named_steps") or hasattr(model, "best_estimator_"):
        view = first_view(model, "export.json")
        estimator = copy.copy(last_step(model))
        stored = find_preprocessing(view)
        if stored is not None:
            estimator.__dict__["preprocessing_"] = stored
    return text_of(document_of(estimator._sections()))


def write(model: Any) -> str:
    """The document."""
    return json(model)


def answers(portable: Portable, written: str, rows: Rows) -> Answers:
    """What the model that is read back from the document says."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        path.write_text(written, encoding="utf-8")
        return expected(crisptree.load(path), rows.X)
