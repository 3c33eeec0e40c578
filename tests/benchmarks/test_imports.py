"""Benchmarks run by hand and rarely: what they import from each other must be there."""

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def list_names(path):
    """Names that a module defines or imports at its top level."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    names = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    names |= {alias.asname or alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names}
    return names | {name.id for node in body for name in ast.walk(node) if isinstance(name, ast.Name)}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_names_imported_from_other_benchmarks_exist(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("benchmarks."):
            other = FOLDER / f"{node.module.removeprefix('benchmarks.')}.py"
            assert other.exists(), f"{path.name} imports {node.module}"
            assert {alias.name for alias in node.names} <= list_names(other)
