"""SensIT Vehicle (combined): which vehicle acoustic and seismic sensors perceive."""

from __future__ import annotations

from crisptree.datasets.checking import check_labels
from crisptree.datasets.dataset import Dataset
from crisptree.datasets.libsvm import read_libsvm
from crisptree.datasets.places import StrPath, locate
from crisptree.datasets.splitting import in_parts

N_FEATURES = 100
CLASS_NAMES = ("1", "2", "3")
"""The publisher's labels; class 0 here is label 1 there."""


def load_sensit(data_home: StrPath | None = None, *, seed: int = 0) -> Dataset:
    """78,823 rows for training and validation and the official 19,705 for testing, in three classes.

    Parameters
    ----------
    data_home : path, optional
        The folder of data; by default $CRISPTREE_DATA, then the user's cache.
    seed : int
        Draws the 20 % of the training rows that are for validation.

    Returns
    -------
    Dataset
        Rows of 100 features, unscaled.

    Examples
    --------
    >>> load_sensit().X_test.shape  # doctest: +SKIP
    (19705, 100)
    """
    paths = locate("sensit", data_home).paths
    (X, y), (X_test, y_test) = (read_libsvm(path, N_FEATURES) for path in paths)
    check_labels("sensit", "train", y - 1, len(CLASS_NAMES))
    check_labels("sensit", "test", y_test - 1, len(CLASS_NAMES))
    return in_parts((X, y - 1), (X_test, y_test - 1), seed=seed, class_names=CLASS_NAMES)
