"""Tables for a trained model: files or stdin, encoded as in training, with their true labels."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import typer

import crisptree
from crisptree.cli.options import CsvFormat
from crisptree.cli.output import Output, with_flags
from crisptree.encoding.preprocessing import Preprocessing
from crisptree.encoding.table_files import TableFile
from crisptree.encoding.target_column import (
    encode_class_labels,
    find_labelled_rows,
    read_labels,
    read_numbers,
    read_texts,
)
from crisptree.exceptions import TableError, format_count, format_names
from crisptree.files import CHUNK_BYTES
from crisptree.inspection.model_view import strip_encoder
from crisptree.persistence.model_file import read

if TYPE_CHECKING:
    from crisptree.encoding.table_encoder import RowEncoder

SomePath = TypeVar("SomePath", bound=Path | Sequence[Path])

STDIN = Path("-")
MAGIC_BYTES = {
    b"PAR1": ".parquet",
    b"PK\x03\x04": ".npz",
    b"\x1f\x8b": ".csv.gz",
    b"BZh": ".csv.bz2",
    b"\xfd7zXZ\x00": ".csv.xz",
}
"""First bytes of a file, and its ending; a file that begins with none of these is text."""

LIBSVM = re.compile(rb"\S+([ \t]+\d+:[ \t]*[-+.\deE]+)+[ \t]*(\r?\n|#|$)")


@contextmanager
def stdin_as_file(data: SomePath) -> Iterator[SomePath]:
    """Copy stdin, if that is the table, to a temporary file: tables are read more than once. Errors say stdin."""
    if data != STDIN:
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="crisptree-") as folder:
        try:
            path = _copy_stdin(Path(folder))
        except OSError as error:
            error.filename = error.filename or "stdin"
            raise

        def rename(part: Any) -> Any:
            return part.replace(str(path), "stdin") if isinstance(part, str) else part

        try:
            yield cast(SomePath, path)
        except (ValueError, typer.BadParameter) as error:
            error.args = tuple(map(rename, error.args))
            if isinstance(error, typer.BadParameter):
                error.message = rename(error.message)
            raise


def _copy_stdin(folder: Path) -> Path:
    """Write stdin to a file with the ending of its format."""
    stream = sys.stdin.buffer
    if sys.stdin.isatty():
        print("Reading the table from the keyboard; end it with the end-of-file key.", file=sys.stderr)
    block = stream.read(CHUNK_BYTES)
    ending = next((ending for magic, ending in MAGIC_BYTES.items() if block.startswith(magic)), "")
    path = folder / f"stdin{ending or ('.libsvm' if LIBSVM.match(block) else '.csv')}"
    with path.open("wb") as file:
        file.write(block)
        shutil.copyfileobj(stream, file, CHUNK_BYTES)
    return path


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Encoded rows and their target: class indices, −1 for a class unknown to the model, or values in regression."""

    X: npt.NDArray[np.float32]
    y: npt.NDArray[Any]
    ids: npt.NDArray[Any] | None = None

    def of_known_classes(self, classes: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float32], npt.NDArray[Any]]:
        """Return the rows of classes that the model knows, and their labels."""
        is_known = self.y >= 0
        return self.X[is_known], classes[self.y[is_known]]


def is_regressor(model: Any) -> bool:
    """True for a regression tree or forest."""
    return isinstance(model, crisptree.CrispTreeRegressor | crisptree.CrispForestRegressor)


def is_forest(model: Any) -> bool:
    """True for a forest."""
    return hasattr(model, "forest_")


def is_image_model(model: Any) -> bool:
    """True for a model that predicts every pixel of an image."""
    return isinstance(model, crisptree.CrispSegmenter | crisptree.CrispPixelRegressor)


def get_classes(model: Any) -> npt.NDArray[Any] | None:
    """Return the classes of a model; None in regression."""
    return None if is_regressor(model) else model.classes_


def load_model(path: Path) -> Any:
    """Load a model; a file that holds none is refused before the modules of the estimators are imported."""
    file = read(path)
    from crisptree.estimators.loading import restore

    return restore(file)


def load_table_model(path: Path) -> Any:
    """Load a model that predicts rows, with a preprocessing and without feature names: encoded rows have none."""
    model = load_model(path)
    if is_image_model(model):
        raise crisptree.ModelFileError(
            f"{path} must hold a model of rows; it holds a {type(model).__name__}. Use crisptree segment for that."
        )
    if is_regressor(model) and model.n_outputs_ > 1:
        raise crisptree.ModelFileError(
            f"{path} must hold a model of one output; it has {model.n_outputs_} outputs. Use it from Python."
        )
    schema = model.input_schema
    preprocessing = schema.preprocessing or Preprocessing.plain(
        schema.n_features, schema.feature_names, None if schema.means is None else schema.means()
    )
    return strip_encoder(model).with_input_schema(encoded_by=preprocessing)


def detach_encoder(model: Any) -> Any:
    """Return the model that takes encoded rows: the commands encode tables in blocks."""
    if model.input_schema.encoder is None:
        return model
    preprocessing: Preprocessing = model.input_schema.preprocessing
    names = np.array(preprocessing.feature_names, dtype=object) if preprocessing.named else None
    return strip_encoder(model).with_input_schema(feature_names=names)


def open_for_model(model: Any, data: Path, csv: CsvFormat, out: Output) -> TableFile:
    """Open a table whose numbers are written as in training, unless the flags say otherwise."""
    preprocessing: Preprocessing = model.preprocessing_
    source = csv.open(data, len(preprocessing.columns), preprocessing.number_format)
    if source.number_format != preprocessing.number_format:
        how, before = (with_flags(style.describe()) for style in (source.number_format, preprocessing.number_format))
        out.note(f"numbers are read with {how}; the training table was written with {before}.")
    return source


def find_id_column(model: Any, source: TableFile, name: str | None) -> str | None:
    """Return the column that identifies the rows: the one of the flag, or that of training if the table has it."""
    if name is not None:
        return source.column(name, "--id")
    trained: str | None = model.preprocessing_.id
    return trained if trained in source.names else None


def make_encoder(
    model: Any,
    source: TableFile,
    out: Output,
    *,
    missing: Sequence[str],
    drop: Sequence[str],
    without: Sequence[str] = (),
) -> RowEncoder:
    """Make the encoder of a table by the model's preprocessing; ``without`` are columns that are not features."""
    from crisptree.encoding.table_encoder import RowEncoder, find_unknown_columns

    preprocessing: Preprocessing = model.preprocessing_
    needed = {column.input_name for column in preprocessing.columns} if preprocessing.named else set()
    drop = source.columns(drop, "--drop")
    for name in drop:
        if name in needed:
            raise TableError(f"--drop cannot leave out {name!r}: the model was trained on that column.")
    encoder = RowEncoder(preprocessing, source, without=[*drop, *without], missing=missing)
    ignored = [name for name in find_unknown_columns(preprocessing, source) if name not in {*drop, *without}]
    if ignored:
        out.note(f"columns that the model does not use: {format_names(ignored)}.")
    return encoder


def find_labelled(source: TableFile, name: str, missing: Sequence[str], out: Output) -> npt.NDArray[np.bool_]:
    """Return which rows have a value in the target column; a note counts the others.  (n,)"""
    is_labelled = find_labelled_rows(source, name, missing)
    if not is_labelled.all():
        out.note(f"{format_count(int((~is_labelled).sum()), 'row')} without a target, left out.")
    return is_labelled


def read_target(
    source: TableFile,
    name: str,
    missing: Sequence[str],
    classes: npt.NDArray[Any] | None,
    rows: npt.NDArray[np.bool_] | None = None,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Read the target as it is written and as class indices, −1 for unknown; in regression both are values.  (n,)"""
    if classes is None:
        values = read_numbers(source, name, missing, rows=rows)
        return values, values
    labels = read_labels(source, name, missing, rows=rows)
    return labels, encode_class_labels(labels, classes)


def read_labelled_rows(model: Any, data: Path, out: Output, **how: Any) -> LabelledRows:
    """Read all rows of a table, or of stdin, and their target; ``how`` are the arguments of ``_read_rows``."""
    with stdin_as_file(data) as path:
        return _read_rows(model, path, out, **how)


def _read_rows(
    model: Any,
    data: Path,
    out: Output,
    *,
    target: str | None,
    csv: CsvFormat,
    drop: Sequence[str] = (),
    unknown: str = "left out",
    id: str | None = None,
    drop_missing_target: bool = False,
) -> LabelledRows:
    """Read and encode a table; ``unknown`` says in a note what the command does with rows of unknown classes."""
    source, classes = open_for_model(model, data, csv, out), get_classes(model)
    trained = model.preprocessing_.target
    name = target or (trained if trained in source.names else source.target) or trained
    if name is None:
        raise TableError(f"name the target column of {data} with --target.")
    source.column(name, "--target")
    kept = find_labelled(source, name, csv.missing, out) if drop_missing_target else None
    labels, y = read_target(source, name, csv.missing, classes, kept)
    if not len(labels):
        raise TableError(f"{data} must have rows; it has none.")
    id_column = find_id_column(model, source, id)
    without = [name] if id_column is None else [name, id_column]
    encoder = make_encoder(model, source, out, missing=csv.missing, drop=drop, without=without)
    with out.progress() as progress:
        X = encoder.encode_all(lambda: progress.update(f"reading {source.path.name}", source.fraction_read()), kept)
    out.note_all(encoder.notes())
    ids = None if id_column is None else read_texts(source, id_column)
    ids = ids if ids is None or kept is None else ids[kept]
    if classes is not None and (y < 0).any():
        others = labels[y < 0]
        values = format_names(dict.fromkeys(others), 5)
        if len(others) == len(labels):
            raise TableError(
                f"{data} must have rows of the model's classes, {format_names(classes.tolist(), 5)}; in column "
                f"{name!r} it has {values}. Name the target column with --target."
            )
        out.note(f"{format_count(len(others), 'row')} of a class that the model does not know ({values}), {unknown}.")
    return LabelledRows(X, y, ids)
