"""Protein: the secondary structure at the middle of a window of amino acids."""

from __future__ import annotations

from crisptree.datasets.checking import check_labels
from crisptree.datasets.dataset import Dataset
from crisptree.datasets.libsvm import read_libsvm
from crisptree.datasets.places import StrPath, locate

N_FEATURES = 357
CLASS_NAMES = ("0", "1", "2")
"""The publisher's labels."""


def load_protein(data_home: StrPath | None = None) -> Dataset:
    """14,895 rows for training, 2,871 for validation, 6,621 for testing: the official split, in three classes.

    Neighbouring rows are overlapping windows of one chain. A random split would put parts of a chain on both sides, so
    LIBSVM's ``protein.tr`` and ``protein.val`` are needed; their union ``protein`` is not enough.

    Parameters
    ----------
    data_home : path, optional
        The folder of data; by default $CRISPTREE_DATA, then the user's cache.

    Returns
    -------
    Dataset
        Rows of 357 features: 21 for each of 17 positions.

    Examples
    --------
    >>> load_protein().X_valid.shape  # doctest: +SKIP
    (2871, 357)
    """
    paths = locate("protein", data_home).paths
    parts = [read_libsvm(path, N_FEATURES) for path in paths]
    for part, (_, labels) in zip(("train", "valid", "test"), parts, strict=True):
        check_labels("protein", part, labels, len(CLASS_NAMES))
    (X_train, y_train), (X_valid, y_valid), (X_test, y_test) = parts
    return Dataset(X_train, y_train, X_valid, y_valid, X_test, y_test, class_names=CLASS_NAMES)
