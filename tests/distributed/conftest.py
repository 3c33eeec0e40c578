"""Process groups of this process and of those that torchrun starts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed as dist

ROOT = Path(__file__).parents[2]


@pytest.fixture
def group_of_one():
    """This process is a group by itself: the reference that any number of processes is held to."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def torchrun(tmp_path_factory):
    """What every one of some processes has found; they run until all are done, or one has failed."""

    def run(work, n_processes, folder=None, **environment):
        folder = folder or tmp_path_factory.mktemp("together")
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n_processes)]
        command += ["-m", "tests.distributed.worker", work, str(folder)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
        found = [folder / f"{work}-{rank}-of-{n_processes}.json" for rank in range(n_processes)]
        assert all(path.exists() for path in found), done.stderr
        return [json.loads(path.read_text()) for path in found]

    return run
