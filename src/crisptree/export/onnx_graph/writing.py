"""A model as the bytes of an ONNX file."""

from __future__ import annotations

from collections.abc import Callable

from crisptree.export import escaping
from crisptree.export.onnx_graph.answering import answer
from crisptree.export.onnx_graph.building import Graph
from crisptree.export.onnx_graph.convolving import conv_scores
from crisptree.export.onnx_graph.entering import enter
from crisptree.export.onnx_graph.routing import by_ensemble, by_matrix, by_paths, linear_scores
from crisptree.export.portable import ExportError, Portable
from crisptree.export.stacked import Stacked

FROM_SCORES: dict[str, Callable[[Graph, Portable, Stacked, str], str]] = {"matrix": by_matrix, "ensemble": by_ensemble}
FORMS = (*FROM_SCORES, "paths")


def graph_bytes(model: Portable, name: str = "model", form: str = "matrix") -> bytes:
    """The file; see ``export.onnx``."""
    if form not in FORMS:
        raise ExportError(f"`form` must be one of {', '.join(FORMS)}; got {form!r}.")
    is_conv = model.split == "conv"
    if is_conv and form == "paths":
        raise ExportError(
            "form='paths' takes hyperplanes out of a table, row by row; networks cannot be. Take form='matrix', which "
            "computes the networks of all splits."
        )
    graph, trees = Graph(), Stacked.of(model)
    rows = enter(graph, model)
    if form == "paths" and trees.n_splits:
        arrived = by_paths(graph, model, trees, rows)
    else:
        scores = conv_scores(graph, model, rows) if is_conv else linear_scores(graph, trees, rows)
        arrived = FROM_SCORES.get(form, by_matrix)(graph, model, trees, scores)
    answer(graph, model, trees, rows, arrived)
    return graph.written(escaping.identifier(name), _said(model, trees, form))


def _said(model: Portable, trees: Stacked, form: str) -> str:
    what = "decision tree" if trees.n_trees == 1 else f"forest of {trees.n_trees} trees"
    also = "; all networks are computed for every row" if model.split == "conv" else ""
    return f"{what} of crisptree, {trees.n_leaves} leaves, form {form}{also}"
