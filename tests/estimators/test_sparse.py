"""Sparse rows through the estimator: the same answers as with their zeros, nothing written down, refusals in words."""

import pickle

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import crisptree
from crisptree import CrispTreeClassifier, TrainingOptions
from crisptree.data.raw_rows import Scaling, SparseRows
from crisptree.inference import flat_tree as routing
from tests.toys import random_structure, random_tree

QUICK = {"max_depth": 3, "epochs": 4, "finetune_epochs": 4, "min_updates": 40, "random_state": 0, "n_jobs": 1}
PLAIN = {**QUICK, "split": "oblique", "l1": 0.0, "input_noise": 0.3, "shrinkage": 0.0, "scale": "feature"}


def words(n=300, p=120, per_row=8, seed=0):
    """Rows like counts of words: the class is that of most of the words."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    columns = rng.integers(0, p // 2, (n, per_row)) * 2 + np.where(
        rng.random((n, per_row)) < 0.85, y[:, None], 1 - y[:, None]
    )
    X = sparse.csr_matrix(
        (np.ones(columns.size, dtype=np.float32), columns.ravel(), np.arange(n + 1) * per_row), (n, p)
    )
    X.sum_duplicates()
    return X, y


X, Y = words()


@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("density", [0.0, 0.03, 0.5])
@pytest.mark.parametrize("zeros", [0.0, 0.99])
def test_a_sparse_row_reaches_the_leaf_of_the_row_with_its_zeros(kernel, density, zeros, monkeypatch):
    if not kernel:
        monkeypatch.setattr(routing, "router", None)
        monkeypatch.setattr(routing, "_warn_once", lambda: None)
    p = 1000
    soft = random_tree(random_structure(20, 0), p, 3)
    soft.splits.parameters["weight"] *= torch.from_numpy(np.random.default_rng(0).random((20, p)) >= zeros)
    tree = soft.crisp(Scaling.none(p), 1.0)
    rows = sparse.random(200, p, density=density, format="csr", random_state=np.random.default_rng(1), dtype=np.float32)
    rows.data -= 0.5
    dense = rows.toarray()
    expected = routing.route_reference(tree, dense)
    for n_jobs in (1, 2):
        assert np.array_equal(routing.route_implicit(tree, SparseRows.of(rows), n_jobs=n_jobs), expected)
    if kernel:
        weight = np.random.default_rng(2).random(200)
        moments = [routing.score_moments(tree, part, weight, 1) for part in (SparseRows.of(rows), dense)]
        assert np.array_equal(*moments)


@pytest.mark.parametrize("form", ["csr_matrix", "csc_matrix", "coo_array", "lil_matrix", "csr_array"])
def test_every_sparse_format_gives_the_same_tree_and_predictions_as_dense_rows(form):
    model = CrispTreeClassifier.from_flat(**PLAIN).fit(X[:200], Y[:200])
    other = CrispTreeClassifier.from_flat(**PLAIN).fit(getattr(sparse, form)(X[:200]), Y[:200])
    assert np.array_equal(model.tree_.weight, other.tree_.weight)
    assert model.score(X[200:], Y[200:]) > 0.8
    for ask in ("predict", "predict_proba", "apply", "soft_predict_proba"):
        assert np.array_equal(getattr(model, ask)(getattr(sparse, form)(X)), getattr(model, ask)(X.toarray())), ask
    assert (model.decision_path(X) != model.decision_path(X.toarray())).nnz == 0
    assert str(model.explain(X[0])) == str(model.explain(X[0].toarray()[0]))


def test_model_selection_works_on_sparse_rows():
    model = CrispTreeClassifier.from_flat(**QUICK).fit(X[:200], Y[:200])
    assert {"input_noise", "l1", "max_depth", "shrinkage"} <= set(model.best_params_)
    assert all(trial.values.get("split") != "axis" for trial in model.cv_results_)
    assert model.score(X[200:], Y[200:]) > 0.8


def test_weights_soft_labels_and_validation_take_sparse_rows():
    weight = np.random.default_rng(0).integers(0, 3, 300)
    weighted = CrispTreeClassifier.from_flat(**PLAIN).fit(X, Y, weight)
    assert weighted.score(X, Y) > 0.8
    soft = np.where(np.arange(2) == Y[:, None], 0.9, 0.1)
    assert CrispTreeClassifier.from_flat(**PLAIN).fit(X, soft).score(X, Y) > 0.8
    judged = CrispTreeClassifier.from_flat(**PLAIN, early_stopping=True).fit(
        X[:200], Y[:200], eval_set=(X[200:], Y[200:])
    )
    assert judged.history_[-1].validation_score is not None


def test_a_warm_start_grows_a_sparse_tree_on():
    noisy = np.where(np.random.default_rng(0).random(300) < 0.3, 1 - Y, Y)
    model = CrispTreeClassifier.from_flat(**PLAIN | {"max_depth": 1, "l2": 0.1}, warm_start=True).fit(X, noisy)
    assert model.set_params(max_depth=2).fit(X, noisy).greedy_tree_.structure.depth == 2


def test_texts_and_categories_work_as_they_come(tmp_path):
    texts = [" ".join(f"w{feature}" for feature in row.indices) for row in X]
    model = make_pipeline(TfidfVectorizer(), CrispTreeClassifier.from_flat(**PLAIN)).fit(texts[:200], Y[:200])
    assert model.score(texts[200:], Y[200:]) > 0.8
    categories = np.random.default_rng(0).integers(0, 9, (300, 4)).astype(str)
    labels = (categories[:, 0] < "4") ^ (categories[:, 1] == "0")
    encoded = make_pipeline(OneHotEncoder(), CrispTreeClassifier.from_flat(**PLAIN)).fit(categories, labels)
    assert encoded.score(categories, labels) > 0.9
    tree = model[-1]
    tree.save(tmp_path / "m.crisp")
    rows = model[:-1].transform(texts)
    assert np.array_equal(crisptree.load(tmp_path / "m.crisp").predict(rows), tree.predict(rows))
    assert np.array_equal(pickle.loads(pickle.dumps(tree)).predict(rows), tree.predict(rows))


def test_nothing_is_written_down_in_full(monkeypatch):
    monkeypatch.setattr(SparseRows, "dense", lambda self: pytest.fail("rows were written down"))
    CrispTreeClassifier.from_flat(**PLAIN).fit(X, Y).predict(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"split": "axis"}, "`split` must be 'auto' or 'oblique' for sparse rows; got 'axis'"),
        ({"split": lambda shape: torch.nn.Linear(120, 1), "input_noise": 0.0}, "`split` must be 'auto' or"),
        ({"grow": "cart"}, "`grow` must be 'greedy' or 'balanced' for sparse rows"),
        ({"image_shape": (10, 12)}, "`image_shape` must be None for sparse rows"),
        ({"device": "cuda"}, "`device` must be 'auto' or 'cpu' for sparse rows"),
    ],
)
def test_what_needs_whole_rows_is_refused_with_a_remedy(parameters, message):
    with pytest.raises(ValueError, match=message) as error:
        CrispTreeClassifier.from_flat(**PLAIN | parameters).fit(X, Y)
    assert "X.toarray()" in str(error.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_sparse_values_that_are_not_finite_are_refused(value):
    broken = X.astype(np.float64)
    broken.data[7] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        CrispTreeClassifier.from_flat(**PLAIN).fit(broken, Y)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        CrispTreeClassifier.from_flat(**PLAIN).fit(X, Y).predict(broken)


def test_sparse_rows_of_another_width_or_scale_are_refused():
    model = CrispTreeClassifier.from_flat(**PLAIN).fit(X, Y)
    with pytest.raises(ValueError, match="119 features"):
        model.predict(X[:, :-1])
    dense = CrispTreeClassifier.from_flat(**PLAIN, warm_start=True).fit(X.toarray(), Y)
    assert np.array_equal(dense.predict(X), dense.predict(X.toarray()))
    with pytest.raises(ValueError, match="trained on dense rows"):
        dense.set_params(max_depth=4).fit(X, Y)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_matrix])
def test_a_matrix_whose_indices_lie_outside_its_shape_is_refused(form):
    model, broken = CrispTreeClassifier.from_flat(**PLAIN).fit(X, Y), form(X, copy=True)
    broken.indices[3] = 1000
    for ask in (lambda: CrispTreeClassifier.from_flat(**PLAIN).fit(broken, Y), lambda: model.predict(broken)):
        with pytest.raises(ValueError, match=r"indices fit its shape \(300, 120\)"):
            ask()


def test_modules_require_dense_rows():
    model = CrispTreeClassifier.from_flat(**QUICK | {"max_depth": 1}, split=lambda shape: torch.nn.Linear(120, 1)).fit(
        X.toarray(), Y
    )
    with pytest.raises(ValueError, match="must be dense for a tree whose splits are modules"):
        model.predict(X)


def test_rows_without_any_values_and_matrices_with_one_row_are_rows():
    model = CrispTreeClassifier.from_flat(**PLAIN).fit(
        sparse.vstack([X, sparse.csr_matrix((5, 120))]), np.append(Y, [1] * 5)
    )
    empty = sparse.csr_matrix((1, 120))
    assert np.array_equal(model.leaf_indices(empty), model.leaf_indices(np.zeros((1, 120))))


def test_a_sparse_fit_records_the_ranges_of_the_rows_with_their_zeros():
    rng = np.random.default_rng(0)
    X = np.where(rng.random((60, 4)) < 0.4, rng.integers(1, 5, (60, 4)), 0).astype(np.float32)
    X[:, 3] = rng.normal(size=60) + 9
    model = CrispTreeClassifier(max_depth=1, training=TrainingOptions(epochs=1, finetune_epochs=1), random_state=0)
    seen = model.fit(sparse.csr_matrix(X), X[:, 0] > 0).tree_.statistics
    assert np.array_equal(seen.lowest, X.min(axis=0))
    assert np.array_equal(seen.highest, X.max(axis=0))
    assert seen.whole.tolist() == [1, 1, 1, 0]
