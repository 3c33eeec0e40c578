"""A plain transcription of the paper, node by node with dense recursion: the reference of bench_fit.py.

It is correct and plain, and shares no code with the library.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, softmax


class Node:
    """A split with two children, or a leaf with a table."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        direction = torch.randn(n_features)
        self.weight = nn.Parameter(direction / direction.norm())
        self.bias = nn.Parameter(torch.zeros(()))
        self.tables = [self._random(n_classes), self._random(n_classes)]
        self.children: list[Node | None] = [None, None]

    @staticmethod
    def _random(n_classes: int) -> Tensor:
        table = torch.rand(n_classes) + 1e-3
        return table / table.sum()

    def score(self, x: Tensor) -> Tensor:
        return x @ self.weight + self.bias


def log_paths(node: Node, x: Tensor, steepness: float, reached: Tensor) -> list[Tensor]:
    """log μ of every leaf under a node, from left to right."""
    score = steepness * node.score(x)
    turns = (logsigmoid(-score), logsigmoid(score))
    result: list[Tensor] = []
    for child, turn in zip(node.children, turns, strict=True):
        result += [reached + turn] if child is None else log_paths(child, x, steepness, reached + turn)
    return result


def leaves(node: Node) -> list[tuple[Node, int]]:
    """List the leaf tables from left to right."""
    found: list[tuple[Node, int]] = []
    for side, child in enumerate(node.children):
        found += [(node, side)] if child is None else leaves(child)
    return found


def splits(node: Node) -> list[Node]:
    """List all splits below a node."""
    return [node] + [split for child in node.children if child is not None for split in splits(child)]


def train(root: Node, x: Tensor, y: Tensor, epochs: int, batch_size: int = 1000) -> None:
    """EM with Adam, γ = 1 + 0.1 per epoch: for a stump, or for a whole tree."""
    places = leaves(root)
    parameters = [value for split in splits(root) for value in (split.weight, split.bias)]
    adam = torch.optim.Adam(parameters, lr=0.001)
    for epoch in range(epochs):
        steepness = 1.0 + 0.1 * epoch
        tables = torch.stack([node.tables[side] for node, side in places])
        with torch.no_grad():  # E-step with the parameters at the start of the epoch
            h = torch.cat(
                [
                    softmax(
                        torch.stack(log_paths(root, part, steepness, torch.zeros(len(part))), 1) + tables.log().T[z], 1
                    )
                    for part, z in zip(x.split(10_000), y.split(10_000), strict=True)
                ]
            )
        for batch in torch.randperm(len(x)).split(batch_size):
            adam.zero_grad()
            mu = torch.stack(log_paths(root, x[batch], steepness, torch.zeros(len(batch))), 1)
            (-(h[batch] * mu).sum() / len(batch)).backward()
            adam.step()
        counts = torch.zeros(tables.shape[1], len(places)).index_add_(0, y, h).T + 1e-8
        for (node, side), table in zip(places, counts / counts.sum(1, keepdim=True), strict=True):
            node.tables[side] = table


def grow(x: Tensor, y: Tensor, depth: int, n_classes: int, epochs: int) -> Node | None:
    """Grow a tree of stumps, each trained on the rows that reach it."""
    if depth == 0 or len(x) < 2 or len(y.unique()) < 2:
        return None
    node = Node(x.shape[1], n_classes)
    train(node, x, y, epochs)
    with torch.no_grad():
        right = node.score(x) > 0
    if right.all() or not right.any():
        return None
    for side, rows in enumerate((~right, right)):
        node.children[side] = grow(x[rows], y[rows], depth - 1, n_classes, epochs)
    return node


def accuracy(root: Node, x: Tensor, y: Tensor) -> float:
    """Compute the accuracy of the deterministic tree."""
    with torch.no_grad():
        leaf = torch.stack(log_paths(root, x, 1e4, torch.zeros(len(x))), 1).argmax(1)
    tables = torch.stack([node.tables[side] for node, side in leaves(root)])
    return (tables.argmax(1)[leaf] == y).float().mean().item()
