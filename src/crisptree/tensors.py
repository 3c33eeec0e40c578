"""Conversion of torch tensors without importing torch."""

from __future__ import annotations

from typing import Any


def detach(values: Any) -> Any:
    """Detach a tensor from its graph and move it to the CPU, where NumPy can read it; return anything else as it is.

    Examples
    --------
    >>> import numpy as np, torch
    >>> np.asarray(detach(torch.ones(2, requires_grad=True))).tolist()
    [1.0, 1.0]
    """
    values = values.detach() if getattr(values, "requires_grad", False) is True else values
    return values.cpu() if getattr(values, "is_cuda", False) is True else values
