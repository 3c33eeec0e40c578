"""What the source distribution carries, what comes of it in a clean environment, and what the tests are locked to."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from tests import locking

ROOT = Path(__file__).parents[1]


def build_sdist(folder, monkeypatch):
    build = pytest.importorskip("scikit_build_core.build", reason="needs the build backend: pip install crisptree[dev]")
    monkeypatch.chdir(ROOT)
    return folder / build.build_sdist(str(folder))


def test_the_source_distribution_carries_the_library_and_its_tests_but_no_results(tmp_path, monkeypatch):
    with tarfile.open(build_sdist(tmp_path, monkeypatch)) as archive:
        names = [PurePosixPath(*PurePosixPath(name).parts[1:]) for name in archive.getnames()]
    assert not [name for name in names if name.is_relative_to("docs/results")]
    assert not [name for name in names if name.suffix == ".jsonl"]
    needed = ("pyproject.toml", "CMakeLists.txt", "src/crisptree/__init__.py", "tests/test_docs.py", "docs/index.md")
    needed = (*needed, "src/crisptree/py.typed")
    assert set(map(PurePosixPath, (*needed, "SECURITY.md", "requirements-lock.txt"))) <= set(names)


USED = """
import pathlib
import sys
import numpy as np
import crisptree
from crisptree import native
X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["low", "low", "high", "high"])
model = crisptree.CrispTreeClassifier(max_depth=1, random_state=0).fit(X, y)
model.save("model.crisp")
assert crisptree.load("model.crisp").predict(X).tolist() == y.tolist()
assert native.router is not None and native.training is not None, "the kernels were not built"
assert crisptree.__file__.startswith(sys.prefix), crisptree.__file__
assert (pathlib.Path(crisptree.__file__).parent / "py.typed").is_file(), "type checkers would ignore the annotations"
"""


@pytest.mark.slow
def test_a_wheel_from_the_source_distribution_works_in_a_clean_environment(tmp_path, monkeypatch):
    """The environment holds the wheel alone; what it depends on is lent by a path, so that nothing is fetched."""
    sdist = build_sdist(tmp_path, monkeypatch)
    pip = [sys.executable, "-m", "pip"]
    build = [*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(sdist)]
    subprocess.run(build, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    clean = tmp_path / "clean"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(clean)], check=True)
    scripts = clean / ("Scripts" if os.name == "nt" else "bin")
    python = str(scripts / "python")
    subprocess.run([*pip, "--python", python, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    where = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], **RUN).stdout
    (Path(where.strip()) / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run([python, "-c", USED], cwd=tmp_path, check=True)
    said = subprocess.run([str(scripts / "crisptree"), "--version"], cwd=tmp_path, **RUN).stdout
    assert said.startswith("crisptree ")


RUN = {"check": True, "capture_output": True, "text": True}


def test_the_lock_has_all_that_is_asked_for_in_the_versions_of_the_constraints():
    locked = locking.locked()
    for requirement in locking.requirements():
        assert locking.normalised(re.match(r"[\w.-]+", requirement)[0]) in locked, requirement
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, _, version = line.partition("==")
        if locking.normalised(name) in locked:
            assert locked[locking.normalised(name)][0] == version


def test_the_lock_names_no_place_that_files_come_from():
    assert "://" not in locking.LOCK.read_text(encoding="utf-8")
