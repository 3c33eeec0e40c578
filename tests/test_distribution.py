"""What the source distribution carries, what comes of it in a clean environment, and what the tests are locked to."""

import email
import importlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
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


RETIRED = ("macos-12", "macos-13", "macos-14", "ubuntu-20.04", "windows-2019")
"""Labels of runners that no longer exist."""


def configuration():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def workflows():
    return sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def wheel_tag():
    """Python and ABI that a wheel built here must be tagged with."""
    own = f"cp{sys.version_info.major}{sys.version_info.minor}"
    if sys.version_info < (3, 12):
        return f"{own}-{own}"
    return f"{own}-{own}t" if sysconfig.get_config_var("Py_GIL_DISABLED") else "cp312-abi3"


def test_modules_use_the_stable_abi_exactly_where_the_wheel_is_tagged_so():
    cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    modules = re.findall(r"nanobind_add_module\(\w+ (.*)", cmake)
    assert len(modules) == 2
    assert all("STABLE_ABI" in options for options in modules)
    assert re.search(r"find_package\(Python [^)]*\$\{SKBUILD_SABI_COMPONENT\}", cmake)
    settings = configuration()["tool"]["scikit-build"]
    assert settings["wheel"]["py-api"] == "cp312"
    at_312 = [override for override in settings["overrides"] if override["if"].get("python-version") == ">=3.12"]
    assert [override["cmake"]["version"] for override in at_312] == [">=3.26"]  # which has Development.SABIModule


def test_wheels_are_built_for_every_python_that_is_tested():
    (pythons,) = {
        listed
        for path in workflows()
        for listed in re.findall(r"system: .*\n\s+python: \[(.*)\]", path.read_text(encoding="utf-8"))
    }
    pythons = [version.strip(' "') for version in pythons.split(",")]
    said = configuration()
    assert said["project"]["requires-python"] == f">={pythons[0]}"
    assert said["tool"]["cibuildwheel"]["build"].split() == [f"cp{version.replace('.', '')}-*" for version in pythons]


def test_workflows_pin_actions_and_keep_no_credentials():
    pins = {}
    for path in workflows():
        text = path.read_text(encoding="utf-8")
        assert "\npermissions:\n  contents: read\n" in text
        assert not [label for label in RETIRED if re.search(rf"{re.escape(label)}\b", text)]
        for action, rest in re.findall(r"uses: ([\w/.-]+)(.*(?:\n.*)?)", text):
            pin = re.match(r"@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)\n", rest)
            assert pin, f"{path.name}: {action} must be pinned to a commit, with its version in a comment"
            assert pins.setdefault(action, pin.groups()) == pin.groups(), f"{action} has two pins"
            assert action != "actions/checkout" or "persist-credentials: false" in rest
    assert "actions/checkout" in pins


def test_where_the_kernels_cannot_be_built_the_wheel_is_pure(tmp_path, monkeypatch):
    build = pytest.importorskip("scikit_build_core.build", reason="needs the build backend: pip install crisptree[dev]")
    if shutil.which("cmake") is None:
        pytest.skip("needs cmake")
    monkeypatch.chdir(ROOT)
    broken = {"cmake.define.CMAKE_DISABLE_FIND_PACKAGE_Threads": "ON", "build-dir": str(tmp_path / "build")}
    wheel = build.build_wheel(str(tmp_path), broken)
    assert wheel.endswith("-py3-none-any.whl")


def test_the_description_for_package_indexes_is_the_readme_without_links_to_files(tmp_path, monkeypatch):
    with tarfile.open(build_sdist(tmp_path, monkeypatch)) as archive:
        (name,) = [name for name in archive.getnames() if PurePosixPath(name).match("*/PKG-INFO")]
        metadata = email.message_from_bytes(archive.extractfile(name).read())
    assert metadata["Description-Content-Type"].startswith("text/markdown")
    text = metadata.get_payload(decode=True).decode()
    assert [target for target in re.findall(r"\]\(([^)]*)\)", text) if not target.startswith("https://")] == []
    assert "![" not in text
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ .*$", readme, flags=re.M)
    assert re.findall(r"^#+ .*$", text, flags=re.M) == headings
    assert ">>> X, y = load_wine(return_X_y=True, as_frame=True)" in text


def test_links_of_the_readme_become_absolute_where_the_project_names_its_repository(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    pypi_readme = importlib.import_module("pypi_readme")
    text = "[tuning](docs/guide/model-selection.md#depth), [paper](https://example.org/x)\n\n![tree](docs/tree.png)\n\n*A.*\n\nEnd."
    shown = pypi_readme.render(text, "https://example.org/repository/", "0.1.0")
    tuning = "https://example.org/repository/blob/v0.1.0/docs/guide/model-selection.md#depth"
    assert shown == f"[tuning]({tuning}), [paper](https://example.org/x)\n\nEnd."
    assert pypi_readme.render(text, None, "0.1.0") == "tuning, [paper](https://example.org/x)\n\nEnd."


def test_citation_changelog_and_conda_recipe_name_the_version_of_the_package():
    version = configuration()["project"]["version"]
    assert re.search(rf"^version: {re.escape(version)}$", (ROOT / "CITATION.cff").read_text(), flags=re.M)
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## \[?(\d[\d.]*)\b", changelog, flags=re.M)[1] == version
    assert f'version: "{version}"' in RECIPE.read_text()


RECIPE = ROOT / "conda" / "recipe.yaml"
CONDA_NAMES = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
"""Packages that conda-forge names otherwise."""


def test_the_conda_recipe_requires_what_the_package_requires():
    lines = re.findall(r"^    - ([\w.-]+) (>=\S+)$", RECIPE.read_text(), flags=re.M)
    project = configuration()["project"]
    required = [*configuration()["build-system"]["requires"], *project["dependencies"]]
    required += [f"python{project['requires-python']}", "cmake>=3.26"]
    required += [each for extra in ("cli", *OPTIONAL) for each in project["optional-dependencies"][extra]]
    pairs = [re.fullmatch(r"([\w.-]+)(>=.*)", each) for each in required if not each.startswith("crisptree[")]
    assert sorted(lines) == sorted((CONDA_NAMES.get(pair[1], pair[1]), pair[2]) for pair in pairs)


OPTIONAL = ("tables", "plots", "images", "datasets", "report", "onnx")


def test_the_package_itself_imports_neither_numpy_nor_scikit_learn_nor_torch():
    code = "import sys, crisptree; print([name for name in ('numpy', 'sklearn', 'torch') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], **RUN).stdout == "[]\n"


@pytest.mark.slow
def test_a_wheel_from_the_source_distribution_works_in_a_clean_environment(tmp_path, monkeypatch):
    """The environment holds the wheel alone; what it depends on is lent by a path, so that nothing is fetched."""
    sdist = build_sdist(tmp_path, monkeypatch)
    pip = [sys.executable, "-m", "pip"]
    build = [*pip, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(sdist)]
    subprocess.run(build, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert f"-{wheel_tag()}-" in wheel.name
    clean = tmp_path / "clean"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(clean)], check=True)
    scripts = clean / ("Scripts" if os.name == "nt" else "bin")
    python = str(scripts / "python")
    subprocess.run([*pip, "--python", python, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    where = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], **RUN).stdout
    (Path(where.strip()) / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    subprocess.run([python, "-I", str(ROOT / "tests" / "native" / "check_wheel.py")], cwd=tmp_path, check=True)
    said = subprocess.run([str(scripts / "crisptree"), "--version"], cwd=tmp_path, **RUN).stdout
    assert said.startswith("crisptree ")


RUN = {"check": True, "capture_output": True, "text": True}


def test_the_lock_has_all_requirements_in_the_versions_of_the_constraints():
    locked = locking.locked()
    for requirement in locking.requirements():
        assert locking.normalised(re.match(r"[\w.-]+", requirement)[0]) in locked, requirement
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        name, _, version = line.partition("==")
        if locking.normalised(name) in locked:
            assert locked[locking.normalised(name)][0] == version


def test_the_lock_names_no_place_that_files_come_from():
    assert "://" not in locking.LOCK.read_text(encoding="utf-8")
