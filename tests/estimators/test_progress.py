import io
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from rich.console import Console

from crisptree import CrispTreeClassifier, TrainingOptions
from crisptree.learning.history import EpochRecord
from crisptree.pipeline import monitoring as progress
from crisptree.pipeline.monitoring import ProgressDisplay, fraction_done, record_epochs
from tests.toys import clouds, plain_tree


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


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def console(**options):
    return Console(file=io.StringIO(), width=100, **options)


def printed(display):
    return display.console.file.getvalue().splitlines()


def test_a_recorder_keeps_every_record_and_passes_it_on():
    heard = []
    with record_epochs(0, [heard.append]) as recorder:
        recorder.record(record())
        recorder.record(record(epoch=6))
    assert recorder.history == heard == [record(), record(epoch=6)]


def test_outside_a_terminal_progress_is_a_plain_line_now_and_then_with_the_time_left(clock):
    with ProgressDisplay(console()) as display:
        for second in range(0, 40, 4):
            clock[0] = float(second)
            display.update("predicting [b]x[/b].csv", second / 40)
    assert printed(display) == [
        "predicting [b]x[/b].csv: 30%, 0:28 left",
        "predicting [b]x[/b].csv: 60%, 0:16 left",
        "predicting [b]x[/b].csv: 90%, 0:04 left",
    ]


def test_short_tasks_print_nothing_outside_a_terminal_unless_kept(clock):
    for keep, expected in ((False, []), (True, ["growing at last"])):
        clock[0] = 0.0
        with ProgressDisplay(console(), keep=keep) as display:
            display.update("reading", None)
            clock[0] = 9.0
            display.update("growing", 0.5, "at last")
        assert printed(display) == expected


def test_work_of_unknown_length_is_shown_without_a_time(clock):
    with ProgressDisplay(console()) as display:
        clock[0] = 11.0
        display.update("reading", None, "loss 1")
    assert printed(display) == ["reading loss 1 …"]


def test_in_a_terminal_there_is_one_bar(clock):
    with ProgressDisplay(console(force_terminal=True)) as display:
        for fraction in (None, 0.25, 0.5):
            display.update("reading", fraction)
        display.update("growing", 0.1)
        assert [task.description for task in display.progress.tasks] == ["growing"]
    assert "growing" in display.console.file.getvalue()


def test_an_epoch_shows_phase_level_steepness_loss_and_time_left(clock):
    with ProgressDisplay(console()) as display:
        clock[0] = 30.0
        display.show_epoch(record(validation_score=0.91))
        clock[0] = 60.0
        display.show_epoch(record(n_levels=None))
    assert printed(display) == [
        "growing level 2/4, epoch 5/10, steepness 1.4, loss 0.5000, validation 0.9100: 43% …",
        "growing level 2/?, epoch 5/10, steepness 1.4, loss 0.5000 …",
    ]


def test_the_time_left_starts_anew_with_each_phase(clock):
    with ProgressDisplay(console()) as display:
        for second, changes in (
            (100.0, {}),
            (105.0, {"phase": "finetune", "epoch": 1}),
            (118.0, {"phase": "finetune", "epoch": 2}),
        ):
            clock[0] = second
            display.show_epoch(record(**changes))
    assert printed(display)[-1] == "finetuning epoch 2/10, steepness 1.4, loss 0.5000: 20%, 1:44 left"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (1 - 0.9**1.5) / (1 - 0.9**4)),
        ({"n_levels": None}, None),
        ({"phase": "finetune"}, 0.5),
        ({"level": 4, "epoch": 10}, 1.0),
    ],
)
def test_the_share_of_the_phase_that_is_done(changes, expected):
    assert fraction_done(record(**changes)) == (expected and pytest.approx(expected))


def test_nothing_is_printed_without_verbose(capfd):
    X, y = clouds(60)
    quick = {"max_depth": 1, "epochs": 2, "finetune_epochs": 2, "min_updates": 2}
    plain_tree(**quick).fit(X, y)
    assert capfd.readouterr() == ("", "")
    plain_tree(**quick, verbose=1).fit(X, y)
    out, err = capfd.readouterr()
    assert out == ""
    assert "finetuning epoch 2/2" in err


class FakeHandle:
    def __init__(self, shown):
        self.shown = shown

    def update(self, content):
        self.shown.append(content)


@pytest.fixture
def notebook(monkeypatch):
    """What a notebook without ipywidgets is asked to show."""
    shown = []

    def display(content, *, display_id):
        assert display_id
        shown.append(content)
        return FakeHandle(shown)

    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(HTML=str, display=display))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    return shown


def test_a_notebook_without_ipywidgets_shows_a_bar(notebook):
    with ProgressDisplay(Console(force_jupyter=True), keep=True) as progress:
        progress.update("growing", 0.25, "<b>")
        progress.update("growing", 0.5, "more")
    assert notebook[0].startswith('<progress max="1" value="0.2500"></progress> growing &lt;b&gt;')
    assert notebook[-1] == '<progress max="1" value="1.0000"></progress> growing more'


def test_a_bar_that_is_not_kept_leaves_nothing_in_a_notebook(notebook):
    with ProgressDisplay(Console(force_jupyter=True)) as progress:
        progress.update("reading", None)
    assert notebook[0] == '<progress max="1"></progress> reading …'
    assert notebook[-1] == ""


def test_a_verbose_fit_reports_what_it_tries_before_it_trains(capsys, monkeypatch):
    monkeypatch.setattr("crisptree.pipeline.monitoring.SECONDS_BETWEEN_LINES", 0.0)
    X, y = clouds(60)
    model = CrispTreeClassifier(
        max_depth=1, training=TrainingOptions(epochs=1, finetune_epochs=1, min_updates=2), random_state=0, verbose=1
    )
    model.fit(X, y)
    said = capsys.readouterr().err.splitlines()
    tried = [line for line in said if line.startswith("selecting ")]
    assert len(tried) == len(model.cv_results_) > 1
    assert "input_noise=" in tried[0]
    assert said.index(tried[-1]) < min(number for number, line in enumerate(said) if line.startswith("growing"))


@pytest.mark.parametrize(("before", "slowdown"), [(0.0, 1.0), (30.0, 1.0), (0.0, 3.0)])
def test_after_a_tenth_the_time_left_is_right_within_a_factor_of_2(clock, before, slowdown):
    """``before`` are seconds of another task, and the last epochs take ``slowdown`` times as long as the first."""
    epochs = 100
    seconds = [0.5 * slowdown ** (epoch / epochs) for epoch in range(epochs)]
    with ProgressDisplay(console(force_jupyter=False)) as display:
        display.update("selecting", None)
        clock[0] += before
        for epoch in range(1, epochs + 1):
            clock[0] += seconds[epoch - 1]
            display.show_epoch(record(phase="finetune", epoch=epoch, n_epochs=epochs))
            left, estimate = sum(seconds[epoch:]), display.time_left.estimate(epoch / epochs, clock[0])
            assert epoch / epochs >= 0.1 or estimate is None
            if 0.1 < epoch / epochs < 1:
                assert estimate is not None
                assert left / 2 <= estimate <= 2 * left


@pytest.mark.parametrize("n_levels", [6, 8, 10])
def test_the_time_left_of_growth_is_right_within_a_factor_of_2_while_rows_reach_all_levels(clock, n_levels):
    display, epochs = ProgressDisplay(console(force_jupyter=False)), 20
    display.begin("growing")
    for level in range(1, n_levels + 1):
        for epoch in range(1, epochs + 1):
            clock[0] += 1.0
            display.show_epoch(record(level=level, n_levels=n_levels, epoch=epoch, n_epochs=epochs))
            done, left = clock[0], n_levels * epochs - clock[0]
            estimate = display.time_left.estimate(display.fraction, clock[0])
            if left and done >= 0.1 * (done + left):
                assert left / 2 <= estimate <= 2 * left


def test_the_time_left_of_growth_that_ends_at_half_of_the_levels_is_right_within_a_factor_of_2_at_first(clock):
    display, epochs = ProgressDisplay(console(force_jupyter=False)), 20
    display.begin("growing")
    for level in (1, 2):
        for epoch in range(1, epochs + 1):
            clock[0] += 1.0
            display.show_epoch(record(level=level, n_levels=8, epoch=epoch, n_epochs=epochs))
            left, estimate = 4 * epochs - clock[0], display.time_left.estimate(display.fraction, clock[0])
            assert estimate is None or left / 2 <= estimate <= 2 * left


def test_the_time_left_of_a_selection_counts_from_its_begin(clock):
    display = ProgressDisplay(console())
    clock[0] = 100.0
    display.begin("selecting")
    clock[0] = 112.0
    display.show_trial(SimpleNamespace(values={"l1": 0.1}, score=0.5), 0.25)
    assert printed(display) == ["selecting l1=0.1: 0.5000: 25%, 0:36 left"]


def test_a_selection_estimates_the_fraction_that_is_done(monkeypatch):
    X, y = clouds(90)
    heard = []

    @contextmanager
    def listen(verbose):
        yield lambda trial, fraction: heard.append((trial.candidate, fraction))

    monkeypatch.setattr("crisptree.pipeline.trees.display_trials", listen)
    for limit in (None, 4):
        heard.clear()
        CrispTreeClassifier(training=TrainingOptions(max_candidates=limit), random_state=0).fit(X, y)
        fractions = [fraction for _, fraction in heard]
        assert fractions == sorted(fractions)
        assert 0 < fractions[0] < 0.5 < fractions[-1] < 1
        for candidate, fraction in heard:
            assert fraction == pytest.approx(min(candidate / (limit or 14), 0.95))


def test_fits_inside_a_shared_display_show_their_progress_there(clock):
    with ProgressDisplay(console()) as display, progress.share_display(display):
        clock[0] = 30.0
        for verbose, expected in ((0, ""), (None, "growing")):
            with record_epochs(verbose, None) as recorder:
                recorder.record(record())
            assert display.what == expected


@pytest.mark.parametrize("verbose", [None, 0])
def test_a_fit_shows_its_progress_by_default_after_3_seconds_in_a_notebook(verbose, clock, notebook, monkeypatch):
    monkeypatch.setattr(progress, "Console", lambda stderr: console(force_jupyter=True))
    with record_epochs(verbose, None) as recorder:
        clock[0] += 2.9
        recorder.record(record())
        assert notebook == []
        clock[0] += 0.2
        recorder.record(record())
        assert len(notebook) == (verbose is None)


def test_a_fit_shows_its_progress_by_default_after_3_seconds_in_a_terminal(clock, monkeypatch):
    for verbose, is_terminal, second, is_shown in (
        (None, True, 2.9, False),
        (None, True, 3.1, True),
        (None, False, 30.0, False),
        (0, True, 30.0, False),
        (1, True, 2.9, True),
    ):
        shown = console(force_terminal=is_terminal, force_jupyter=False)
        monkeypatch.setattr(progress, "Console", lambda stderr, shown=shown: shown)
        clock[0] = 0.0
        with record_epochs(verbose, None) as recorder:
            clock[0] = second
            recorder.record(record())
        assert ("growing" in shown.file.getvalue()) == is_shown
        clock[0] = 0.0
        with progress.display_trials(verbose) as on_trial:
            clock[0] = second
            on_trial(SimpleNamespace(values={"l1": 0.1}, score=0.5), 0.5)
        assert ("selecting" in shown.file.getvalue()) == is_shown
