"""The C++ kernels: which leaf a row reaches, and the training steps of hyperplanes.

``router`` and ``training`` are the compiled modules where they were built, and None where they were not: NumPy and
torch serve then. Both use the widest instruction set of the processor, or the one that ``CRISPTREE_ISA`` names.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import ModuleType

router: ModuleType | None
training: ModuleType | None
try:
    router, training = (import_module(f"crisptree.native.{name}") for name in ("_router", "_training"))
except ImportError:
    router = training = None

instruction_set: str | None = None
"""Instruction set of the kernels: scalar, sse2, avx2, avx512 or neon; None where they were not built."""

if router is not None and training is not None:
    available: list[str] = router.instruction_sets()
    instruction_set = os.environ.get("CRISPTREE_ISA") or available[-1]
    if instruction_set not in available:
        raise ValueError(
            f"CRISPTREE_ISA must name an instruction set of this processor, one of {', '.join(available)}; got "
            f"{instruction_set!r}. Unset it to use the widest."
        )
    router.set_instruction_set(instruction_set)
    training.set_instruction_set(instruction_set)
