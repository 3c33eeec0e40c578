import doctest
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_page_on_distilling_runs_as_documented():
    page = Path(__file__).parents[2] / "docs" / "guide" / "model-selection.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 10
    assert failed == 0
