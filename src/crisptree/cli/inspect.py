"""``crisptree inspect``: what a model file holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

import crisptree
from crisptree.cli import options
from crisptree.cli.forests import described_forest, show_forest
from crisptree.cli.output import Output, shown, table_of, with_flags
from crisptree.cli.rows import takes_images, taking_rows
from crisptree.encoding.errors import counted, listed
from crisptree.encoding.number_format import DEFAULT_FORMAT, NumberFormat
from crisptree.encoding.preprocessing import VERSION, Preprocessing
from crisptree.inference import CrispTree, FlatTree
from crisptree.persistence.model_file import FORMAT

MOST_COLUMNS_SHOWN = 30


def inspect(
    model: options.Model,
    top: Annotated[int, typer.Option(min=0, help="How many important columns to name.")] = 10,
    as_json: options.Json = False,
) -> None:
    """Show what a model file holds: its tree, its classes, its preprocessing, what it looks at.

    Examples:
      crisptree inspect iris.crisp

      crisptree inspect model.crisp --top 30 --json
    """
    out = Output(as_json)
    document = described(model, top)
    (show_forest if "trees" in document else _show)(out, document)
    out.finish(document)


def described(path: Path, top: int) -> dict[str, Any]:
    """What a file holds, as plain values."""
    model = taking_rows(crisptree.load(path))
    if hasattr(model, "forest_"):
        return described_forest(model, path, top)
    tree: CrispTree = model.tree_
    parameters, defaults = model.get_params(deep=False), type(model)().get_params(deep=False)
    structure, counts = tree.structure, tree.statistics.node_counts
    passing = tree.meaning.weight(counts)
    root = max(float(passing[0]), np.finfo(float).tiny)
    document: dict[str, Any] = {
        "file": str(path),
        "bytes": path.stat().st_size,
        "format": FORMAT,
        "kind": type(model).__name__,
        **_answers(model, counts[:1]),
        "features": tree.n_features,
        "feature_names": [str(name) for name in model.__dict__.get("feature_names_in_", ())] or None,
        "image_shape": getattr(model, "image_shape_", getattr(model, "image_shape", None)),
        "depth": structure.depth,
        "splits": structure.n_splits,
        "leaves": structure.n_leaves,
        "mean_path": float(passing[: structure.n_splits].sum() / root),
        "split_kind": "hyperplanes" if isinstance(tree, FlatTree) else "modules",
        "has_greedy_tree": model.greedy_tree_ is not tree,
        "parameters": {name: value for name, value in parameters.items() if _is_plain(value)},
        "changed": [name for name, value in parameters.items() if _is_plain(value) and value != defaults[name]],
    }
    if isinstance(tree, FlatTree):
        n_zero = int((tree.weight == 0).sum())
        document["weights"] = tree.weight.size
        document["density"] = 1 - n_zero / tree.weight.size if tree.weight.size else None
        document["importances"] = _importances(model, top)
    if takes_images(model):
        document["channels"], document["stages"] = model.channels_, 1 + len(model.earlier_trees_)
    stored: Preprocessing | None = model.__dict__.get("preprocessing_")
    document["preprocessing"] = None if stored is None else _preprocessing(stored)
    return document


def _answers(model: Any, everyone: Any) -> dict[str, Any]:
    """What the model can say, and how often training has seen it."""
    if not hasattr(model, "n_outputs_"):
        return {"classes": model.classes_.tolist(), "class_counts": everyone[0].tolist()}
    tree = model.tree_
    values = tree.in_units(tree.meaning.tables(everyone))[0]
    n = model.n_outputs_
    return {
        "outputs": n,
        "rows": float(tree.meaning.weight(everyone)[0]),
        "mean": values[:n].tolist(),
        "spread": np.sqrt(values[n:]).tolist(),
    }


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | list | tuple | dict)


def _importances(model: Any, top: int) -> list[dict[str, Any]]:
    """The columns of the table with the largest shares of the gain; a category's features are added up."""
    from crisptree.explain import feature_importances
    from crisptree.inspection.names import resolve_feature_names

    shares, names = feature_importances(model.tree_), resolve_feature_names(model)
    stored: Preprocessing | None = model.__dict__.get("preprocessing_")
    if stored is not None:
        names = [column.name for column in stored.columns]
        shares = np.bincount(stored.origin, weights=shares, minlength=len(names)).astype(np.float64)
    order = np.argsort(-shares, kind="stable")[:top]
    return [{"column": names[place], "share": float(shares[place])} for place in order if shares[place] > 0]


def _preprocessing(stored: Preprocessing) -> dict[str, Any]:
    columns = []
    for column in stored.columns:
        values = {"categories": list(column.categories)} if column.kind == "category" else {"mean": column.mean}
        columns.append({"name": column.name, "kind": column.kind, "missing_in_training": column.missing, **values})
    document: dict[str, Any] = {
        "version": VERSION,
        "target": stored.target,
        "by_name": stored.named,
        "missing": list(stored.missing),
    }
    document |= {"id": stored.id, "written": asdict(stored.number_format)}
    return {**document, "columns": columns, "left_out": dict(stored.left_out)}


def _show(out: Output, document: dict[str, Any]) -> None:
    shape = document["image_shape"]
    seen = "windows" if "stages" in document else "images"
    lines = {
        "file": f"{document['file']} ({document['bytes']:,} bytes, format {document['format']})",
        "kind": document["kind"],
        **_said_of_answers(document),
        "features": f"{document['features']:,}" + (f", {seen} of {' × '.join(map(str, shape))}" if shape else ""),
        "tree": f"depth {document['depth']} · {document['splits']:,} splits ({document['split_kind']}) · "
        f"{document['leaves']:,} leaves · a training row visits {document['mean_path']:.2f} splits on average",
    }
    if document.get("density") is not None:
        lines["weights"] = f"{document['weights']:,}, {document['density']:.1%} of them not zero"
    changed = [f"{name}={document['parameters'][name]!r}" for name in document["changed"]]
    lines["parameters"] = ", ".join([*changed, "the rest as by default"])
    table = Table.grid(padding=(0, 2))
    for name, text in lines.items():
        table.add_row(shown(name, "bold"), shown(text))
    out.show(table)
    if document.get("importances"):
        rows = [[entry["column"], f"{entry['share']:.1%}"] for entry in document["importances"]]
        out.show(table_of(("what it looks at", "share of the gain"), rows))
    if document["preprocessing"] is not None:
        _show_preprocessing(out, document["preprocessing"])
    elif "stages" in document:
        channels, stages = document["channels"], document["stages"]
        form = "no axis for channels" if channels is None else counted(channels, "channel")
        out.show(f"Images must have {form}." + (f" Of {stages} stages this is the last." if stages > 1 else ""))
    else:
        out.show("No preprocessing: rows must be numbers.")


def _said_of_answers(document: dict[str, Any]) -> dict[str, str]:
    if "classes" in document:
        return {"classes": f"{len(document['classes'])}: {listed(map(str, document['classes']), 12)}"}
    pairs = zip(document["mean"], document["spread"], strict=True)
    return {"numbers": ", ".join(f"{mean:.4g} ± {spread:.2g} in training" for mean, spread in pairs)}


def _show_preprocessing(out: Output, preprocessing: dict[str, Any]) -> None:
    where = "by name" if preprocessing["by_name"] else "by place"
    out.show(f"preprocessing: columns found {where}, target {preprocessing['target']!r}")
    written = NumberFormat(**preprocessing["written"] | {"units": tuple(preprocessing["written"]["units"])})
    if written != DEFAULT_FORMAT:
        out.show(f"numbers of text are written with {with_flags(written.describe())}")
    rows = []
    for column in preprocessing["columns"][:MOST_COLUMNS_SHOWN]:
        values = listed(column["categories"], 6) if "categories" in column else f"mean {column['mean']:.6g}"
        missing = "own feature" if column["missing_in_training"] else "none in training"
        rows.append([column["name"], column["kind"], missing, values])
    names = ("column", "kind", "missing", "values")
    out.show(table_of(names, rows, left=names))
    more = len(preprocessing["columns"]) - MOST_COLUMNS_SHOWN
    if more > 0:
        out.show(f"and {more:,} more columns; --json has all")
    if preprocessing["left_out"]:
        reasons = [f"{name!r} ({why})" for name, why in preprocessing["left_out"].items()]
        out.show("left out: " + ", ".join(reasons))
