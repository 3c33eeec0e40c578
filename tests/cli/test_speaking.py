import io

import pytest
from rich.console import Console

from crisptree.cli import speaking
from crisptree.cli.epochs import epoch_bar
from crisptree.cli.speaking import Bar
from crisptree.learning.history import EpochRecord


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(speaking.time, "monotonic", lambda: now[0])
    return now


def test_outside_a_terminal_progress_is_a_plain_line_now_and_then_with_the_time_left(clock):
    console = Console(file=io.StringIO(), width=100)
    with Bar(console) as bar:
        for second in range(0, 40, 4):
            clock[0] = float(second)
            bar.update("predicting [b]x[/b].csv", second / 40)
    assert console.file.getvalue().splitlines() == [
        "predicting [b]x[/b].csv: 30%, 0:28 left",
        "predicting [b]x[/b].csv: 60%, 0:16 left",
        "predicting [b]x[/b].csv: 90%, 0:04 left",
    ]


def test_short_work_says_nothing_outside_a_terminal(clock):
    console = Console(file=io.StringIO())
    with Bar(console) as bar:
        bar.update("reading", None)
        clock[0] = 9.0
        bar.update("growing", 0.5)
    assert console.file.getvalue() == ""


def test_work_of_unknown_length_is_shown_without_a_time(clock):
    console = Console(file=io.StringIO())
    with Bar(console) as bar:
        clock[0] = 11.0
        bar.update("reading", None, "loss 1")
    assert console.file.getvalue() == "reading loss 1 …\n"


def test_in_a_terminal_there_is_a_bar(clock):
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    with Bar(console) as bar:
        for fraction in (None, 0.25, 0.5):
            bar.update("reading", fraction)
        bar.update("growing", 0.1)
        assert [task.description for task in bar.progress.tasks] == ["growing"]
    assert "growing" in console.file.getvalue()


def test_epochs_move_the_bar_phase_by_phase(clock):
    seen = []

    class Ear:
        def update(self, *words):
            seen.append(words)

    show = epoch_bar(Ear())
    show(EpochRecord("grow", 2, 4, 1, 5, 10, 1.5, 0.7))
    show(EpochRecord("finetune", 1, 1, 3, 10, 10, 2.0, 0.2, validation_score=0.9))
    assert seen == [
        ("growing", 0.375, "(level 2) loss 0.7000"),
        ("finetuning", 1.0, "loss 0.2000, validation 0.9000"),
    ]
