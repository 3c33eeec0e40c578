"""Loaders of the published data sets, whose files are read and never downloaded, and a generator of synthetic data.

What is loaded is checked against the catalog: nothing else has a published name.

Every loader searches the folder ``data_home``; by default $CRISPTREE_DATA, then the user's cache. ``seed`` is that of
the random split, where there is one.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.datasets.catalog import CATALOG, DataFormatError, locate
from crisptree.datasets.files import DOWNLOAD_AGAIN, read_bytes, read_compact, read_stack
from crisptree.files import StrPath, read_libsvm, reading
from crisptree.targets.base import hold_out

HOLDOUT_FRACTION = 0.2
"""Fraction of the rows for testing, and of the rest for validation."""

Rows = tuple[npt.NDArray[Any], npt.NDArray[Any]]
"""Features and labels."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows and labels in three parts.

    Attributes
    ----------
    X_train, X_valid, X_test : float32 array
        Rows of features, or images of shape (n, height, width) where every pixel has a label of its own.
    y_train, y_valid, y_test : int64 array
        The number of the class, an index into ``class_names``; one per row, or one per pixel.
    class_names : tuple of str
        What the numbers mean.
    image_shape : tuple of int, or None
        Height and width of an image; None where rows are not images.

    Examples
    --------
    >>> from crisptree.datasets import load_digits
    >>> digits = load_digits()
    >>> digits.X_train.shape, digits.image_shape, digits.class_names[:3]
    ((1149, 64), (8, 8), ('0', '1', '2'))
    """

    X_train: npt.NDArray[Any]
    y_train: npt.NDArray[Any]
    X_valid: npt.NDArray[Any]
    y_valid: npt.NDArray[Any]
    X_test: npt.NDArray[Any]
    y_test: npt.NDArray[Any]
    class_names: tuple[str, ...]
    image_shape: tuple[int, ...] | None = None

    def all_but_test(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return the rows of training and validation together: what a final model is trained on.

        Examples
        --------
        >>> from crisptree.datasets import load_digits
        >>> X, y = load_digits().all_but_test()
        >>> X.shape, y.shape
        ((1437, 64), (1437,))
        """
        return np.concatenate([self.X_train, self.X_valid]), np.concatenate([self.y_train, self.y_valid])


def split_parts(
    name: str, published: dict[str, Rows], class_names: tuple[str, ...], row_shape: tuple[int, ...], seed: int = 0
) -> Dataset:
    """Check the published parts, and split off 20 % where there is no test part, then no validation part."""
    for part, rows in published.items():
        _check_part(name, part, *rows, len(class_names), row_shape)
    parts = dict(published)
    if "all" in parts:
        parts["train"], parts["test"] = _split(parts["all"], seed)
    if "valid" not in parts:
        parts["train"], parts["valid"] = _split(parts["train"], seed)
    train, valid, test = (
        (X.reshape(len(X), -1).astype(np.float32, copy=False), y.astype(np.int64, copy=False))
        for X, y in (parts["train"], parts["valid"], parts["test"])
    )
    image_shape = row_shape if len(row_shape) > 1 else None
    return Dataset(*train, *valid, *test, class_names=class_names, image_shape=image_shape)


def _split(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    X, y = rows
    # Rounded up, as it was when results were published.
    kept, held = hold_out(y, math.ceil(HOLDOUT_FRACTION * len(y)), seed)
    return (X[kept], y[kept]), (X[held], y[held])


def _check_part(name: str, part: str, X: Any, y: Any, n_classes: int, row_shape: tuple[int, ...]) -> None:
    """Raise unless labels and rows are as many as were published, and of each class as many where that is known."""
    publication = CATALOG[name]
    if y.ndim != 1 or not np.isin(y, np.arange(n_classes)).all():
        raise DataFormatError(
            f"{name} must have one of {n_classes} classes per row; the {part} part has the labels "
            f"{_shorten(np.unique(y))} in an array of shape {y.shape}."
        )
    rows = publication.rows[part]
    if len(y) != rows:
        raise DataFormatError(
            f"the {part} part of {name} has {rows:,} rows; these files have {len(y):,}. They are cut short or are "
            f"other data: see {publication.page}."
        )
    expected = publication.class_counts.get(part)
    counts = tuple(np.bincount(y.astype(np.int64), minlength=n_classes).tolist())
    if expected is not None and counts != expected:
        raise DataFormatError(
            f"the classes in the {part} part of {name} have {_shorten(expected)} rows; in these files they have "
            f"{_shorten(counts)}. They are other data: MNIST and Fashion-MNIST, for example, have files of the same "
            f"names, so keep each in a folder of its own ({name}/)."
        )
    if X.shape != (len(y), *row_shape):
        raise DataFormatError(
            f"the {part} part of {name} must be of shape {(len(y), *row_shape)} for {len(y):,} labels; got {X.shape}."
        )


def _shorten(values: Any) -> str:
    values = np.asarray(values).tolist()
    return ", ".join(map(str, values[:10])) + (", …" if len(values) > 10 else "")


DIGITS = tuple(map(str, range(10)))


def load_digits(seed: int = 0) -> Dataset:
    """Load 1,797 images in 10 classes: 64 % for training, 16 % for validation, 20 % for testing, split with ``seed``.

    Examples
    --------
    >>> load_digits().X_train.shape
    (1149, 64)
    """
    from sklearn.datasets import load_digits as bundled_digits

    bundled = bundled_digits()
    return split_parts("digits", {"all": (bundled.images, bundled.target)}, DIGITS, (8, 8), seed)


CLOTHES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")

MNIST_SHAPE = (28, 28)
UNSIGNED_BYTE = 0x08


def load_mnist(data_home: StrPath | None = None, *, seed: int = 0) -> Dataset:
    """Load handwritten digits: 60,000 images for training and validation and the official 10,000 for testing.

    Rows are 784 grey values from 0 to 255; 20 % of the training images are split off for validation.

    Examples
    --------
    >>> load_mnist().X_train.shape  # doctest: +SKIP
    (48000, 784)
    """
    return _load_mnist("mnist", data_home, seed, DIGITS)


def load_fashion_mnist(data_home: StrPath | None = None, *, seed: int = 0) -> Dataset:
    """Load pictures of clothes: 60,000 images for training and validation and the official 10,000 for testing.

    Rows are 784 grey values from 0 to 255; 20 % of the training images are split off for validation.

    Examples
    --------
    >>> load_fashion_mnist().class_names[:2]  # doctest: +SKIP
    ('T-shirt', 'trouser')
    """
    return _load_mnist("fashion_mnist", data_home, seed, CLOTHES)


def _load_mnist(name: str, data_home: StrPath | None, seed: int, class_names: tuple[str, ...]) -> Dataset:
    located = locate(name, data_home)
    X, y, X_test, y_test = MNIST_READERS[located.form](located.paths)
    return split_parts(name, {"train": (X, y), "test": (X_test, y_test)}, class_names, MNIST_SHAPE, seed)


def read_idx(path: Path) -> npt.NDArray[np.uint8]:
    """Read an idx file of bytes, plain or .gz: two zeros, the type, the number of axes, their lengths, the values."""
    data = read_bytes(path)
    if len(data) < 4 or data[:3] != bytes([0, 0, UNSIGNED_BYTE]):
        raise DataFormatError(f"{path} must begin with 00 00 08, as idx files of bytes do; got {data[:3].hex(' ')}.")
    begin = 4 + 4 * data[3]
    shape = tuple(int.from_bytes(data[at : at + 4], "big") for at in range(4, begin, 4))
    if len(data) != begin + math.prod(shape):
        raise DataFormatError(
            f"{path} must hold {begin + math.prod(shape):,} bytes for an array of shape {shape}; it holds "
            f"{len(data):,}. Download it again."
        )
    return np.frombuffer(data, dtype=np.uint8, offset=begin).reshape(shape)


MNIST_READERS: dict[str, Callable[[tuple[Path, ...]], list[npt.NDArray[Any]]]] = {
    "npz": lambda paths: read_compact(paths[0], "X_train", "y_train", "X_test", "y_test"),
    "idx": lambda paths: [read_idx(path) for path in paths],
}


CELL_STATES = ("b", "o", "x")
"""Values of a cell: nothing (blank), a piece of the second player, a piece of the first."""

CONNECT4_CLASSES = ("draw", "loss", "win")
"""Outcome of the game for the first player."""

N_CELLS = 42
"""Seven columns of six cells: a1 to a6, b1 to b6, …, g1 to g6."""


def load_connect4(data_home: StrPath | None = None, *, seed: int = 0) -> Dataset:
    """Load 67,557 positions, one-hot: 64 % for training, 16 % for validation, 20 % for testing, split with ``seed``.

    Rows are 126 zeros and ones: for each of the 42 cells whether it is blank, o, x. There is no official split.

    Examples
    --------
    >>> load_connect4().X_train.shape  # doctest: +SKIP
    (43236, 126)
    """
    located = locate("connect4", data_home)
    path = located.paths[0]
    cells, y = read_compact(path, "X", "y") if located.form == "npz" else _read_connect4(path)
    n_features = N_CELLS * len(CELL_STATES)
    return split_parts("connect4", {"all": (encode_cells(cells), y)}, CONNECT4_CLASSES, (n_features,), seed)


def encode_cells(cells: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """One-hot encode the cells.  (n, n_cells) → (n, 3 n_cells)"""
    if not np.isin(cells, np.arange(len(CELL_STATES))).all():
        raise DataFormatError("the cells of connect4 must be 0 (blank), 1 (o) or 2 (x); these files hold others.")
    return np.eye(len(CELL_STATES), dtype=np.float32)[cells.astype(np.intp)].reshape(len(cells), -1)


def _read_connect4(path: Path) -> list[npt.NDArray[Any]]:
    content = CATALOG["connect4"].files[0].content  # the archive itself has no checksum that is known
    assert content is not None
    data = read_bytes(path, content.member)
    if path.suffix == ".zip" and (actual := hashlib.sha256(data).hexdigest()) != content.sha256:
        raise DataFormatError(
            f"{content.member} in {path} must have the SHA-256 {content.sha256}; it has {actual}. Download it again."
        )
    pattern = rf"(?:[{''.join(CELL_STATES)}],){{{N_CELLS}}}(?:{'|'.join(CONNECT4_CLASSES)})"
    rows = _split_lines(data, pattern, path, f"{N_CELLS} times b, o or x and then win, loss or draw")
    table = np.array(rows, dtype=str).reshape(-1, N_CELLS + 1)
    return [np.searchsorted(CELL_STATES, table[:, :-1]), np.searchsorted(CONNECT4_CLASSES, table[:, -1])]


def _split_lines(data: bytes, pattern: str, path: Path, must: str) -> list[list[str]]:
    """Split lines at commas; each but empty ones must match a regular expression, in words ``must``."""
    lines = [line for line in data.decode("latin-1").splitlines() if line.strip()]
    for number, line in enumerate(lines, 1):
        if re.fullmatch(pattern, line) is None:
            raise DataFormatError(f"a row of {path} must be {must}; row {number} is {line[:100]!r}.")
    return [line.split(",") for line in lines]


def load_sensit(data_home: StrPath | None = None, *, seed: int = 0) -> Dataset:
    """Load 78,823 rows for training and validation and the official 19,705 for testing, in three classes.

    Rows have 100 features, unscaled; 20 % of the training rows are split off for validation.

    Examples
    --------
    >>> load_sensit().X_test.shape  # doctest: +SKIP
    (19705, 100)
    """
    return _load_libsvm("sensit", data_home, 100, ("1", "2", "3"), seed)


def load_protein(data_home: StrPath | None = None) -> Dataset:
    """Load 14,895 rows for training, 2,871 for validation, 6,621 for testing: the official split, in three classes.

    Neighbouring rows are overlapping windows of one chain. A random split would put parts of a chain on both sides, so
    LIBSVM's ``protein.tr`` and ``protein.val`` are needed; their union ``protein`` is not enough.

    Rows have 357 features: 21 for each of 17 positions.

    Examples
    --------
    >>> load_protein().X_valid.shape  # doctest: +SKIP
    (2871, 357)
    """
    return _load_libsvm("protein", data_home, 357, ("0", "1", "2"))


USPS_SHAPE = (16, 16)


def load_usps(data_home: StrPath | None = None, *, seed: int = 0) -> Dataset:
    """Load digits of envelopes: 7,291 images for training and validation and the official 2,007 for testing.

    Rows are 256 grey values from -1 to 1; 20 % of the training images are split off for validation.

    Examples
    --------
    >>> load_usps().X_train.shape  # doctest: +SKIP
    (5832, 256)
    """
    return _load_libsvm("usps", data_home, USPS_SHAPE, tuple(map(str, range(1, 11))), seed, DIGITS)


def _load_libsvm(
    name: str,
    data_home: StrPath | None,
    row_shape: int | tuple[int, ...],
    labels: tuple[str, ...],
    seed: int = 0,
    class_names: tuple[str, ...] | None = None,
) -> Dataset:
    """Load LIBSVM files, whose labels are consecutive integers; the first is class 0."""
    shape, parts = np.atleast_1d(row_shape).tolist(), {}
    for part, path in zip(CATALOG[name].rows, locate(name, data_home).paths, strict=True):
        X, y = read_libsvm_file(path, math.prod(shape))
        parts[part] = (X.reshape(len(X), *shape), y - int(labels[0]))
    return split_parts(name, parts, class_names or labels, tuple(shape), seed)


def read_libsvm_file(path: Path, n_features: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Read dense rows and their labels from a LIBSVM file, plain or .bz2."""
    # The publisher's Protein files write ``63: .50``, with a space that scikit-learn does not accept.
    text = re.sub(rb"[ \t]*:[ \t]+", b":", read_bytes(path))
    with reading(path, DataFormatError, "LIBSVM file", DOWNLOAD_AGAIN):
        rows, labels = read_libsvm(io.BytesIO(text))
        if rows.shape[1] > n_features:
            raise ValueError(f"it must have {n_features} features at most, not a feature {rows.shape[1]:,}")
        rows.resize(rows.shape[0], n_features)
        with np.errstate(over="ignore", under="ignore"):  # values beyond float32 become infinite and are refused
            X = np.asarray(rows.astype(np.float32).toarray())
    if not np.isfinite(X).all():
        raise DataFormatError(f"{path} must hold finite numbers; it does not. Download it again.")
    if not (labels == np.trunc(labels)).all() or (np.abs(labels) >= 2**53).any():
        raise DataFormatError(f"{path} must have whole numbers as labels; it has others.")
    return X, labels.astype(np.int64)


CAPITALS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
N_LETTER_FEATURES = 16


def load_letter(data_home: StrPath | None = None, *, seed: int = 0) -> Dataset:
    """Load statistics of images of capital letters: the first 16,000 rows for training and validation, 4,000 for test.

    Rows are 16 whole numbers from 0 to 15; 20 % of the training rows are split off for validation.

    Examples
    --------
    >>> load_letter().X_train.shape  # doctest: +SKIP
    (12800, 16)
    """
    path = locate("letter", data_home).paths[0]
    must = f"a capital letter and then {N_LETTER_FEATURES} whole numbers"
    rows = _split_lines(read_bytes(path), rf"[A-Z](?:,[0-9]+){{{N_LETTER_FEATURES}}}", path, must)
    X = np.array([row[1:] for row in rows], dtype=np.float32).reshape(-1, N_LETTER_FEATURES)
    y = np.array([CAPITALS.index(row[0]) for row in rows], dtype=np.int64)
    n_train = CATALOG["letter"].rows["train"]  # in the order of the file, as its publisher did
    parts = {"train": (X[:n_train], y[:n_train]), "test": (X[n_train:], y[n_train:])}
    return split_parts("letter", parts, CAPITALS, (N_LETTER_FEATURES,), seed)


ISBI_CLASSES = ("membrane", "cell")
ISBI_SHAPE = (512, 512)
MEMBRANE, CELL = 0, 255
"""The grey values of the labels."""

ISBI_TRAIN, ISBI_VALID, ISBI_TEST = slice(0, 20), slice(20, 25), slice(25, 30)
"""Neighbouring slices resemble each other, so the parts are whole runs of slices."""

Stack = npt.NDArray[np.uint8]


def load_isbi(data_home: StrPath | None = None) -> Dataset:
    """Load 30 labelled slices of 512 × 512 pixels: 0–19 for training, 20–24 for validation, 25–29 for testing.

    Images are of shape (slices, 512, 512) with grey values from 0 to 255, and every pixel has a class.

    Examples
    --------
    >>> load_isbi().y_test.shape  # doctest: +SKIP
    (5, 512, 512)
    """
    located = locate("isbi", data_home)
    images, labels = ISBI_READERS[located.form](located.paths)
    shape = (CATALOG["isbi"].rows["all"], *ISBI_SHAPE)
    for what, stack in (("images", images), ("labels", labels)):
        if stack.shape != shape:
            raise DataFormatError(
                f"the {what} of isbi must be of shape {shape}; {located.paths[0]} gave {stack.shape}."
            )
    if not np.isin(labels, (MEMBRANE, CELL)).all():
        raise DataFormatError("the labels of isbi must be 0 (membrane) or 255 (cell); these files hold other values.")
    X, y = images.astype(np.float32), (labels == CELL).astype(np.int64)
    train, valid, test = ((X[part], y[part]) for part in (ISBI_TRAIN, ISBI_VALID, ISBI_TEST))
    return Dataset(*train, *valid, *test, class_names=ISBI_CLASSES, image_shape=ISBI_SHAPE)


ISBI_READERS: dict[str, Callable[[tuple[Path, ...]], list[Stack]]] = {
    "npz": lambda paths: read_compact(paths[0], "X_train", "y_train"),
    "tif": lambda paths: [read_stack(path, str(path)) for path in paths],
    "zip": lambda paths: [
        read_stack(io.BytesIO(read_bytes(paths[0], name)), f"{name} in {paths[0]}")
        for name in ("train-volume.tif", "train-labels.tif")
    ],
}

PLANS = ("basic", "plus", "premium")
REGIONS = ("north", "south", "east", "west")
DATE_OF_EXPORT = np.datetime64("2024-06-30")


def make_churn(n_rows: int = 2000, random_state: int | None = 0) -> dict[str, npt.NDArray[Any]]:
    """Generate a table of customers of a telephone company, and whether each has left: synthetic data.

    It has ids, dates, categories and missing values. Frequent callers and new customers leave, those with the plan
    "plus" stay; a missing ``satisfaction`` (no answer to a survey) is informative, ``region`` is not.

    Parameters
    ----------
    n_rows : int, default=2000
        Number of customers.
    random_state : int or None, default=0
        Seed of the random generator.

    Returns
    -------
    dict of ndarray
        Columns by name, for ``pandas.DataFrame(make_churn())``; the last one, ``churned``, is "yes" or "no".

    Examples
    --------
    >>> table = make_churn(3)
    >>> list(table)
    ['customer_id', 'joined', 'plan', 'region', 'months', 'fee', 'calls', 'satisfaction', 'paperless', 'churned']
    >>> table["customer_id"].tolist()
    ['C-00000', 'C-00001', 'C-00002']
    """
    rng = np.random.default_rng(random_state)
    months = rng.integers(1, 72, n_rows)
    plan = rng.choice(np.array(PLANS, dtype=object), n_rows, p=(0.5, 0.3, 0.2))
    region = rng.choice(np.array(REGIONS, dtype=object), n_rows)
    fee = np.round(15 + 12 * (plan == "plus") + 30 * (plan == "premium") + rng.normal(0, 3, n_rows), 2)
    calls = rng.poisson(1.5, n_rows)
    satisfaction = rng.integers(1, 11, n_rows).astype(np.float64)
    silent = rng.random(n_rows) < 0.25
    tendency = 1.1 * calls - 0.07 * months - 1.8 * (plan == "plus") - 0.35 * (satisfaction - 5.5) * ~silent
    tendency += 1.2 * silent + rng.logistic(0, 0.7, n_rows)
    satisfaction[silent], region[rng.random(n_rows) < 0.05] = np.nan, None
    return {
        "customer_id": np.array([f"C-{number:05}" for number in range(n_rows)], dtype=object),
        "joined": DATE_OF_EXPORT - (30 * months).astype("timedelta64[D]"),
        "plan": plan,
        "region": region,
        "months": months,
        "fee": fee,
        "calls": calls,
        "satisfaction": satisfaction,
        "paperless": rng.random(n_rows) < 0.6,
        "churned": np.where(tendency > 0.2, "yes", "no").astype(object),
    }
