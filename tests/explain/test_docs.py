import doctest
from pathlib import Path


def test_the_how_to_does_what_it_says():
    page = Path(__file__).parents[2] / "docs" / "explain.md"
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 15
    assert failed == 0
