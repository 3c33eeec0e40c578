"""Tensors of torch as rows, targets and weights, with and without a gradient."""

import numpy as np
import pytest
import torch

from crisptree import CrispForestRegressor, CrispPixelRegressor, CrispTreeClassifier, CrispTreeRegressor
from crisptree.data.batches import Batches
from tests.toys import clouds, ridges

QUICK = {"max_depth": 2, "epochs": 4, "finetune_epochs": 4, "min_updates": 10, "input_noise": 0.5, "l1": 0.0}
QUICK |= {"random_state": 0, "split": "oblique"}
X, CLASSES = clouds(80)
NUMBERS = ridges(80, n_features=X.shape[1])[1]
WEIGHT = 1.0 + np.arange(80) % 2


def with_gradient(values):
    return torch.tensor(np.asarray(values), dtype=torch.float64, requires_grad=True)


def test_a_classifier_takes_tensors_that_require_a_gradient():
    held = X[:20], CLASSES[:20]
    expected = CrispTreeClassifier.from_flat(**QUICK).fit(X, CLASSES, WEIGHT, eval_set=held)
    model = CrispTreeClassifier.from_flat(**QUICK)
    model.fit(with_gradient(X), with_gradient(CLASSES), with_gradient(WEIGHT), tuple(map(with_gradient, held)))
    assert np.array_equal(model.predict_proba(with_gradient(X)), expected.predict_proba(X))
    assert model.score(with_gradient(X), CLASSES, WEIGHT) == expected.score(X, CLASSES, WEIGHT)
    model.partial_fit(with_gradient(X), with_gradient(CLASSES), sample_weight=with_gradient(WEIGHT))
    expected.partial_fit(X, CLASSES, sample_weight=WEIGHT)
    assert np.array_equal(model.predict_proba(X), expected.predict_proba(X))
    assert model.explain(with_gradient(X[:1])) is not None


@pytest.mark.parametrize(("kind", "more"), [(CrispTreeRegressor, {}), (CrispForestRegressor, {"n_estimators": 2})])
def test_regressors_take_tensors_that_require_a_gradient(kind, more):
    held = X[:20], NUMBERS[:20]
    expected = kind.from_flat(**QUICK, **more).fit(X, NUMBERS, WEIGHT, eval_set=held)
    given = map(with_gradient, (X, NUMBERS, WEIGHT))
    model = kind.from_flat(**QUICK, **more).fit(*given, eval_set=tuple(map(with_gradient, held)))
    assert np.array_equal(model.predict(with_gradient(X)), expected.predict(X))
    found = model.score(with_gradient(X), with_gradient(NUMBERS), with_gradient(WEIGHT))
    assert found == expected.score(X, NUMBERS, WEIGHT)


def test_batches_take_tensors_that_require_a_gradient():
    expected = CrispTreeRegressor.from_flat(**QUICK).fit(Batches.from_arrays(X, NUMBERS, WEIGHT))
    model = CrispTreeRegressor.from_flat(**QUICK).fit(lambda: iter([tuple(map(with_gradient, (X, NUMBERS, WEIGHT)))]))
    assert np.array_equal(model.predict(X), expected.predict(X))


def test_images_may_be_tensors_that_require_a_gradient():
    images = np.random.default_rng(0).normal(size=(2, 10, 10))
    parameters = {"max_depth": 1, "window": 3, "random_state": 0}
    expected = CrispPixelRegressor(**parameters).fit(images, images)
    for given in (with_gradient(images), [with_gradient(image) for image in images]):
        model = CrispPixelRegressor(**parameters).fit(given, given)
        assert np.array_equal(np.stack(list(model.predict(given))), expected.predict(images))
    rows = CrispTreeRegressor.from_flat(**QUICK).fit([with_gradient(image) for image in images], [0.0, 1.0])
    assert rows.image_shape_ == (10, 10)


class OnDevice:
    """Stands for a CUDA tensor: NumPy cannot read it before it is on the CPU."""

    is_cuda = True

    def __init__(self, values):
        self.values, self.shape = torch.tensor(values), values.shape

    def __len__(self):
        return len(self.values)

    def __array__(self, *args, **options):
        raise TypeError("can't convert cuda:0 device type tensor to numpy.")

    def cpu(self):
        return self.values


def test_rows_on_a_device_are_predicted_on_the_cpu():
    model = CrispTreeClassifier.from_flat(**QUICK).fit(X, CLASSES)
    for method in (model.apply, model.predict, model.predict_proba, model.predict_log_proba):
        assert np.array_equal(method(OnDevice(X)), method(X))
