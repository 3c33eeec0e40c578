import numpy as np
import pytest
from sklearn.base import clone

from crisptree.report import write
from tests.report.conftest import fitted
from tests.toys import plain_tree


def test_an_unfitted_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="Call fit first"):
        write(plain_tree(), tmp_path / "r.html")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [0]}, "got y without X"),
        ({"X": np.zeros((3, 6)), "y": [0, 1]}, "each of the 3 rows"),
        ({"X": np.zeros((2, 6)), "y": [0, 99]}, r"got \[99\] too"),
        ({"X": np.zeros((2, 5))}, "features"),
        ({"X": np.full((2, 6), np.inf)}, "infinity"),
        ({"class_names": ["a"]}, "all 4 classes; got 1"),
        ({"feature_names": ["a"]}, "all 6 features; got 1"),
        ({"max_samples": -1}, "at least 0; got -1"),
        ({"max_samples": 2.5}, "whole number"),
    ],
)
def test_wrong_arguments_are_refused_before_a_file_is_written(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write(fitted(max_depth=1)[0], tmp_path / "r.html", **arguments)
    assert not list(tmp_path.iterdir())


def test_classes_may_be_words(page):
    model, X, y = fitted(max_depth=1, n_classes=2)
    words = np.array(["<b>no</b>", "yes"])[y]
    renamed = clone(model).fit(X, words)
    _, data = page(renamed, X, words)
    assert data["classes"] == ["<b>no</b>", "yes"]
    assert data["summary"]["hard"] == pytest.approx(renamed.score(X, words))
