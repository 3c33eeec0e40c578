"""A file is there whole or not at all: killed writers, a full disk, no memory."""

import json
import subprocess
import sys

import pytest

KILLS = 60


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")
def test_a_writer_that_is_killed_or_has_no_room_leaves_a_whole_file_and_nothing_else(tmp_path):
    command = [sys.executable, "-m", "tests.fuzz.saving", str(tmp_path), str(KILLS)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert (found["whole"], found["damaged"]) == (KILLS, 0)
    assert found["left"] == ["model.crisp"], "a writer removes what was left two days before"
    assert found["full disk"]
    assert found["no memory to save"]
    assert found["no memory to load"]
