"""Grown trees: stored for a resumed run, truncated, finetuned, stopped at a time cap."""

from __future__ import annotations

import hashlib
import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy.typing as npt

from crisptree import CrispTreeClassifier, load
from experiments.store import Store

Rows = tuple[npt.NDArray[Any], npt.NDArray[Any]]


class TimeCapReached(Exception):
    """A fit took longer than it may."""


@dataclass(frozen=True)
class Grown:
    """A grown estimator and the seconds until each of its levels was there."""

    model: CrispTreeClassifier
    seconds: dict[int, float]

    def seconds_to(self, depth: int) -> float:
        """Return the seconds of growth to a depth."""
        return max((seconds for level, seconds in self.seconds.items() if level <= depth), default=0.0)


@dataclass(frozen=True)
class Shelf:
    """Grown trees as model files, so that a resumed run goes on where it was."""

    folder: Path

    def get(self, key: dict[str, Any]) -> Grown | None:
        """Return the tree that was grown under this key."""
        if (found := self._store.get(_name(key))) is None or not self._path(key).exists():
            return None
        model = load(self._path(key))
        return Grown(model, {int(level): seconds for level, seconds in found["seconds"].items()})

    def put(self, key: dict[str, Any], grown: Grown) -> None:
        """Keep a tree. The model comes first: a key without one would be worth nothing."""
        self.folder.mkdir(parents=True, exist_ok=True)
        grown.model.save(self._path(key))
        self._store.put({"name": _name(key), "key": key, "seconds": grown.seconds})

    @cached_property
    def _store(self) -> Store:
        return Store(self.folder / "trees.jsonl", ("name",))

    def _path(self, key: dict[str, Any]) -> Path:
        return self.folder / f"{_name(key)}.crisp"


def _name(key: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:20]


def grow(model: CrispTreeClassifier, rows: Rows) -> Grown:
    """Grow a tree once; ``cut`` gives every shallower one."""
    seconds: dict[int, float] = {}
    started = time.perf_counter()

    def keep(record: Any) -> None:
        seconds[record.level] = time.perf_counter() - started

    model.set_params(training__callbacks=[keep]).fit(*rows).set_params(training__callbacks=None)
    seconds[model.get_depth()] = time.perf_counter() - started
    return Grown(model, seconds)


def grow_on(grown: Grown, depth: int, seed: int, rows: Rows, time_cap: float) -> Grown:
    """Grow a tree to a larger depth. The time so far counts."""
    before = grown.seconds_to(depth)
    model = grown.model.truncate(depth).set_params(warm_start=True, random_state=seed)
    with at_most(time_cap - before):
        more = grow(model, rows)
    return Grown(more.model, grown.seconds | {depth: before + max(more.seconds.values())})


def train_on(start: CrispTreeClassifier, like: CrispTreeClassifier, rows: Rows, **fit: Any) -> CrispTreeClassifier:
    """Finetune the grown tree ``start`` with the parameters of ``like``.

    No leaf has more rows than there are, so nothing grows further, not even where growth had given up on a leaf.
    """
    wanted = like.get_params(deep=False) | {"warm_start": True}
    device = start.flat_parameters()["device"]
    model = start.truncate(start.max_depth).set_params(**wanted)
    model.set_params(training__device=device, training__min_samples_split=len(rows[1]) + 1)
    return model.fit(*rows, **fit)


def timed(call: Callable[[], CrispTreeClassifier]) -> tuple[CrispTreeClassifier, float]:
    """Return the result of a call and its seconds."""
    started = time.perf_counter()
    return call(), time.perf_counter() - started


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """Break off with ``TimeCapReached`` after so many seconds, as an interrupt from the keyboard would."""
    if seconds is None:
        yield
        return
    if seconds <= 0:
        raise TimeCapReached

    armed = True

    def ring(*_: object) -> None:
        if armed:
            raise TimeCapReached

    before = signal.signal(signal.SIGALRM, ring)
    try:
        try:
            # It rings again every second: an exception may be swallowed where Python cannot pass it on.
            signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
            yield
        finally:
            armed = False
    finally:
        # The bell may ring at any line, also just before it is switched off: hence two steps.
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
