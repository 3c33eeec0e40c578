import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crisptree import explain, export
from crisptree.inspection import view_model
from crisptree.inspection.validation import check_integer, check_optional_integer
from crisptree.plots import plot_regions, plot_tree, plot_weights
from crisptree.report import write
from tests.inspection.models import fitted
from tests.inspection.pipelines import tree

ROW, ROWS = np.zeros(2), np.zeros((2, 2))
QUESTIONS = {
    "path": lambda model: explain.path(model, ROW),
    "find_counterfactual": lambda model: explain.find_counterfactual(model, ROW),
    "attribute_errors": lambda model: explain.attribute_errors(model, ROWS, [0, 1]),
    "feature_importances": explain.feature_importances,
    "text": export.text,
    "dot": export.dot,
    "plot_tree": plot_tree,
    "plot_weights": plot_weights,
    "plot_regions": lambda model: plot_regions(model, ROWS),
    "report": lambda model: write(model, "report.html"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_no_fitted_model_of_ours_is_refused_everywhere_alike(question):
    ask = QUESTIONS[question]
    with pytest.raises(NotFittedError, match=rf"{question} needs a fitted .*got a CrispTreeClassifier that is not"):
        ask(tree())
    with pytest.raises(NotFittedError, match="a Pipeline whose last step is a CrispTreeClassifier that is not fitted"):
        ask(make_pipeline(StandardScaler(), tree()))
    other = make_pipeline(StandardScaler(), LogisticRegression()).fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    with pytest.raises(TypeError, match="got a Pipeline whose last step is a LogisticRegression"):
        ask(other)


def test_names_are_one_line_each_and_as_many_as_there_are_classes():
    model, _, _ = fitted(labels=["a\nb", "c  d", "e"])
    assert view_model(model, "this").class_names == ["a b", "c d", "e"]
    assert view_model(model, "this", class_names=[1, 2, 3]).class_names == ["1", "2", "3"]
    with pytest.raises(ValueError, match="`class_names` must name all 3 classes; got 1"):
        view_model(model, "this", class_names=["a"])


def test_a_leaf_shows_its_most_frequent_class_and_its_share():
    view = view_model(fitted(max_depth=1, labels=["a", "b", "c"])[0], "this")
    for node, table in enumerate(view.node_values):
        assert [share for _, share in view.rank_classes(node)] == sorted(table.tolist(), reverse=True)
        assert view.describe_node(node) == f"{'abc'[table.argmax()]} ({table.max():.1%})"


def test_leaves_are_those_of_the_estimator_and_confusions_those_of_scikit_learn():
    model, X, y = fitted(labels=["a", "b", "c"])
    view = view_model(model, "this")
    leaf = view.apply(view.prepare_rows(X))
    assert np.array_equal(leaf, model.leaf_indices(X))
    counts = view.confusion_matrix(view.encode_labels(y, len(X)), view.tree.labels(leaf))
    assert np.array_equal(counts, confusion_matrix(y, model.predict(X)))


def test_a_class_that_no_row_has_keeps_its_line_and_column():
    view = view_model(fitted()[0], "this")
    assert view.confusion_matrix(np.array([0, 0]), np.array([0, 2])).tolist() == [[1, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_soft_tables_of_checked_rows_are_those_of_the_estimator():
    model, X, _ = fitted()
    assert np.array_equal(
        view_model(model, "this").soft_predict_proba(X, 3.0), model.soft_predict_proba(X, steepness=3.0)
    )


@pytest.mark.parametrize("value", [-1, 1.0, "1", True, np.float64(2), [1]])
def test_counts_must_be_integers(value):
    for check in (check_integer, check_optional_integer):
        with pytest.raises(ValueError, match="`n` must be a whole number of at least 0"):
            check("n", value, 0)
    assert (check_integer("n", np.int8(3), 0), check_optional_integer("n", None, 0)) == (3, None)
    with pytest.raises(ValueError, match="at least 0; got None"):
        check_integer("n", None, 0)


def test_a_view_needs_neither_torch_nor_matplotlib():
    code = (
        "import crisptree.inspection, sys; print([n for n in ('torch', 'sklearn', 'matplotlib') if n in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
