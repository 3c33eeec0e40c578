"""Images as training rows: every pixel is a row, and its features are the window around it. NumPy only.

``canvas`` says what a window is and lays images out so that it is a table of offsets (``rows.windows``),
``filters`` makes the coarse versions of an image, and takes its brightness away.
"""

from crisptree.images.canvas import Canvas, WindowView
from crisptree.images.filters import normalised

__all__ = ["Canvas", "WindowView", "normalised"]
