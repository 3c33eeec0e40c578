"""What learning_rate="auto" means."""

import numpy as np
import pytest
from sklearn.base import clone

from crisptree import CrispTreeClassifier, TrainingOptions
from crisptree.learning.options import Spec
from tests.toys import plain_tree

QUICK = {"max_depth": 2, "epochs": 3, "finetune_epochs": 3, "random_state": 0}


@pytest.mark.parametrize(
    ("parameters", "n_features", "rates"),
    [
        ({}, 1, (0.02, 0.02)),
        ({}, 64, (0.02, 0.02)),
        ({}, 640, (0.002, 0.002)),
        ({"learning_rate": 0.3}, 640, (0.3, 0.3)),
        ({"split": "axis"}, 640, (0.02, 0.02)),
        ({"grow": "cart"}, 640, (0.02, 0.002)),
    ],
)
def test_the_rate_shrinks_with_the_features_of_a_hyperplane_and_with_nothing_else(parameters, n_features, rates):
    values = CrispTreeClassifier.from_flat(**parameters).training_parameters()
    spec = Spec.of(values, input_norm=n_features, mean_weight=1.0, n_rows=100, image_shape=None, seed=0)
    assert (spec.growth.learning_rate, spec.finetuning.learning_rate) == pytest.approx(rates)


def test_the_automatic_rate_trains_as_the_same_number_does():
    X = np.random.default_rng(0).normal(size=(200, 128)).astype(np.float32)
    y = X[:, 0] > X[:, 1]
    model = plain_tree(**QUICK)
    same = clone(model).set_params(training__learning_rate=0.01)
    np.testing.assert_array_equal(model.fit(X, y).tree_.weight, same.fit(X, y).tree_.weight)


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="`learning_rate` must be 'auto' or a number above 0"):
        CrispTreeClassifier(training=TrainingOptions(learning_rate="fast")).fit(np.zeros((4, 1)), [0, 1, 0, 1])
