"""The 8 × 8 digits that come with scikit-learn: no file, no network."""

from __future__ import annotations

from crisptree.datasets.dataset import Dataset, in_parts


def load_digits(seed: int = 0) -> Dataset:
    """1,797 images in 10 classes: 64 % for training, 16 % for validation, 20 % for testing, drawn with ``seed``.

    Examples
    --------
    >>> load_digits().X_train.shape
    (1149, 64)
    """
    from sklearn.datasets import load_digits as bundled_digits

    bundled = bundled_digits()
    return in_parts("digits", {"all": (bundled.images, bundled.target)}, tuple(map(str, range(10))), (8, 8), seed)
