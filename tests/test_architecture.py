"""Which part of the package may import which: all imports of every file, read without running it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import crisptree

ROOT = Path(crisptree.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py"))

ALLOWED = {
    "structure": set(),
    "threads": set(),
    "exceptions": set(),
    "distributed": {"threads", "exceptions"},
    "sanitization": set(),
    "typing": set(),
    "limits": set(),
    "files": {"limits"},
    "native": set(),
    "metrics": set(),
    "splits": set(),
    "equations": {"structure"},
    "data": {"threads", "encoding", "targets", "exceptions"},
    "targets": {"tensors"},
    "inference": {"structure", "targets", "data", "threads", "native", "exceptions"},
    "tree": {"structure", "splits", "equations", "targets", "inference", "data", "threads"},
    "learning": {
        *("structure", "tree", "splits", "equations", "targets", "data", "inference"),
        *("threads", "native", "exceptions", "distributed", "persistence"),
    },
    "persistence": {"structure", "targets", "inference", "files", "limits", "exceptions"},
    "encoding": {"targets", "files", "limits", "exceptions"},
    "datasets": {"encoding", "targets", "files", "limits", "sanitization"},
    "inspection": {"structure", "threads", "targets", "inference", "sanitization"},
    "explain": {"inspection"},
    "mlflow": {"estimators"},
    "shap": {"inspection"},
    "export": {"structure", "inference", "inspection", "targets", "persistence"},
    "plots": {"structure", "inference", "inspection", "targets"},
    "report": {"structure", "inference", "files", "metrics", "inspection", "export"},
    "parameters": set(),
    "selection": {"inference", "learning", "targets", "data", "threads", "persistence", "exceptions"},
    "pipeline": {
        *("structure", "tree", "inference", "learning", "selection", "targets", "data", "encoding", "persistence"),
        *("exceptions", "sanitization", "threads"),
        "typing",
        "parameters",
    },
    "estimators": {
        "parameters",
        "selection",
        "pipeline",
        *("structure", "data", "inference", "threads"),
        *(
            "persistence",
            "encoding",
            "targets",
            "exceptions",
            "files",
            "sanitization",
        ),
        "typing",
    },
    "cli": None,
}
"""What a folder or file of the package may import beside itself, nested imports included; None for everything."""

EXCEPTIONS = {
    "targets/base.py": {"equations"},  # inside methods
    "targets/classification.py": {"equations"},
    "targets/regression.py": {"equations"},
    "persistence/trees.py": {"splits", "tree", "threads"},  # with torch, for trees of modules only
    "estimators/forest.py": {"explain", "export"},  # inside methods
    "estimators/base.py": {"explain", "export", "report"},  # inside methods
}
"""Files that may import one more part, and why."""

LIBRARIES = {
    "torch": {
        "equations",
        "splits",
        "threads",
        "targets/classification.py",
        "targets/regression.py",
        "data/rows.py",
        "tree",
        "learning",
        "pipeline/batches.py",
        "pipeline/probabilistic.py",
        "persistence/trees.py",
        "cli/training.py",
    },
    "matplotlib": {"plots"},
    "sklearn": {
        "estimators",
        "pipeline",
        "learning/cart.py",
        "datasets",
        "inspection",
        "selection/search.py",
        "export/sklearn_tree.py",
        "metrics",
        "report",
        "targets",
        "data/validation.py",
        "files",
        "encoding/table_encoder.py",
        "cli/evaluation.py",
        "cli/inspection.py",
    },
    "rich": {"cli", "pipeline/monitoring.py"},
    "typer": {"cli"},
    "pyarrow": {"encoding", "cli", "data/batches.py"},
    "jinja2": {"report"},
    "markupsafe": {"report"},
    "onnx": {"export/onnx_graph.py", "export/skl2onnx.py"},
    "skl2onnx": {"export/skl2onnx.py"},
    "shap": {"shap", "inspection/attributions.py"},
    "onnxruntime": {"export/onnx_graph.py"},
    "PIL": {"datasets/files.py"},
    "urllib": {"datasets/download.py"},
    "pooch": {"datasets/download.py"},
    "requests": {"datasets/download.py"},
}


def part_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path):
    """All imports of a file, nested ones too; not those that only a type checker sees."""
    tree = ast.parse(path.read_text())
    for_types = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", None) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in set(ast.walk(tree)) - for_types:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_parts(path):
    """The other parts of the package that a file imports."""
    inside = (module.split(".")[1] for module in imports(path) if module.startswith("crisptree."))
    return {part for part in inside if part in ALLOWED and part != part_of(path)}


def test_every_part_has_a_rule():
    parts = {part_of(path) for path in FILES} - {"__init__", "__main__"}
    assert parts == set(ALLOWED)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_downwards(path):
    part, name = part_of(path), path.relative_to(ROOT).as_posix()
    allowed = ALLOWED.get(part)
    if allowed is not None:
        assert imported_parts(path) <= allowed | EXCEPTIONS.get(name, set())


def test_every_exception_is_needed():
    for name, further in EXCEPTIONS.items():
        assert further <= imported_parts(ROOT / name), name


def test_the_rules_have_no_circle():
    order = []
    waiting = {part: set(allowed or ()) for part, allowed in ALLOWED.items()}
    while waiting:
        free = sorted(part for part, allowed in waiting.items() if not allowed & waiting.keys())
        assert free, f"these import each other: {sorted(waiting)}"
        order += free
        waiting = {part: allowed for part, allowed in waiting.items() if part not in free}
    assert order.index("estimators") > order.index("inference")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_libraries_are_imported_only_where_they_belong(path):
    part, name = part_of(path), path.relative_to(ROOT).as_posix()
    for module in imports(path):
        places = LIBRARIES.get(module.split(".")[0])
        assert places is None or part in places or name in places, f"{name} may not import {module}"


def test_importing_the_package_and_its_names_does_not_import_torch():
    code = "import crisptree, sys; crisptree.CrispTreeClassifier, crisptree.load; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_the_command_line_waits_for_no_large_library_before_it_parses_its_arguments():
    code = "import crisptree.cli.app, sys; print([n for n in ('torch', 'sklearn', 'matplotlib') if n in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(AttributeError, match="it offers CrispTreeClassifier"):
        _ = crisptree.CrispForest
    assert "load" in dir(crisptree)
