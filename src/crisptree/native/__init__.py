"""The C++ kernel: which leaf a row reaches, in the summation order of ``inference.summation``, on any machine.

``router`` is the compiled module where it was built, and None where it was not; the NumPy reference serves then.
"""

from __future__ import annotations

from types import ModuleType
from typing import cast

router: ModuleType | None
try:
    from crisptree.native import _router as _compiled  # type: ignore[attr-defined, unused-ignore]

    router = cast(ModuleType, _compiled)
except ImportError:
    router = None
