"""Scraper of sphinx-gallery that saves the animations of an example as GIF files, which need no script to play."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.animation import FuncAnimation, PillowWriter
from sphinx_gallery.scrapers import figure_rst

FRAMES_PER_SECOND = 4


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the animations that a block of code has made, and return the directive that shows them."""
    paths = []
    for value in block_vars["example_globals"].values():
        if isinstance(value, FuncAnimation) and plt.fignum_exists(value._fig.number):
            path = Path(next(block_vars["image_path_iterator"])).with_suffix(".gif")
            value.save(path, writer=PillowWriter(fps=FRAMES_PER_SECOND), dpi=80)
            plt.close(value._fig)
            paths.append(str(path))
    return figure_rst(paths, gallery_conf["src_dir"])
