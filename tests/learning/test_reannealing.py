"""Further rounds of finetuning from the best tree so far."""

import numpy as np
import pytest

from crisptree import CrispSegmenter, CrispTreeClassifier, StopTraining
from crisptree.learning.plan import Plan
from tests.toys import clouds, plain_tree

QUICK = {"max_depth": 3, "epochs": 4, "finetune_epochs": 6, "random_state": 0, "device": "cpu"}
X, Y = clouds(300, n_classes=4)


def tuning(model):
    return [record for record in model.history_ if record.phase == "finetune"]


@pytest.mark.parametrize("annealing", ["linear", "geometric"])
def test_the_later_half_of_a_plan_ends_as_steep_as_the_whole(annealing):
    plan = Plan(epochs=7, annealing=annealing)
    half = plan.later_half
    assert half.epochs == 4
    assert [half.steepness_at(epoch) for epoch in range(4)] == pytest.approx(
        [plan.steepness_at(epoch) for epoch in range(3, 7)]
    )


def test_every_round_goes_through_the_second_half_of_the_epochs_once_more():
    model = plain_tree(**QUICK, reanneal=2).fit(X, Y)
    assert [record.epoch for record in tuning(model)] == [1, 2, 3, 4, 5, 6, 1, 2, 3, 1, 2, 3]
    np.testing.assert_allclose([record.steepness for record in tuning(model)][6:], [1.3, 1.4, 1.5] * 2)


def test_a_round_never_makes_the_tree_worse_on_the_rows_that_judge():
    noisy = Y.copy()
    noisy[::5] = (noisy[::5] + 1) % 4
    for seed in range(3):
        once, often = (
            plain_tree(**{**QUICK, "random_state": seed}, reanneal=rounds, learning_rate=0.2).fit(
                X[:200], noisy[:200], validation=(X[200:], noisy[200:])
            )
            for rounds in (0, 3)
        )
        assert often.score(X[200:], noisy[200:]) >= once.score(X[200:], noisy[200:])


def test_a_callback_that_stops_a_fit_stops_the_rounds_too():
    def stop(record):
        if record.phase == "finetune":
            raise StopTraining

    model = plain_tree(**QUICK, reanneal=2, callbacks=[stop]).fit(X, Y)
    assert len(tuning(model)) == 1


def test_choices_are_made_without_it_and_the_rivals_have_none():
    model = CrispTreeClassifier(**QUICK, split="oblique", l1=0.0, shrinkage=0.0, reanneal=1).fit(X, Y)
    assert [record.epoch for record in tuning(model)][6:] == [1, 2, 3]
    with pytest.raises(ValueError, match="`reanneal` must be 0 for algorithm='non_greedy'"):
        CrispTreeClassifier(algorithm="non_greedy", reanneal=1).fit(X, Y)


def test_a_segmenter_has_it_too():
    images = np.random.default_rng(0).normal(size=(1, 12, 12)).astype(np.float32)
    quick = {**QUICK, "max_depth": 1, "finetune_epochs": 2, "window": 3}
    model = CrispSegmenter(**quick, reanneal=1).fit(images, (images > 0).astype(int))
    assert len(tuning(model)) == 3
