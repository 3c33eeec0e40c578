"""Explanations, importances, counterfactuals, and the model view that plots, report and export share.

Code that shows a model reads a ``ModelView`` and not the estimator itself, so that an estimator and a fitted Pipeline
that ends in one look the same to it. scikit-learn is imported inside the functions that need it, because the command
line must start without it. The public names are those of ``crisptree.explain``.
"""

from crisptree.inspection.display import Names
from crisptree.inspection.model_view import ModelView, view_model

__all__ = ["ModelView", "Names", "view_model"]
