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
from crisptree.cli.rows import load_classifier, read_labelled


@with_dialect
def report(
    model: options.Model,
    data: options.Data,
    output: Annotated[Path, output_option("The .html to write.")],
    *,
    target: options.KnownTarget = None,
    missing: options.Missing = [],  # noqa: B006 (typer makes a new list for every call)
    drop: options.Drop = [],  # noqa: B006
    dialect: Dialect,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write a page that shows the tree, how it does on a table, and single rows on their way.

    Example:
      crisptree report iris.crisp test.csv --target species -o report.html
    """
    options.check_output(output, (".html", ".htm"), force)
    out = Output(as_json)
    estimator = load_classifier(model)
    rows = read_labelled(estimator, data, out, target=target, dialect=dialect, missing=missing, drop=drop)
    from crisptree.report import write

    X, y = rows.known(estimator.classes_)
    counted = 1 + np.flatnonzero(rows.truth >= 0)  # as in all that is said about rows of a file
    names = list(estimator.preprocessing_.feature_names)
    write_page = estimator.report if hasattr(estimator, "forest_") else partial(write, estimator)
    write_page(output, X, y, feature_names=names, ids=counted, target=target)
    out.show(str(output))
    out.finish({"model": str(model), "data": str(data), "rows": len(X), "output": str(output)})
