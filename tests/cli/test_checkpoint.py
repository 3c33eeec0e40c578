import os

import pytest

from crisptree.learning.journal import Journal
from tests.cli.running import QUICK, done, run
from tests.cli.test_fit import small


class Crash(BaseException):
    pass


def test_a_training_that_crashed_goes_on_to_the_same_file(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    table, keep = small(tmp_path / "t.csv", n=60), Journal.keep
    words = ("fit", table, "-t", "y", *QUICK, "--holdout", "0.2", "--refit")
    done(*words, "-o", tmp_path / "at-once.crisp")
    words = (*words, "-o", tmp_path / "parts.crisp", "--checkpoint", tmp_path / "parts", "--checkpoint-every", "0")
    kept = []

    def crash(self, *arguments, **more):
        keep(self, *arguments, **more)
        kept.append(arguments)
        if len(kept) == 9:
            raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "keep", crash)
        with pytest.raises(Crash):
            run(*words)
    assert (tmp_path / "parts" / "refit").is_dir()  # the second training was at work
    assert "go on from it with --resume" in run(*words).said.lower()
    done(*words, "--resume")
    assert (tmp_path / "parts.crisp").read_bytes() == (tmp_path / "at-once.crisp").read_bytes()


def test_going_on_needs_a_folder(tmp_path):
    answer = run("fit", small(tmp_path / "t.csv"), "-t", "y", "-o", tmp_path / "m.crisp", "--resume")
    assert answer.code == 2
    assert "--checkpoint" in answer.said
