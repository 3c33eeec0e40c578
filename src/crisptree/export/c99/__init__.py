"""Export to C99: one header without dependencies, in single precision or quantized to integers."""

from __future__ import annotations

from typing import Any

from crisptree.export.c99.header import render
from crisptree.export.c99.runner import run
from crisptree.export.formats import find_format

__all__ = ["c", "render", "run"]


def c(
    model: Any,
    *,
    name: str = "model",
    integer: str | None = None,
    inputs: str = "auto",
    max_flash: int | None = None,
    max_stack: int | None = None,
) -> str:
    """Export a fitted model as one header of C99, also valid C++: no library, no allocation, no recursion.

    It has the functions ``NAME_leaf``, ``NAME_predict`` (the index of the class) and ``NAME_predict_proba``. Scaling is
    folded into the weights. In single precision, sums are those of the kernel, so every row reaches the same leaf, bit
    by bit; quantized, some rows near a boundary reach another one, and ``export.check`` counts them.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline of a ``TableEncoder`` and one.
    name : str, default="model"
        Prefix of all names in the header.
    integer : {"int8", "int16"}, default=None
        Quantize weights, for machines without floating point; inputs are integers then too, and 32-bit sums provably do
        not overflow.
    inputs : {"auto", "plain", "scaled"}, default="auto"
        With ``integer``: whether features are used unscaled, or scaled to one range by ``NAME_quantize``.
    max_flash, max_stack : int, default=None
        Reject a header that takes more bytes of program memory, or of stack, on a Cortex-M0.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y)
    >>> header = export.c(model, name="level", integer="int8")
    >>> [line for line in header.splitlines() if line.startswith("int32_t")][:2]
    ['int32_t level_leaf(const uint8_t *row);', 'int32_t level_predict(const uint8_t *row);']
    """
    options = {"name": name, "integer": integer, "inputs": inputs, "max_flash": max_flash, "max_stack": max_stack}
    return str(find_format("c").write(model, **options))
