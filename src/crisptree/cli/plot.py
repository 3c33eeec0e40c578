"""``crisptree plot``: a picture of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import crisptree
from crisptree.cli import options
from crisptree.cli.dialect import Dialect, with_dialect
from crisptree.cli.options import OUTPUT, option, output_option
from crisptree.cli.output import Output
from crisptree.cli.rows import load_model, predicts_numbers, read_labelled
from crisptree.encoding.errors import TableError
from crisptree.inference import FlatTree
from crisptree.persistence.writing import written_whole

Kind = Literal["tree", "weights", "confusion", "regions", "residuals"]
NEEDS_ROWS = ("confusion", "regions", "residuals")


@with_dialect
def plot(
    model: options.Model,
    output: Annotated[Path, output_option("The .svg, .png or .pdf to write.")],
    *,
    kind: Annotated[
        Kind,
        typer.Option(
            help="The tree, the weights of its splits, its confusion, the plane of two features, or errors of numbers.",
            rich_help_panel=OUTPUT,
        ),
    ] = "tree",
    max_depth: Annotated[int | None, option(min=0, help="Draw only so many levels.", panel=OUTPUT)] = None,
    dpi: Annotated[int, typer.Option(min=20, max=1200, help="Dots per inch of a .png.", rich_help_panel=OUTPUT)] = 150,
    data: Annotated[Path | None, option("--data", help=f"The table for --kind {' and '.join(NEEDS_ROWS)}.")] = None,
    target: options.KnownTarget = None,
    missing: options.Missing = [],  # noqa: B006 (typer makes a new list for every call)
    dialect: Dialect,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Draw a model.

    Examples:
      crisptree plot iris.crisp -o tree.svg

      crisptree plot digits.crisp --max-depth 3 -o top.png

      crisptree plot iris.crisp --kind confusion --data test.csv -o confusion.pdf
    """
    if (kind in NEEDS_ROWS) != (data is not None):
        raise typer.BadParameter(f"--kind {' and '.join(NEEDS_ROWS)} go with --data, and no others; got {kind}.")
    if kind != "tree" and max_depth is not None:
        raise typer.BadParameter("--max-depth is for --kind tree.")
    options.check_output(output, (".svg", ".png", ".pdf"))
    options.check_free([output], force)
    out = Output(as_json)
    estimator = load_model(model) if kind in NEEDS_ROWS else crisptree.load(model)
    if hasattr(estimator, "forest_"):
        raise TableError(f"{model} must hold one tree; it holds a forest. Draw one of its trees from Python: tree(0).")
    labelled = None
    if data is not None:
        labelled = read_labelled(estimator, data, out, target=target, dialect=dialect, missing=missing)
    if kind == "weights" and not (isinstance(estimator.tree_, FlatTree) and estimator.tree_.structure.n_splits):
        raise TableError(f"--kind weights needs splits that are hyperplanes; {model} has none. Draw the tree instead.")
    from crisptree.plots.style import save_figure

    axis = _drawn(kind, estimator, max_depth, labelled)
    with written_whole(output) as temporary:
        save_figure(axis, temporary, dpi)
    out.show(str(output))
    out.finish({"model": str(model), "kind": kind, "output": str(output)})


def _drawn(kind: str, model: Any, max_depth: int | None, labelled: Any) -> Any:
    from crisptree import plots

    if kind == "tree":
        return plots.plot_tree(model, max_depth=max_depth)
    if kind == "weights":
        return plots.plot_weights(model).flat[0]
    if kind == "residuals":
        return plots.plot_residuals(model, labelled.X, labelled.truth)
    if predicts_numbers(model):
        raise TableError(f"--kind {kind} is for classes; the model predicts numbers. Draw its residuals instead.")
    X, y = labelled.known(model.classes_)
    if kind == "regions":
        return plots.plot_regions(model, X, y, feature_names=model.preprocessing_.feature_names)
    return plots.plot_confusion(model, X, y)
