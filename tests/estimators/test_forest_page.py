import doctest
from pathlib import Path


def test_the_page_on_forests_does_what_it_says():
    page = Path(__file__).parents[2] / "docs" / "forests.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 20
    assert failed == 0
