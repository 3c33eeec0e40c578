"""Where finetuning starts its steepness."""

import numpy as np
import pytest
from sklearn.datasets import load_iris

from crisptree import CrispSegmenter, CrispTreeClassifier, TrainingOptions
from crisptree.learning.options import Spec
from crisptree.selection.search import shorten_training

X, Y = load_iris(return_X_y=True)
QUICK = {"max_depth": 2, "epochs": 4, "finetune_epochs": 3, "random_state": 0, "device": "cpu"}


def spec_of(estimator=CrispTreeClassifier, **parameters):
    values = estimator.from_flat(**parameters).training_parameters()
    return Spec.of(values, input_norm=4, mean_weight=1.0, n_rows=100, image_shape=None, seed=0)


@pytest.mark.parametrize("estimator", [CrispTreeClassifier, CrispSegmenter])
@pytest.mark.parametrize(
    ("parameters", "start"),
    [
        ({}, 1.0),
        ({"steepness": 2.0}, 2.0),
        ({"finetune_steepness": "continue", "epochs": 50}, 6.0),
        ({"finetune_steepness": "continue", "epochs": 10, "annealing": "geometric"}, 1.1**10),
        ({"finetune_steepness": "continue", "grow": "balanced"}, 1.0),
        ({"finetune_steepness": 2.5}, 2.5),
        ({"finetune_steepness": 2.5, "steepness": 2.0}, 2.5),
    ],
)
def test_finetuning_starts_again_or_goes_on_or_starts_at_a_number(estimator, parameters, start):
    spec = spec_of(estimator, **parameters)
    assert spec.finetuning.steepness_at(0) == pytest.approx(start)
    assert spec.growth.steepness == parameters.get("steepness", 1.0)


def test_a_shortened_training_goes_on_from_the_same_steepness():
    spec = spec_of(finetune_steepness="continue")
    short = shorten_training(spec, 0.3)
    assert short.finetuning.steepness == spec.finetuning.steepness
    assert short.growth.steepness_at(short.growth.epochs) == pytest.approx(short.finetuning.steepness)


@pytest.mark.parametrize(("start", "first"), [("restart", 1.0), ("continue", 1.4), (3.0, 3.0)])
def test_the_history_of_a_fit_shows_it(start, first):
    model = CrispTreeClassifier.paper(**QUICK, finetune_steepness=start).fit(X, Y)
    tuning = [record.steepness for record in model.history_ if record.phase == "finetune"]
    np.testing.assert_allclose(tuning, [first, first + 0.1, first + 0.2])


def test_a_start_that_annealing_would_take_too_far_is_refused():
    with pytest.raises(ValueError, match="`steepness` must stay below"):
        spec_of(finetune_steepness="continue", epochs=200, finetune_epochs=200, annealing="geometric")


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="`finetune_steepness` must be 'restart' or 'continue' or a number above 0"):
        CrispTreeClassifier(training=TrainingOptions(finetune_steepness="on")).fit(X, Y)
