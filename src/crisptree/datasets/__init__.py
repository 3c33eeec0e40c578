"""Data sets as training, validation and test parts."""

from crisptree.datasets.dataset import Dataset
from crisptree.datasets.digits import load_digits

__all__ = ["Dataset", "load_digits"]
