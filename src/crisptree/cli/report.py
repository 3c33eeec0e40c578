"""``crisptree report``: one self-contained HTML page about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crisptree.cli import options
from crisptree.cli.options import OUTPUT
from crisptree.cli.rows import load_classifier, preprocessing_of, read_labelled, unnamed
from crisptree.cli.speaking import Speaker
from crisptree.cli.whole import check_output


def report(
    model: options.Model,
    data: options.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The .html to write.", show_default=False, rich_help_panel=OUTPUT)
    ],
    target: options.KnownTarget = None,
    missing: options.Missing = [],  # noqa: B006 (typer makes a new list for every call)
    drop: options.Drop = [],  # noqa: B006
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
) -> None:
    """Write a page that shows the tree, how it does on a table, and single rows on their way.

    Example:
      crisptree report iris.crisp test.csv --target species -o report.html
    """
    check_output(output, (".html", ".htm"))
    speaker = Speaker(as_json)
    estimator = load_classifier(model)
    rows = read_labelled(
        estimator,
        data,
        speaker,
        target=target,
        delimiter=options.check_delimiter(delimiter),
        missing=missing,
        drop=drop,
    )
    from crisptree.report import write

    known = rows.truth >= 0
    names = list(preprocessing_of(estimator).feature_names)
    labels = estimator.classes_[rows.truth[known]]
    write(unnamed(estimator), output, rows.X[known], labels, feature_names=names)
    speaker.show(str(output))
    speaker.finish({"model": str(model), "data": str(data), "rows": int(known.sum()), "output": str(output)})
