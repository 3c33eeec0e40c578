"""Trees that people read: limits, rounding, and what they cost."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import crisptree
from crisptree import CrispTreeClassifier, CrispTreeRegressor
from crisptree.inspection.model_view import is_trained_softly
from crisptree.learning.samples import RowSet, TrainingTask
from crisptree.learning.sparse_leaves import TargetRows
from crisptree.pipeline import readable
from crisptree.pipeline.readable import BAGS, Teacher, distil_rows
from crisptree.pipeline.trees import spec_of


@pytest.fixture(scope="module")
def cancer():
    return train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)


def test_a_readable_tree_keeps_its_limits_and_beats_cart_of_as_many_leaves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6)) * [1, 10, 100, 1, 1, 1]
    y = X[:, 0] + X[:, 1] / 10 > X[:, 2] / 100 * np.sign(X[:, 3])
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    model = CrispTreeClassifier.readable(random_state=0).fit(X, y)
    assert model.get_n_leaves() <= 8
    assert np.count_nonzero(model.tree_.weight, axis=1).max() <= 3
    cart = DecisionTreeClassifier(max_leaf_nodes=8, random_state=0).fit(X, y)
    assert model.score(X_test, y_test) > cart.score(X_test, y_test) + 0.05


def test_the_tree_that_is_distilled_has_no_limits(cancer):
    X, _, y, _ = cancer
    model = CrispTreeClassifier.readable(random_state=0).fit(X, y)
    default = CrispTreeClassifier(random_state=0).fit(X, y)
    assert [trial.merit for trial in model.cv_results_] == [trial.merit for trial in default.cv_results_]
    assert model.leaf_model == "sparse_linear"
    assert "leaf_model" not in model.best_params_


def test_constrained_splits_are_trained_within_the_limits(cancer):
    X, _, y, _ = cancer
    quick = {"max_depth": 2, "split": "oblique", "l1": 0.0, "input_noise": 0.3, "shrinkage": 0.0, "random_state": 0}
    model = CrispTreeClassifier.readable(monotonic_cst={0: 1}, **quick).fit(X[:200], y[:200])
    assert (model.tree_.weight[:, 0] >= 0).all()
    assert np.count_nonzero(model.tree_.weight, axis=1).max() <= 3


def test_tables_with_one_class_or_few_rows_are_fitted(cancer):
    X, _, y, _ = cancer
    assert CrispTreeClassifier.readable(random_state=0).fit(X, np.ones(len(X))).get_n_leaves() == 1
    assert CrispTreeClassifier.readable(random_state=0).fit(X[:8], y[:8]).get_n_leaves() <= 2
    assert CrispTreeRegressor.readable(random_state=0).fit(X[:80], 2 * X[:80, 0] + 1).score(X, 2 * X[:, 0] + 1) > 0.99


def test_soft_labels_are_distilled_too(cancer):
    X, X_test, y, y_test = cancer
    model = CrispTreeClassifier.readable(max_leaf_nodes=4, random_state=0).fit(
        X, np.column_stack([1 - y, y]) * 0.8 + 0.1
    )
    assert np.count_nonzero(model.tree_.weight, axis=1).max() <= 3
    assert model.score(X_test, y_test) > 0.9


def test_limits_can_be_changed_and_survive_clones_and_files(cancer, tmp_path):
    X, X_test, y, _ = cancer
    model = clone(CrispTreeClassifier.readable(max_leaf_nodes=3, max_features_per_split=2, random_state=0)).fit(X, y)
    assert model.get_n_leaves() <= 3
    assert np.count_nonzero(model.tree_.weight, axis=1).max() <= 2
    model.save(tmp_path / "model.crisp")
    loaded = crisptree.load(tmp_path / "model.crisp")
    assert loaded.training.round_splits
    assert np.array_equal(loaded.predict_proba(X_test), model.predict_proba(X_test))


def test_a_regression_tree_is_readable_too():
    X, y = load_diabetes(return_X_y=True)
    model = CrispTreeRegressor.readable(random_state=0).fit(X, y)
    assert model.get_n_leaves() <= 8
    assert model.score(X, y) > 0.4


def test_a_linear_function_of_a_table_is_one_leaf_without_needless_terms():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"months": rng.integers(1, 72, 300), "plan": rng.choice(["basic", "plus", "pro"], 300)})
    price = (12_000.0 + 120 * table["months"] + 9000 * (table["plan"] == "pro")).rename("price")
    model = CrispTreeRegressor.readable(random_state=0).fit(table, price)
    assert model.get_n_leaves() == 1
    (terms,) = np.count_nonzero(model.tree_.linear_weight, axis=(1, 2))
    assert terms == 2
    assert model.score(table, price) > 0.9999


def test_synthetic_rows_have_one_level_of_a_category():
    X = np.eye(3, dtype=np.float32)[np.arange(90) % 3]
    X = np.column_stack([X, np.arange(90, dtype=np.float32)])
    y = np.arange(90) % 3 == 0
    model = CrispTreeClassifier(max_depth=1, split="axis", leaf_model="constant", random_state=0).fit(X, y)
    rows = RowSet(X, y.astype(np.int64), np.ones(90))
    predict = Teacher(model.tree_).parts[0]
    mixed = distil_rows(model.tree_.target, predict, rows, [(0, 3)]).X
    assert len(mixed) == 180
    assert (mixed[:, :3].sum(axis=1) == 1).all()
    assert (distil_rows(model.tree_.target, predict, rows, []).X[:, :3].sum(axis=1) != 1).any()


def test_the_teacher_has_trees_on_bootstraps_that_fit_the_same_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3)).astype(np.float32)
    y = (X[:, 0] + 0.5 * rng.normal(size=150) > 0).astype(np.int64)
    parameters = {"split": "axis", "leaf_model": "constant", "shrinkage": 0.0, "max_depth": 4, "random_state": 0}
    model = CrispTreeClassifier(**parameters).fit(X, y)
    rows = RowSet(X, y, np.ones(150))
    task = TrainingTask(rows, model.tree_.statistics.scaling, model.tree_.target)
    values = model.training_parameters() | {"input_noise": 0.0, "l1": 0.0, "scale": "feature", "grow": "cart"}

    def make_spec(values, part):
        return spec_of(values, part, None, 0)

    teacher = Teacher.of(model.tree_, values, task, make_spec, seed=0)
    assert len(teacher.bagged) == BAGS
    own, mean = (part(X) for part in teacher.parts)
    assert np.array_equal(own, model.predict_proba(X))
    assert len(np.unique(mean[:, 0])) > len(np.unique(own[:, 0]))  # smoother
    assert (mean.argmax(axis=1) == y).mean() > 0.8
    assert len(Teacher(model.tree_).parts) == 1


def test_of_the_trees_grown_to_both_parts_of_the_teacher_the_better_one_is_taken(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = (X[:, 0] * X[:, 1] > 0) ^ (X[:, 2] + X[:, 3] > 0.3)
    merits = []
    real = readable.grow_readable

    def grow(teacher, limits, task, make_spec, sizes):
        trees = real(teacher, limits, task, make_spec, sizes)
        if teacher.bagged:
            rows = TargetRows.of(task.training, teacher.tree.target)
            both, own = Teacher.parts.fget(teacher), []
            for part in both:
                monkeypatch.setattr(Teacher, "parts", property(lambda self, part=part: [part]))
                single = real(teacher, limits, task, make_spec, sizes)
                own.append(readable._score(single[max(single)], rows))
            monkeypatch.undo()
            merits.extend([*own, readable._score(trees[max(trees)], rows)])
        return trees

    monkeypatch.setattr(readable, "grow_readable", grow)
    CrispTreeClassifier.readable(random_state=0).fit(X, y)
    first, second, taken = merits
    assert first != second
    assert taken >= max(first, second) - 0.02  # whose leaves have models of both


def test_the_cost_is_that_of_fits_on_the_same_folds(cancer):
    X, _, y, _ = cancer
    model = CrispTreeClassifier.readable(max_leaf_nodes=2, max_features_per_split=1, random_state=0)
    cost = model.readability_cost(X, y, n_folds=3)
    assert cost.leaves.max() == 2
    assert cost.cost == pytest.approx(cost.unrestricted_scores.mean() - cost.scores.mean())
    assert cost.cost > 0
    assert cost.log_losses.mean() > cost.unrestricted_log_losses.mean()
    lines = str(cost).splitlines()
    assert lines[0] == (
        f"readable tree: accuracy {cost.scores.mean():.1%}, log loss {cost.log_losses.mean():.3f}, "
        f"{cost.leaves.mean():.3g} leaves"
    )
    assert lines[2] == "(means of 3 held-out folds)"


def test_a_verbose_fit_prints_the_cost(capsys):
    X, y = load_diabetes(return_X_y=True)
    CrispTreeRegressor.readable(random_state=0, verbose=1).fit(X[:150], y[:150])
    shown = capsys.readouterr().err
    assert "readable tree: R² " in shown
    assert "unrestricted tree: R² " in shown


def test_rows_that_cannot_be_rounded_are_refused():
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 2
    with pytest.raises(ValueError, match="`image_shape` must be None for round_splits=True"):
        CrispTreeClassifier(image_shape=(2, 2)).set_params(training__round_splits=True).fit(X, y)
    with pytest.raises(ValueError, match="`round_splits` must be False for sparse rows"):
        CrispTreeClassifier.readable(leaf_model="constant").fit(sparse.csr_matrix(X), y)


def test_rounded_splits_are_no_probabilistic_tree_any_more():
    X, y = load_iris(return_X_y=True)
    plain = CrispTreeClassifier(max_depth=2, split="oblique", l1=0.0, input_noise=0.0, random_state=0)
    assert is_trained_softly(plain.fit(X, y))
    assert not is_trained_softly(CrispTreeClassifier.readable(random_state=0).fit(X, y))


def test_no_probability_is_zero_where_the_default_tree_has_linear_leaves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = (X @ [1, 1, -1, 1] + 0.3 * rng.normal(size=200) > 0).astype(int)
    assert CrispTreeClassifier(random_state=0).fit(X, y).best_params_["leaf_model"] == "linear"
    model = CrispTreeClassifier.readable(leaf_model="constant", random_state=0).fit(X, y)
    assert model.predict_proba(X).min() > 0
    assert model.best_params_["shrinkage"] > 0
