"""Why a fitted tree answers as it does; NumPy and scikit-learn only, so a loaded model is explained without torch.

``path`` tells the way of one row, ``votes`` its ways through all trees of a forest, ``nearest_other`` the smallest
change that gives it another class, ``blame`` the split behind each error, ``margin_report`` how many rows lie near a
boundary, ``feature_importances`` and ``sparsity`` what the splits look at. A model is a fitted estimator, or a fitted
Pipeline that ends in one. scikit-learn's ``permutation_importance(model, X, y)`` works on every model as well, those
with modules included.
"""

from crisptree.explain.blaming import Blame, blame
from crisptree.explain.forests import ForestPath, votes
from crisptree.explain.importances import feature_importances, sparsity
from crisptree.explain.margins import MarginReport, margin_report
from crisptree.explain.nearest import Change, nearest_other
from crisptree.view.paths import Path, Push, Step, path

__all__ = [
    "path",
    "Path",
    "Step",
    "Push",
    "votes",
    "ForestPath",
    "nearest_other",
    "Change",
    "blame",
    "Blame",
    "margin_report",
    "MarginReport",
    "feature_importances",
    "sparsity",
]
