import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crisptree import CrispTreeClassifier, explain, export
from crisptree.export.rules import encode_png
from tests.inspection.models import STRANGE, fitted
from tests.toys import plain_tree

EVIL = '"><img src=x onerror=alert(2)>'


class Tags(HTMLParser):
    """All elements, and whether each is closed by its own end."""

    def __init__(self, text):
        super().__init__()
        self.seen, self.open, self.words = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in ("br", "progress"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_a_fitted_estimator_shows_its_tree_and_an_unfitted_one_scikit_learns_diagram():
    model, _, _ = fitted()
    shown = model._repr_mimebundle_()["text/html"]
    assert shown.startswith("<div><p")
    assert "<svg" in shown
    assert "sk-top-container" in shown
    assert model._repr_html_().startswith(export.html(model))
    bare = CrispTreeClassifier()._repr_mimebundle_()["text/html"]
    assert "<details><summary>Parameters" not in bare
    assert "sk-top-container" in bare
    with config_context(display="text"):
        assert "text/html" not in model._repr_mimebundle_()


@pytest.mark.parametrize("changes", [{}, {"split": "axis"}, {"image_shape": (2, 3)}, {"max_depth": 0}])
def test_the_small_tree_draws_all_nodes_of_its_levels(changes):
    model, _, _ = fitted(**changes)
    structure = model.tree_.structure
    for depth in (0, 1, 3):
        tags = Tags(export.html(model, max_depth=depth))
        assert tags.seen.count("g") == np.sum(structure.node_depths <= depth)
        assert tags.seen.count("path") == tags.seen.count("g") - 1
    assert ("image" in tags.seen) == ("image_shape" in changes)


def test_names_of_users_are_text():
    model, X, y = fitted(labels=STRANGE)
    names = [EVIL, *"abcde"]
    tags = Tags(export.html(model, names))
    assert not {"script", "img"} & set(tags.seen)
    assert any(EVIL in words for words in tags.words)
    pieces = [explain.path(model, X[0]), explain.find_counterfactual(model, X[0], to=STRANGE[0])]
    pieces += [explain.margin_report(model, X), explain.attribute_errors(model, X, y[::-1])]
    for piece in pieces:
        assert Tags(piece._repr_html_()).seen == ["pre"]


def test_notebooks_show_explanations_as_they_print():
    model, X, y = fitted(labels=["<low>", "high", "middle"])
    results = [explain.path(model, X[0]), explain.find_counterfactual(model, X[0])]
    for result in (*results, explain.attribute_errors(model, X, y[::-1]), explain.margin_report(model, X)):
        assert "".join(Tags(result._repr_html_()).words) == str(result)


def test_a_pipeline_is_drawn_with_the_names_that_reach_the_tree():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = make_pipeline(StandardScaler(), plain_tree(max_depth=1, epochs=2, finetune_epochs=0, random_state=0))
    assert "x0" in export.html(model.fit(X, X[:, 0] > 0))


def test_the_picture_is_a_png_that_others_read():
    image = pytest.importorskip("PIL.Image")
    grey = np.arange(6, dtype=np.uint8).reshape(2, 3) * 40
    assert np.array_equal(np.asarray(image.open(io.BytesIO(encode_png(grey)))), grey)


def test_rules_show_all_terms_where_none_are_counted():
    model, _, _ = fitted(n_features=6)
    first = export.text(model, terms=None).splitlines()[0]
    assert " more " not in first
    assert len(re.findall(r"× x\d", first)) == np.count_nonzero(model.tree_.weight[0])
    assert " + 4 more " in export.text(model, terms=2).splitlines()[0]
