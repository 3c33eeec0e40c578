"""Linear models in the leaves."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

import crisptree
from crisptree import CrispTreeClassifier, CrispTreeRegressor, explain, export
from crisptree.equations.leaves import ROOT_SHARE, Gram, TreeRidge, log_softmax, root_strengths, working_response
from crisptree.learning.linear_leaves import LeafRows, Members, mean_squares
from crisptree.plots import plot_tree
from crisptree.structure import TreeStructure
from crisptree.targets import Classes, Gaussians
from tests.toys import FIGURE_1, plain_regressor, plain_tree

QUICK = {"epochs": 5, "finetune_epochs": 8, "min_updates": 50, "max_depth": 2, "random_state": 0, "n_jobs": 1}
LONGER = QUICK | {"finetune_epochs": 30}


def bent(n=600, seed=0):
    """Two planes that meet: a number with another slope on either side of a diagonal."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    side = X[:, 0] > X[:, 1]
    return X, np.where(side, 2 * X[:, 2], -2 * X[:, 2] + X[:, 0]) + 0.05 * rng.normal(size=n)


def crossed(n=900, seed=0):
    """Three classes of which two change places across a diagonal: no constant leaf of a small tree can say that."""
    X, y = bent(n, seed)
    return X, np.digitize(y, [-0.7, 0.7])


@pytest.fixture(scope="module")
def regressor():
    return plain_regressor(leaf_model="linear", leaf_l2=3.0, **LONGER).fit(*bent())


@pytest.fixture(scope="module")
def classifier():
    return plain_tree(algorithm="likelihood", leaf_model="linear", leaf_l2=3.0, **LONGER).fit(*crossed())


def test_linear_leaves_fit_what_constant_ones_cannot(regressor, classifier):
    X, y = bent(1000, seed=1)
    assert regressor.score(X, y) > plain_regressor(**LONGER).fit(*bent()).score(X, y) + 0.2
    assert regressor.score(X, y) > Ridge().fit(*bent()).score(X, y) + 0.5
    X, y = crossed(1000, seed=1)
    constant = plain_tree(algorithm="likelihood", **LONGER).fit(*crossed())
    assert classifier.score(X, y) > constant.score(X, y) + 0.1
    assert classifier.score(X, y) > LogisticRegression().fit(*crossed()).score(X, y) + 0.2


def test_splits_are_trained_with_the_models_in_mind(regressor):
    X, y = bent(1000, seed=1)
    assert regressor.score(X, y) > regressor.before_finetuning().score(X, y)


def test_probabilities_are_those_of_the_leafs_softmax(classifier):
    X, _ = crossed(50, seed=2)
    tree, leaf, found = classifier.tree_, classifier.leaf_indices(X), classifier.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    node = tree.structure.n_splits + leaf[0]
    scores = tree.linear_weight[node] @ X[0].astype(float) + tree.linear_bias[node]
    np.testing.assert_allclose(found[0], np.exp(log_softmax(scores)))
    assert np.array_equal(classifier.predict(X), found.argmax(axis=1))


def test_a_heavy_penalty_leaves_one_model_for_all_leaves():
    X, y = bent()
    model = plain_regressor(leaf_model="linear", leaf_l2=1e7, **QUICK).fit(X, y)
    weights = model.tree_.linear_weight
    np.testing.assert_allclose(weights, np.broadcast_to(weights[:1], weights.shape), atol=1e-3)
    np.testing.assert_allclose(model.predict(X), Ridge(alpha=1.0).fit(X, y).predict(X), atol=0.05)


def test_without_splits_there_is_one_regression():
    X, y = bent()
    model = plain_regressor(leaf_model="linear", leaf_l2=1.0, **(QUICK | {"max_depth": 0})).fit(X, y)
    np.testing.assert_allclose(model.predict(X), Ridge(alpha=1.0).fit(X, y).predict(X), atol=0.02)


def test_the_spread_of_a_leaf_is_that_of_its_residuals_however_small():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = X @ [2.0, -1.0] + rng.normal(scale=1e-3, size=400)
    model = plain_regressor(leaf_model="linear", leaf_l2=1e-6, **(QUICK | {"max_depth": 0})).fit(X, y)
    np.testing.assert_allclose(model.predict_std(X), np.std(y - X @ [2.0, -1.0]), rtol=0.05)


def test_the_sums_of_parts_are_the_least_of_the_penalised_squares():
    rng, penalty = np.random.default_rng(0), 2.5
    q, n_leaves = 3, FIGURE_1.n_leaves
    x = [np.column_stack([rng.normal(size=(20, q - 1)), np.ones(20)]) for _ in range(n_leaves)]
    y = [rng.normal(size=(20, 1)) for _ in range(n_leaves)]
    moments = np.stack([a.T @ b for a, b in zip(x, y, strict=True)])
    found = TreeRidge(FIGURE_1, map(Gram.of_factor, x), penalty).sums(moments)
    # All parts at once: a leaf's design stands in the columns of every node on its path.
    design = np.zeros((20 * n_leaves, q * FIGURE_1.n_nodes))
    for leaf in range(n_leaves):
        for node in FIGURE_1.nodes_to(leaf):
            design[20 * leaf : 20 * (leaf + 1), q * node : q * (node + 1)] = x[leaf]
    strength = np.full(q * FIGURE_1.n_nodes, penalty)
    strength[:q] = np.array([ROOT_SHARE, ROOT_SHARE, 1e-9]) * 20 * n_leaves
    parts = np.linalg.solve(design.T @ design + np.diag(strength), design.T @ np.concatenate(y)).reshape(-1, q, 1)
    sums = np.stack([parts[FIGURE_1.nodes_to(leaf)].sum(axis=0) for leaf in range(n_leaves)])
    np.testing.assert_allclose(found[FIGURE_1.n_splits :], sums, atol=1e-8)


def dense_tree_ridge(structure, grams, moments, penalty):
    """The sums of all nodes by inverses of whole Gram matrices."""
    n_splits, q = structure.n_splits, grams.shape[1]
    gram = np.concatenate([np.zeros((n_splits, q, q)), grams])
    moment = np.concatenate([np.zeros((n_splits, *moments.shape[1:])), moments])
    children = [(structure.left_nodes[split], structure.right_nodes[split]) for split in range(n_splits)]
    inverse = {}
    for split in reversed(range(n_splits)):
        for child in children[split]:
            inverse[child] = np.linalg.inv(gram[child] + penalty * np.eye(q))
            gram[split] += penalty * inverse[child] @ gram[child]
            moment[split] += penalty * inverse[child] @ moment[child]
    total = grams[:, -1, -1].sum()
    own = np.diag([*np.full(q - 1, ROOT_SHARE * total), 1e-9 * total])
    sums = np.zeros_like(moment)
    sums[0] = np.linalg.solve(gram[0] + own, moment[0])
    for split in range(n_splits):
        for child in children[split]:
            sums[child] = inverse[child] @ (moment[child] + penalty * sums[split])
    return sums


@pytest.mark.parametrize("penalty", [0.1, 30.0])
@pytest.mark.parametrize("n_rows", [(0, 1, 2, 3, 5, 7, 9, 40), (5,) * 8, (50,) * 8], ids=str)
def test_nodes_of_few_rows_have_the_sums_that_whole_gram_matrices_give(n_rows, penalty, monkeypatch):
    rng, structure, q = np.random.default_rng(0), TreeStructure.balanced(3), 30
    x = [np.column_stack([rng.normal(size=(n, q - 1)), np.ones(n)]) for n in n_rows]
    moments = np.stack([a.T @ rng.normal(size=(len(a), 2)) for a in x])
    expected = dense_tree_ridge(structure, np.stack([a.T @ a for a in x]), moments, penalty)
    inverted = []
    inv = np.linalg.inv
    monkeypatch.setattr(np.linalg, "inv", lambda a: inverted.append(len(a)) or inv(a))
    found = TreeRidge(structure, map(Gram.of_factor, x), penalty).sums(moments)
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    narrow = sum(2 * n <= q for n in n_rows)
    assert len(inverted) <= structure.n_nodes - 1 - narrow  # of such a leaf no q × q matrix is inverted


def test_more_rounds_never_end_below_the_likelihood_of_fewer_by_much():
    X, y = crossed(300)
    rows = LeafRows.of(X, y, Classes(3))
    everyone, leaf = [Members(np.arange(300), np.ones(300))], TreeStructure.single_leaf()
    values = [
        rows.evidence(leaf, rows.fit_reference(leaf, everyone, 1.0, None, n), None).mean() for n in (1, 5, 20, 80)
    ]
    assert (np.diff(values) > -1e-5).all()
    scores = np.array([[0.0, 1.0]])
    np.testing.assert_allclose(working_response(scores, log_softmax(scores), np.array([1])).sum(), scores.sum())


@pytest.fixture(scope="module")
def members():
    """Rows of the four leaves of a tree, some of them in two leaves."""
    rng = np.random.default_rng(3)
    rows = [np.sort(rng.choice(300, size=n, replace=False)) for n in (5, 120, 80, 130)]
    return [Members(own, rng.random(len(own))) for own in rows]


@pytest.mark.parametrize("penalty", [0.1, 30.0])
def test_the_kernel_solves_the_ridge_regressions_of_the_definition(members, penalty):
    X, y = bent(300)
    rows, structure = LeafRows.of(X, y[:, None], Gaussians(1)), TreeStructure.balanced(2)
    models = rows.fit(structure, members, [1e4, penalty])
    expected = rows.fit_reference(structure, members, penalty, None, 0)
    np.testing.assert_allclose(models.sums[1], expected, rtol=1e-8, atol=1e-10)
    variances = mean_squares(rows.squared_errors(members, expected[structure.n_splits :]))
    np.testing.assert_allclose(models.variances[1], variances, rtol=1e-7)


@pytest.mark.parametrize("depth", [0, 2])
def test_the_kernel_minimises_the_penalised_log_loss(members, depth):
    X, y = crossed(300)
    rows, structure = LeafRows.of(X, y, Classes(3)), TreeStructure.balanced(depth)
    own = members if depth else members[1:2]
    penalty = 2.0

    def objective(sums):
        value = -sum(
            one.share @ log_softmax(rows.x[one.rows] @ weights)[np.arange(len(one.rows)), y[one.rows]]
            for one, weights in zip(own, sums[structure.n_splits :], strict=True)
        )
        for split in range(structure.n_splits):
            for child in (structure.left_nodes[split], structure.right_nodes[split]):
                value += 0.5 * penalty * ((sums[child] - sums[split]) ** 2).sum()
        total = 0.5 * sum(one.share.sum() for one in own)
        return value + 0.5 * (root_strengths(structure, 4, total, penalty)[:, None] * sums[0] ** 2).sum()

    fitted = rows.fit(structure, own, [penalty]).sums[0]
    assert objective(fitted) <= objective(rows.fit_reference(structure, own, penalty, None, 2000)) + 1e-6
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert objective(fitted + 1e-3 * rng.normal(size=fitted.shape)) > objective(fitted)


def test_penalties_one_after_the_other_end_where_each_alone_does(members):
    X, y = crossed(300)
    rows, structure = LeafRows.of(X, y, Classes(3)), TreeStructure.balanced(2)
    path = rows.fit(structure, members, [100.0, 10.0, 1.0]).sums[2]
    alone = rows.fit(structure, members, [1.0]).sums[0]
    scores = [log_softmax(rows.x @ weights) for weights in (path[-1], alone[-1])]
    np.testing.assert_allclose(*scores, atol=0.02)


def test_models_of_branches_have_weights_for_the_features_of_the_splits_only():
    X, y = bent()
    model = plain_regressor(split="axis", grow="cart", leaf_model="branch_linear", leaf_l2=1.0, **QUICK).fit(X, y)
    used = (model.tree_.weight != 0).any(axis=0)
    assert used.any()
    assert not used.all()
    assert model.tree_.linear_weight[:, :, used].any()
    assert not model.tree_.linear_weight[:, :, ~used].any()


def test_a_file_keeps_the_models(regressor, classifier, tmp_path):
    for model, (X, _) in ((regressor, bent(50)), (classifier, crossed(50))):
        model.save(tmp_path / "m.crisp")
        again = crisptree.load(tmp_path / "m.crisp")
        assert np.array_equal(again.predict(X), model.predict(X))
        assert again.flat_parameters()["leaf_model"] == "linear"
        for ask in ("predict_std", "predict_proba"):
            if hasattr(model, ask):
                assert np.array_equal(getattr(again, ask)(X), getattr(model, ask)(X))


def test_a_cut_tree_has_the_models_of_its_nodes(regressor):
    X, y = bent(500, seed=3)
    assert regressor.truncate(0).score(X, y) < regressor.truncate(1).score(X, y) <= regressor.score(X, y) + 0.05


def test_units_and_weights_and_several_outputs_hold_for_models():
    X, y = bent()
    both = np.stack([y, 1e6 - 10 * y], axis=1)
    model = plain_regressor(leaf_model="linear", leaf_l2=3.0, **QUICK).fit(X, both, np.ones(len(y)))
    found = model.predict(X)
    np.testing.assert_allclose(found[:, 1], 1e6 - 10 * found[:, 0], rtol=1e-9)
    assert model.predict_std(X).shape == (len(y), 2)


def test_the_soft_tree_mixes_the_models(regressor, classifier):
    X, _ = bent(100)
    assert np.corrcoef(regressor.soft_predict(X, steepness=1e4), regressor.predict(X))[0, 1] > 0.999
    np.testing.assert_allclose(classifier.soft_predict_proba(X).sum(axis=1), 1)


def test_rules_paths_and_pages_support_the_models(regressor, classifier, tmp_path):
    assert " × x2" in export.text(regressor)
    assert "score of" in export.text(classifier)
    X, y = crossed(60)
    row, numbers = X[0], bent(60)
    assert explain.path(classifier, row).predicted == classifier.predict(X[:1])[0]
    assert explain.path(regressor, row).predicted == pytest.approx(regressor.predict(X[:1])[0])
    change = explain.find_counterfactual(classifier, row)
    assert change.predicted == classifier.predict(change.x[None])[0] != classifier.predict(X[:1])[0]
    assert len(explain.attribute_errors(classifier, X, y).rows) == (classifier.predict(X) != y).sum()

    classifier.report(tmp_path / "c.html", X, y)
    regressor.report(tmp_path / "r.html", *numbers)
    drawn = [text.get_text() for text in plot_tree(regressor).texts]
    assert sum(text.startswith("y = ") for text in drawn) == regressor.get_n_leaves()


def test_leaf_l2_is_selected_on_held_out_rows():
    X, y = bent(240)
    brief = QUICK | {"epochs": 3, "finetune_epochs": 3, "min_updates": 20}
    model = CrispTreeRegressor.from_flat(
        leaf_model="linear", split="oblique", l1=0.0, input_noise=0.0, scale="feature", **brief
    )
    assert model.fit(X, y).best_params_["leaf_l2"] > 0
    assert model.score(X, y) > 0.5


def test_a_weight_of_two_is_the_row_twice_in_a_leafs_model():
    X, y = bent(200)
    weight = np.where(np.arange(200) < 80, 2.0, 1.0)
    twice = np.repeat(np.arange(200), weight.astype(int))
    # Thresholds that are found and not trained are the same for both; the models are what may differ.
    one, other = (
        plain_regressor(leaf_model="linear", leaf_l2=20.0, split="axis", grow="cart", **QUICK)
        .set_params(training__finetune_epochs=0)
        .fit(*rows)
        for rows in ((X, y, weight), (X[twice], y[twice]))
    )
    assert one.get_n_leaves() == other.get_n_leaves() == 4
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-5, atol=1e-6)


def test_one_unit_for_all_weights_changes_no_penalty_that_is_left_open():
    X, y = bent(50)  # too few to choose by
    found = [
        plain_regressor(leaf_model="linear", **QUICK).fit(X, y, np.full(50, unit)).predict(X) for unit in (1.0, 1e-3)
    ]
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_epochs_are_scored_with_linear_leaves(kind):
    make, rows = (plain_regressor, bent) if kind == "numbers" else (plain_tree, crossed)
    values = {"leaf_model": "linear", "leaf_l2": 3.0, "early_stopping": True, **QUICK}
    values |= {} if kind == "numbers" else {"algorithm": "likelihood"}
    model, held = make(**values).fit(*rows(), eval_set=rows(300, seed=3)), rows(300, seed=3)
    scores = [record.validation_score for record in model.history_ if record.phase == "finetune"]
    now = model.score(*held)
    assert now > 0.6
    assert (
        now >= max(scores) - 0.03
    )  # R² is told by the variance of other rows, and a softmax is taken further at the end


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ccp_alpha": 0.1}, r"`ccp_alpha` must be None for leaf_model='linear'; got 0.1\. .* Limit max_depth"),
        ({"split": "conv", "image_shape": (1, 3)}, r"`split` must be .* Take leaf_model='constant'"),
        (
            {"max_shift": 1, "scale": "global"},
            r"`max_shift` must be 0 for leaf_model='linear'.* Take leaf_model='constant'",
        ),
    ],
)
def test_what_does_not_go_with_linear_leaves_is_refused(change, said):
    with pytest.raises(ValueError, match=said):
        plain_tree(leaf_model="linear", **change).fit(*crossed(60))


def test_too_many_features_are_refused():
    with pytest.raises(ValueError, match=r"at most 512 features .* got 600 features\. Take leaf_model='constant'"):
        CrispTreeClassifier(leaf_model="linear").fit(np.zeros((4, 600)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"for sparse rows.* a TruncatedSVD"):
        CrispTreeClassifier(leaf_model="linear").fit(sparse.csr_matrix(np.eye(4)), [0, 1, 0, 1])
