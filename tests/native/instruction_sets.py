"""Runs pytest once per instruction set: ``python -m tests.native.instruction_sets [SET …] [-- ARGUMENTS OF PYTEST]``.

The last bits of a training depend on the instruction sets of our kernels, of torch and of the libraries below them, so
a suite that passes for all of these depends on none of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

from crisptree import native

NARROWEST = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}
HASWELL = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
CAPABILITIES: Mapping[str, Mapping[str, str]] = {
    "scalar": NARROWEST | {"OPENBLAS_CORETYPE": "Nehalem"},
    "sse2": NARROWEST | {"OPENBLAS_CORETYPE": "Nehalem"},
    "neon": {"ATEN_CPU_CAPABILITY": "default"},
    "avx2": HASWELL | {"OPENBLAS_CORETYPE": "Haswell"},
    "avx512": {"ATEN_CPU_CAPABILITY": "avx512"},
}
"""The settings of torch, oneDNN, MKL and OpenBLAS that go with an instruction set of our kernels."""


def settings(name: str) -> dict[str, str]:
    """Environment variables that cap our kernels and all libraries at an instruction set."""
    found = [feature for feature in __cpu_dispatch__ if __cpu_features__.get(feature)]
    wide = {
        "avx2": [feature for feature in found if "AVX512" in feature or feature == "X86_V4"],
        "scalar": found,
        "sse2": found,
    }
    return {**CAPABILITIES[name], "CRISPTREE_ISA": name, "NPY_DISABLE_CPU_FEATURES": " ".join(wide.get(name, []))}


def main(arguments: list[str]) -> int:
    """Run the tests with each of the named sets, all by default; 1 where one of the runs has failed."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    names, more = arguments[:end] or list(CAPABILITIES), arguments[end + 1 :]
    if unknown := set(names) - set(CAPABILITIES):
        sys.exit(f"instruction sets must be among {', '.join(CAPABILITIES)}; got {', '.join(sorted(unknown))}")
    if native.router is None:
        sys.exit("the kernels must be built first: python -m pip install -e .")
    failed = []
    for name in names:
        if name not in native.router.instruction_sets():
            print(f"{name}: skipped, this processor does not have it", flush=True)
            continue
        print(f"{name}: {' '.join(f'{key}={value!r}' for key, value in settings(name).items())}", flush=True)
        done = subprocess.run([sys.executable, "-m", "pytest", *more], env=os.environ | settings(name), check=False)
        if done.returncode:
            failed.append(name)
    print(f"failed with {', '.join(failed)}" if failed else "passed with every instruction set of this processor")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
