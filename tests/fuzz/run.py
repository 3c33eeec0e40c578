"""Mutated files by the thousand, read under a memory limit: ``python -m tests.fuzz.run --number 100000``.

Prints one JSON line for every target; files that brought up something else than the reader's own error are kept in
``--keep``. Copied to ``tests/fuzz/crashes/TARGET/``, such a file is read first in every later run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.targets import TARGETS, Target, errors

MORE_MEMORY = 2**30
"""Bytes of address space that reading may take beyond what the process has when it starts."""

CRASHES = Path(__file__).parent / "crashes"
"""Files that once brought up a foreign error."""

MEMORY = Path("/dev/shm")
"""Where files are written that only a moment needs."""

SECONDS = 10
"""For one file, of processor time: a busy machine is no hang."""


def limit_memory(more: int = MORE_MEMORY) -> None:
    """Let this process grow by so many bytes at most."""
    import resource  # which Windows has not

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _late(*_: Any) -> None:
    raise TimeoutError(f"reading took more than {SECONDS} seconds")


def finding(target: Target, path: Path) -> str | None:
    """What was wrong about reading a file: anything but an answer or an error of ours that names the file."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings(action="ignore"):
            target.read(path)
    except errors() as error:
        return None if path.name in str(error) else f"{type(error).__name__} without the file's name: {error}"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def fuzz(name: str, number: int, seed: int, folder: Path, keep: Path | None) -> dict[str, Any]:
    """Read so many mutations of a target's file, and say what was found."""
    target, found = TARGETS[name], Counter[str]()
    whole, path = target.seed(), folder / target.name
    path.write_bytes(whole)
    target.read(path)  # the sound file is sound, and everything is imported
    started = time.monotonic()
    crashes = sorted((CRASHES / name).glob("*"))
    for crash in crashes:
        path.write_bytes(crash.read_bytes())
        if (what := finding(target, path)) is not None:
            found[f"{crash.name}: {what}"] += 1
    for place in range(number):
        rng = np.random.default_rng([seed, place])
        path.write_bytes(target.mutate(whole, rng))
        if (what := finding(target, path)) is not None:
            kind = what.split(":")[0]
            found[kind] += 1
            if keep is not None and found[kind] <= 3:
                kept = keep / name
                kept.mkdir(parents=True, exist_ok=True)
                (kept / f"{seed}-{place}").write_bytes(path.read_bytes())
                (kept / f"{seed}-{place}.txt").write_text(what, encoding="utf-8", errors="backslashreplace")
    seconds = round(time.monotonic() - started, 1)
    return {"target": name, "read": number, "crashes": len(crashes), "found": dict(found), "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", default=list(TARGETS))
    parser.add_argument("--number", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    signal.signal(signal.SIGPROF, _late)
    if {"model", "segmenter", "checkpoint", "finished"} & set(given.targets):
        import torch  # before the limit: its libraries are no part of it

        torch.set_num_threads(1)
    failed = False
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        for name in given.targets:
            target = TARGETS[name]
            (Path(folder) / target.name).write_bytes(target.seed())
            target.read(Path(folder) / target.name)
        limit_memory()
        for name in given.targets:
            result = fuzz(name, given.number, given.seed, Path(folder), given.keep)
            print(json.dumps(result), flush=True)
            failed = failed or bool(result["found"])
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    os._exit(int(failed))  # threads of Arrow cannot end where memory is short


if __name__ == "__main__":
    main()
