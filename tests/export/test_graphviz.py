import re
import shutil
import subprocess

import numpy as np
import pytest
import torch

from crisptree import export
from tests.inspection.models import STRANGE, fitted

STRING = r'"(?:[^"\\]|\\.)*"'
ATTRIBUTES = rf"\[(\w+={STRING}(?:, \w+={STRING})*)\]"
STATEMENT = re.compile(rf"(?:(graph|node)|(n\d+)(?: -> (n\d+))?) {ATTRIBUTES};")


def parsed(source):
    """Nodes and edges of the part of the dot language that we write; anything else fails."""
    body = re.fullmatch(r"digraph tree \{\n(.*)\}\n", source, re.DOTALL).group(1)
    nodes, edges = {}, {}
    for line in body.splitlines():
        match = STATEMENT.fullmatch(line.strip())
        assert match, line
        default, start, end, attributes = match.groups()
        pairs = dict(re.findall(rf"(\w+)=({STRING})", attributes))
        values = {key: unquoted(value) for key, value in pairs.items()}
        if default is None:
            (nodes if end is None else edges)[start if end is None else (start, end)] = values
    return nodes, edges


def unquoted(string):
    return re.sub(r"\\(.)", lambda match: {"n": "\n"}.get(match.group(1), match.group(1)), string[1:-1])


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"max_depth": 0},
        {"split": lambda shape: torch.nn.Linear(shape[0], 1)},
        {"labels": STRANGE},
        {"n_classes": 26, "max_depth": 6},
        {"n_features": 1},
    ],
)
def test_the_source_has_every_node_and_edge(changes):
    model, _, _ = fitted(**changes)
    structure = model.tree_.structure
    nodes, edges = parsed(export.dot(model))
    assert set(nodes) == {f"n{node}" for node in range(structure.n_nodes)}
    turns = {(f"n{i}", f"n{child}"): "no" for i, child in enumerate(structure.left_nodes)}
    turns |= {(f"n{i}", f"n{child}"): "yes" for i, child in enumerate(structure.right_nodes)}
    assert {edge: values["label"] for edge, values in edges.items()} == turns
    for leaf, majority in enumerate(model.tree_.labels()):
        assert f"\n{model.classes_[majority]} (" in nodes[f"n{structure.n_splits + leaf}"]["label"]


def test_special_characters_in_feature_names_round_trip():
    model, _, _ = fitted(n_features=3, max_depth=1)
    names = ['a "quoted" one', "back\\slash\\N", "<b>&amp;{|}"]
    nodes, _ = parsed(export.dot(model, names))
    assert all(name in nodes["n0"]["label"] for name in names)


def test_edge_widths_follow_the_share_of_rows():
    model, _, _ = fitted(n_classes=5)
    _, edges = parsed(export.dot(model))
    rows = model.tree_.statistics.node_counts.sum(axis=1)
    widths = {int(end[1:]): float(values["penwidth"]) for (_, end), values in edges.items()}
    children = sorted(widths)
    assert np.corrcoef([widths[c] for c in children], rows[children])[0, 1] > 0.999


def test_edges_of_a_depth_limited_tree_have_both_ends():
    model, _, _ = fitted(n_classes=6)
    nodes, edges = parsed(export.dot(model, max_depth=1))
    assert (len(nodes), len(edges)) == (3, 2)
    assert {end for edge in edges for end in edge} == set(nodes)


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
def test_graphviz_draws_it():
    model, _, _ = fitted(labels=STRANGE)
    subprocess.run(["dot", "-Tsvg"], input=export.dot(model), text=True, capture_output=True, check=True)
