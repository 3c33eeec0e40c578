"""Arrays as short text: little-endian bytes, deflated, in base64; ``scripts/data.js`` reads them back."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

KINDS = {"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4"}
KINDS |= {"float32": "f4", "float64": "f8"}
"""The array types that a browser knows, by their names in NumPy."""

Doubles = npt.NDArray[np.float64]


def pack(array: npt.NDArray[Any], dtype: str) -> dict[str, Any]:
    """An array for the page.

    Examples
    --------
    >>> pack(np.zeros((100, 784)), "uint8")["shape"]
    [100, 784]
    """
    plain = np.ascontiguousarray(array, dtype=np.dtype(dtype).newbyteorder("<"))
    data = base64.b64encode(zlib.compress(plain.tobytes(), 9)).decode("ascii")
    return {"dtype": KINDS[dtype], "shape": list(array.shape), "data": data}


def signed_bytes(values: Doubles) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Each row in steps of 1/127 of its largest size, and that size.  (n, …) → (n, …), (n,)"""
    largest = np.abs(values).reshape(len(values), int(np.prod(values.shape[1:]))).max(axis=1, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0).reshape(-1, *(1,) * (values.ndim - 1))
    return np.round(values / unit * 127).astype(np.int8), largest.astype(np.float32)


def grey_bytes(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint8], float, float]:
    """All values in 256 steps from the smallest to the largest, and these two."""
    if not values.size:
        return np.zeros(values.shape, dtype=np.uint8), 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    reach = high - low if high > low else 1.0
    return np.round((values.astype(np.float64) - low) / reach * 255).astype(np.uint8), low, high


def shrunk(images: npt.NDArray[Any], step: int) -> npt.NDArray[np.float64]:
    """Means over blocks of step × step pixels, the last ones padded by repetition.  (n, h, w, c) → smaller"""
    n, height, width, channels = images.shape
    padding = ((0, 0), (0, -height % step), (0, -width % step), (0, 0))
    padded = np.pad(images.astype(np.float64), padding, mode="edge")
    blocks = padded.reshape(n, padded.shape[1] // step, step, padded.shape[2] // step, step, channels)
    return np.asarray(blocks.mean(axis=(2, 4)))


def step_within(n_images: int, shape: tuple[int, int, int], budget: int) -> int:
    """By how much images must shrink so that all of them have at most ``budget`` values."""
    height, width, channels = shape
    step = 1
    while step < max(height, width) and n_images * -(-height // step) * -(-width // step) * channels > budget:
        step += 1
    return step
