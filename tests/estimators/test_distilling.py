"""One tree from any fitted classifier."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crisptree import CrispTreeClassifier, CrispTreeRegressor
from crisptree.pipeline import readable
from crisptree.selection.evaluators import TreeEvaluator
from crisptree.targets.base import hold_out
from tests.toys import clouds, plain_regressor, plain_tree

X, Y = clouds(90)
NAMES = np.array(["ant", "bee", "cat"])
FOREST = RandomForestClassifier(20, random_state=0).fit(X, NAMES[Y])


def student(**changes):
    quick = {"max_depth": 3, "epochs": 6, "finetune_epochs": 6, "min_updates": 40}
    return plain_tree(**quick | {"random_state": 0} | changes)


class Recorder:
    """A teacher that remembers what it was asked and answers by the first feature."""

    def __init__(self, classes=(0, 1), certain=True):
        self.classes_ = np.array(classes)
        self.certain = certain
        self.asked = []

    def predict_proba(self, X):
        self.asked.append(X)
        right = np.asarray(X)[:, 0] > 0 if self.certain else np.full(len(X), 0.25)
        return np.stack([1 - right, right], axis=1).astype(float)


class NotSure(Recorder):
    """A teacher that has no number for one row."""

    def predict_proba(self, X):
        return np.where(np.arange(len(X))[:, None] == 7, np.nan, super().predict_proba(X))


@pytest.mark.parametrize("labels", ["hard", "sample", "soft"])
def test_a_distilled_tree_predicts_as_its_teacher(labels):
    tree = student().distill(FOREST, X, labels=labels)
    assert tree.classes_.tolist() == NAMES.tolist()
    assert (tree.predict(X) == FOREST.predict(X)).mean() > 0.9


@pytest.mark.parametrize(
    "teacher",
    [make_pipeline(StandardScaler(), LogisticRegression()), RidgeClassifier(), student()],
    ids=["pipeline", "without probabilities", "one of ours"],
)
def test_any_fitted_classifier_can_teach(teacher):
    teacher.fit(X, NAMES[Y])
    tree = student().distill(teacher, X, copies=1)
    assert (tree.predict(X) == teacher.predict(X)).mean() > 0.9


def test_copies_are_as_wide_as_the_noise_and_no_noise_makes_none():
    rows = np.tile(X, (20, 1)) * np.array([1, 10, 100, 1, 1], dtype=np.float32)
    teacher = Recorder()
    student(max_depth=1).distill(teacher, rows, copies=2, noise=0.3)
    assert len(teacher.asked) == 3
    for copy in teacher.asked[1:]:
        np.testing.assert_allclose((copy - rows).std(axis=0), 0.3 * rows.std(axis=0), rtol=0.1)
    assert not np.array_equal(teacher.asked[1], teacher.asked[2])
    quiet = Recorder()
    tree = student(max_depth=1).distill(quiet, rows, noise=0.0)
    assert len(quiet.asked) == 1
    assert tree.tree_.statistics.node_counts[0].sum() == len(rows)


def test_the_same_random_state_gives_the_same_tree():
    one, same = (student().distill(FOREST, X, labels="sample") for _ in range(2))
    other = student(random_state=1).distill(FOREST, X, labels="sample")
    assert np.array_equal(one.tree_.weight, same.tree_.weight)
    assert one.tree_.weight.shape != other.tree_.weight.shape or not np.array_equal(
        one.tree_.weight, other.tree_.weight
    )


def test_labels_are_likeliest_drawn_or_soft():
    unsure = Recorder(certain=False)
    share = {
        labels: student(max_depth=0).distill(unsure, X, copies=9, labels=labels).predict_proba(X[:1])[0, 1]
        for labels in ("hard", "sample", "soft")
    }
    assert share["hard"] == 0.0
    assert share["soft"] == pytest.approx(0.25)
    assert share["sample"] == pytest.approx(0.25, abs=0.05)
    assert share["sample"] != 0.25


@pytest.mark.parametrize(("trust", "expected"), [(None, 0.625), (1.0, 0.25), (0.0, 1.0)])
def test_true_labels_take_the_share_that_the_teacher_is_not_trusted(trust, expected):
    truth = np.ones(90, dtype=int)
    tree = student(max_depth=0).distill(Recorder(certain=False), X, truth, noise=0, labels="soft", trust=trust)
    assert tree.predict_proba(X[:1])[0, 1] == pytest.approx(expected)


@pytest.mark.parametrize(("trust", "share"), [(None, 1.0), (0.5, 1.0), (0.6, 0.0)])
def test_ties_of_hard_labels_go_to_the_truth(trust, share):
    surely_no, truth = Recorder(), np.ones(90, dtype=int)
    rows = np.abs(X) * [-1, 1, 1, 1, 1]
    tree = student(max_depth=0).distill(surely_no, rows, truth, noise=0, trust=trust)
    assert tree.predict_proba(X[:1])[0, 1] == share


def test_a_tie_up_to_rounding_is_a_tie():
    class Teacher(Recorder):
        def predict_proba(self, X):
            return np.tile([5 / 9, 1 - 5 / 9], (len(X), 1))

    trust = 0.9
    assert trust * (5 / 9) > trust * (1 - 5 / 9) + (1 - trust)  # by the last bit
    tree = student(max_depth=0).distill(Teacher(), X, np.ones(90, dtype=int), noise=0, trust=trust)
    assert tree.predict_proba(X[:1])[0, 1] == 1.0


def test_copies_have_no_true_label_and_the_weight_of_their_row():
    weight = np.where(np.arange(90) < 45, 1.0, 0.0)
    truth = np.ones(90, dtype=int)
    tree = student(max_depth=0).distill(
        Recorder(certain=False), X, truth, copies=1, labels="soft", trust=0.0, sample_weight=weight
    )
    assert tree.tree_.statistics.node_counts[0].tolist() == pytest.approx([0.75 * 45, 45 + 0.25 * 45])


def test_classes_that_the_teacher_never_predicts_are_kept():
    tree = student().distill(Recorder(classes=("no", "yes")), np.abs(X) + 1)
    assert tree.classes_.tolist() == ["no", "yes"]
    assert set(tree.predict(X)) == {"yes"}


def test_columns_keep_their_names_and_images_their_shape():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    teacher = RandomForestClassifier(5, random_state=0).fit(frame, Y)
    assert student().distill(teacher, frame, copies=1).feature_names_in_.tolist() == list("abcde")
    polars = pytest.importorskip("polars")
    named = polars.DataFrame(X, schema=list("abcde"))
    recorder = Recorder()
    tree = student().distill(recorder, named, copies=1)
    assert tree.feature_names_in_.tolist() == list("abcde")
    assert [asked.columns for asked in recorder.asked] == 2 * [list("abcde")]
    assert np.array_equal(tree.tree_.weight, student().distill(Recorder(), X, copies=1).tree_.weight)
    images = np.random.default_rng(0).normal(size=(40, 4, 4))
    flat = make_pipeline(Flat(), LogisticRegression()).fit(images, images.mean(axis=(1, 2)) > 0)
    assert student().distill(flat, images, copies=1).image_shape_ == (4, 4)


class Flat:
    """Images as rows."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X).reshape(len(X), -1)


@pytest.mark.parametrize("changes", [{"class_weight": {"ant": 2.0, "bee": 1.0, "cat": 1.0}}, {"grow": "balanced"}])
def test_certain_probabilities_train_with_every_option_of_labels(changes):
    tree = student(**changes).distill(FOREST, X, copies=1)
    assert (tree.predict(X) == FOREST.predict(X)).mean() > 0.8


def test_distillation_accepts_validation_rows():
    tree = student(early_stopping=True).distill(FOREST, X, eval_set=(X, NAMES[Y]))
    assert tree.history_[-1].validation_score > 0.8
    assert tree.tree_.statistics.node_counts[0].sum() == 5 * 90


@pytest.mark.parametrize(
    ("teacher", "rows", "arguments", "error", "message"),
    [
        (object(), X, {}, TypeError, "with predict_proba or predict; got object"),
        (RandomForestClassifier(), X, {}, NotFittedError, "this RandomForestClassifier has none. Call its fit first"),
        (make_pipeline(StandardScaler(), RidgeClassifier()), X, {}, NotFittedError, "this Pipeline has none"),
        (LinearRegression().fit(X, Y), X, {}, NotFittedError, "a regressor cannot teach classes"),
        (
            RandomForestClassifier(2).fit(X, np.stack([Y, Y], axis=1)),
            X,
            {},
            ValueError,
            "one class per row; this RandomForestClassifier has several outputs",
        ),
        (Recorder(classes=(1,)), X, {}, ValueError, "at least 2 classes"),
        (Recorder(classes=(1, 2, 3)), X, {}, ValueError, r"each of its 3 classes_; got the shape \(90, 2\)"),
        (FOREST, X[:, :3], {}, ValueError, "got 3 instead of 5. .*Pipeline"),
        (FOREST, sparse.csr_matrix(X), {}, TypeError, "dense"),
        (FOREST, X, {"y": np.full(90, "dog")}, ValueError, r"among the teacher's classes .*got \['dog'\] too"),
        (FOREST, X, {"y": NAMES}, ValueError, "inconsistent numbers of samples"),
        (FOREST, X, {"copies": -1}, ValueError, "`copies` must be 'auto' or a whole number of at least 0"),
        (FOREST, X, {"noise": -0.1}, ValueError, "`noise` must be a number at least 0"),
        (FOREST, X, {"labels": "fuzzy"}, ValueError, "`labels` must be one of 'hard', 'sample', 'soft'"),
        (FOREST, X, {"trust": 0.3}, ValueError, "`trust` must come with y.*got trust=0.3 and no y. Give y, or leave"),
        (FOREST, X, {"sample_weight": np.ones(3)}, ValueError, r"sample_weight.shape == \(3,\), expected \(90,\)"),
        (NotSure(), X, {}, ValueError, r"`teacher.predict_proba` gives .*row 7 is \[nan, nan\]"),
        (FOREST, X, {"trust": 1.5}, ValueError, "`trust` must be a number from 0 to 1 or None; got 1.5"),
    ],
)
def test_what_cannot_teach_is_refused_with_the_reason(teacher, rows, arguments, error, message):
    with pytest.raises(error, match=message):
        student().distill(teacher, rows, **arguments)


def test_candidates_are_not_scored_on_copies_of_their_training_rows(monkeypatch):
    scored = []
    evaluate = TreeEvaluator.evaluate

    def watched(self, candidates):
        scored.extend(fold for one in candidates for fold in one.folds)
        return evaluate(self, candidates)

    monkeypatch.setattr(TreeEvaluator, "evaluate", watched)
    quick = {"epochs": 2, "finetune_epochs": 2, "min_updates": 10, "max_depth": 2, "random_state": 0}
    tree = CrispTreeClassifier.from_flat(**quick).distill(FOREST, X, copies=3, noise=1e-3)
    assert tree.cv_results_
    assert scored
    for fold in scored:
        among = {tuple(row) for row in X.astype(np.float32)}
        assert all(tuple(row) in among for row in fold.held_out.X)
        nearest = np.abs(fold.held_out.X[:, None] - fold.task.training.X).max(axis=2).min(axis=1)
        assert nearest.min() > 1e-2


def test_candidates_of_readable_trees_are_not_scored_on_copies_of_their_training_rows(monkeypatch):
    folds = []
    make = readable.make_folds
    monkeypatch.setattr(readable, "make_folds", lambda *arguments: folds.extend(make(*arguments)) or folds)
    CrispTreeClassifier.readable(max_leaf_nodes=2, max_depth=1, random_state=0).distill(FOREST, X, copies=1, noise=1e-3)
    assert folds
    for fold in folds:
        nearest = np.abs(fold.held_out.X[:, None] - fold.task.training.X).max(axis=2).min(axis=1)
        assert nearest.min() > 1e-2


class Scale:
    """A teacher of numbers that remembers what it was asked: twice the first feature, and what is below it."""

    def __init__(self, n_outputs=1):
        self.n_outputs = n_outputs
        self.asked = []

    def predict(self, X):
        self.asked.append(np.asarray(X))
        found = 2 * np.asarray(X)[:, : self.n_outputs]
        return found[:, 0] if self.n_outputs == 1 else found


def learner(**changes):
    quick = {"max_depth": 3, "epochs": 6, "finetune_epochs": 6, "min_updates": 40, "n_jobs": 1}
    return plain_regressor(**quick | {"random_state": 0} | changes)


def test_a_regression_teacher_labels_rows_and_copies():
    teacher = Scale()
    tree = learner().distill(teacher, X, copies=2)
    assert [len(rows) for rows in teacher.asked] == [len(X)] * 3
    assert tree.tree_.statistics.node_counts[0, 0] == 3 * len(X)
    assert tree.score(X, 2 * X[:, 0]) > 0.8
    plain = learner().distill(Scale(), X, noise=0.0)
    same = learner().fit(X, 2 * X[:, 0])
    assert np.array_equal(plain.tree_.weight, same.tree_.weight)
    assert learner().distill(Scale(2), X, copies=0).n_outputs_ == 2


def test_true_targets_are_averaged_with_predictions_of_the_teacher():
    mixed = learner().distill(Scale(), X, 10 + 2 * X[:, 0], trust=0.25, copies=0)
    assert mixed.predict(X).mean() == pytest.approx((7.5 + 2 * X[:, 0]).mean(), abs=0.01)
    weighed = learner().distill(Scale(), X, copies=1, sample_weight=np.arange(len(X)) % 2)
    assert weighed.tree_.statistics.node_counts[0, 0] == 2 * (len(X) // 2)


def test_copies_of_validation_rows_do_not_train_a_regression(monkeypatch):
    held = []
    monkeypatch.setattr(
        "crisptree.pipeline.trees.hold_out",
        lambda strata, fraction, seed, source=None: (
            held.append(source) or hold_out(strata, fraction, seed, source=source)
        ),
    )
    learner(early_stopping=True).distill(Scale(), X, copies=2)
    assert np.array_equal(held[0], np.tile(np.arange(len(X)), 3))


def test_unsuitable_regression_teachers_are_refused():
    for teacher, error, words in [
        (object(), TypeError, "must be a fitted regressor with predict"),
        (FOREST, TypeError, "predicts classes. Use CrispTreeClassifier.distill"),
    ]:
        with pytest.raises(error, match=words):
            learner().distill(teacher, X)
    with pytest.raises(ValueError, match="as many columns as `teacher` predicts, 1; got 2"):
        learner().distill(Scale(), X, X[:, :2])
    with pytest.raises(ValueError, match="`trust` must come with y"):
        CrispTreeRegressor().distill(Scale(), X, trust=0.5)


def test_copies_of_whole_numbers_keep_to_the_values_of_their_column():
    rng = np.random.default_rng(0)
    rows = np.stack([rng.normal(size=80), rng.choice([1, 3, 40], 80), np.full(80, 7.0)], axis=1)
    teacher = Recorder()
    student().distill(teacher, rows, copies=3, noise=1.0)
    copies = np.concatenate(teacher.asked[1:])
    assert set(np.unique(copies[:, 1])) == {1, 3, 40}
    assert (copies[:, 1] != np.tile(rows[:, 1], 3)).any()
    assert (copies[:, 2] == 7).all()
    assert not np.isin(copies[:, 0], np.float32(rows[:, 0])).any()
