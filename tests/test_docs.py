"""Links, pictures and file names in the Markdown pages lead somewhere, and the API page names all that is public."""

import importlib
import importlib.util
import inspect
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

import crisptree
from crisptree import CrispForestClassifier, CrispPixelRegressor, CrispSegmenter, CrispTreeClassifier

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RESULTS = DOCS / "results"
BUILT = {"auto_examples", "generated"}
"""Folders that Sphinx fills; links into them are Sphinx's to check."""

PAGES = sorted(
    page
    for page in [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *ROOT.glob("*/README.md")]
    if not set(page.relative_to(ROOT).parts) & (BUILT | {".venv", "build"})
)
MODULES = ("datasets", "distributed", "explain", "export", "metrics", "plots", "report")
PUBLIC = ("crisptree", *(f"crisptree.{module}" for module in MODULES))
FILE = re.compile(r"[\w.+-]+(?:/[\w.+*-]+)+/?")
"""A path: names joined by slashes, such as docs/index.md, experiments/ or benchmarks/bench_*.py."""


def prose(page):
    """The page without its code blocks."""
    return re.sub(r"^(`{3,}|:{3,}).*?^\1\s*$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)


def links(page):
    """Targets of links and pictures, without titles."""
    text = re.sub(r"`[^`\n]*`", "", prose(page))
    return re.findall(r"\]\(([^)\s]+)\)", text)


def anchors(page):
    """Headings as the anchors that a repository's browser and MyST give them."""
    headings = re.findall(r"^#+ +(.+?)\s*$", prose(page), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@cache
def top_level():
    """Names that a path in the repository may start with."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    paths = listed.stdout.splitlines() if listed.returncode == 0 else [path.name for path in ROOT.iterdir()]
    return {path.split("/")[0] for path in paths}


def exists(name):
    return any(ROOT.glob(name.rstrip("/"))) or is_left_out(ROOT / name)


def is_left_out(path):
    """Whether a path leads to the results where there are none: the source distribution leaves them out."""
    return path.is_relative_to(RESULTS) and not RESULTS.exists()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_picture_of_a_page_leads_somewhere(page):
    for link in links(page):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link) or BUILT & set(target.split("/")) or anchor.startswith("crisptree."):
            continue
        there = (page.parent / target).resolve() if target else page
        if is_left_out(there):
            continue
        assert there.exists(), f"{page.relative_to(ROOT)} links to {link}, which is not there"
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), f"{page.relative_to(ROOT)} links to {link}; there is no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_of_the_repository_that_a_page_names_is_there(page):
    for code in re.findall(r"`([^`\n]+)`", prose(page)):
        for name in FILE.findall(code):
            if name.split("/")[0] in top_level():
                assert exists(name), f"{page.relative_to(ROOT)} names {name}, which is not there"


def test_files_of_the_repository_are_distinguished_from_other_words():
    assert FILE.findall("python benchmarks/bench_fit.py --seeds 3") == ["benchmarks/bench_fit.py"]
    assert exists("docs/guide/reproducing.md")
    assert exists("benchmarks/bench_*.py")
    assert not exists("docs/no-such-page.md")
    assert "src" in top_level()


def resolved(name):
    """The module and the thing behind a dotted name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        break
    for part in parts[length:]:
        thing = getattr(thing, part)
    return ".".join(parts[:length]), thing


def test_every_link_to_a_function_leads_into_the_package():
    names = re.findall(r"\]\(#(crisptree\.[\w.]+)\)", (DOCS / "paper-to-code.md").read_text(encoding="utf-8"))
    assert len(names) > 20
    for name in names:
        thing = resolved(name)[1]
        assert thing.__doc__, name


def code_names(text):
    """Dotted names in code marks, without arguments and values: ``mass_threshold=1e-3`` is ``mass_threshold``."""
    marked = re.findall(r"``([^`]+)``|`([^`\n]+)`", text)
    names = [re.match(r"[A-Za-z_][\w.]*(?=$|[=(\[])", first or second) for first, second in marked]
    return [name[0] for name in names if name and not name[0].endswith((".py", ".inc", ".h"))]


@cache
def package_sources():
    """The Python files of the package by the last parts of their dotted names, and all C++ code as one text."""
    package = ROOT / "src" / "crisptree"
    python = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    native = [
        path.read_text(encoding="utf-8") for path in (package / "native").iterdir() if path.suffix in (".inc", ".h")
    ]
    return python, "\n".join(native)


def is_defined(name):
    """Whether a class, function, parameter or constant of that name is defined where its prefix says."""
    *prefix, last = name.split(".")
    python, native = package_sources()
    files = python
    if prefix and prefix[-1] in crisptree.__all__:
        return hasattr(getattr(crisptree, prefix[-1]), last)
    if prefix:
        owners = {path: text for path, text in python.items() if prefix[-1] in (path.stem, path.parent.name)}
        classes = {
            path: text for path, text in python.items() if re.search(rf"^class {prefix[-1]}\b", text, flags=re.M)
        }
        files = owners | classes
    definition = re.compile(rf"^ *(?:def|class) {last}\b|^ *{last}\b *[:=]", flags=re.M)
    is_native = not prefix and re.search(rf"\b{last}\((?:[^)]*)\) *(?:const *)?\{{", native)
    return any(definition.search(text) for text in files.values()) or bool(is_native)


def test_a_name_is_defined_only_where_its_prefix_says():
    assert is_defined("em.split_loss")
    assert not is_defined("routing.split_loss")
    assert is_defined("Classes.evidence")
    assert not is_defined("noise_pull")
    assert is_defined("CrispTreeClassifier.paper")
    assert not is_defined("CrispTreeClassifier.no_such_method")
    assert code_names("``em.split_loss`` and `mass_threshold=1e-3`, not `native/route.h`") == [
        "em.split_loss",
        "mass_threshold",
    ]


@pytest.mark.parametrize("source", ["docs/paper-to-code.md", "src/crisptree/equations/__init__.py"])
def test_every_code_name_beside_the_papers_formulas_exists(source):
    names = code_names((ROOT / source).read_text(encoding="utf-8"))
    assert len(names) > 15
    assert [name for name in names if not is_defined(name)] == []


def test_every_native_file_beside_the_papers_formulas_exists():
    text = (DOCS / "paper-to-code.md").read_text(encoding="utf-8")
    files = re.findall(r"`((?:native|learning)/[\w./]+)`", text)
    assert len(files) > 5
    assert [name for name in files if not (ROOT / "src" / "crisptree" / name).exists()] == []


def load_script(path):
    """Import a script that is not part of the package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROSE = load_script(ROOT / "tools" / "prose.py")


@pytest.mark.parametrize("page", PROSE.pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_is_wrapped_and_uses_the_vocabulary_of_the_field(page):
    assert PROSE.check(page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8")) == []


def test_the_prose_check_exempts_code_tables_and_addresses():
    long = "word " * 30
    assert len(PROSE.long_lines(f"{long}\n| {long}\n```\n{long}\n```\n    {long}\n* {'x' * 120}\n")) == 1
    assert [number for number, _ in PROSE.dialect("trees of numbers\n`roughness`\nBaselines.")] == [1]
    assert PROSE.comments("Accuracy is 95\n% on MNIST.\n```\n% code\n```\n95 % again") == [(2, "% on MNIST.")]


RECORDS = sorted((DOCS / "decisions").glob("2*.md"))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_decision_is_a_short_dated_record(record):
    text = record.read_text(encoding="utf-8")
    assert re.fullmatch(r"2\d{3}-\d{2}-\d{2}-[a-z0-9-]+", record.stem), "name it YYYY-MM-DD-slug.md"
    assert len(text.splitlines()) <= 40
    assert re.findall(r"^## (.+)$", text, flags=re.M) == ["Context", "Decision", "Consequence"]
    assert max(map(len, prose(record).splitlines())) <= 100


@pytest.mark.skipif(not RESULTS.exists(), reason="a source distribution carries no results")
def test_every_page_of_results_is_in_their_index():
    index = (RESULTS / "index.md").read_text(encoding="utf-8")
    pages = {page.name for page in RESULTS.glob("*.md")} - {"index.md"}
    assert not [page for page in pages if f"]({page})" not in index]


@pytest.mark.parametrize("page", sorted(RESULTS.glob("*.md")), ids=lambda page: page.stem)
def test_every_page_of_results_has_a_picture(page):
    assert page.stem == "index" or re.search(r"^!\[", prose(page), flags=re.M), "see docs/result_plots.py"


def names_on_api_pages():
    names = set()
    for page in (DOCS / "api").glob("*.rst"):
        current = ""
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. currentmodule::"):
                current = line.split("::")[1].strip()
            elif re.fullmatch(r" {3}[\w.]+", line):
                names.add(f"{current}.{line.strip()}")
    return names


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_have_examples(module):
    public = importlib.import_module(module)
    documented = {name: getattr(public, name) for name in public.__all__}
    without = {
        name
        for name, thing in documented.items()
        if (inspect.isclass(thing) or inspect.isfunction(thing)) and "Examples" not in (inspect.getdoc(thing) or "")
    }
    assert without == set()


@pytest.mark.parametrize("module", PUBLIC)
def test_the_api_pages_list_every_public_name(module):
    # Modules have pages of their own.
    public = {f"{module}.{name}" for name in importlib.import_module(module).__all__ if name not in MODULES}
    assert public <= names_on_api_pages()


def test_the_documented_paths_exist_and_are_short():
    page = (ROOT / "docs" / "architecture.md").read_text()
    paths = re.split(r"^\*\*`", page.split("## Paths of a call")[1].split("## Fast code")[0], flags=re.M)[1:]
    assert len(paths) == 8
    assert len(page.splitlines()) <= 150
    files = [{resolved(name)[0] for name in re.findall(r"`(crisptree\.[\w.]+)`", path)} for path in paths]
    assert all(3 <= len(those) <= 12 for those in files)
    of_selection = {f"selection.{name}" for name in ("search", "candidates", "evaluators")}
    a_default_fit = {"pipeline.trees", *of_selection}
    assert {f"crisptree.{name}" for name in a_default_fit} <= files[0] | files[4]


def test_the_landing_page_of_the_api_has_a_line_for_every_public_name():
    listed = set(re.findall(r"^   ([\w.]+)$", (DOCS / "api" / "index.rst").read_text(), flags=re.M))
    for module in PUBLIC:
        assert set(importlib.import_module(module).__all__) - {"__version__", *MODULES} <= listed, module


def test_every_parameter_of_an_estimator_stands_in_one_group():
    groups = load_script(DOCS / "parameter_groups.py")
    named = [name for names in groups.GROUPS.values() for name in names]
    models = (CrispTreeClassifier(), CrispForestClassifier(), CrispSegmenter(), CrispPixelRegressor())
    known = {name.removeprefix("training__") for model in models for name in model.get_params()}
    assert sorted(named) == sorted(known)


def test_parameters_are_grouped_without_losing_a_line():
    groups = load_script(DOCS / "parameter_groups.py")
    lines = ["Text.", "", ":Parameters:", "", "    **n_jobs** : int", "        Threads.", ""]
    lines += ["    **l1, l2** : float", "        Strength.", "", ":Attributes:", "", "    **tree_** : tree"]
    found = groups.grouped(lines)
    assert [line for line in found if line.strip() and "rubric" not in line] != [line for line in lines if line.strip()]
    assert sorted(line for line in found if line.strip() and "rubric" not in line) == sorted(filter(str.strip, lines))
    assert found.index("    .. rubric:: Regularisation") < found.index("    .. rubric:: Running")
