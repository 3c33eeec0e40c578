"""Signs, few weights and groups apart: they hold in every split, whatever was done to the tree."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import clone

import crisptree
from crisptree import CrispForestClassifier, CrispTreeClassifier, CrispTreeRegressor
from crisptree.learning.loop import ENGINES, WholeTree
from crisptree.learning.options import Plan, WeightConstraints
from crisptree.native import training
from crisptree.tree import Tree
from tests.learning.comparing import largest_difference, trained
from tests.learning.test_engines import hyperplanes, rows, stumps
from tests.toys import FIGURE_1, random_tables

QUICK = {"max_depth": 3, "epochs": 6, "finetune_epochs": 6, "min_updates": 60, "random_state": 0, "n_jobs": 1}
PLAIN = {**QUICK, "split": "oblique", "l1": 0.0, "input_noise": 0.3, "shrinkage": 0.0, "scale": "feature"}
NAMES = ["age", "income", "debt", "height", "weight", "noise"]
SIGNS = {"age": 1, "debt": -1, 3: 1}
APART = [["age", "income"], ["debt", 3], [4]]


def people(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 6)) * [10, 1000, 500, 0.1, 20, 1] + [40, 3000, 800, 1.7, 70, 0], columns=NAMES)
    z = (X - X.mean()) / X.std()
    return X, np.where(
        z.age + z.income - 1.5 * z.debt + z.height * z.weight + 0.3 * rng.normal(size=n) > 0, "yes", "no"
    )


X, Y = people()


def signs_hold(weight):
    return (weight[:, 0] >= 0).all() and (weight[:, 2] <= 0).all() and (weight[:, 3] >= 0).all()


def at_most(k):
    return lambda weight: (np.count_nonzero(weight, axis=1) <= k).all()


def are_apart(weight):
    there = np.stack([weight[:, :2].any(axis=1), weight[:, 2:4].any(axis=1), weight[:, 4] != 0])
    return (there.sum(axis=0) <= 1).all()


CASES = {
    "monotonic_cst": ({"monotonic_cst": SIGNS}, signs_hold),
    "few": ({"max_features_per_split": 2}, at_most(2)),
    "one": ({"max_features_per_split": 1}, at_most(1)),
    "interaction_cst": ({"interaction_cst": APART}, are_apart),
    "all": (
        {"monotonic_cst": SIGNS, "max_features_per_split": 2, "interaction_cst": APART},
        lambda weight: signs_hold(weight) and at_most(2)(weight) and are_apart(weight),
    ),
}
cases = pytest.mark.parametrize(("constraints", "holds"), CASES.values(), ids=CASES)


@cases
@pytest.mark.parametrize(
    "changes", [{}, {"algorithm": "em", "l1": 0.005}, {"grow": "balanced"}, {"finetune_epochs": 0}]
)
def test_constraints_hold_in_every_split_before_and_after_finetuning(constraints, holds, changes):
    plain = CrispTreeClassifier.from_flat(**PLAIN | changes).fit(X, Y)
    assert not holds(plain.tree_.weight)
    model = CrispTreeClassifier.from_flat(**PLAIN | changes, **constraints).fit(X, Y)
    assert model.get_n_leaves() > 1
    assert holds(model.tree_.weight)
    if changes.get("grow") != "balanced":  # a random tree has all of its weights until it is finetuned
        assert holds(model.greedy_tree_.weight)


@cases
def test_constraints_hold_after_warm_starts_and_in_files(constraints, holds, tmp_path):
    model = CrispTreeClassifier.from_flat(**PLAIN | {"max_depth": 2}, **constraints, warm_start=True).fit(X, Y)
    model.set_params(max_depth=3).fit(X, Y)
    for tree in (model.tree_, model.greedy_tree_, model.prune(0.01).tree_, model.truncate(1).tree_):
        assert holds(tree.weight)
    model.save(tmp_path / "m.crisp")
    loaded = crisptree.load(tmp_path / "m.crisp")
    assert holds(loaded.tree_.weight)
    assert np.array_equal(loaded.predict(X), model.predict(X))
    refitted = clone(loaded).fit(X, Y)
    again = clone(model).fit(X, Y)
    assert np.array_equal(refitted.tree_.weight, again.tree_.weight)


def test_constraints_that_fit_the_data_cost_little():
    training, judged = people(1000), people(1000, seed=1)
    scores = {
        name: CrispTreeClassifier.from_flat(**PLAIN, **constraints).fit(*training).score(*judged)
        for name, (constraints, _) in [
            ("none", ({}, None)),
            ("signs", CASES["monotonic_cst"]),
            ("three", ({"max_features_per_split": 3}, 0)),
        ]
    }
    assert scores["none"] > 0.8
    assert scores["signs"] > scores["none"] - 0.05
    assert scores["three"] > scores["none"] - 0.08


def test_a_sign_against_the_data_gives_weights_of_zero():
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = X[:, 0] > X[:, 1]
    model = CrispTreeClassifier.from_flat(**PLAIN | {"max_depth": 1}, monotonic_cst={0: 1, 1: 1}).fit(X, y)
    assert np.count_nonzero(model.tree_.weight) == 1
    assert 0.6 < model.score(X, y) < 0.9


def test_predictions_are_monotonic_whatever_is_done_to_the_estimator():
    model = CrispTreeClassifier.from_flat(**PLAIN | {"max_depth": 4}, monotonic_cst={"age": 1, "debt": -1}).fit(X, Y)
    forest = CrispForestClassifier(n_estimators=4, max_depth=4, monotonic_cst=[1, 0, -1, 0, 0, 0], random_state=0)
    updated = clone(model).partial_fit(X[:200], Y[:200], classes=["no", "yes"]).partial_fit(X[200:], Y[200:])
    younger = clone(model).set_params(max_depth=2, warm_start=True).fit(X, Y).set_params(max_depth=4).fit(X, Y)
    models = [
        model,
        model.prune(0.02),
        model.truncate(2),
        model.before_finetuning(),
        forest.fit(X, Y),
        updated,
        younger,
    ]
    rng = np.random.default_rng(0)
    older, deeper = (
        X.assign(age=X.age + rng.exponential(9, len(X))),
        X.assign(debt=X.debt + rng.exponential(400, len(X))),
    )
    for one in models:
        before = one.predict_proba(X)[:, 1]
        assert len(set(before)) > 1
        assert (one.predict_proba(older)[:, 1] >= before).all()
        assert (one.predict_proba(deeper)[:, 1] <= before).all()


def test_a_loaded_model_is_pruned_with_its_leaves_in_order(tmp_path):
    parameters = PLAIN | {"max_depth": 4}
    model = CrispTreeClassifier.from_flat(**parameters, monotonic_cst={"age": 1}).fit(X, Y)
    model.save(tmp_path / "monotonic.crisp")
    loaded = crisptree.load(tmp_path / "monotonic.crisp").prune(0.01)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.prune(0.01).predict_proba(X))
    assert loaded.tree_.statistics.monotonic.tolist() == [1, 0, 0, 0, 0, 0]


def test_regression_is_monotonic_and_keeps_its_mean():
    y = np.sin(X.age / 4) + X.income / 1000
    model = CrispTreeRegressor(max_depth=4, monotonic_cst={"age": 1}, random_state=0).fit(X, y)
    assert (model.predict(X.assign(age=X.age + 3)) >= model.predict(X)).all()
    assert model.predict(X).mean() == pytest.approx(y.mean(), abs=0.05)
    assert model.tree_.linear_weight is None


@pytest.mark.parametrize(
    ("y", "model", "what"),
    [
        (np.arange(400) % 3, CrispTreeClassifier(monotonic_cst={"age": 1}), "3 classes"),
        (np.zeros((400, 2)), CrispTreeRegressor(monotonic_cst={"age": 1}), "2 outputs"),
    ],
)
def test_targets_without_an_order_are_refused(y, model, what):
    with pytest.raises(ValueError, match=f"y must have two classes, or one output, for `monotonic_cst`; got {what}"):
        model.fit(X, y)


def test_constraints_restrict_model_selection_to_hyperplanes():
    model = CrispTreeClassifier.from_flat(**QUICK, max_features_per_split=2, monotonic_cst={"age": 1}).fit(X, Y)
    assert model.best_params_
    assert all(trial.values.get("split") != "axis" for trial in model.cv_results_)
    assert at_most(2)(model.tree_.weight)
    assert (model.tree_.weight[:, 0] >= 0).all()


def test_constraints_hold_on_sparse_rows():
    model = CrispTreeClassifier.from_flat(**PLAIN, monotonic_cst={0: 1, 2: -1}, max_features_per_split=3).fit(
        sparse.csr_matrix(X), Y
    )
    assert at_most(3)(model.tree_.weight)
    assert (model.tree_.weight[:, 0] >= 0).all()
    assert (model.tree_.weight[:, 2] <= 0).all()


def test_constraints_are_the_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("crisptree.learning.samples.MIN_VALUES_FOR_THREADS", 0)
    monkeypatch.setattr("crisptree.threads.available_cores", lambda: 2)
    found = [CrispTreeClassifier.from_flat(**PLAIN | {"n_jobs": n}, **CASES["all"][0]).fit(X, Y).tree_ for n in (1, 2)]
    assert np.array_equal(found[0].weight, found[1].weight)


@pytest.mark.skipif(training is None, reason="installed without the kernel")
@pytest.mark.parametrize("make", ["stumps", "tree"])
@pytest.mark.parametrize("which", ["zeros", "signs"])
def test_native_steps_hold_weights_as_the_definition_does(make, which, monkeypatch):
    data = rows()
    plan = Plan("likelihood", epochs=4, batch_size=40, learning_rate=0.05, input_noise=0.7)

    def trainee():
        if make == "stumps":
            made = stumps(hyperplanes, data)
        else:
            soft = Tree(FIGURE_1, hyperplanes(4, data), random_tables(5, 4).to(data.weight))
            made = WholeTree(soft, data)
        made.zeros = torch.arange(made.splits.n_splits * 6).reshape(-1, 6) % 4 == 0 if which == "zeros" else None
        made.signs = torch.tensor([1, 0, -1, 0, 1, -1], dtype=torch.int8) if which == "signs" else None
        return made

    ours, definition = (trained(ENGINES[name], trainee(), data, plan, monkeypatch) for name in ("native", "torch"))
    assert largest_difference(ours, definition) < 1e-6


def test_interaction_constraints_keep_the_strongest_group_and_its_largest_weights():
    held = WeightConstraints(None, torch.tensor([1.0, 1.0, 1.0, 1.0, 10.0]), 2, ((0, 1), (2, 3)))
    weight = torch.tensor([[1.0, 2.0, 2.1, 0.0, 0.01], [0.0, 1.0, 3.0, 2.0, 1.0]])
    assert held.zeros(weight).tolist() == [[False, False, True, True, True], [True, True, False, True, False]]


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"monotonic_cst": {"age": 2}}, "`monotonic_cst` must be None, a dict of columns"),
        ({"monotonic_cst": {"age": True}}, "`monotonic_cst` must be None, a dict of columns"),
        ({"monotonic_cst": ["age"]}, "`monotonic_cst` must be None, a dict of columns"),
        ({"monotonic_cst": {-1: 1}}, "`monotonic_cst` must be None, a dict of columns"),
        ({"monotonic_cst": [1, 0, -1]}, "`monotonic_cst` must have a number for each of the 6 columns of X; got 3"),
        ({"monotonic_cst": {"age": 1}, "leaf_model": "linear"}, "`leaf_model` must be 'auto' or 'constant' for"),
        ({"monotonic_cst": {"agee": 1}}, "`monotonic_cst` must name columns of X; got 'agee'. Did you mean 'age'"),
        ({"monotonic_cst": {"zzz": 1}}, "They are 'age', 'income'"),
        ({"monotonic_cst": {6: 1}}, "numbered from 0 to 5; got 6"),
        ({"monotonic_cst": {"age": 1, 0: -1}}, "`monotonic_cst` must name every column once; got 0 again"),
        ({"interaction_cst": [["age"]]}, "`interaction_cst` must be None or a list of two or more groups"),
        ({"interaction_cst": [["age"], []]}, "`interaction_cst` must be None or a list of two or more groups"),
        (
            {"interaction_cst": [["age"], ["debt", "age"]]},
            "`interaction_cst` must name every column once; got 'age' again",
        ),
        ({"max_features_per_split": 0}, "`max_features_per_split` must be a whole number of at least 1 or None"),
        ({"monotonic_cst": {"age": 1}, "split": "axis"}, "`split` must be 'auto' or 'oblique' for `monotonic_cst`"),
        ({"max_features_per_split": 2, "grow": "cart"}, "`grow` must be 'greedy' or 'balanced' for"),
    ],
)
def test_constraints_that_cannot_be_are_refused_in_words(constraints, message):
    with pytest.raises(ValueError, match=message):
        CrispTreeClassifier.from_flat(**QUICK | constraints).fit(X, Y)


def test_names_need_a_frame():
    with pytest.raises(ValueError, match="must give the numbers of columns where X has no names"):
        CrispTreeClassifier.from_flat(**PLAIN, monotonic_cst={"age": 1}).fit(X.to_numpy(), Y)
