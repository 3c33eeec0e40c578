import numpy as np
import pytest

from crisptree.equations.annealing import DECAYS
from crisptree.learning.options import Plan
from tests.toys import clouds, plain_tree


def rates(**changes):
    plan = Plan(epochs=4, learning_rate=0.1, **changes)
    return [plan.settings_at(epoch).learning_rate for epoch in range(4)]


def test_the_paper_keeps_its_learning_rate():
    assert rates() == rates(decay="none") == [0.1] * 4


def test_the_linear_decay_takes_equal_steps_and_ends_one_step_above_zero():
    assert rates(decay="linear") == pytest.approx([0.1, 0.075, 0.05, 0.025])


def test_the_cosine_is_at_half_the_rate_in_the_middle():
    assert rates(decay="cosine")[0] == pytest.approx(0.1)
    assert rates(decay="cosine")[2] == pytest.approx(0.05)


@pytest.mark.parametrize("name", DECAYS)
def test_the_learning_rate_begins_whole_never_rises_and_stays_positive(name):
    shares = [DECAYS[name](epoch, 50) for epoch in range(50)]
    assert shares[0] == 1
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] > 0


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"finetune_epochs": 0},
        {"grow": "balanced"},
    ],
    ids=["both phases", "growth", "finetuning"],
)
def test_learning_rate_decay_leaves_the_first_epoch_unchanged(changes):
    X, y = clouds(200)
    common = {"max_depth": 2, "random_state": 0, "learning_rate": 0.05} | changes

    def weights(decay, epochs):
        phases = {"epochs": epochs, "finetune_epochs": epochs}
        model = plain_tree(**phases | common, learning_rate_decay=decay)
        return model.fit(X, y).tree_.scaled_hyperplanes()[0]

    assert np.array_equal(weights("linear", 1), weights("none", 1))
    assert not np.array_equal(weights("linear", 5), weights("none", 5))
