"""The programs of docs/guide/integrations.md run with the real libraries."""

import doctest
import importlib.util
import re
import warnings
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "integrations.md"
MODULES = {"scikit-learn": "sklearn", "dask[dataframe]": "dask"}
"""Modules of packages that are named otherwise."""


def sections():
    """Titles, required packages and text of the sections that hold a program."""
    parts = re.split(r"^## (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.M)
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        if ">>> " in text:
            packages = re.search(r"^\*Needs `pip install ([^`]*)`\.\*$", text, flags=re.M)
            yield pytest.param(packages[1].split(), text, id=title)


@pytest.mark.slow
@pytest.mark.parametrize(("packages", "text"), [*sections()])
def test_a_section_of_the_page_runs(packages, text):
    for package in packages:
        if importlib.util.find_spec(MODULES.get(package, package.replace("-", "_"))) is None:
            pytest.skip(f"needs {package}")
    test = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    output = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other libraries' own
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        failed = runner.run(test, out=output.append).failed
    assert not failed, "".join(output)
