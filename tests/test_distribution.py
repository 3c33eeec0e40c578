"""What the source distribution carries."""

import tarfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[1]


def test_the_source_distribution_carries_the_library_and_its_tests_but_no_results(tmp_path, monkeypatch):
    build = pytest.importorskip("scikit_build_core.build", reason="needs the build backend: pip install crisptree[dev]")
    monkeypatch.chdir(ROOT)
    with tarfile.open(tmp_path / build.build_sdist(str(tmp_path))) as archive:
        names = [PurePosixPath(*PurePosixPath(name).parts[1:]) for name in archive.getnames()]
    assert not [name for name in names if name.is_relative_to("docs/results")]
    assert not [name for name in names if name.suffix == ".jsonl"]
    needed = ("pyproject.toml", "CMakeLists.txt", "src/crisptree/__init__.py", "tests/test_docs.py", "docs/index.md")
    assert set(map(PurePosixPath, needed)) <= set(names)
