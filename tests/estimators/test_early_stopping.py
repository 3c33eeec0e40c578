"""Early stopping: when finetuning ends, which tree is kept, and what is reported of it."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris

import crisptree
from crisptree import (
    CrispForestClassifier,
    CrispSegmenter,
    CrispTreeClassifier,
    CrispTreeRegressor,
    StopTraining,
)
from tests.toys import plain_regressor, plain_tree

QUICK = {"epochs": 3, "min_updates": 20, "max_depth": 3, "n_jobs": 1, "random_state": 0}
STOPS = QUICK | {"early_stopping": True, "n_iter_no_change": 3, "finetune_epochs": 30}


def digits(n=400):
    X, y = load_digits(return_X_y=True)
    return X[:n].astype(np.float32), y[:n]


def finetuning(model):
    return [record for record in model.history_ if record.phase == "finetune"]


def assert_stopped(records, best, patience=3):
    """The history ends ``patience`` epochs after the first epoch with the best score."""
    scores = [record.validation_score for record in records]
    assert len(scores) == best + patience
    if best:
        assert scores[best - 1] == max(scores) > max([-np.inf, *scores[: best - 1]])


@pytest.mark.parametrize("algorithm", ["likelihood", "em"])
def test_a_classifier_stops_and_keeps_the_best_epoch(algorithm):
    X, y = digits()
    model = plain_tree(algorithm=algorithm, **STOPS).fit(X, y)
    records = finetuning(model)
    assert len(records) < 30
    assert_stopped(records, model.best_iteration_)
    patient = plain_tree(algorithm=algorithm, **(STOPS | {"n_iter_no_change": 100})).fit(X, y)
    assert len(finetuning(patient)) == 30


@pytest.mark.parametrize("make", [plain_tree, plain_regressor])
def test_curves_are_those_of_the_history_and_peak_at_the_best_iteration(make, tmp_path):
    X, y = digits()
    model = make(**STOPS).fit(X[:300], y[:300], eval_set=[(X[300:], y[300:])])
    curves, records = model.evals_result_, finetuning(model)
    assert curves["training"]["loss"] == [record.loss for record in records]
    ((metric, scores),) = curves["validation"].items()
    assert metric == ("accuracy" if make is plain_tree else "r2")
    assert len(scores) == len(records) > model.best_iteration_ > 0
    assert scores[model.best_iteration_ - 1] == max(scores)
    without = make(**STOPS | {"early_stopping": False}).fit(X[:300], y[:300])
    assert list(without.evals_result_) == ["training"]
    model.save(tmp_path / "model.crisp")
    loaded = crisptree.load(tmp_path / "model.crisp")
    assert loaded.evals_result_ == (curves if loaded.history_ else {"training": {"loss": []}})


def test_the_kept_tree_is_that_of_the_best_iteration():
    X, y = digits()
    rows = {"eval_set": (X[300:], y[300:])}
    model = plain_tree(**STOPS).fit(X[:300], y[:300], **rows)
    best = model.best_iteration_
    assert best > 0

    def stop(record):
        if record.phase == "finetune" and record.epoch == best:
            raise StopTraining

    again = plain_tree(**(STOPS | {"early_stopping": False}), callbacks=[stop]).fit(X[:300], y[:300], **rows)
    np.testing.assert_array_equal(model.tree_.weight, again.tree_.weight)
    assert not hasattr(again, "best_iteration_")


def test_the_greedy_tree_is_iteration_zero():
    X, y = load_iris(return_X_y=True)
    model = plain_tree(**(STOPS | {"learning_rate": 1e-12})).fit(X, y)
    assert model.best_iteration_ == 0
    assert model.tree_ is model.greedy_tree_
    assert len(finetuning(model)) == 3


@pytest.mark.parametrize("leaves", ["constant", "linear"])
def test_a_regressor_stops(leaves):
    X, y = digits()
    more = {} if leaves == "constant" else {"leaf_model": "linear", "leaf_l2": 30.0}
    model = plain_regressor(**STOPS, **more).fit(X[:, :20], y)
    assert_stopped(finetuning(model), model.best_iteration_)


def test_every_tree_of_a_forest_stops():
    X, y = digits()
    settled = {"split": "oblique", "input_noise": 0.3, "l1": 0.0}
    forest = CrispForestClassifier.from_flat(n_estimators=3, **settled, **STOPS)
    forest.fit(X[:300], y[:300], eval_set=(X[300:], y[300:]))
    assert forest.best_iteration_.shape == (3,)
    records = finetuning(forest)
    starts = [number for number, record in enumerate(records) if record.epoch == 1] + [len(records)]
    for start, end, best in zip(starts[:-1], starts[1:], forest.best_iteration_, strict=True):
        assert_stopped(records[start:end], best)


def test_a_segmenter_stops():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(3, 24, 24))
    labels = (images > 0.3).astype(int)
    model = CrispSegmenter.from_flat(window=3, **(STOPS | {"max_depth": 2})).fit(images, labels)
    assert_stopped(finetuning(model), model.best_iteration_)


@pytest.mark.parametrize("kind", [CrispTreeClassifier, CrispTreeRegressor], ids=lambda kind: kind.__name__)
def test_rows_in_batches_stop_by_validation_rows(kind):
    X, y = digits()

    def batches():
        for start in range(0, 300, 100):
            yield X[start : start + 100], y[start : start + 100]

    settled = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 0.0, "scale": "feature"}
    settled |= {} if kind is CrispTreeClassifier else {"steepness_step": 0.1}
    model = kind.from_flat(**settled, **STOPS)
    with pytest.raises(ValueError, match="early_stopping` must be False for a fit on batches without"):
        model.fit(batches)
    model.fit(batches, eval_set=(X[300:], y[300:]))
    records = finetuning(model)
    assert_stopped(records, model.best_iteration_)
    if model.best_iteration_ and kind is CrispTreeClassifier:
        assert model.score(X[300:], y[300:]) == pytest.approx(records[model.best_iteration_ - 1].validation_score)


def test_a_resumed_fit_stops_at_the_same_epoch(tmp_path):
    X, y = digits()
    plain = plain_tree(**STOPS).fit(X, y)
    n_epochs = len(finetuning(plain))
    for epoch in range(1, n_epochs + 1):
        folder = tmp_path / str(epoch)

        def die(record, epoch=epoch):
            if record.phase == "finetune" and record.epoch == epoch:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            plain_tree(**STOPS, callbacks=[die]).fit(X, y, checkpoint=folder, checkpoint_every=0)
        model = plain_tree(**STOPS).fit(X, y, checkpoint=folder, checkpoint_every=0, resume=True)
        assert model.best_iteration_ == plain.best_iteration_
        assert model.history_ == plain.history_
        np.testing.assert_array_equal(model.tree_.weight, plain.tree_.weight)
    again = plain_tree(**STOPS).fit(X, y, checkpoint=folder, resume=True)  # nothing is left to train
    np.testing.assert_array_equal(again.tree_.weight, plain.tree_.weight)


@pytest.mark.parametrize("patience", [0, -1, 2.0, None, True])
def test_the_patience_is_a_positive_whole_number(patience):
    with pytest.raises(ValueError, match="`n_iter_no_change` must be a whole number of at least 1"):
        plain_tree(n_iter_no_change=patience).fit(*digits(50))
