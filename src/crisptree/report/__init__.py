"""Reports: one self-contained HTML page about a fitted tree.

``page`` validates the arguments, builds the page and writes it. ``contents`` collects its values; the target decides
which sections of ``page.html`` appear. ``samples`` has the rows of the report and explanations of a selection of them.
"""

from crisptree.report.page import write

__all__ = ["write"]
