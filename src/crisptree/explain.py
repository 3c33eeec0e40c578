"""Explain the predictions of a fitted tree or forest.

``path`` traces the decision path of one row, ``find_counterfactual`` the smallest change that gives it another class,
``attribute_errors`` the split behind each error, ``feature_importances`` which features the splits use,
``importances_over_folds`` how far these vary. ``path_attributions`` and ``shapley_values`` attribute the predictions of
rows to columns, those of forests too. A model is a fitted estimator, or a fitted Pipeline that ends in one; a segmenter
takes a ``Pixel`` of an image for a row. Everything works on NumPy and scikit-learn alone, so a loaded model is
explained without torch. scikit-learn's
``permutation_importance(model, X, y)`` works on every model as well, those with modules included. The code is in
``crisptree.inspection``.
"""

from crisptree.inspection.attributions import (
    Attributions,
    ImportanceEstimate,
    importances_over_folds,
    path_attributions,
    shapley_values,
)
from crisptree.inspection.counterfactuals import Counterfactual, find_counterfactual
from crisptree.inspection.decision_path import Path, Push, Step, path
from crisptree.inspection.diagnostics import ErrorAttribution, attribute_errors
from crisptree.inspection.linear_splits import feature_importances
from crisptree.inspection.validation import Pixel

__all__ = [
    "path",
    "Pixel",
    "Path",
    "Step",
    "Push",
    "find_counterfactual",
    "Counterfactual",
    "attribute_errors",
    "ErrorAttribution",
    "feature_importances",
    "importances_over_folds",
    "ImportanceEstimate",
    "path_attributions",
    "shapley_values",
    "Attributions",
]
