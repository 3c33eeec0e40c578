"""``crisptree predict``: a class for every row of a table of any size, a piece at a time."""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import typer

from crisptree.cli import options
from crisptree.cli.dialect import Dialect, with_dialect
from crisptree.cli.forests import by_all_trees
from crisptree.cli.options import OUTPUT, option, output_option
from crisptree.cli.output import Output
from crisptree.cli.rows import encoder_of, id_column, load_model, open_like_training, predicts_numbers
from crisptree.cli.stdin import on_disk
from crisptree.encoding.errors import TableError, counted
from crisptree.encoding.table_files import DELIMITERS, WRITERS, DelimitedWriter, TableWriter
from crisptree.inference import route_rows
from crisptree.persistence.writing import written_whole
from crisptree.sanitization import sanitize


@with_dialect
def predict(
    model: options.Model,
    data: options.Data,
    *,
    output: Annotated[
        str, output_option("A .csv, .tsv, .parquet or .npz to write, or - for CSV on stdout.", show_default=True)
    ] = "-",
    proba: Annotated[bool, option("--proba", help="Add a column of probabilities per class.", panel=OUTPUT)] = False,
    interval: Annotated[
        float | None,
        option("--interval", help="For numbers: add where they lie with this probability, such as 0.9.", panel=OUTPUT),
    ] = None,
    leaf: Annotated[bool, option("--leaf", help="Add the number of the leaf.", panel=OUTPUT)] = False,
    explain: Annotated[
        bool, option("--explain", help="Add the path in words, what pushed the row where.", panel=OUTPUT)
    ] = False,
    id_name: options.Id = None,
    keep: Annotated[list[str], option(help="Columns of the table to copy: a,b. May be repeated.", panel=OUTPUT)] = [],  # noqa: B006 (typer makes a new list for every call)
    csv_guard: Annotated[
        bool,
        option("--csv-guard", help="In CSV, write ' before text that begins with = + - or @.", panel=OUTPUT),
    ] = False,
    missing: options.Missing = [],  # noqa: B006
    drop: options.Drop = [],  # noqa: B006
    dialect: Dialect,
    force: options.Force = False,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Predict the class, or the number, of every row, with the preprocessing of training.

    The table is read and written in pieces, so it may be larger than the memory. (A .npz is read and written whole.)

    Examples:
      crisptree predict iris.crisp new.csv -o classes.csv

      crisptree predict model.crisp new.parquet --proba --keep id -o out.parquet

      crisptree predict model.crisp new.csv --explain | head

      zcat new.csv.gz | crisptree predict model.crisp - > classes.csv
    """
    out = Output(as_json)
    if as_json and output == "-":
        raise typer.BadParameter("--json needs a file for the predictions: name one with -o.")
    path = None if output == "-" else options.check_output(Path(output), tuple(WRITERS))
    if csv_guard and path is not None and path.suffix.lower() not in DELIMITERS:
        raise typer.BadParameter(f"--csv-guard is for {' and '.join(DELIMITERS)}; got -o {str(path)!r}.")
    estimator = load_model(model)
    if proba and predicts_numbers(estimator):
        raise typer.BadParameter("--proba is for classes; the model predicts numbers. --interval says where they lie.")
    if interval is not None and not predicts_numbers(estimator):
        raise typer.BadParameter("--interval is for numbers; the model predicts classes. --proba says how sure it is.")
    if interval is not None and not 0 < interval < 1:
        raise typer.BadParameter(f"--interval must lie between 0 and 1; got {interval}.")

    def predicted(X: npt.NDArray[np.float32]) -> dict[str, Any]:
        """The columns that the user asked for."""
        if hasattr(estimator, "forest_"):
            return by_all_trees(estimator, X, jobs, proba=proba, leaf=leaf, explain=explain, interval=interval)
        leaves = route_rows(estimator.tree_, X, jobs)
        answer = _numbers if predicts_numbers(estimator) else _classes
        columns = answer(estimator, estimator.tree_.leaf_values(leaves, X), proba, interval)
        if leaf:
            columns["leaf"] = leaves
        if explain:
            from crisptree.cli.path_text import path_text

            columns["path"] = pa.array([path_text(estimator, row, estimator.preprocessing_) for row in X], pa.string())
        return columns

    empty = predicted(np.zeros((0, estimator.n_features_in_), np.float32))
    n_rows = 0
    with on_disk(data) as file, out.progress() as progress:
        source = open_like_training(estimator, file, dialect, out)
        named_by = id_column(estimator, source, id_name)
        copied = source.columns(keep, "--keep")
        if named_by is not None:
            copied = [named_by, *(name for name in copied if name != named_by)]
        encoder = encoder_of(estimator, source, out, missing=missing, drop=drop, without=copied[: named_by is not None])
        if path is not None:
            options.check_free([path], force)
        if taken := sorted(set(copied) & set(empty)):
            raise TableError(f"--keep cannot copy {taken[0]!r}: a column of the output has that name. Rename it.")
        with _writer(path, csv_guard) as writer:
            for batch in source.batches({*encoder.names, *copied}):
                X = encoder.encode(batch, n_rows)
                writer.write({**{name: batch.column(name) for name in copied}, **predicted(X)})
                n_rows += len(X)
                progress.update(f"predicting {file.name}", source.fraction_read())
            if not n_rows:
                writer.write({**{name: pa.array([], pa.string()) for name in copied}, **empty})
    out.note_all(encoder.notes())
    if path is not None:
        out.show(f"{counted(n_rows, 'row')} → {path}")
    out.finish({"model": str(model), "data": str(data), "rows": n_rows, "output": output})


def _classes(model: Any, table: npt.NDArray[np.float64], proba: bool, interval: float | None) -> dict[str, Any]:
    classes, numbers = model.classes_, model.tree_.meaning.answers(table)
    columns: dict[str, Any] = {"prediction": pa.array(classes[numbers].tolist(), _type(classes))}
    if proba:
        columns |= {f"probability of {label}": table[:, number] for number, label in enumerate(classes.tolist())}
    return columns


def _numbers(model: Any, table: npt.NDArray[np.float64], proba: bool, interval: float | None) -> dict[str, Any]:
    mean, variance = table.T
    if interval is None:
        return {"prediction": mean}
    reach = NormalDist().inv_cdf(0.5 + interval / 2) * np.sqrt(variance)
    return {"prediction": mean, "low": mean - reach, "high": mean + reach}


def _type(classes: npt.NDArray[Any]) -> pa.DataType | None:
    return pa.string() if classes.dtype.kind in "OUT" else pa.from_numpy_dtype(classes.dtype)


@contextmanager
def _writer(path: Path | None, guard: bool) -> Iterator[TableWriter]:
    if path is None:
        stdout: Any = _Terminal(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer
        yield DelimitedWriter(stdout, guard)
        sys.stdout.buffer.flush()
        return
    with written_whole(path) as temporary, temporary.open("wb") as file:
        writer = WRITERS[path.suffix.lower()](file, guard)
        yield writer
        writer.close()


class _Terminal(io.RawIOBase):
    """A terminal that is shown what is in a table, and obeys none of it; a pipe or a file gets the table as it is."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.decoder = stream, codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.stream.write(sanitize(self.decoder.decode(bytes(data))).encode())
        return len(data)
