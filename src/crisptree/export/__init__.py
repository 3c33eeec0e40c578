"""A trained tree as people read it: rules as text, Graphviz source."""

from crisptree.export.graphviz import dot
from crisptree.export.rules import text

__all__ = ["text", "dot"]
