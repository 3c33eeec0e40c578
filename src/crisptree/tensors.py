"""Tensors of torch among the inputs, told without importing torch."""

from __future__ import annotations

from typing import Any


def detach(values: Any) -> Any:
    """A tensor without its graph, of which NumPy can take the values; anything else as it is.

    Examples
    --------
    >>> import numpy as np, torch
    >>> np.asarray(detach(torch.ones(2, requires_grad=True))).tolist()
    [1.0, 1.0]
    """
    return values.detach() if getattr(values, "requires_grad", False) is True else values
