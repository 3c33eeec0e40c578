"""Drawings. Each function takes values and axes, and returns the axes; matplotlib is imported in here only.

None of them writes a file or opens a window: save with ``ax.figure.savefig("tree.svg")``.
"""

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        "drawings need matplotlib, which is not installed. Install it with: pip install 'crisptree[plots]'"
    ) from error

from crisptree.plots.choices import plot_choices
from crisptree.plots.confusion import plot_confusion
from crisptree.plots.path import plot_path
from crisptree.plots.regions import plot_regions
from crisptree.plots.residuals import plot_residuals
from crisptree.plots.segmentation import plot_pixel_numbers, plot_segmentation
from crisptree.plots.style import class_colors
from crisptree.plots.training import plot_training
from crisptree.plots.tree import plot_tree
from crisptree.plots.weights import plot_weights

__all__ = [
    "plot_tree",
    "plot_weights",
    "plot_regions",
    "plot_training",
    "plot_choices",
    "plot_path",
    "plot_confusion",
    "plot_residuals",
    "plot_segmentation",
    "plot_pixel_numbers",
    "class_colors",
]
