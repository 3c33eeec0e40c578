"""The paper's small convolutional networks as splits: all of them at once, side by side as groups of channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from crisptree.export.onnx_graph.building import Graph
from crisptree.export.portable import Portable, PortableTree


def conv_scores(graph: Graph, model: Portable, rows: str) -> str:
    """Scores of the networks of all splits of all trees, whether a row comes by or not.  (N, n_splits)"""
    parts = [_tree_scores(graph, model, tree, rows) for tree in model.trees if tree.structure.n_splits]
    if not parts:
        return graph.add("Mul", rows, graph.constant(0.0, "float", "zero"))
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)


def _tree_scores(graph: Graph, model: Portable, tree: PortableTree, rows: str) -> str:
    assert tree.scaling is not None
    assert model.image_shape is not None
    height, width, channels = (*model.image_shape, 1)[:3]
    center, factor = (graph.constant(part, "float", "scaling") for part in tree.scaling)
    scaled = graph.add("Mul", graph.add("Sub", rows, center), factor)
    image = graph.add("Transpose", graph.reshape(scaled, -1, height, width, channels), perm=[0, 3, 1, 2])
    layer, n_splits = _layers(tree.modules), tree.structure.n_splits
    first = graph.add("Conv", image, *_merged(graph, layer[0]), kernel_shape=[5, 5])
    first = graph.add("Relu", _pooled(graph, first))
    second = graph.add("Conv", first, *_merged(graph, layer[3]), kernel_shape=[5, 5], group=n_splits)
    second = graph.add("Relu", _pooled(graph, second))
    flat = graph.reshape(second, 0, n_splits, -1)  # (N, splits, values)
    by_split = graph.add("Transpose", flat, perm=[1, 0, 2])
    hidden = graph.add("Relu", _linear(graph, by_split, layer[7]))
    scores = _linear(graph, hidden, layer[9])  # (splits, N, 1)
    return graph.reshape(graph.add("Transpose", scores, perm=[1, 0, 2]), 0, n_splits)


def _layers(parameters: Any) -> dict[int, tuple[Any, Any]]:
    """Weights and offsets by the number of their layer in ``splits.conv.ConvNet``, stacked over the splits."""
    numbers = (0, 3, 7, 9)
    return {number: tuple(parameters[f"layers.{number}.{part}"] for part in ("weight", "bias")) for number in numbers}


def _merged(graph: Graph, layer: tuple[Any, Any]) -> list[str]:
    """The filters of all splits as those of one convolution."""
    weight, bias = layer
    merged = np.reshape(weight, (-1, *weight.shape[2:]))
    return [graph.constant(merged, "float", "filters"), graph.constant(np.reshape(bias, -1), "float", "offsets")]


def _pooled(graph: Graph, image: str) -> str:
    return graph.add("MaxPool", image, kernel_shape=[2, 2], strides=[2, 2])


def _linear(graph: Graph, values: str, layer: tuple[Any, Any]) -> str:
    """A linear layer for every split.  (splits, N, values) → (splits, N, outputs)"""
    weight, bias = layer
    product = graph.add("MatMul", values, graph.constant(np.swapaxes(weight, 1, 2), "float", "linear"))
    return graph.add("Add", product, graph.constant(bias[:, None, :], "float", "offsets"))
