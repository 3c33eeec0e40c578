"""What a written graph says of rows: onnxruntime runs it."""

from __future__ import annotations

from typing import Any

import numpy as np

from crisptree.export.agreement import Answers, Rows
from crisptree.export.onnx_graph.answering import label_values
from crisptree.export.onnx_graph.entering import ROWS, input_names
from crisptree.export.portable import ExportError, Portable

ROWS_AT_ONCE = 4096


def answers_of(portable: Portable, written: bytes, rows: Rows) -> Answers:
    """What the graph says of rows, on the CPU."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ExportError("to run ONNX needs the package onnxruntime. Install it: pip install onnxruntime.") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(written, options, providers=["CPUExecutionProvider"])
    asked = [output.name for output in session.get_outputs()]
    given = inputs_of(portable, rows)
    found: dict[str, list[Any]] = {name: [] for name in asked}
    for start in range(0, max(len(rows), 1), ROWS_AT_ONCE):
        piece = {name: values[start : start + ROWS_AT_ONCE] for name, values in given.items()}
        for name, values in zip(asked, session.run(asked, piece), strict=True):
            found[name].append(values)
    said = {name: np.concatenate(values) for name, values in found.items()}
    notes = (f"run with onnxruntime {onnxruntime.__version__}",)
    if portable.task == "regression":
        return Answers(said["leaf"], np.full(len(rows), -1), said["variable"].astype(np.float64), notes)
    place = {label: number for number, label in enumerate(label_values(portable.classes)[1].tolist())}
    classes = np.array([place[label] for label in said["label"].tolist()], dtype=np.int64)
    return Answers(said["leaf"], classes, said["probabilities"].astype(np.float64), notes)


def inputs_of(portable: Portable, rows: Rows) -> dict[str, Any]:
    """Rows as the graph takes them."""
    if not portable.encodes:
        return {ROWS: np.ascontiguousarray(rows.X)}
    given: dict[str, Any] = {}
    for name, column in zip(input_names(portable), portable.inputs, strict=True):
        values = rows.columns[column.name]
        if column.kind == "category":
            texts = ["" if value is None else str(value) for value in values]
            given[name] = np.array(texts, dtype=object).reshape(-1, 1)
        else:
            numbers = [np.nan if value is None else float(value) for value in values]
            given[name] = np.array(numbers, dtype=np.float32).reshape(-1, 1)
    return given
