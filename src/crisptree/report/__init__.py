"""Reports: one self-contained HTML page about a fitted tree.

``page`` validates the arguments, builds the page and writes it. ``classification`` and ``regression`` collect the
values of the page for their target; ``classification.html`` and ``regression.html`` are its templates. ``samples`` has
the rows of the report and the explanations of a selection of them.
"""

from crisptree.report.page import write

__all__ = ["write"]
