"""Images instead of rows: everywhere, in every form."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import crisptree
from tests.toys import plain_tree

QUICK = {"max_depth": 2, "epochs": 2, "finetune_epochs": 2, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400].astype(np.float32), y[:400]


def test_images_train_the_same_tree_as_their_rows(digits):
    X, y = digits
    from_rows = plain_tree(**QUICK, image_shape=(8, 8), spatial_penalty=1e-2).fit(X, y)
    from_images = plain_tree(**QUICK, spatial_penalty=1e-2).fit(X.reshape(-1, 8, 8), y)
    from_list = plain_tree(**QUICK, spatial_penalty=1e-2).fit(list(X.reshape(-1, 8, 8)), y)
    assert from_rows.image_shape_ == from_images.image_shape_ == (8, 8)
    for other in (from_images, from_list):
        np.testing.assert_array_equal(from_rows.tree_.weight, other.tree_.weight)


def test_every_method_takes_images_and_rows_alike(digits):
    X, y = digits
    images = X.reshape(-1, 4, 8, 2)
    model = plain_tree(**QUICK).fit(images, y, eval_set=(images[:50], y[:50]))
    assert model.image_shape_ == (4, 8, 2)
    for method in (model.predict, model.predict_proba, model.apply, model.soft_predict_proba):
        np.testing.assert_array_equal(method(images), method(X))
    assert model.score(images, y) == model.score(X, y)
    assert (model.decision_path(images) != model.decision_path(X)).nnz == 0
    assert model.predict(images[:1]).shape == (1,)


def test_one_channel_may_be_written_or_not(digits):
    X, y = digits
    model = plain_tree(**QUICK, image_shape=(8, 8, 1)).fit(X.reshape(-1, 8, 8), y)
    assert model.image_shape_ == (8, 8, 1)
    np.testing.assert_array_equal(model.predict(X.reshape(-1, 8, 8)), model.predict(X.reshape(-1, 8, 8, 1)))


def test_a_split_module_is_given_the_images_that_came(digits):
    import torch

    X, y = digits
    seen = []

    class Look(torch.nn.Linear):
        def forward(self, x):
            seen.append(tuple(x.shape[1:]))
            return super().forward(x.flatten(1))

    plain_tree(**QUICK, split=lambda shape: Look(64, 1)).fit(X.reshape(-1, 8, 8), y)
    assert set(seen) == {(1, 8, 8)}


def test_the_shape_of_the_images_survives_the_model_file(digits, tmp_path):
    X, y = digits
    model = plain_tree(**QUICK).fit(X.reshape(-1, 8, 8), y)
    model.save(tmp_path / "model.crisp")
    again = crisptree.load(tmp_path / "model.crisp")
    assert again.image_shape_ == (8, 8)
    np.testing.assert_array_equal(again.predict(X.reshape(-1, 8, 8)), model.predict(X))


def test_rows_alone_are_no_images(digits):
    X, y = digits
    model = plain_tree(**QUICK).fit(X, y)
    assert model.image_shape_ is None
    with pytest.raises(ValueError, match="dim 3"):
        model.predict(X.reshape(-1, 8, 8))


def test_images_of_another_shape_are_refused_with_both_shapes(digits):
    X, y = digits
    model = plain_tree(**QUICK).fit(X.reshape(-1, 8, 8), y)
    with pytest.raises(ValueError, match=r"shape \(8, 8\) that the tree was trained on; got \(16, 4\)"):
        model.predict(X.reshape(-1, 16, 4))
    with pytest.raises(ValueError, match=r"got \(16, 4\) for images of shape \(8, 8\)"):
        plain_tree(**QUICK, image_shape=(16, 4)).fit(X.reshape(-1, 8, 8), y)
    with pytest.raises(ValueError, match="must all have one shape"):
        plain_tree(**QUICK).fit([np.zeros((8, 8)), np.zeros((8, 9))], [0, 1])


def test_channels_that_come_first_are_refused(digits):
    X, y = digits
    with pytest.raises(ValueError, match=r"channels last.*\(400, 1, 8, 8\).*X\.permute\(0, 2, 3, 1\)"):
        plain_tree(**QUICK).fit(X.reshape(-1, 1, 8, 8), y)
    declared = plain_tree(**QUICK, image_shape=(1, 8, 8)).fit(X.reshape(-1, 1, 8, 8), y)
    assert declared.image_shape_ == (1, 8, 8)


def test_shifts_need_images(digits):
    X, y = digits
    with pytest.raises(ValueError, match="`max_shift` must be 0 for rows that are no images"):
        plain_tree(**{**QUICK, "scale": "global", "max_shift": 1}).fit(X, y)
