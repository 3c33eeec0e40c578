"""``crisptree predict``: predictions for a table of any size, block by block."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from crisptree.cli import options
from crisptree.cli.options import OUTPUT, CsvFormat, option, output_option, with_options
from crisptree.cli.output import Output
from crisptree.cli.tables import (
    find_id_column,
    is_forest,
    is_regressor,
    load_table_model,
    make_encoder,
    open_for_model,
    stdin_as_file,
)
from crisptree.encoding.table_files import OUTPUT_SUFFIXES, TableWriter
from crisptree.exceptions import TableError, format_count
from crisptree.files import atomic_write
from crisptree.inference import route_rows
from crisptree.sanitization import sanitize

MAX_CONTRIBUTIONS = 12
"""Contributions that are searched for one to the side that the row takes."""


@dataclass
class PredictionOptions:
    """Flags about the columns of the output."""

    proba: Annotated[bool, option("--proba", help="Add a column of probabilities per class.", panel=OUTPUT)] = False
    interval: Annotated[
        float | None,
        option(help="In regression: add the interval of this coverage, such as 0.9.", panel=OUTPUT),
    ] = None
    leaf: Annotated[bool, option("--leaf", help="Add the index of the leaf.", panel=OUTPUT)] = False
    explain: Annotated[
        bool, option("--explain", help="Add the decision path and its largest contributions.", panel=OUTPUT)
    ] = False
    keep: Annotated[list[str], option(help="Columns to copy from the table: a,b. Repeatable.", panel=OUTPUT)] = field(
        default_factory=list
    )

    def check(self, model: Any) -> None:
        """Refuse columns that the model does not have."""
        if self.proba and is_regressor(model):
            raise typer.BadParameter("--proba is for classification; the model is a regression. Use --interval.")
        if self.explain and is_forest(model):
            raise typer.BadParameter("--explain is for one tree; a forest has a path through each of its trees.")
        if self.interval is not None and not is_regressor(model):
            raise typer.BadParameter("--interval is for regression; the model is a classification. Use --proba.")
        if self.interval is not None and not 0 < self.interval < 1:
            raise typer.BadParameter(f"--interval must lie between 0 and 1; got {self.interval}.")

    def predict(self, model: Any, X: npt.NDArray[np.float32], jobs: int | None) -> dict[str, Any]:
        """Compute the columns for encoded rows, by name."""
        import pyarrow as pa  # slow to import: the help does without

        if is_forest(model):
            leaves = model.forest_.leaves(X, jobs) if self.leaf else None
            values = model.forest_.values(X, jobs)
        else:
            leaves = route_rows(model.tree_, X, jobs)
            values = model.tree_.leaf_values(leaves, X)
        columns: dict[str, Any]
        if is_regressor(model):
            columns = {"prediction": values[:, 0]}
            if self.interval is not None:
                columns |= self._predict_interval(model, X, values)
        else:
            classes = model.classes_
            kind = pa.string() if classes.dtype.kind in "OUT" else pa.from_numpy_dtype(classes.dtype)
            columns = {"prediction": pa.array(classes[values.argmax(axis=1)].tolist(), kind)}
            if self.proba:
                columns |= {f"probability of {label}": values[:, k] for k, label in enumerate(classes.tolist())}
        if self.leaf and leaves is not None:
            columns |= (
                {f"leaf in tree {tree}": leaves[:, tree] for tree in range(len(model))}
                if is_forest(model)
                else {"leaf": leaves}
            )
        if self.explain:
            columns["path"] = pa.array([describe_path(model, row) for row in X], pa.string())
        return columns

    def _predict_interval(self, model: Any, X: npt.NDArray[np.float32], values: Any) -> dict[str, Any]:
        assert self.interval is not None
        if is_forest(model):
            low, high = model.predict_interval(X, self.interval) if len(X) else np.zeros((2, 0))
        else:
            mean, variance = values.T
            half_width = NormalDist().inv_cdf(0.5 + self.interval / 2) * model.interval_scale_ * np.sqrt(variance)
            low, high = mean - half_width, mean + half_width
        return {"low": low, "high": high}


def describe_path(model: Any, row: npt.NDArray[np.float32]) -> str:
    """Describe the decision path of an encoded row in one line, with the columns of the table."""
    from crisptree.explain import path

    explained = path(model, row, top=MAX_CONTRIBUTIONS)
    parts = []
    for step in explained.steps:
        turn = f"split {step.split} {'right' if step.goes_right else 'left'}"
        causes = [push for push in step.pushes if push.amount != 0 and (push.amount > 0) == step.goes_right]
        if step.condition:
            turn += f" ({step.condition})"
        elif causes:
            turn += f" ({model.preprocessing_.describe(causes[0].feature, causes[0].value)})"
        parts.append(turn)
    return "; ".join([*parts, f"leaf {explained.leaf}: {explained.predicted}"])


@with_options()
def predict(
    model: options.Model,
    data: options.Data,
    *,
    output: Annotated[
        str, output_option("A .csv, .tsv or .parquet to write, or - for CSV on stdout.", show_default=True)
    ] = "-",
    settings: PredictionOptions,
    id_name: options.Id = None,
    drop: options.Drop = [],  # noqa: B006 (typer makes a new list for every call)
    csv: CsvFormat,
    force: options.Force = False,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Predict every row of a table with the preprocessing of training.

    The table is read and written in blocks, so it may be larger than the memory. (A .npz is read whole.)

    Examples:
      crisptree predict iris.crisp new.csv -o classes.csv

      crisptree predict model.crisp new.parquet --proba --keep id -o out.parquet

      crisptree predict model.crisp new.csv --explain | head

      zcat new.csv.gz | crisptree predict model.crisp - > classes.csv
    """
    out = Output(as_json)
    if as_json and output == "-":
        raise typer.BadParameter("--json needs a file for the predictions: name one with -o.")
    path = None if output == "-" else options.check_output(Path(output), OUTPUT_SUFFIXES)
    estimator = load_table_model(model)
    settings.check(estimator)
    empty = settings.predict(estimator, np.zeros((0, estimator.n_features_in_), np.float32), jobs)
    n_rows = 0
    with stdin_as_file(data) as file, out.progress() as progress:
        source = open_for_model(estimator, file, csv, out)
        id_column = find_id_column(estimator, source, id_name)
        ids = [] if id_column is None else [id_column]
        copied = [*ids, *(name for name in source.columns(settings.keep, "--keep") if name != id_column)]
        encoder = make_encoder(estimator, source, out, missing=csv.missing, drop=drop, without=ids)
        if path is not None:
            options.check_free([path], force)
        if taken := sorted(set(copied) & set(empty)):
            raise TableError(f"--keep cannot copy {taken[0]!r}: a column of the output has that name. Rename it.")
        with _open_writer(path) as writer:
            for batch in source.batches({*encoder.names, *copied}):
                X = encoder.encode(batch, n_rows)
                writer.write({**{name: batch.column(name) for name in copied}, **settings.predict(estimator, X, jobs)})
                n_rows += len(X)
                progress.update(f"predicting {file.name}", source.fraction_read())
            if not n_rows:
                import pyarrow as pa

                writer.write({**{name: pa.array([], pa.string()) for name in copied}, **empty})
    out.note_all(encoder.notes())
    if path is not None:
        out.show(f"{format_count(n_rows, 'row')} → {path}")
    out.finish({"model": str(model), "data": str(data), "rows": n_rows, "output": output})


@contextmanager
def _open_writer(path: Path | None) -> Iterator[TableWriter]:
    if path is None:
        stdout: Any = _SanitizedTerminal(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer
        yield TableWriter(stdout, ".csv")
        sys.stdout.buffer.flush()
        return
    with atomic_write(path) as temporary, temporary.open("wb") as file:
        writer = TableWriter(file, path.suffix.lower())
        yield writer
        writer.close()


class _SanitizedTerminal(io.RawIOBase):
    """Write to a terminal with control characters escaped; pipes and files get the table unchanged."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.decoder = stream, codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.stream.write(sanitize(self.decoder.decode(bytes(data))).encode())
        return len(data)
