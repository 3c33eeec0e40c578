"""ONNX: models as graphs of common operators, which runtimes of all kinds execute."""

from __future__ import annotations

from typing import Any

from crisptree.export.agreement import Answers, Rows
from crisptree.export.onnx_graph.running import answers_of
from crisptree.export.onnx_graph.writing import graph_bytes
from crisptree.export.portable import Portable


def onnx(model: Any, *, name: str = "model", form: str = "matrix") -> bytes:
    """A fitted model as an ONNX file; needs the package onnx (``pip install 'crisptree[onnx]'``).

    The input is ``X``, rows of float32, or one input for every column where the model encodes tables. Outputs are
    ``label`` and ``probabilities``, as skl2onnx gives them, or ``variable`` of a regression; and ``leaf``.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline of a ``TableEncoder`` and one.
    name : str, default="model"
        The name of the graph.
    form : {"matrix", "ensemble", "paths"}, default="matrix"
        "matrix": all scores by one Gemm, then the leaf by a product with the matrix of paths; core operators only.
        "ensemble": all scores by one Gemm, then the ensemble of trees of ai.onnx.ml. "paths": level by level, every
        row asks the splits on its own path only; for few rows and many splits.

    Returns
    -------
    bytes
        The file, which ``onnx.checker`` has passed.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    >>> type(export.onnx(model)).__name__
    'bytes'
    """
    from crisptree.export.support import target_named

    written = target_named("onnx").write(model, name=name, form=form)
    assert isinstance(written, bytes)
    return written


def write(portable: Portable, **options: Any) -> bytes:
    """The bytes of the file."""
    return graph_bytes(portable, **options)


def answers(portable: Portable, written: bytes, rows: Rows) -> Answers:
    """What the graph says of rows, run by onnxruntime."""
    return answers_of(portable, written, rows)
