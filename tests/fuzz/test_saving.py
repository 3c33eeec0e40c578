"""A file is there whole or not at all: killed writers, a full disk, no memory."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")

KILLS = 60


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    command = [sys.executable, "-m", "tests.fuzz.saving", str(tmp_path_factory.mktemp("saving")), str(KILLS)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_a_killed_writer_leaves_a_whole_file_and_the_next_one_clears_up(found):
    assert (found["whole"], found["damaged"]) == (KILLS, 0)
    assert found["left"] == ["model.crisp"]


@pytest.mark.parametrize("failing", ["full disk", "no memory to save"])
def test_a_save_that_cannot_be_finished_leaves_the_earlier_file_alone(found, failing):
    assert found[failing]


def test_a_file_that_does_not_fit_into_memory_is_refused_in_a_sentence(found):
    assert found["no memory to load"]
