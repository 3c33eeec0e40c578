"""A process that torchrun starts: runs the case of its first argument and writes the result to a folder."""

import json
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch.distributed as dist

from crisptree import CrispForestClassifier, CrispTreeClassifier, CrispTreeRegressor
from crisptree.distributed import single_process
from tests.distributed.cases import CASES, FORESTS, PLAIN, QUICK, digest, digest_forest, fit_case, fit_forest, rows

QUICK_PLAIN = QUICK | PLAIN


def error_of(function):
    """Return the error that a call raises, as text."""
    try:
        function()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "none"


def all_cases(rank, size, folder):
    """Every fit, then those that fail, and what each process does alone."""
    found = {name: digest(fit_case(name, rank, size)) for name in CASES}
    X, y, _ = rows("level by level", rank, size)
    model = CrispTreeClassifier.from_flat(**QUICK_PLAIN)
    wide = np.concatenate([X, X[:, :rank]], axis=1)
    found["other features"] = error_of(lambda: model.fit(wide, y))
    invalid = X.copy()
    invalid[3, 1] = np.inf if rank == size - 1 else 0.0
    found["not finite"] = error_of(
        lambda: CrispTreeClassifier.from_flat(**QUICK_PLAIN, categorical_features=None).fit(invalid, y)
    )
    found["other parameters"] = error_of(
        lambda: CrispTreeClassifier.from_flat(**QUICK_PLAIN | {"epochs": 3 + rank}).fit(X, y)
    )
    found["other labels"] = error_of(lambda: model.fit(X, y if rank else np.arange(len(y)) % 2))
    found["stopped"] = error_of(lambda: CrispTreeClassifier.from_flat(**QUICK_PLAIN, callbacks=[_fails]).fit(X, y))
    outputs = X[:, : rank + 1]
    found["other outputs"] = error_of(lambda: CrispTreeRegressor.from_flat(**QUICK_PLAIN).fit(X, outputs))
    found |= {name: digest_forest(fit_forest(name, rank, size)) for name in FORESTS}
    found["checkpoints of a forest"] = error_of(lambda: CrispForestClassifier().fit(X, y, checkpoint=folder / "forest"))
    with single_process():
        found["alone"] = CrispTreeClassifier.from_flat(**QUICK_PLAIN).fit(X, y).classes_.tolist()
    return found


def _fails(record):
    if record.epoch == 2:
        raise OverflowError("enough")


def default_fit(rank, size, folder):
    """All parameters at their defaults."""
    X, y, _ = rows("level by level", rank, size)
    model = CrispTreeClassifier(random_state=0).fit(X, y)
    kept = CrispTreeClassifier(random_state=0).fit(X, y, checkpoint=folder / "default", checkpoint_every=0)
    chosen = {name: str(value) for name, value in model.best_params_.items()}
    return {"default": digest(model), "kept": digest(kept), "chosen": chosen}


def kept(rank, size, folder):
    """A fit with checkpoints, which its first process may kill."""
    at = os.environ.get("KILLED_AT")
    seen = []

    def kill(record):
        seen.append(record)
        if at is not None and len(seen) == int(at):
            os.kill(os.getpid(), signal.SIGKILL)

    X, y, _ = rows("level by level", rank, size)
    model = CrispTreeClassifier.from_flat(**QUICK_PLAIN, callbacks=[kill])
    return {"kept": digest(model.fit(X, y, checkpoint=folder / "checkpoint", checkpoint_every=0, resume=True))}


def one_dies(rank, size, folder):
    """The last process is killed in the middle of a fit."""
    X, y, _ = rows("level by level", rank, size)
    if rank == size - 1:
        folder.joinpath("dying").write_text(str(os.getpid()))
    started = time.monotonic()
    found = {
        "error": error_of(lambda: CrispTreeClassifier.from_flat(**QUICK_PLAIN | {"finetune_epochs": 10**6}).fit(X, y))
    }
    return found | {"seconds": time.monotonic() - started}


WORK = {"all_cases": all_cases, "default_fit": default_fit, "kept": kept, "one_dies": one_dies}

if __name__ == "__main__":
    folder = Path(sys.argv[2])
    dist.init_process_group("gloo", timeout=timedelta(seconds=float(os.environ.get("TIMEOUT", "120"))))
    rank, size = dist.get_rank(), dist.get_world_size()
    result = WORK[sys.argv[1]](rank, size, folder)
    folder.joinpath(f"{sys.argv[1]}-{rank}-of-{size}.json").write_text(json.dumps(result))
    if sys.argv[1] != "one_dies":
        dist.destroy_process_group()
