"""``crisptree report``: one self-contained HTML page about a model."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from crisptree.cli import options
from crisptree.cli.dialect import Dialect, with_dialect
from crisptree.cli.options import output_option
from crisptree.cli.output import Output
from crisptree.cli.rows import load_model, predicts_numbers, read_labelled


@with_dialect
def report(
    model: options.Model,
    data: options.Data,
    output: Annotated[Path, output_option("The .html to write.")],
    *,
    target: options.KnownTarget = None,
    missing: options.Missing = [],  # noqa: B006 (typer makes a new list for every call)
    drop: options.Drop = [],  # noqa: B006
    id_name: options.Id = None,
    dialect: Dialect,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write a page that shows the tree, how it does on a table, and single rows on their way.

    Example:
      crisptree report iris.crisp test.csv --target species -o report.html
    """
    options.check_output(output, (".html", ".htm"))
    out = Output(as_json)
    estimator = load_model(model)
    more = {"target": target, "dialect": dialect, "missing": missing, "drop": drop, "id": id_name}
    rows = read_labelled(estimator, data, out, **more)
    options.check_free([output], force)
    from crisptree.report import write

    if predicts_numbers(estimator):
        X, y, ids = rows.X, rows.truth, rows.ids
        target = target or estimator.preprocessing_.target
    else:
        X, y = rows.known(estimator.classes_)
        known = rows.truth >= 0
        # Without names rows are counted as in all that is said about those of a file.
        ids = 1 + np.flatnonzero(known) if rows.ids is None else rows.ids[known]
    names = list(estimator.preprocessing_.feature_names)
    write_page = estimator.report if hasattr(estimator, "forest_") else partial(write, estimator)
    write_page(output, X, y, feature_names=names, ids=ids, target=target)
    out.show(str(output))
    out.finish({"model": str(model), "data": str(data), "rows": len(X), "output": str(output)})
