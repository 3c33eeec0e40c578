"""The C++ kernels: which leaf a row reaches, and the training steps of hyperplanes.

``router`` and ``training`` are the compiled modules where they were built, and None where they were not: NumPy and
torch serve then.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

router: ModuleType | None
training: ModuleType | None
try:
    router, training = (import_module(f"crisptree.native.{name}") for name in ("_router", "_training"))
except ImportError:
    router = training = None
