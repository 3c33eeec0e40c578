"""A fitted model as others see it: its names, rows in, units, and what a feature counts at a split.

``explain``, ``plots``, ``report`` and ``export`` ask a ``ModelView`` and not the estimator itself, so that an estimator
and a fitted Pipeline that ends in one look the same to them. scikit-learn is imported inside the functions that
need it: the command line must not wait for it.
"""

from crisptree.view.model import ModelView, view_of
from crisptree.view.names import Names

__all__ = ["ModelView", "Names", "view_of"]
