"""Images as training rows: every pixel is a row, and its features are the window around it. NumPy only.

``view`` says what a window is, ``canvas`` lays images out so that a window is a table of offsets (``rows.windows``),
``filters`` makes the coarse versions of an image, and takes its brightness away.
"""

from crisptree.images.canvas import Canvas
from crisptree.images.filters import normalised
from crisptree.images.view import WindowView

__all__ = ["Canvas", "WindowView", "normalised"]
