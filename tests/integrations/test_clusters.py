"""The examples of clusters run with two workers, and write the model of one process bit for bit."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "clusters"
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
PROGRAMS = {"torch": [*TORCHRUN, "2", "with_torchrun.py"], **{name: [f"with_{name}.py"] for name in ("dask", "ray")}}
PROGRAMS["pyspark"] = ["with_spark.py"]


def run(program, output):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RAY_TRAIN_V2_ENABLED": "1"}
    command = [sys.executable, *program, str(output)]
    done = subprocess.run(command, cwd=FOLDER, env=environment, capture_output=True, text=True, timeout=600)
    assert output.exists(), done.stdout + done.stderr
    return output.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("package", PROGRAMS)
def test_two_workers_of_a_cluster_train_the_tree_of_one_process(package, tmp_path):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}")
    single = run([*TORCHRUN, "1", "with_torchrun.py"], tmp_path / "single.crisp")
    assert run(PROGRAMS[package], tmp_path / "cluster.crisp") == single
