import pytest

from crisptree import CrispTreeClassifier
from crisptree.estimators.progress import ProgressLine, fraction_done
from crisptree.learning.history import EpochRecord
from tests.toys import clouds


def record(**changes):
    values = {
        "phase": "grow",
        "level": 2,
        "n_levels": 4,
        "n_splits": 2,
        "epoch": 5,
        "n_epochs": 10,
        "steepness": 1.4,
        "loss": 0.5,
    }
    return EpochRecord(**values | changes)


def test_the_line_tells_phase_level_epoch_steepness_loss_and_time_left():
    ticks = iter([0.0, 30.0])
    text = ProgressLine(clock=lambda: next(ticks)).text(record(validation_score=0.91))
    for part in (
        "grow",
        "level 2/4",
        "epoch 5/10",
        "steepness 1.4",
        "loss 0.5000",
        "validation 0.9100",
        "0:50 left",
    ):
        assert part in text


def test_the_time_left_starts_anew_with_each_phase():
    ticks = iter([0.0, 100.0, 105.0, 110.0])
    line = ProgressLine(clock=lambda: next(ticks))
    line.text(record())
    line.text(record(phase="finetune", epoch=1))
    assert "0:40 left" in line.text(record(phase="finetune", epoch=2))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, 0.375), ({"n_levels": None}, None), ({"phase": "finetune"}, 0.5), ({"level": 4, "epoch": 10}, 1.0)],
)
def test_the_share_of_the_phase_that_is_done(changes, expected):
    assert fraction_done(record(**changes)) == expected


def test_the_library_is_silent_unless_asked(capfd):
    X, y = clouds(60)
    quick = {"max_depth": 1, "epochs": 2, "finetune_epochs": 2, "min_updates": 2}
    CrispTreeClassifier(**quick).fit(X, y)
    assert capfd.readouterr() == ("", "")
    CrispTreeClassifier(**quick, verbose=1).fit(X, y)
    out, err = capfd.readouterr()
    assert out == ""
    assert "finetune" in err
    assert "epoch 2/2" in err
