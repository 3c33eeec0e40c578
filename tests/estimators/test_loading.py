import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import crisptree
from crisptree import ModelFileError
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
    assert np.array_equal(again.greedy().predict(X), model.greedy().predict(X))
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
