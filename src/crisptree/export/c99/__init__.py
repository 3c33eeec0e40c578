"""C99 for anything that has a compiler: one header without dependencies, in single precision or in whole numbers."""

from __future__ import annotations

from typing import Any

from crisptree.export.agreement import Answers, Rows
from crisptree.export.c99.running import answers_of
from crisptree.export.c99.writing import header
from crisptree.export.portable import Portable


def c(
    model: Any,
    *,
    name: str = "model",
    integer: str | None = None,
    inputs: str = "auto",
    max_flash: int | None = None,
    max_stack: int | None = None,
) -> str:
    """A fitted model as one header of C99: no library, no memory asked for, no recursion; C++ takes it too.

    It has the functions ``NAME_leaf``, ``NAME_predict`` (the number of the class) and ``NAME_predict_proba``. Scaling
    is folded in. In single precision, sums are those of the kernel, so every row reaches the same leaf, bit by bit; in
    whole numbers some rows near a boundary reach another one, and ``export.check`` counts them.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator, or a fitted Pipeline of a ``TableEncoder`` and one.
    name : str, default="model"
        The prefix of everything in the header.
    integer : {"int8", "int16"}, default=None
        Weights in whole numbers, for machines without floating point; inputs are whole numbers then too, and sums of 32
        bits are proven not to overflow.
    inputs : {"auto", "plain", "scaled"}, default="auto"
        Of whole numbers: whether features come in as they are, or brought to one range by ``NAME_quantize``.
    max_flash, max_stack : int, default=None
        Refuse a header that takes more bytes of program memory, or of stack, on a Cortex-M0.

    Returns
    -------
    str
        The header.

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
    from crisptree.export.support import target_named

    options = {"name": name, "integer": integer, "inputs": inputs, "max_flash": max_flash, "max_stack": max_stack}
    return str(target_named("c").write(model, **options))


def write(portable: Portable, **options: Any) -> str:
    """The text of the header."""
    return header(portable, **options)


def answers(portable: Portable, written: str, rows: Rows) -> Answers:
    """What the header says of rows, compiled and run, and what it costs."""
    return answers_of(portable, written, rows)
