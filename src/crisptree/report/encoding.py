"""Encoding of values and resources for the page."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from importlib.resources import files
from typing import Any

import numpy as np
import numpy.typing as npt

DTYPE_CODES = {"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4"}
DTYPE_CODES |= {"float32": "f4", "float64": "f8"}
"""The array types that a browser knows, by their names in NumPy."""

Doubles = npt.NDArray[np.float64]


def pack(array: npt.NDArray[Any], dtype: str) -> dict[str, Any]:
    """Encode an array as base64 of its deflated little-endian bytes, which ``scripts/data.js`` decodes."""
    plain = np.ascontiguousarray(array, dtype=np.dtype(dtype).newbyteorder("<"))
    data = base64.b64encode(zlib.compress(plain.tobytes(), 9)).decode("ascii")
    return {"dtype": DTYPE_CODES[dtype], "shape": list(array.shape), "data": data}


def signed_bytes(values: Doubles) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Quantize each row to int8 by its largest absolute value, and return that value.  (n, …) → (n, …), (n,)"""
    largest = np.abs(values).reshape(len(values), int(np.prod(values.shape[1:]))).max(axis=1, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0).reshape(-1, *(1,) * (values.ndim - 1))
    return np.round(values / unit * 127).astype(np.int8), largest.astype(np.float32)


def gray_bytes(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint8], float, float]:
    """Quantize all values to 256 steps from the minimum to the maximum, and return these two."""
    if not values.size:
        return np.zeros(values.shape, dtype=np.uint8), 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    span = high - low if high > low else 1.0
    return np.round((values.astype(np.float64) - low) / span * 255).astype(np.uint8), low, high


def downsample(images: npt.NDArray[Any], step: int) -> npt.NDArray[np.float64]:
    """Average blocks of step × step pixels, the last ones padded by repetition.  (n, h, w, c) → smaller"""
    n, height, width, channels = images.shape
    padding = ((0, 0), (0, -height % step), (0, -width % step), (0, 0))
    padded = np.pad(images.astype(np.float64), padding, mode="edge")
    blocks = padded.reshape(n, padded.shape[1] // step, step, padded.shape[2] // step, step, channels)
    return np.asarray(blocks.mean(axis=(2, 4)))


def find_step(n_images: int, shape: tuple[int, int, int], budget: int) -> int:
    """Return the smallest step of ``downsample`` with which all images have at most ``budget`` values."""
    height, width, channels = shape
    step = 1
    while step < max(height, width) and n_images * -(-height // step) * -(-width // step) * channels > budget:
        step += 1
    return step


def to_json(values: dict[str, Any]) -> str:
    """Dump JSON that cannot end its script element, whatever names it holds."""
    text = json.dumps(values, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def csp_hash(text: str) -> str:
    """Return the hash by which a Content-Security-Policy allows an inline text."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def read_resource(*parts: str) -> str:
    """Read a file of this package."""
    return files("crisptree.report").joinpath(*parts).read_text(encoding="utf-8")
