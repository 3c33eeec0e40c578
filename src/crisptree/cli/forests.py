"""What the commands say and write of a forest, where that is other than of one tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer
from rich.table import Table

import crisptree
from crisptree.cli.output import Output, shown, table_of
from crisptree.cli.rows import predicts_numbers
from crisptree.cli.training import TrainingTable
from crisptree.encoding.errors import listed
from crisptree.estimators.forest_parameters import MOST_TREES
from crisptree.persistence.model_file import FORMAT


def check_trees(trees: str | None, paper: bool) -> None:
    """Hold what was asked for to what a forest can have."""
    if trees is None:
        return
    if paper:
        raise typer.BadParameter("--paper is for one tree; leave --trees away.")
    if trees != "auto" and not (trees.isdecimal() and 1 <= int(trees) <= MOST_TREES):
        raise typer.BadParameter(f"--trees must be a whole number from 1 to {MOST_TREES:,}, or auto; got {trees!r}.")


def forest_of(trees: str, table: TrainingTable, parameters: dict[str, Any]) -> Any:
    """A forest of as many trees as the user asks for."""
    number = int(trees) if trees.isdecimal() else trees
    kind = crisptree.CrispForestRegressor if table.has_numbers else crisptree.CrispForestClassifier
    return kind(n_estimators=number, **parameters)


def by_all_trees(
    model: Any,
    X: npt.NDArray[np.float32],
    jobs: int | None,
    *,
    proba: bool,
    leaf: bool,
    explain: bool,
    interval: float | None,
) -> dict[str, Any]:
    """The columns that the user asked for."""
    values = model.forest_.values(X, jobs)
    columns = _numbers(model, X, values, interval) if predicts_numbers(model) else _classes(model, values, proba)
    if leaf:
        leaves = model.forest_.leaves(X, jobs)
        columns |= {f"leaf in tree {tree}": leaves[:, tree] for tree in range(len(model))}
    if explain:
        said = ["; ".join(str(model.explain(row, top=3)).splitlines()[:2]) for row in X]
        columns["path"] = pa.array(said, pa.string())
    return columns


def _classes(model: Any, values: npt.NDArray[np.float64], proba: bool) -> dict[str, Any]:
    classes = model.classes_
    text = classes.dtype.kind in "OUT"
    kind = pa.string() if text else pa.from_numpy_dtype(classes.dtype)
    columns: dict[str, Any] = {"prediction": pa.array(classes[values.argmax(axis=1)].tolist(), kind)}
    if proba:
        columns |= {f"probability of {label}": values[:, number] for number, label in enumerate(classes.tolist())}
    return columns


def _numbers(
    model: Any, X: npt.NDArray[np.float32], values: npt.NDArray[np.float64], interval: float | None
) -> dict[str, Any]:
    columns: dict[str, Any] = {"prediction": values[:, 0]}
    if interval is not None:
        ends = model.predict_interval(X, interval) if len(X) else np.zeros((2, 0))
        columns["low"], columns["high"] = ends
    return columns


def described_forest(model: Any, path: Path, top: int) -> dict[str, Any]:
    """What a file of a forest holds, as plain values."""
    from crisptree.inspection.names import resolve_feature_names

    trees = list(model.forest_)
    shares = np.asarray(model.feature_importances_) if hasattr(model, "feature_importances_") else np.zeros(0)
    one = model.tree(0)
    names, stored = resolve_feature_names(one), model.__dict__.get("preprocessing_")
    if stored is not None and len(shares):
        names = [column.name for column in stored.columns]
        shares = np.bincount(stored.origin, weights=shares, minlength=len(names)).astype(np.float64)
    order = np.argsort(-shares, kind="stable")[:top]
    classes = model.__dict__.get("classes_")
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "format": FORMAT,
        "kind": type(model).__name__,
        "classes": None if classes is None else classes.tolist(),
        "features": model.forest_.n_features,
        "trees": len(trees),
        "depth": model.get_depth(),
        "splits": sum(tree.structure.n_splits for tree in trees),
        "leaves": model.get_n_leaves(),
        "oob_score": model.__dict__.get("oob_score_"),
        "chosen": model.__dict__.get("chosen_", {}),
        "importances": [{"column": names[place], "share": float(shares[place])} for place in order],
    }


def show_forest(out: Output, document: dict[str, Any]) -> None:
    """The same in words."""
    lines = {
        "file": f"{document['file']} ({document['bytes']:,} bytes, format {document['format']})",
        "kind": document["kind"],
        "features": f"{document['features']:,}",
        "forest": f"{document['trees']} trees of depth {document['depth']} at most · {document['splits']:,} splits · "
        f"{document['leaves']:,} leaves",
    }
    if document["classes"] is not None:
        lines["classes"] = f"{len(document['classes'])}: {listed(map(str, document['classes']), 12)}"
    if document["oob_score"] is not None:
        lines["out of bag"] = f"{document['oob_score']:.4f}"
    if document["chosen"]:
        lines["chosen"] = ", ".join(f"{name}={value!r}" for name, value in document["chosen"].items())
    table = Table.grid(padding=(0, 2))
    for name, text in lines.items():
        table.add_row(shown(name, "bold"), shown(text))
    out.show(table)
    if document["importances"]:
        rows = [[entry["column"], f"{entry['share']:.1%}"] for entry in document["importances"]]
        out.show(table_of(("what it looks at", "share of the gain"), rows))
