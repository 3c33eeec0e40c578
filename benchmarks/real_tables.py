"""Real tables for benchmarks: read them from a zip file or a folder, and split their rows.

A source holds, at any depth,

* ``NAME.npz`` with the arrays ``X`` (n, p), ``y`` (n,) and ``columns`` (p,), or
* ``NAME.csv`` with a header. The target is the column ``target``, or the last one where there is none; rows without a
  target are dropped, and text is replaced by integer codes in sorted order.

A file in a folder named ``classification`` or ``regression`` has that task. Elsewhere y decides: regression if it has
fractions or more than ``MAX_CLASSES`` distinct numbers. ``$CRISPTREE_DATA/tables.zip`` is the default source.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from zipfile import ZipFile

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import type_of_target

from crisptree.datasets.catalog import VARIABLE, get_homes

CLASSIFICATION, REGRESSION = "classification", "regression"
TASKS = (CLASSIFICATION, REGRESSION)
ARCHIVE = "tables.zip"
TARGET = "target"
MAX_CLASSES = 100
TEST_FRACTION = 0.25


@dataclass(frozen=True)
class Table:
    """A data set: X of float64, y of class labels or float64, and the names of the columns of X."""

    name: str
    task: str
    X: np.ndarray
    y: np.ndarray
    columns: tuple[str, ...]


class Split(NamedTuple):
    """Training and test rows of a table."""

    X_train: np.ndarray
    X_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray


def find_source(data_home: Path | None = None) -> Path:
    """Return the path of tables.zip in ``data_home``; by default in $CRISPTREE_DATA, then in the user's cache."""
    for home in get_homes(data_home):
        if (home / ARCHIVE).is_file():
            return home / ARCHIVE
    raise FileNotFoundError(
        f"{ARCHIVE} must be in the folder that ${VARIABLE} names; it is not there. Set the variable, or pass a folder "
        "of .npz or .csv files."
    )


def read_tables(source: Path, names: Collection[str] = ()) -> Iterator[Table]:
    """Yield the tables of a zip file or folder, ordered by path; only those in ``names`` unless it is empty."""
    for path, read in _list_tables(source, names).items():
        X, y, columns = READERS[path.suffix](path, read())
        task = path.parent.name if path.parent.name in TASKS else infer_task(y)
        y = y.astype(np.float64) if task == REGRESSION else y
        yield Table(path.stem, task, X.astype(np.float64), y, tuple(map(str, columns)))


def list_names(source: Path, names: Collection[str] = ()) -> list[str]:
    """List the names of the tables that ``read_tables`` yields."""
    return [path.stem for path in _list_tables(source, names)]


def infer_task(y: np.ndarray) -> str:
    """Return the task for y: regression for fractions and for more than ``MAX_CLASSES`` distinct numbers.

    Examples
    --------
    >>> infer_task(np.array([0, 1, 1])), infer_task(np.array([0.5, 1.0])), infer_task(np.arange(200))
    ('classification', 'regression', 'regression')
    """
    many = y.dtype.kind in "iuf" and len(np.unique(y)) > MAX_CLASSES
    return REGRESSION if many or type_of_target(y) == "continuous" else CLASSIFICATION


def split_rows(table: Table, seed: int) -> Split:
    """Split 75 % / 25 %, stratified where every class has at least two rows.

    Missing values of both parts are replaced by the column's median over the training rows.
    """
    stratify = None
    if table.task == CLASSIFICATION and np.unique(table.y, return_counts=True)[1].min() >= 2:
        stratify = table.y
    X_train, X_test, y_train, y_test = train_test_split(
        table.X, table.y, test_size=TEST_FRACTION, random_state=seed, stratify=stratify
    )
    if np.isnan(table.X).any():
        imputer = SimpleImputer(strategy="median", keep_empty_features=True).fit(X_train)
        X_train, X_test = imputer.transform(X_train), imputer.transform(X_test)
    return Split(X_train, X_test, y_train, y_test)


def _list_tables(source: Path, names: Collection[str]) -> dict[PurePosixPath, Callable[[], bytes]]:
    """Paths of tables, sorted, each with the function that reads it; only those in ``names`` unless it is empty."""
    files = {path: read for path, read in _list_files(source).items() if path.suffix in READERS}
    known = {path.stem for path in files}
    if not known:
        raise ValueError(f"{source} must hold .npz or .csv files; it holds none.")
    if unknown := set(names) - known:
        raise ValueError(f"{source} has no tables {sorted(unknown)}; it has {sorted(known)}.")
    return {path: read for path, read in files.items() if not names or path.stem in names}


def _list_files(source: Path) -> dict[PurePosixPath, Callable[[], bytes]]:
    """Paths of all files below the source, sorted, each with the function that reads it."""
    if source.is_dir():
        paths = sorted(path for path in source.rglob("*") if path.is_file())
        return {PurePosixPath(path.relative_to(source).as_posix()): path.read_bytes for path in paths}
    archive = ZipFile(source)
    return {PurePosixPath(name): partial(archive.read, name) for name in sorted(archive.namelist())}


def _read_npz(path: PurePosixPath, content: bytes) -> tuple[np.ndarray, np.ndarray, Any]:
    with np.load(BytesIO(content), allow_pickle=False) as arrays:
        if missing := {"X", "y", "columns"} - set(arrays):
            raise ValueError(f"{path} must hold the arrays X, y and columns; {', '.join(sorted(missing))} missing.")
        return arrays["X"], arrays["y"], arrays["columns"]


def _read_csv(path: PurePosixPath, content: bytes) -> tuple[np.ndarray, np.ndarray, Any]:
    frame = pd.read_csv(BytesIO(content))
    target = TARGET if TARGET in frame else frame.columns[-1]
    frame = frame.dropna(subset=[target])
    frame = frame.apply(lambda column: column if pd.api.types.is_numeric_dtype(column) else _encode_text(column))
    X = frame.drop(columns=target)
    return X.to_numpy(np.float64), frame[target].to_numpy(), X.columns


def _encode_text(column: pd.Series) -> pd.Series:
    """Integer codes of the sorted values; NaN where the value is missing."""
    codes = pd.Series(pd.factorize(column, sort=True)[0], index=column.index)
    return codes.where(codes >= 0) if (codes < 0).any() else codes


READERS = {".npz": _read_npz, ".csv": _read_csv}
