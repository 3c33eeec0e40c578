"""From leaves to answers, under the names and types that skl2onnx gives them, with the leaf beside."""

from __future__ import annotations

from typing import Any

import numpy as np

from crisptree.export.onnx_graph.building import Graph
from crisptree.export.portable import Portable
from crisptree.export.stacked import Stacked


def answer(graph: Graph, model: Portable, trees: Stacked, rows: str, arrived: str) -> None:
    """Outputs ``label`` and ``probabilities``, or ``variable`` of a regression, and ``leaf``; arrived: (N, n_trees)"""
    is_one = trees.n_trees == 1
    said = _by_models(graph, model, trees, rows, arrived) if trees.linear is not None else ""
    own = arrived
    if is_one:
        arrived = own = graph.reshape(arrived, -1)
    else:
        own = graph.add("Sub", arrived, graph.constant(trees.first_leaf[None], "int64", "first_leaf"))
    if model.task == "regression":
        values = said or _tables(graph, trees, arrived)
        graph.output(graph.cast(values, "float"), "variable", "float", ["N", trees.tables.shape[1]])
    elif is_one and not said:
        kind, labels = label_values(model.classes)
        label = graph.add("Gather", graph.constant(labels[trees.answers], kind, "labels"), arrived)
        graph.output(label, "label", kind, ["N"])
        graph.output(_tables(graph, trees, arrived), "probabilities", "float", ["N", model.n_outputs])
    else:
        kind, labels = label_values(model.classes)
        means = said or _tables(graph, trees, arrived)
        best = graph.add("ArgMax", means, axis=1, keepdims=0)
        graph.output(graph.add("Gather", graph.constant(labels, kind, "labels"), best), "label", kind, ["N"])
        graph.output(graph.cast(means, "float"), "probabilities", "float", ["N", model.n_outputs])
    graph.output(own, "leaf", "int64", ["N"] if is_one else ["N", trees.n_trees])


def _tables(graph: Graph, trees: Stacked, arrived: str) -> str:
    """What the leaves say, the mean over the trees of a forest.  (N, n_outputs)

    Means are taken in double precision, as ours are: two classes that are level must stay so.
    """
    if trees.n_trees == 1:
        return graph.add("Gather", graph.constant(trees.tables, "float", "tables"), arrived)
    said = graph.add("Gather", graph.constant(trees.tables, "double", "tables"), arrived)  # (N, trees, outputs)
    return graph.add("ReduceMean", said, axes=[1], keepdims=0)


def _by_models(graph: Graph, model: Portable, trees: Stacked, rows: str, arrived: str) -> str:
    """What the linear models of the leaves say, in double precision, the mean over the trees.  (N, n_outputs)"""
    assert trees.linear is not None
    weight, offset = (graph.constant(part, "double", "models") for part in trees.linear)
    features = graph.reshape(graph.cast(rows, "double"), -1, 1, model.n_features, 1)
    products = graph.add("MatMul", graph.add("Gather", weight, arrived), features)  # (N, trees, outputs, 1)
    flat = graph.reshape(products, -1, trees.n_trees, model.n_outputs)
    scores = graph.add("Add", flat, graph.add("Gather", offset, arrived))
    if model.classes:
        scores = graph.add("Softmax", scores, axis=2)
    return graph.add("ReduceMean", scores, axes=[1], keepdims=0)


def label_values(classes: tuple[Any, ...]) -> tuple[str, Any]:
    """The type of the labels in a graph, and the labels: whole numbers stay numbers, all others become text."""
    if all(isinstance(label, int) for label in classes):  # booleans too, as 0 and 1
        return "int64", np.array([int(label) for label in classes], dtype=np.int64)
    return "string", np.array([str(label) for label in classes], dtype=object)
