"""Arguments that callers give."""

from __future__ import annotations

from typing import Any

import numpy as np


def whole_number(name: str, value: Any, low: int, otherwise: str = "") -> int:
    """The value of a parameter that counts something.

    Examples
    --------
    >>> whole_number("top", 3, 0)
    3
    >>> whole_number("top", 2.5, 0)
    Traceback (most recent call last):
    ...
    ValueError: `top` must be a whole number of at least 0; got 2.5.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        raise ValueError(f"`{name}` must be a whole number of at least {low}{otherwise}; got {value!r}.")
    return int(value)


def whole_number_or_none(name: str, value: Any, low: int) -> int | None:
    """The same where None stands for all there is."""
    return None if value is None else whole_number(name, value, low, ", or None for all")


def boolean(name: str, value: Any) -> bool:
    """The value of a parameter that is True or False.

    Examples
    --------
    >>> boolean("legend", 2.0)
    Traceback (most recent call last):
    ...
    ValueError: `legend` must be True or False; got 2.0.
    """
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"`{name}` must be True or False; got {value!r}.")
    return bool(value)
