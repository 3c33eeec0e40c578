"""Runs pytest with the compiled modules of another build: ``python -m tests.native.with_kernels_of FOLDER …``."""

import importlib.util
import sys
from pathlib import Path

import pytest


def take_kernels_of(folder: str) -> None:
    """Load the modules before the package asks for its own."""
    for name in ("_router", "_training"):
        (file,) = Path(folder).glob(f"crisptree/native/{name}.*so")
        spec = importlib.util.spec_from_file_location(f"crisptree.native.{name}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[spec.name] = module


if __name__ == "__main__":
    take_kernels_of(sys.argv[1])
    from crisptree.native import router

    assert router is not None
    assert sys.argv[1] in str(router.__file__)
    sys.exit(pytest.main(sys.argv[2:]))
