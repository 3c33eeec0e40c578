"""One definition of what a feature counts, wherever features are ranked."""

import numpy as np
import pytest

from crisptree import explain, export
from crisptree.inspection.linear_splits import compute_effects, compute_influence, rank_features
from crisptree.plots import plot_tree, plot_weights
from crisptree.report import write
from tests.plots.reading import texts
from tests.report.conftest import data_of, unpacked
from tests.toys import plain_tree

NAMES = [f"f{j}" for j in range(50)]


def fitted(scale):
    """Spreads from 0.01 to 100: with one scale for all the largest β is not the largest influence."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 50)) * np.logspace(-2, 2, 50)
    y = (X / np.logspace(-2, 2, 50))[:, :25].sum(axis=1) > 0
    options = {"max_depth": 1, "epochs": 5, "finetune_epochs": 0, "min_updates": 30, "random_state": 0}
    return plain_tree(**options, scale=scale).fit(X, y), X, y


@pytest.mark.parametrize("scale", ["feature", "global", None])
def test_influence_is_what_a_spread_of_the_feature_moves(scale):
    model, X, _ = fitted(scale)
    moved = X[:1] + np.diag(X.std(axis=0))
    scores = (moved - X[:1]) @ model.tree_.weight[0].astype(np.float64)
    assert compute_effects(model.tree_, 0) == pytest.approx(scores, rel=1e-4)
    scaling = model.tree_.statistics.scaling
    scaled = np.abs(model.tree_.scaled_hyperplanes()[0]) * scaling.factor * scaling.spread
    assert compute_influence(model.tree_) == pytest.approx(scaled, rel=1e-9)


def test_on_features_scaled_one_by_one_it_is_the_size_of_the_weight():
    tree = fitted("feature")[0].tree_
    assert compute_effects(tree) == pytest.approx(tree.scaled_hyperplanes()[0], rel=1e-6)


@pytest.mark.parametrize("scale", ["feature", "global", None])
def test_importances_rules_drawings_and_reports_name_the_same_features(scale, tmp_path):
    model, X, y = fitted(scale)
    order = np.argsort(-compute_influence(model.tree_, 0), kind="stable")
    assert np.argsort(-explain.feature_importances(model), kind="stable").tolist() == order.tolist()
    first = export.text(model, NAMES, terms=3).splitlines()[0]
    assert [part.split(" ")[0] for part in first.split("× ")[1:]] == [NAMES[j] for j in order[:3]]
    drawn = " ".join(texts(plot_tree(model, feature_names=NAMES)))
    assert all(f"× {NAMES[j]}" in drawn for j in order[:3])
    bars = plot_weights(model, feature_names=NAMES)[0, 0]
    assert [label.get_text() for label in bars.get_yticklabels()] == [NAMES[j] for j in order[:8]]
    lengths = np.abs([bar.get_width() for bar in bars.patches])
    assert (np.diff(lengths) <= 0).all()  # the first bar is the longest
    page = data_of(write(model, tmp_path / "page.html", X, y, max_samples=2).read_text())
    assert unpacked(page["weights"]["features"])[0].tolist() == order[:12].tolist()
    assert [int(column["name"][1:]) for column in page["samples"]["columns"]] == order[:40].tolist()


def test_one_scale_for_all_would_name_other_features_by_their_weights():
    """Else the test above could not tell one definition from the other."""
    tree = fitted("global")[0].tree_
    by_weight = np.argsort(-np.abs(tree.scaled_hyperplanes()[0][0]))[:3]
    assert set(by_weight) != set(rank_features(compute_effects(tree, 0), 3))


def test_the_largest_come_first_and_zeros_not_at_all():
    effect = np.array([0.0, -3.0, 1.0, 2.0, 0.0])
    assert rank_features(effect, 2).tolist() == [1, 3]
    assert rank_features(effect, 9).tolist() == [1, 3, 2]
    assert rank_features(np.zeros(4), 2).tolist() == []
    assert rank_features(np.ones(5000), 3).tolist() == [0, 1, 2]
