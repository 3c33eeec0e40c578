"""Checkpoints of fits: a folder belongs to the fit whose fingerprint it holds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from crisptree.exceptions import CheckpointError
from crisptree.inference import CrispTree
from crisptree.parameters.rules import true_or_false
from crisptree.persistence.checkpoints import CheckpointFolder, CheckpointStore, keeping
from crisptree.persistence.model_file import Section
from crisptree.persistence.trees import trees_to_sections

IGNORED_PARAMETERS = ("n_jobs", "verbose", "callbacks", "random_state", "device", "warm_start")
"""Parameters that change no tree, or whose resolved values are in the fingerprint."""

ROWS_AT_ONCE = 2**14


class Checkpoints(NamedTuple):
    """Folder of the checkpoints of a fit, seconds between two of them, and whether to resume."""

    folder: str | PathLike[str] | None = None
    every: float = 60.0
    resume: bool = False

    @contextmanager
    def kept(self, parameters: Mapping[str, Any], data: Mapping[str, Any], seed: int) -> Iterator[int]:
        """Write checkpoints inside, if there is a folder; provide the seed of the fit, possibly of the checkpoint."""
        every = self.every
        if isinstance(every, bool) or not isinstance(every, int | float) or not 0 <= every < float("inf"):
            raise ValueError(f"`checkpoint_every` must be seconds, 0 or more; got {every!r}.")
        true_or_false().check("resume", self.resume)
        if self.folder is None:
            if self.resume:
                raise ValueError("`resume` must come with `checkpoint`, the folder to continue from; got none.")
            yield seed
            return
        with keeping_checkpoints(self.folder, every, self.resume, parameters, data, seed) as own_seed:
            yield own_seed


@contextmanager
def keeping_checkpoints(
    folder: str | PathLike[str],
    every: float,
    resume: bool,
    parameters: Mapping[str, Any],
    data: Mapping[str, Any],
    seed: int,
) -> Iterator[int]:
    """Write checkpoints to a folder inside; provide the seed of the fit, that of the checkpoint for a random one.

    ``data`` are the training data by the names that errors use.
    """
    files = CheckpointFolder(folder)
    with ExitStack() as stack:
        with files.translate_errors():
            if not stack.enter_context(files.held()):
                raise CheckpointError(f"another process trains with the checkpoint {folder}. Wait for it, or end it.")
            before = files.fit()
            if before is not None and not resume:
                raise CheckpointError(
                    f"the folder {folder} must hold no checkpoint for a fit that begins; it does. Continue it with "
                    "`resume=True`, name another folder, or remove it."
                )
            if before is not None and parameters["random_state"] is None:
                seed = _seed(before, folder)
            here = fingerprint(parameters, data, seed)
            if before is None:
                files.begin(Section({"of": here}))
            else:
                _check_same(before.content.get("of"), here, folder)
            checkpoints = CheckpointStore(files, every)
        with keeping(checkpoints):
            yield seed


def fingerprint(parameters: Mapping[str, Any], data: Mapping[str, Any], seed: int) -> dict[str, str]:
    """Describe everything that a fit depends on by short texts, so that errors can name what differs.

    ``data`` may hold the resolved device, where "auto" depends on the rows.
    """
    values = {name: value for name, value in parameters.items() if name not in IGNORED_PARAMETERS}
    texts = {name: describe_value(value) for name, value in sorted(values.items())}
    texts |= {name: digest(value) for name, value in data.items() if name != "device"}
    texts |= {f"version of {name}": version(name) for name in ("crisptree", "torch")}
    device = data.get("device")
    if device is None:
        from crisptree.learning.fitting import device_of  # which imports torch

        device = device_of(parameters["device"])
    return texts | {"random_state": str(seed), "device": str(device)}


def describe_value(value: Any) -> str:
    """Describe a parameter by a short text."""
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return repr(value)


def digest(value: Any) -> str:
    """Compute a checksum of arrays and containers of arrays."""
    checksum = hashlib.sha256()
    for part in _bytes_of(value):
        checksum.update(part)
    return checksum.hexdigest()


def _bytes_of(value: Any) -> Iterator[Any]:
    if isinstance(value, CrispTree):
        sections = trees_to_sections({"tree": value})
        yield from _bytes_of([array for section in sections.values() for array in section.arrays.values()])
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        yield f"{value.dtype}{value.shape}".encode()
        rows = np.atleast_1d(value)
        for start in range(0, len(rows) if rows.size else 0, ROWS_AT_ONCE):
            yield np.ascontiguousarray(rows[start : start + ROWS_AT_ONCE]).view(np.uint8).data
    elif isinstance(value, list | tuple):
        yield str(len(value)).encode()
        for one in value:
            yield from _bytes_of(one)
    elif is_dataclass(value):
        yield from _bytes_of([getattr(value, each.name) for each in fields(value)])
    else:
        yield repr(value.tolist() if isinstance(value, np.ndarray) else value).encode()


def _seed(before: Section, folder: Any) -> int:
    of = before.content.get("of")
    text = of.get("random_state") if isinstance(of, dict) else None
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or int(text) >= 2**32:
        raise CheckpointError(f"the checkpoint {folder} is damaged: it lacks its seed.")
    return int(text)


def _check_same(before: Any, here: Mapping[str, str], folder: Any) -> None:
    if not isinstance(before, dict):
        raise CheckpointError(f"the checkpoint {folder} is damaged: it lacks its fingerprint.")
    names = [name for name in (*here, *before) if before.get(name) != here.get(name)]
    if names:
        differences = ", ".join(sorted({name if name in here else "others" for name in names}))
        raise CheckpointError(
            f"a checkpoint must be of the same data, parameters and versions; that in {folder} differs in "
            f"{differences}. Give fit what it had before, or name another folder."
        )
