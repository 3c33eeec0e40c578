"""Connect-4: positions of the game after eight moves, and who wins from there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.datasets.dataset import Dataset, check_content, in_parts
from crisptree.datasets.errors import DataFormatError
from crisptree.datasets.places import StrPath, locate
from crisptree.datasets.reading import read_bytes, read_compact

STATES = ("b", "o", "x")
"""What a cell holds: nothing (blank), a piece of the second player, a piece of the first."""

CLASS_NAMES = ("draw", "loss", "win")
"""How the game ends for the first player."""

CELLS = 42
"""Seven columns of six cells: a1 to a6, b1 to b6, …, g1 to g6."""


def load_connect4(data_home: StrPath | None = None, *, seed: int = 0) -> Dataset:
    """67,557 positions, one-hot: 64 % for training, 16 % for validation, 20 % for testing, drawn with ``seed``.

    Parameters
    ----------
    data_home : path, optional
        The folder of data; by default $CRISPTREE_DATA, then the user's cache.
    seed : int
        Draws the parts, for there is no official split.

    Returns
    -------
    Dataset
        Rows of 126 zeros and ones: for each of the 42 cells whether it is blank, o, x.

    Examples
    --------
    >>> load_connect4().X_train.shape  # doctest: +SKIP
    (43236, 126)
    """
    found = locate("connect4", data_home)
    cells, y = read_compact(found.paths[0], "X", "y") if found.form == "npz" else _from_text(found.paths[0])
    return in_parts("connect4", {"all": (one_hot(cells), y)}, CLASS_NAMES, (CELLS * len(STATES),), seed)


def one_hot(cells: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Three features per cell, of which one is 1.

    Examples
    --------
    >>> one_hot(np.array([[0, 2]]))
    array([[1., 0., 0., 0., 0., 1.]], dtype=float32)
    """
    if not np.isin(cells, np.arange(len(STATES))).all():
        raise DataFormatError("the cells of connect4 must be 0 (blank), 1 (o) or 2 (x); these files hold others.")
    return np.eye(len(STATES), dtype=np.float32)[cells.astype(np.intp)].reshape(len(cells), -1)


def _from_text(path: Path) -> list[npt.NDArray[Any]]:
    data = read_bytes(path, member="connect-4.data")
    if path.suffix == ".zip":
        check_content("connect4", data, path)  # the archive itself has no checksum that is known
    text = data.decode("latin-1")
    rows = [line.split(",") for line in text.splitlines() if line.strip()]
    numbers = {word: number for words in (STATES, CLASS_NAMES) for number, word in enumerate(words)}
    for at, row in enumerate(rows):
        if len(row) != CELLS + 1 or not set(row[:-1]) <= set(STATES) or row[-1] not in CLASS_NAMES:
            raise DataFormatError(
                f"a row of {path} must be {CELLS} times b, o or x and then win, loss or draw; row {at + 1} is "
                f"{','.join(row)[:100]!r}."
            )
    table = np.array([[numbers[word] for word in row] for row in rows], dtype=np.int8).reshape(-1, CELLS + 1)
    return [table[:, :-1], table[:, -1]]
