"""The data that are made: their law, and that they are told apart from the paper's."""

import numpy as np
import pytest
from experiments.standins import made_sensors, made_sequences
from sklearn.linear_model import LogisticRegression

from experiments import configs


@pytest.fixture(scope="module", params=[made_sensors, made_sequences])
def made(request):
    return request.param()


def test_three_classes_have_their_shares_in_every_part(made):
    for y in (made.y_train, made.y_valid, made.y_test):
        np.testing.assert_allclose(np.bincount(y) / len(y), (0.25, 0.25, 0.5), atol=0.03)


def test_features_are_informative_but_not_sufficient(made):
    model = LogisticRegression(max_iter=200).fit(made.X_train[:4000], made.y_train[:4000])
    assert 0.52 < model.score(made.X_test, made.y_test) < 0.95


def test_neighbours_in_a_series_are_correlated_by_the_law():
    X = made_sensors().X_train
    for first, second, expected in ((10, 11, 0.8), (49, 50, 0.0)):
        assert np.corrcoef(X[:, first], X[:, second])[0, 1] == pytest.approx(expected, abs=0.1)


def test_every_site_has_one_letter():
    X = made_sequences().X_train.reshape(-1, 17, 21)
    np.testing.assert_array_equal(X.sum(axis=2), 1)


def test_made_data_are_called_made():
    for path in configs.find(configs.MADE):
        config = configs.read(path)
        assert config.made
        assert config.title.endswith("(synthetic)")
    assert not any(configs.read(path).made for path in configs.find(configs.PAPER))
