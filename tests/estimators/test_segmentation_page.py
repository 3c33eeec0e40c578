import doctest
from pathlib import Path


def test_the_page_on_segmentation_runs_as_documented():
    page = Path(__file__).parents[2] / "docs" / "guide" / "images.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 10
    assert failed == 0
