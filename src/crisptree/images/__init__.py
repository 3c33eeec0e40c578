"""Images as training rows: every pixel is a row, and its features are the window around it. NumPy only.

``view`` says what a window is, ``canvas`` lays images out so that a window is a table of offsets, ``windows`` is the
rows themselves, ``smoothing`` makes the coarse versions of an image, ``normalising`` takes its brightness away.
"""

from crisptree.images.canvas import Canvas
from crisptree.images.normalising import normalised
from crisptree.images.view import WindowView
from crisptree.images.windows import Windows

__all__ = ["Canvas", "WindowView", "Windows", "normalised"]
