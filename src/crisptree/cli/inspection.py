"""``crisptree inspect``, ``crisptree plot`` and ``crisptree report``: a model as text, as a figure, as an HTML page."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import typer

from crisptree.cli import options
from crisptree.cli.options import OUTPUT, CsvFormat, option, output_option, with_options
from crisptree.cli.output import Output, make_grid, make_table, with_flags
from crisptree.cli.tables import (
    LabelledRows,
    detach_encoder,
    is_forest,
    is_image_model,
    is_regressor,
    load_model,
    load_table_model,
    read_labelled_rows,
)
from crisptree.encoding.preprocessing import SECTION_VERSION, Preprocessing
from crisptree.exceptions import TableError, format_count, format_names
from crisptree.files import atomic_write
from crisptree.inference import CrispTree, FlatTree
from crisptree.persistence.model_file import FORMAT

MAX_COLUMNS_SHOWN = 30

PlotKind = Literal["tree", "weights", "confusion", "regions", "residuals"]
KINDS_WITH_ROWS = ("confusion", "regions", "residuals")

MAX_ANNOTATED_CLASSES = 40
"""With more classes the counts of a confusion matrix would be too small to read."""

MIN_CONFUSION_INCHES, INCHES_PER_CLASS, MAX_CONFUSION_INCHES = 4.8, 0.42, 13.0
"""Size of the figure of a confusion matrix."""

MAX_LETTERS_ABREAST = 3
"""Longer names of classes are written vertically below a confusion matrix."""


def inspect(
    model: options.Model,
    top: Annotated[int, typer.Option(min=0, help="How many important columns to name.")] = 10,
    as_json: options.Json = False,
) -> None:
    """Show the content of a model file: tree or forest, target, feature importances, preprocessing.

    Examples:
      crisptree inspect iris.crisp

      crisptree inspect model.crisp --top 30 --json
    """
    out = Output(as_json)
    estimator = detach_encoder(load_model(model))
    document = {"file": str(model), "bytes": model.stat().st_size, "format": FORMAT, "kind": type(estimator).__name__}
    document |= (_describe_forest if is_forest(estimator) else _describe_tree)(estimator, top)
    _show_model(out, document, getattr(estimator, "preprocessing_", None))
    out.finish(document)


def _describe_forest(model: Any, top: int) -> dict[str, Any]:
    from crisptree.inspection.model_view import resolve_feature_names

    trees, classes = list(model.forest_), getattr(model, "classes_", None)
    shares = np.asarray(model.feature_importances_) if hasattr(model, "feature_importances_") else np.zeros(0)
    return {
        "classes": None if classes is None else classes.tolist(),
        "features": model.forest_.n_features,
        "trees": len(trees),
        "depth": model.get_depth(),
        "splits": sum(tree.structure.n_splits for tree in trees),
        "leaves": model.get_n_leaves(),
        "oob_score": getattr(model, "oob_score_", None),
        "best_params": getattr(model, "best_params_", {}),
        "importances": _rank_columns(model, shares, resolve_feature_names(model.tree(0)), top),
    }


def _describe_tree(model: Any, top: int) -> dict[str, Any]:
    from crisptree.explain import feature_importances
    from crisptree.inspection.model_view import resolve_feature_names, view_model
    from crisptree.inspection.sentences import describe_leaves, is_readable

    tree: CrispTree = model.tree_
    parameters, defaults = model.flat_parameters(), type(model)().flat_parameters()
    plain = {name: value for name, value in parameters.items() if _is_plain(value)}
    structure, counts = tree.structure, tree.statistics.node_counts
    node_weights = tree.target.weight(counts)
    root_weight = max(float(node_weights[0]), np.finfo(float).tiny)
    document: dict[str, Any] = {
        **_describe_target(model, counts[:1]),
        "features": tree.n_features,
        "feature_names": [str(name) for name in getattr(model, "feature_names_in_", ())] or None,
        "image_shape": getattr(model, "image_shape_", getattr(model, "image_shape", None)),
        "depth": structure.depth,
        "splits": structure.n_splits,
        "leaves": structure.n_leaves,
        "mean_path": float(node_weights[: structure.n_splits].sum() / root_weight),
        "split_kind": "hyperplanes" if isinstance(tree, FlatTree) else "modules",
        "has_greedy_tree": model.greedy_tree_ is not tree,
        "parameters": plain,
        "changed": [name for name, value in plain.items() if value != defaults[name]],
    }
    if isinstance(tree, FlatTree):
        document["weights"] = tree.weight.size
        document["density"] = 1 - int((tree.weight == 0).sum()) / tree.weight.size if tree.weight.size else None
        ranked = _rank_columns(model, feature_importances(tree), resolve_feature_names(model), top)
        document["importances"] = [entry for entry in ranked if entry["share"] > 0]
        view = view_model(model, "crisptree inspect")
        if is_readable(view):
            document["rules"] = describe_leaves(view)
    if is_image_model(model):
        document["channels"], document["stages"] = model.channels_, 1 + len(model.earlier_trees_)
    preprocessing: Preprocessing | None = getattr(model, "preprocessing_", None)
    document["preprocessing"] = None if preprocessing is None else _describe_preprocessing(preprocessing)
    return document


def _describe_target(model: Any, root_counts: Any) -> dict[str, Any]:
    """Return classes and their counts in training, or means and standard deviations in regression."""
    if hasattr(model, "classes_"):
        return {"classes": model.classes_.tolist(), "class_counts": root_counts[0].tolist()}
    tree, n = model.tree_, model.n_outputs_
    values = tree.restore_units(tree.target.tables(root_counts))[0]
    return {
        "outputs": n,
        "rows": float(tree.target.weight(root_counts)[0]),
        "mean": values[:n].tolist(),
        "spread": np.sqrt(values[n:]).tolist(),
    }


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | list | tuple | dict)


def _rank_columns(model: Any, shares: npt.NDArray[Any], names: list[str], top: int) -> list[dict[str, Any]]:
    """Return the table's columns with the largest importances; those of a category's features are added up."""
    preprocessing: Preprocessing | None = getattr(model, "preprocessing_", None)
    if preprocessing is not None and len(shares):
        names = [column.name for column in preprocessing.columns]
        shares = np.bincount(preprocessing.origin, weights=shares, minlength=len(names)).astype(np.float64)
    order = np.argsort(-shares, kind="stable")[:top]
    return [{"column": names[index], "share": float(shares[index])} for index in order]


def _describe_preprocessing(preprocessing: Preprocessing) -> dict[str, Any]:
    columns = []
    for column in preprocessing.columns:
        values = {"categories": list(column.categories)} if column.kind == "category" else {"mean": column.mean}
        columns.append({"name": column.name, "kind": column.kind, "missing_in_training": column.missing, **values})
    return {
        "version": SECTION_VERSION,
        "target": preprocessing.target,
        "by_name": preprocessing.named,
        "missing": list(preprocessing.missing),
        "id": preprocessing.id,
        "written": asdict(preprocessing.number_format),
        "columns": columns,
        "left_out": dict(preprocessing.left_out),
    }


def _show_model(out: Output, document: dict[str, Any], preprocessing: Preprocessing | None) -> None:
    shape = document.get("image_shape")
    seen = "windows" if "stages" in document else "images"
    lines = {
        "file": f"{document['file']} ({document['bytes']:,} bytes, format {document['format']})",
        "kind": document["kind"],
        "features": f"{document['features']:,}" + (f", {seen} of {' × '.join(map(str, shape))}" if shape else ""),
    }
    if document.get("classes") is not None:
        lines["classes"] = f"{len(document['classes'])}: {format_names(map(str, document['classes']), 12)}"
    if "mean" in document:
        pairs = zip(document["mean"], document["spread"], strict=True)
        lines["target"] = ", ".join(f"{mean:.4g} ± {spread:.2g} in training" for mean, spread in pairs)
    size = f"{document['splits']:,} splits{{}} · {document['leaves']:,} leaves"
    if "trees" in document:
        lines["forest"] = f"{document['trees']} trees of depth {document['depth']} at most · {size.format('')}"
        if document["oob_score"] is not None:
            lines["out of bag"] = f"{document['oob_score']:.4f}"
        if document["best_params"]:
            lines["selected"] = ", ".join(f"{name}={value!r}" for name, value in document["best_params"].items())
    else:
        size = size.format(f" ({document['split_kind']})")
        visits = f"a training row visits {document['mean_path']:.2f} splits on average"
        lines["tree"] = f"depth {document['depth']} · {size} · {visits}"
        if document.get("density") is not None:
            lines["weights"] = f"{document['weights']:,}, {document['density']:.1%} of them not zero"
        changed = [f"{name}={document['parameters'][name]!r}" for name in document["changed"]]
        lines["parameters"] = ", ".join([*changed, "defaults for all others"])
    out.show(make_grid(lines))
    if document.get("importances"):
        rows = [[entry["column"], f"{entry['share']:.1%}"] for entry in document["importances"]]
        out.show(make_table(("column", "importance (share of the gain)"), rows))
    if document.get("rules"):
        out.show("\n".join(document["rules"]))
    if "stages" in document:
        channels, stages = document["channels"], document["stages"]
        form = "no axis for channels" if channels is None else format_count(channels, "channel")
        out.show(f"Images must have {form}." + (f" This is the last of {stages} stages." if stages > 1 else ""))
    elif preprocessing is not None and "trees" not in document:
        _show_preprocessing(out, preprocessing)
    elif "trees" not in document:
        out.show("No preprocessing: rows must be numbers.")


def _show_preprocessing(out: Output, preprocessing: Preprocessing) -> None:
    by = "name" if preprocessing.named else "position"
    out.show(f"preprocessing: columns matched by {by}, target {preprocessing.target!r}")
    if preprocessing.number_format != Preprocessing.number_format:  # the default
        out.show(f"numbers in text are written with {with_flags(preprocessing.number_format.describe())}")
    rows = []
    for column in preprocessing.columns[:MAX_COLUMNS_SHOWN]:
        values = format_names(column.categories, 6) if column.kind == "category" else f"mean {column.mean:.6g}"
        rows.append([column.name, column.kind, "own feature" if column.missing else "none in training", values])
    names = ("column", "kind", "missing", "values")
    out.show(make_table(names, rows, left=names))
    more = len(preprocessing.columns) - MAX_COLUMNS_SHOWN
    if more > 0:
        out.show(f"and {more:,} more columns; --json has all")
    if preprocessing.left_out:
        reasons = [f"{name!r} ({why})" for name, why in preprocessing.left_out.items()]
        out.show("left out: " + ", ".join(reasons))


@with_options()
def plot(
    model: options.Model,
    output: Annotated[Path, output_option("The .svg, .png or .pdf to write.")],
    *,
    kind: Annotated[
        PlotKind,
        typer.Option(
            help="The tree, the weights of its splits, confusion matrix, regions of two features, or residuals.",
            rich_help_panel=OUTPUT,
        ),
    ] = "tree",
    max_depth: Annotated[int | None, option(min=0, help="Draw only so many levels.", panel=OUTPUT)] = None,
    max_width: Annotated[
        float | None,
        option(min=1, help="Inches (16 by default); small subtrees are collapsed.", panel=OUTPUT),
    ] = None,
    dpi: Annotated[int, typer.Option(min=20, max=1200, help="Dots per inch of a .png.", rich_help_panel=OUTPUT)] = 150,
    data: Annotated[Path | None, option("--data", help=f"The table for --kind {', '.join(KINDS_WITH_ROWS)}.")] = None,
    target: options.Target = None,
    drop_missing_target: options.DropMissingTarget = False,
    csv: CsvFormat,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Draw a model.

    Examples:
      crisptree plot iris.crisp -o tree.svg

      crisptree plot digits.crisp --max-depth 3 -o top.png

      crisptree plot iris.crisp --kind confusion --data test.csv -o confusion.pdf
    """
    if (kind in KINDS_WITH_ROWS) != (data is not None):
        raise typer.BadParameter(f"--data is for, and needed by, --kind {', '.join(KINDS_WITH_ROWS)}; got {kind}.")
    if kind != "tree" and (max_depth is not None or max_width is not None):
        raise typer.BadParameter("--max-depth and --max-width are for --kind tree.")
    size = {"max_depth": max_depth} | ({} if max_width is None else {"max_width": max_width})
    options.check_output(output, (".svg", ".png", ".pdf"))
    options.check_free([output], force)
    out = Output(as_json)
    estimator = load_table_model(model) if kind in KINDS_WITH_ROWS else load_model(model)
    if is_forest(estimator):
        raise TableError(f"{model} must hold one tree; it holds a forest. Draw one of its trees from Python: tree(0).")
    how: dict[str, Any] = {"target": target, "csv": csv, "drop_missing_target": drop_missing_target}
    rows = None if data is None else read_labelled_rows(estimator, data, out, **how)
    if kind == "weights" and not (isinstance(estimator.tree_, FlatTree) and estimator.tree_.structure.n_splits):
        raise TableError(f"--kind weights needs splits that are hyperplanes; {model} has none. Draw the tree instead.")
    from crisptree.plots.style import save_figure

    axes = _draw(kind, estimator, size, rows)
    with atomic_write(output) as temporary:
        save_figure(axes, temporary, dpi)
    out.show(str(output))
    out.finish({"model": str(model), "kind": kind, "output": str(output)})


def _draw(kind: str, model: Any, size: dict[str, Any], rows: LabelledRows | None) -> Any:
    from sklearn.metrics import ConfusionMatrixDisplay, PredictionErrorDisplay

    from crisptree import plots
    from crisptree.plots.style import new_axes

    if kind == "weights":
        return plots.plot_weights(model).flat[0]
    if rows is None:
        return plots.plot_tree(model, **size)
    if kind == "residuals":
        how: dict[str, Any] = {"kind": "actual_vs_predicted", "random_state": 0}  # which draws 1,000 rows
        return PredictionErrorDisplay.from_predictions(rows.y, model.predict(rows.X), **how).ax_
    if is_regressor(model):
        raise TableError(f"--kind {kind} is for classification; the model is a regression. Draw its residuals instead.")
    X, y = rows.of_known_classes(model.classes_)
    if kind == "regions":
        return plots.plot_regions(model, X, y, feature_names=model.preprocessing_.feature_names)
    names = [str(label).replace("$", r"\$") for label in model.classes_]
    side = min(max(MIN_CONFUSION_INCHES, INCHES_PER_CLASS * len(names) + 1), MAX_CONFUSION_INCHES)
    how = {
        "labels": model.classes_,
        "display_labels": names,
        "colorbar": False,
        "include_values": len(names) <= MAX_ANNOTATED_CLASSES,
        "text_kw": {"fontsize": 7},
        "xticks_rotation": "vertical" if max(map(len, names)) > MAX_LETTERS_ABREAST else "horizontal",
        "ax": new_axes(None, (side, side)),
    }
    axes = ConfusionMatrixDisplay.from_predictions(y, model.predict(X), **how).ax_
    axes.tick_params(labelsize=8)
    return axes


@with_options()
def report(
    model: options.Model,
    data: options.Data,
    output: Annotated[Path, output_option("The .html to write.")],
    *,
    target: options.Target = None,
    drop: options.Drop = [],  # noqa: B006 (typer makes a new list for every call)
    id_name: options.Id = None,
    drop_missing_target: options.DropMissingTarget = False,
    csv: CsvFormat,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write an HTML page that shows the tree, its scores on a table, and the decision paths of single rows.

    Example:
      crisptree report iris.crisp test.csv --target species -o report.html
    """
    options.check_output(output, (".html", ".htm"))
    out = Output(as_json)
    estimator = load_table_model(model)
    how: dict[str, Any] = {"target": target, "csv": csv, "drop": drop, "drop_missing_target": drop_missing_target}
    rows = read_labelled_rows(estimator, data, out, id=id_name, **how)
    options.check_free([output], force)
    from crisptree.report import write

    if is_regressor(estimator):
        X, y, ids = rows.X, rows.y, rows.ids
        target = target or estimator.preprocessing_.target
    else:
        X, y = rows.of_known_classes(estimator.classes_)
        is_known = rows.y >= 0
        ids = np.flatnonzero(is_known) if rows.ids is None else rows.ids[is_known]
    names = list(estimator.preprocessing_.feature_names)
    write_page = estimator.report if is_forest(estimator) else partial(write, estimator)
    write_page(output, X, y, feature_names=names, ids=ids, target=target)
    out.show(str(output))
    out.finish({"model": str(model), "data": str(data), "rows": len(X), "output": str(output)})
