"""Order of the gallery: first what most readers look for. Examples that are not listed come last."""

from pathlib import Path

ORDER = (
    *("oblique_regions", "churn", "one_path", "annealing"),
    *("counterfactual", "forest", "intervals", "supplement_trees"),
    *("segmentation", "cars", "linear_leaves", "calibration"),
    *("selection", "missing_values", "tabular", "penguins"),
    *("cnn_splits", "roughness", "distances", "c_export"),
    *("soft_to_hard", "checkpoints"),
)


class GalleryOrder:
    """Sort key of sphinx-gallery for the files of a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return the place of an example and its name."""
        name = Path(filename).stem.removeprefix("plot_")
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)
