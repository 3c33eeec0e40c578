"""Every reader, on mutated files and on those that once broke one: an answer, or an error that names the file."""

import json
import os
import subprocess
import sys

import pytest

from tests.fuzz.targets import TARGETS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")

NUMBER = 200
"""Mutations of every target in the ordinary run; ``make fuzz`` reads 100,000 of each."""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What one process under a memory limit found, target by target, and the target at which it died, if it did."""
    keep = tmp_path_factory.mktemp("found")
    command = [sys.executable, "-m", "tests.fuzz.run", "--number", str(NUMBER), "--keep", str(keep)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)
    found = {entry["target"]: entry for entry in map(json.loads, run.stdout.splitlines())}
    return found, f"exit {run.returncode}, files in {keep}: {run.stderr[-2000:]}"


@pytest.mark.parametrize("target", TARGETS)
def test_a_reader_gives_an_answer_or_an_error_of_ours_with_the_name_of_the_file(results, target):
    found, said = results
    assert target in found, said
    assert found[target]["found"] == {}, said
    assert found[target]["read"] == NUMBER
