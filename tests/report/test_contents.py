import numpy as np
import pytest

from crisptree import metrics
from crisptree.plots.tree import class_colors as drawn_colors
from crisptree.report.contents import class_colors, make_cards
from tests.report.conftest import KINDS, fitted, unpacked


@pytest.fixture(scope="module")
def model_and_rows():
    return fitted()


def test_the_summary_has_two_accuracies_and_the_length_of_paths(page, model_and_rows):
    model, X, y = model_and_rows
    summary = page(model, X, y)[1]["summary"]
    leaf = model.leaf_indices(X)
    assert summary["hard"] == pytest.approx(model.score(X, y))
    assert summary["soft"] == pytest.approx(np.mean(model.soft_predict_proba(X).argmax(axis=1) == y))
    assert summary["path"] == pytest.approx(model.tree_.structure.leaf_depths[leaf].mean())
    assert summary["training"] == pytest.approx(model.score(X, y))  # these rows are those of training


def test_linear_leaves_have_no_accuracy_by_counts(page):
    model, X, y = fitted(leaf_model="linear", max_depth=1)
    assert page(model, X, y)[1]["summary"]["training"] is None


def test_the_summary_scores_probabilities(page, model_and_rows):
    model, X, y = model_and_rows
    summary = page(model.prune(0.05), X, y)[1]["summary"]
    said = model.prune(0.05).predict_proba(X)
    assert summary["brier_score"] == pytest.approx(metrics.brier_score(y, said), abs=1e-5)
    assert summary["calibration_error"] == pytest.approx(metrics.calibration_error(y, said), abs=1e-5)
    assert page(model, X)[1]["summary"]["brier_score"] is None


def test_infinite_and_unknown_log_loss_are_distinguished():
    def values(summary):
        baseline = {"class": 0, "training": 0.5, "given": None}
        page = {"summary": summary, "baseline": baseline, "classes": ["a", "b"], "regression": False}
        return [card["value"] for card in make_cards(page) if card["label"] == "Log loss"]

    measures = {"log_loss": 0.25, "brier_score": 0.1, "calibration_error": 0.02}
    sizes = {"splits": 1, "leaves": 2, "depth": 1, "path": 1.0, "steepness": 3.0, "training": 1.0}
    known = {**sizes, **measures, "hard": 0.9, "soft": 0.9, "rows": 10}
    assert values(known) == ["0.250"]
    assert values(known | {"log_loss": None}) == ["infinite"]
    assert values(known | dict.fromkeys([*measures, "hard", "soft", "rows"])) == ["–"]


def test_counts_and_children_are_those_of_the_tree(page, model_and_rows):
    model, X, y = model_and_rows
    tree = page(model, X, y)[1]["tree"]
    structure = model.tree_.structure
    assert unpacked(tree["left"]).tolist() == structure.left_nodes.tolist()
    assert unpacked(tree["right"]).tolist() == structure.right_nodes.tolist()
    assert np.array_equal(unpacked(tree["train"]), model.tree_.statistics.node_counts)
    assert np.array_equal(unpacked(tree["given"]), unpacked(tree["train"]))  # these rows are those of training


def test_bins_count_every_visit_and_zero_separates_left_from_right(page, model_and_rows):
    model, X, y = model_and_rows
    data = page(model, X, y)[1]
    histograms, given = {k: unpacked(v) for k, v in data["histograms"].items()}, unpacked(data["tree"]["given"])
    for split in range(model.tree_.structure.n_splits):
        start, width = histograms["start"][split], histograms["width"][split]
        zero = round(-start / width)
        counts = histograms["counts"][split]
        assert np.array_equal(counts[:zero].sum(axis=0), given[model.tree_.structure.left_nodes[split]])
        assert np.array_equal(counts[zero:].sum(axis=0), given[model.tree_.structure.right_nodes[split]])


def test_the_confusion_matrix_has_true_classes_in_rows(page, model_and_rows):
    model, X, y = model_and_rows
    shifted = (y + 1) % 4
    table = unpacked(page(model, X, shifted)[1]["confusion"])
    assert table.sum() == len(X)
    assert table[1, 0] == np.sum((shifted == 1) & (model.predict(X) == 0))


def test_weight_images_are_the_scaled_weights_in_127_steps(page):
    model, X, y = fitted(image_shape=(2, 3))
    weights = page(model, X, y)[1]["weights"]
    exact = model.tree_.scaled_hyperplanes()[0].reshape(-1, 2, 3, 1)
    scale = unpacked(weights["scale"])[:, None, None, None]
    assert np.abs(unpacked(weights["images"]) / 127 * scale - exact).max() <= scale.max() / 250


def test_tabular_splits_list_their_largest_weights_first(page):
    model, _, _ = fitted(n_features=40)
    weights = page(model)[1]["weights"]
    exact = np.abs(model.tree_.scaled_hyperplanes()[0])
    sizes = np.abs(unpacked(weights["values"]))
    assert sizes.shape[1] == 12
    assert np.allclose(sizes, -np.sort(-exact, axis=1)[:, :12])


def test_modules_have_no_weights_but_scores(page):
    data = page(*fitted(**KINDS["module"]))[1]
    assert data["weights"] is None
    assert unpacked(data["histograms"]["counts"]).sum() > 0


def test_up_to_ten_classes_have_the_colors_of_the_drawings_and_more_have_different_ones():
    for n_classes in range(1, 11):
        drawn = ["#" + "".join(f"{round(255 * c):02x}" for c in color[:3]) for color in drawn_colors(n_classes)]
        assert class_colors(n_classes) == drawn
    assert len(set(class_colors(26))) == 26
