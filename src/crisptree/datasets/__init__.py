"""Data sets as training, validation and test parts; files are only read here, never downloaded.

>>> from crisptree.datasets import load_digits
>>> load_digits().X_test.shape
(360, 64)
"""

from collections.abc import Callable

from crisptree.datasets.catalog import DataFormatError, DataNotFoundError
from crisptree.datasets.loaders import (
    Dataset,
    load_connect4,
    load_digits,
    load_fashion_mnist,
    load_isbi,
    load_letter,
    load_mnist,
    load_protein,
    load_sensit,
    load_usps,
    make_churn,
)

LOADERS: dict[str, Callable[..., Dataset]] = {
    "digits": load_digits,
    "mnist": load_mnist,
    "fashion_mnist": load_fashion_mnist,
    "connect4": load_connect4,
    "sensit": load_sensit,
    "protein": load_protein,
    "usps": load_usps,
    "letter": load_letter,
    "isbi": load_isbi,
}
"""The loaders by name."""

__all__ = [
    "DataFormatError",
    "DataNotFoundError",
    "Dataset",
    "LOADERS",
    "load_connect4",
    "load_digits",
    "load_fashion_mnist",
    "load_isbi",
    "load_letter",
    "load_mnist",
    "load_protein",
    "load_sensit",
    "load_usps",
    "make_churn",
]
