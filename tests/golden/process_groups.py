"""Fits of process groups of 3, 2 and 1 processes, in three processes that ``run`` starts.

``python -m tests.golden.process_groups RANK FOLDER`` is one of them. It takes part in every group that is large enough
for its rank, and writes the summaries of its models to the folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from crisptree import CrispTreeClassifier
from tests.distributed import cases
from tests.golden.cases import SCHEDULE, iris
from tests.golden.summary import summarize

ROOT = Path(__file__).parents[2]
SIZES = (3, 2, 1)
SELECTED = "model selection"
CASES = (*cases.CASES, SELECTED)
"""By name; the first ones are in ``tests.distributed.cases``."""


def fit_case(name: str, rank: int, size: int) -> Any:
    if name != SELECTED:
        return cases.fit_case(name, rank, size)
    X, y = iris()
    part = cases.halves(len(y), rank, size)
    return CrispTreeClassifier.from_flat(**SCHEDULE | {"max_depth": 2, "device": "cpu"}).fit(X[part], y[part])


def summary(name: str, rank: int, size: int) -> dict[str, Any]:
    """Fit a case as one process of a group, and score the model on the rows of all processes."""
    model = fit_case(name, rank, size)
    X, y = iris() if name == SELECTED else cases.rows(name)[:2]
    return summarize(model, X, y)


def take_part(rank: int, folder: Path) -> None:
    for size in SIZES:
        if rank < size:
            store = dist.FileStore(str(folder / f"store of {size}"), size)
            timeout = timedelta(seconds=300)
            dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=timeout)
            document = {name: summary(name, rank, size) for name in CASES}
            (folder / f"{rank} of {size}.json").write_text(json.dumps(document))
            dist.destroy_process_group()


def run() -> dict[int, list[dict[str, Any]]]:
    """The summaries of all cases, by the size of the group and the rank in it."""
    with tempfile.TemporaryDirectory() as name:
        folder, environment = Path(name), {**os.environ, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "tests.golden.process_groups"]
        processes = [
            subprocess.Popen([*command, str(rank), name], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
            for rank in range(max(SIZES))
        ]
        messages = [process.communicate(timeout=900)[1] for process in processes]
        assert not any(process.returncode for process in processes), "\n".join(messages)
        return {
            size: [json.loads((folder / f"{rank} of {size}.json").read_text()) for rank in range(size)]
            for size in SIZES
        }


if __name__ == "__main__":
    take_part(int(sys.argv[1]), Path(sys.argv[2]))
