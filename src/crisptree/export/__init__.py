"""A trained tree in other forms: the model file, rules as text, Graphviz source."""

from crisptree.export.graphviz import dot
from crisptree.export.rules import text

__all__ = ["text", "dot"]
