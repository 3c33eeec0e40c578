"""Fits in processes that are killed: ``python -m tests.estimators.killed_fits FOLDER NOISE MOMENT …``.

NOISE is the width of the noise on the inputs; "auto" lets every fit choose it, in many short trainings. A moment is a
number of seconds, or what the process does so many times before it kills itself: "fsync:3" is the third time that it
brings a file to the disk, "replace:3" the third time that it gives one its name.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

import numpy as np

from crisptree import CrispTreeClassifier

FINISHED = 7
"""How a process ends that was not killed."""


def fitted(folder: Path, noise: str, **more: object) -> bytes:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 1)
    model = CrispTreeClassifier.from_flat(
        **{
            "split": "oblique",
            "max_leaf_nodes": 6,
            "l1": 0.0,
            "input_noise": noise if noise == "auto" else float(noise),
            "min_updates": 20,
        },
        **{"epochs": 3, "finetune_epochs": 6, "random_state": 0, "n_jobs": 1},
    )
    model.fit(X, y, **more)  # type: ignore[arg-type]
    model.save(folder / "model.crisp")
    return (folder / "model.crisp").read_bytes()


def kill_at(what: str, number: int) -> None:
    function, calls = getattr(os, what), []

    def counted(*arguments: object, **more: object) -> object:
        calls.append(what)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **more)

    setattr(os, what, counted)


def run(folder: Path, noise: str, moment: str | None) -> int:
    """One process that goes on with the fit; how it ended."""
    child = os.fork()
    if not child:
        try:
            if moment is not None and ":" in moment:
                what, number = moment.split(":")
                kill_at(what, int(number))
            fitted(folder, noise, checkpoint=folder / "checkpoint", checkpoint_every=0, resume=True)
            os._exit(FINISHED)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    if moment is not None and ":" not in moment:
        time.sleep(float(moment))
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder: Path, noise: str, moments: list[str]) -> None:
    at_once = fitted(folder, noise)
    kills = 0
    for moment in [*moments, None]:
        while (ended := run(folder, noise, moment)) != -signal.SIGKILL:
            assert ended == FINISHED, f"ended with {ended}"
            assert (folder / "model.crisp").read_bytes() == at_once, f"another tree after {kills} kills"
            shutil.rmtree(folder / "checkpoint")
            if moment is None:
                break
            if ":" not in moment:
                moment = str(float(moment) / 2)  # it was too late
        kills += ended == -signal.SIGKILL
    sys.stdout.write(f"{kills} kills, the same tree\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
