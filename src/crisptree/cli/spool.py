"""Encoded rows on disk: those to train on in one file, those held out in another, mapped into memory for reading.

A table is encoded once: reading texts in every epoch would take many times as long as training on them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from crisptree.encoding.errors import TableError
from crisptree.memory import usable_memory

Rows = npt.NDArray[np.float32]

SHARE_OF_MEMORY = 0.25
"""Rows that take more of the memory of the machine, or of its container, go to disk by themselves: reading and
holding out copy them once."""


class Spool:
    """A folder for encoded rows; they go there where ``always``, or else where memory is short."""

    def __init__(self, folder: Path, *, always: bool) -> None:
        self.folder, self.always = folder, always

    def is_for(self, n_rows: int, width: int) -> bool:
        """Whether so many rows belong on disk."""
        return self.always or 4 * n_rows * width > SHARE_OF_MEMORY * usable_memory()

    def written(self, blocks: Iterable[Rows], held: npt.NDArray[np.bool_], width: int) -> tuple[Rows, Rows]:
        """The rows that are not held out, and those that are.  (n, n_features) each"""
        # A refit writes beside the rows of the fit before it, which may still be mapped.
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        names = [folder / part for part in ("kept", "held")]
        start = 0
        try:
            with names[0].open("wb") as kept_file, names[1].open("wb") as held_file:
                for block in blocks:
                    mask = held[start : start + len(block)]
                    start += len(block)
                    block[~mask].tofile(kept_file)
                    block[mask].tofile(held_file)
        except OSError as error:
            raise TableError(
                f"the encoded rows must go into a temporary folder, {self.folder.parent}, and cannot: {error}. "
                "Make room there, or name another one in the environment variable TMPDIR."
            ) from error
        kept, out = (_mapped(name, width) for name in names)
        return kept, out


@contextmanager
def spooling(stream: bool | None) -> Iterator[Spool | None]:
    """A place for encoded rows: always used for True, where memory is short for None, never for False."""
    if stream is False:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="crisptree-rows-", ignore_cleanup_errors=True) as folder:
        yield Spool(Path(folder), always=bool(stream))


def _mapped(path: Path, width: int) -> Rows:
    if not path.stat().st_size:
        return np.zeros((0, width), dtype=np.float32)
    return np.memmap(path, dtype=np.float32, mode="r").reshape(-1, width)
