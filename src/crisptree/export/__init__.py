"""A trained tree as people read it: rules as text, Graphviz source, a small drawing for notebooks."""

from crisptree.export.graphviz import dot
from crisptree.export.html import html
from crisptree.export.rules import text

__all__ = ["text", "dot", "html"]
