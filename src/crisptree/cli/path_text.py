"""A row's path in one line, in the words of the table rather than of its encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.encoding.preprocessing import Preprocessing
from crisptree.explain import path

MOST_PUSHES = 12
"""Pushes that are looked through for one to the side that the row takes."""


def path_text(model: Any, row: npt.NDArray[np.float32], preprocessing: Preprocessing) -> str:
    """The splits on a row's path, and what did most to send it there."""
    explained = path(model, row, top=MOST_PUSHES)
    parts = []
    for step in explained.steps:
        turn = f"split {step.split} {'right' if step.goes_right else 'left'}"
        with_it = [push for push in step.pushes if push.amount != 0 and (push.amount > 0) == step.goes_right]
        parts.append(f"{turn} ({preprocessing.says(with_it[0].feature, with_it[0].value)})" if with_it else turn)
    return "; ".join([*parts, f"leaf {explained.leaf}: {explained.predicted}"])
