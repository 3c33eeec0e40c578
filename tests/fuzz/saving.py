"""Saves that go wrong, in a process of their own: ``python -m tests.fuzz.saving FOLDER KILLS`` prints what was left.

Children are forked: they are killed while they save, may write only a few bytes, or get no more memory.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import crisptree
from crisptree.files import MAX_TEMPORARY_AGE
from tests.fuzz.run import MORE_MEMORY, limit_memory
from tests.fuzz.targets import GOLDEN


def forked(work: Callable[[], None]) -> int:
    """The process of a child that does some work."""
    child = os.fork()
    if child:
        return child
    try:
        work()
    finally:
        os._exit(1)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(path: Path, models: list[Any], number: int) -> dict[str, int]:
    """How often a file was whole after its writer was killed, and how often it was not."""
    rng, whole = np.random.default_rng(0), []
    for model in models:
        model.save(path)
        whole.append(path.read_bytes())
    found = {"whole": 0, "damaged": 0}

    def save_for_ever() -> None:
        while True:
            for model in models:
                model.save(path)

    for _ in range(number):
        child = forked(save_for_ever)
        time.sleep(rng.uniform(0.0, 0.03))
        os.kill(child, signal.SIGKILL)
        ended(child)
        found["whole" if path.read_bytes() in whole else "damaged"] += 1
    return found


def failing(path: Path, model: Any, prepare: Callable[[], None], errors: tuple[type[Exception], ...]) -> bool:
    """Whether saving raises one of the errors and leaves the earlier file and nothing else."""
    before = path.read_bytes()

    def save() -> None:
        prepare()
        try:
            model.save(path)
        except errors:
            os._exit(0)

    return ended(forked(save)) == 0 and path.read_bytes() == before and len(list(path.parent.iterdir())) == 1


def small_files_only() -> None:
    """As on a full disk: a file takes a thousand bytes, and no more."""
    import resource  # which Windows has not

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def little_memory() -> None:
    limit_memory(2**22)


def loading_without_memory(path: Path) -> bool:
    """Whether a file that does not fit into memory is refused in a sentence."""

    def load() -> None:
        with path.open("wb") as file:
            file.truncate(MORE_MEMORY)
        little_memory()
        try:
            crisptree.load(path)
        except crisptree.ModelFileError as error:
            os._exit(0 if "needs more memory than there is" in str(error) else 2)

    return ended(forked(load)) == 0


def main() -> None:
    folder, number = Path(sys.argv[1]), int(sys.argv[2])
    models = [crisptree.load(GOLDEN / f"{kind}.crisp") for kind in ("table", "classifier")]
    path = folder / "saved" / "model.crisp"
    path.parent.mkdir()
    found: dict[str, Any] = killed(path, models, number)
    two_days_ago = time.time() - 2 * MAX_TEMPORARY_AGE
    for entry in path.parent.iterdir():
        os.utime(entry, (two_days_ago, two_days_ago))
    models[0].save(path)
    found["left"] = [entry.name for entry in path.parent.iterdir()]
    found["full disk"] = failing(path, models[1], small_files_only, (OSError,))
    large = crisptree.load(GOLDEN / "classifier.crisp")
    large.__dict__["feature_names_in_"] = np.array(["n" * 2**20] * large.n_features_in_, dtype=object)
    found["no memory to save"] = failing(path, large, little_memory, (MemoryError,))
    found["no memory to load"] = loading_without_memory(folder / "large.crisp")
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
