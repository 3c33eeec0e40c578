"""What comes into a graph: rows of numbers, or the columns of a table through the stored encoding."""

from __future__ import annotations

from crisptree.export.onnx_graph.building import Graph
from crisptree.export.portable import Input, Portable

ROWS = "X"
"""The name of the one input of a model of numbers, as skl2onnx calls it."""

TAKEN = ("label", "probabilities", "variable", "leaf")
"""Names of outputs, which no input may have."""


def enter(graph: Graph, model: Portable) -> str:
    """The rows that the trees see.  (N, n_features)

    A model that encodes tables has an input of one value a row for every column: text for a category, else a number,
    which is NaN where it is missing. A text that training did not know makes all features of its column 0.
    """
    if not model.encodes:
        return graph.input(ROWS, "float", model.n_features)
    parts = []
    for name, column in zip(input_names(model), model.inputs, strict=True):
        parts += _category(graph, model, column, name) if column.kind == "category" else _number(graph, column, name)
    return graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]


def input_names(model: Portable) -> list[str]:
    """The names of the inputs: those of the columns, told apart from the outputs and from each other."""
    if not model.encodes:
        return [ROWS]
    names: list[str] = []
    for place, column in enumerate(model.inputs):
        plain = column.name.encode("utf-8", "replace").decode()
        fits = plain and plain not in (*TAKEN, *names) and not plain.startswith("crisptree/")
        names.append(plain if fits else f"column {place}: {plain}")
    return names


def _number(graph: Graph, column: Input, name: str) -> list[str]:
    value = graph.input(name, "float", 1)
    if column.fill is None:
        return [value]
    hole = graph.add("IsNaN", value)
    filled = graph.add("Where", hole, graph.constant(column.fill, "float", "fill"), value)
    return [filled, graph.cast(hole, "float")] if column.missing else [filled]


def _category(graph: Graph, model: Portable, column: Input, name: str) -> list[str]:
    value = graph.input(name, "string", 1)
    parts = []
    if column.categories:
        parts.append(_one_hot(graph, value, column.categories))
    if column.missing:
        texts = tuple(dict.fromkeys(("", *model.missing_texts)))
        parts.append(graph.add("ReduceMax", _one_hot(graph, value, texts), axes=[1], keepdims=1))
    return parts


def _one_hot(graph: Graph, value: str, texts: tuple[str, ...]) -> str:
    """1 for the text that a value is, 0 for all others.  (N, 1) → (N, n_texts)"""
    known = [text.encode("utf-8", "surrogatepass") for text in texts]
    found = graph.add("OneHotEncoder", value, domain="ai.onnx.ml", cats_strings=known, zeros=1)
    return graph.reshape(found, -1, len(texts))
