import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import crisptree
from crisptree import ModelFileError, TrainingOptions
from crisptree.estimators.loading import ESTIMATOR, KNOWN
from crisptree.persistence.model_file import read, write
from tests.toys import clouds, plain_tree

QUICK = {"max_depth": 3, "epochs": 4, "finetune_epochs": 4, "min_updates": 10, "random_state": 0}
X, Y = clouds(90)


@pytest.mark.parametrize("labels", [np.array(["red", "green", "blue"]), np.array([5, 7, 9]), np.array([0.0, 1.0, 2.0])])
def test_a_reloaded_model_predicts_the_same_bits(tmp_path, labels):
    model = plain_tree(**QUICK, image_shape=(5, 1)).fit(X, labels[Y])
    model.save(tmp_path / "x.crisp")
    again = crisptree.load(tmp_path / "x.crisp")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(again.soft_predict_proba(X), model.soft_predict_proba(X))
    assert np.array_equal(again.before_finetuning().predict(X), model.before_finetuning().predict(X))
    assert again.classes_.dtype == model.classes_.dtype
    assert again.get_params() == model.get_params()


def test_a_single_leaf_saves_and_loads(tmp_path):
    model = plain_tree(max_depth=0).fit(X, Y)
    model.save(tmp_path / "leaf.crisp")
    assert np.array_equal(crisptree.load(tmp_path / "leaf.crisp").predict_proba(X), model.predict_proba(X))


def test_column_names_survive(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"))
    plain_tree(**QUICK).fit(frame, Y).save(tmp_path / "x.crisp")
    again = crisptree.load(tmp_path / "x.crisp")
    assert again.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[list("edcba")])


def test_what_is_not_a_model_file_is_refused_with_a_sentence(tmp_path):
    with pytest.raises(ModelFileError, match=r"nothing\.crisp cannot be read"):
        crisptree.load(tmp_path / "nothing.crisp")
    (tmp_path / "text.crisp").write_text("hello, I am a text")
    with pytest.raises(ModelFileError, match="not a crisptree model file"):
        crisptree.load(tmp_path / "text.crisp")


def test_only_a_fitted_model_is_saved(tmp_path):
    with pytest.raises(NotFittedError):
        plain_tree().save(tmp_path / "x.crisp")
    assert not list(tmp_path.iterdir())


def test_selected_parameters_are_saved_and_used_by_a_warm_start(tmp_path):
    model = crisptree.CrispTreeClassifier(
        max_depth=1, training=TrainingOptions(epochs=2, finetune_epochs=2, min_updates=5), random_state=0
    )
    model.fit(X, Y).save(tmp_path / "x.crisp")
    again = crisptree.load(tmp_path / "x.crisp")
    assert again.best_params_ == model.best_params_ != {}
    grown, regrown = (one.set_params(warm_start=True, max_depth=2).fit(X, Y) for one in (model, again))
    assert np.array_equal(grown.predict_proba(X), regrown.predict_proba(X))


@pytest.mark.parametrize("chosen", [{"split": "diagonal"}, {"input_noise": -1.0}, {"no_such": 1}, [1, 2], "noise"])
def test_a_choice_that_no_fit_can_have_made_is_refused(tmp_path, chosen):
    plain_tree(**QUICK).fit(X, Y).save(tmp_path / "x.crisp")
    file = read(tmp_path / "x.crisp", KNOWN)
    file.section(ESTIMATOR).content["chosen"] = chosen
    write(tmp_path / "x.crisp", file.sections)
    with pytest.raises(ModelFileError, match="invalid selected value"):
        crisptree.load(tmp_path / "x.crisp")


def test_files_that_name_removed_parameters_load(tmp_path):
    model = plain_tree(**QUICK).fit(X, Y)
    model.save(tmp_path / "x.crisp")
    file = read(tmp_path / "x.crisp", KNOWN)
    file.section(ESTIMATOR).content["parameters"] |= {"noise_correlation": 0.3, "reanneal": 2}
    write(tmp_path / "x.crisp", file.sections)
    again = crisptree.load(tmp_path / "x.crisp")
    assert again.get_params() == model.get_params()
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
