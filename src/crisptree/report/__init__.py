"""One self-contained HTML page about a fitted tree.

``samples`` sends the caller's rows down the tree and chooses some to look at, ``collect`` turns model and rows into
plain values, ``page`` puts them into ``template.html`` with ``report.css`` and the scripts of ``scripts/``.
"""

from crisptree.report.page import write

__all__ = ["write"]
