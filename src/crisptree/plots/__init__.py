"""Plots. Each function takes a model or values and axes, and returns the axes; only this package imports matplotlib.

None of them writes a file or opens a window: save with ``ax.figure.savefig("tree.svg")``. Confusion matrices and
residuals are scikit-learn's ``ConfusionMatrixDisplay`` and ``PredictionErrorDisplay``.
"""

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        "plots need matplotlib, which is not installed. Install it with: pip install 'crisptree[plots]'"
    ) from error

from crisptree.plots.predictions import plot_pixel_regression, plot_segmentation
from crisptree.plots.regions import plot_regions
from crisptree.plots.style import class_colors
from crisptree.plots.training import plot_selection, plot_training
from crisptree.plots.tree import plot_tree
from crisptree.plots.weights import plot_weights

__all__ = [
    "plot_tree",
    "plot_weights",
    "plot_regions",
    "plot_training",
    "plot_selection",
    "plot_segmentation",
    "plot_pixel_regression",
    "class_colors",
]
