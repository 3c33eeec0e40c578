"""Every reader, on mutated files and on those that once broke one: an answer, or an error that names the file."""

import json
import os
import subprocess
import sys

import pytest

from tests.fuzz.targets import TARGETS

NUMBER = 200
"""Mutations of every target in the ordinary run; ``make fuzz`` reads 100,000 of each."""

MODELS = ("model", "segmenter", "json", "checkpoint", "finished")
TEXTS = ("csv", "csv.gz", "csv.xz", "csv.bz2", "csv in utf-16")
TABLES = ("npz", "parquet", "parquet in batches", "libsvm")
GROUPS = {"texts": TEXTS, "tables": TABLES, "models": MODELS}
GROUPS["data sets"] = tuple(set(TARGETS).difference(*GROUPS.values()))
"""What one process reads: that it starts takes longer than many files, but two cores should have the same to do."""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as Linux does it")
@pytest.mark.parametrize("group", GROUPS)
def test_a_reader_gives_a_result_or_an_error_of_ours_with_the_name_of_the_file(group, tmp_path):
    command = [sys.executable, "-m", "tests.fuzz.run", *GROUPS[group], "--number", str(NUMBER), "--keep", str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=900)
    results = {entry["target"]: entry for entry in map(json.loads, run.stdout.splitlines())}
    found = {target: entry["found"] for target, entry in results.items() if entry["found"]}
    assert found == {}, f"the files are in {tmp_path}"
    assert set(results) == set(GROUPS[group]), f"exit {run.returncode}: {run.stderr[-2000:]}"
    assert {entry["read"] for entry in results.values()} == {NUMBER}
