"""Exports of a trained model: rules and drawings for people, and formats that other programs run.

``portable`` is the model as plain values, from which every format for machines starts; ``formats`` lists the formats
and what each supports, and compares an export with its model, row by row.
"""

from crisptree.export.c99 import c
from crisptree.export.formats import Agreement, check, write
from crisptree.export.javascript import js
from crisptree.export.json_document import json
from crisptree.export.onnx_graph import onnx
from crisptree.export.portable import ExportError, Portable
from crisptree.export.rules import dot, sentences, text
from crisptree.export.sklearn_tree import sklearn_forest, sklearn_tree
from crisptree.export.sql_statement import sql

__all__ = [
    "text",
    "sentences",
    "dot",
    "c",
    "onnx",
    "js",
    "sql",
    "json",
    "sklearn_tree",
    "sklearn_forest",
    "write",
    "check",
    "Agreement",
    "Portable",
    "ExportError",
]
