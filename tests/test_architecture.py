"""Which room may open which door: the imports of every file, read without running it."""

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
    "blocks": set(),
    "scaling": {"blocks"},
    "warning": set(),
    "labels": set(),
    "equations": {"structure"},
    "splits": set(),
    "images": set(),
    "native": set(),
    "inference": {"structure", "scaling", "blocks", "images", "native", "warning"},
    "tree": {"structure", "scaling", "blocks", "splits", "equations", "inference"},
    "learning": {"structure", "tree", "splits", "equations", "native", "warning"},
    "baselines": {"structure", "tree", "splits", "equations", "learning"},
    "view": {"structure", "inference", "labels"},
    "explain": {"structure", "blocks", "labels", "inference", "view"},
    "export": {"structure", "scaling", "inference", "tree", "view"},
    "plots": {"structure", "inference", "view"},
    "report": {"structure", "inference", "view", "explain", "plots"},
    "datasets": set(),
    "tables": set(),
    "metrics": set(),
    "estimators": {"structure", "images", "inference", "warning"},
    "cli": None,
}
"""What a room may import at the top of its files, beside itself; None for everything."""

NESTED_TOO = {"view", "explain", "plots", "report", "export/graphviz.py", "export/rules.py", "export/wording.py"}
"""Where the same holds inside functions."""

TRAINS = {
    "estimators/fitting.py": {"learning", "baselines", "tree", "splits", "scaling", "blocks"},
    "estimators/fitting_images.py": {"learning", "scaling"},
    "estimators/modules.py": {"export", "tree", "splits"},
    "estimators/on_device.py": {"tree", "splits", "scaling"},
    "estimators/progress.py": {"learning"},
    "estimators/simplifying.py": {"learning", "tree", "splits"},
}
"""Files that are themselves imported only inside the method that needs them; learning.history is free of torch."""

LIBRARIES = {
    "torch": {
        "equations",
        "splits",
        "tree",
        "learning",
        "baselines",
        "estimators/fitting.py",
        "estimators/fitting_images.py",
        "estimators/modules.py",
        "estimators/on_device.py",
        "estimators/simplifying.py",
    },
    "matplotlib": {"plots"},
    "sklearn": {"estimators", "baselines", "datasets", "explain", "view"},
    "rich": {"cli", "estimators/progress.py"},
    "typer": {"cli"},
    "pyarrow": {"tables", "cli"},
    "jinja2": {"report"},
    "markupsafe": {"report"},
    "PIL": {"datasets/stacks.py"},
    "urllib": {"datasets/download.py", "cli/data.py"},
}


def room_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imports(path, *, top_only):
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_room_has_a_rule():
    rooms = {room_of(path) for path in FILES} - {"__init__", "__main__"}
    assert rooms <= set(ALLOWED)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path):
    room, name = room_of(path), path.relative_to(ROOT).as_posix()
    allowed = ALLOWED.get(room)
    if allowed is None:
        return
    for module in imports(path, top_only=not {room, name} & NESTED_TOO):
        if module.startswith("crisptree."):
            door = module.split(".")[1]
            assert door == room or door in allowed | TRAINS.get(name, set()), f"{name} may not import {module}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_libraries_stay_in_their_rooms(path):
    room, name = room_of(path), path.relative_to(ROOT).as_posix()
    for module in imports(path, top_only=False):
        homes = LIBRARIES.get(module.split(".")[0])
        assert homes is None or room in homes or name in homes, f"{name} may not import {module}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_short_enough_to_read(path):
    assert len(path.read_text().splitlines()) <= 400


def test_importing_the_package_and_its_names_does_not_import_torch():
    code = "import crisptree, sys; crisptree.CrispTreeClassifier, crisptree.load; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_the_command_line_waits_for_no_large_library_before_it_knows_what_to_do():
    code = "import crisptree.cli.app, sys; print([n for n in ('torch', 'sklearn', 'matplotlib') if n in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(AttributeError, match="it offers CrispTreeClassifier"):
        _ = crisptree.CrispForest
    assert "load" in dir(crisptree)
