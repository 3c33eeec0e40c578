"""A model file and a table, brought together: the rows as the model takes them, and their true classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import crisptree
from crisptree.cli.dialect import Dialect
from crisptree.cli.output import Output, with_flags
from crisptree.cli.stdin import on_disk
from crisptree.encoding.errors import TableError, counted, listed
from crisptree.encoding.preprocessing import Preprocessing, RowEncoder, find_unknown_columns
from crisptree.encoding.table_files import TableFile
from crisptree.encoding.target_column import encode_class_labels, read_labels, read_numbers, read_texts
from crisptree.inspection.model_view import strip_encoder
from crisptree.targets.labels import class_numbers

ROWS_AT_ONCE = 65_536
"""Rows may be on disk, and are more than the memory holds."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Encoded rows, and the numbers of their true classes: −1 for a class that the model does not know.

    For a model of numbers the truth are these. ``ids`` are what a column calls the rows, where there is one.
    """

    X: npt.NDArray[np.float32]
    truth: npt.NDArray[Any]
    ids: npt.NDArray[Any] | None = None

    def known(self, classes: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float32], npt.NDArray[Any]]:
        """The rows of classes that the model knows, and their labels."""
        known = self.truth >= 0
        return self.X[known], classes[self.truth[known]]


def predicts_numbers(model: Any) -> bool:
    """Whether a model is a regressor."""
    return isinstance(model, crisptree.CrispTreeRegressor | crisptree.CrispForestRegressor)


def takes_images(model: Any) -> bool:
    """Whether a model answers for every pixel of an image."""
    return isinstance(model, crisptree.CrispSegmenter | crisptree.CrispPixelRegressor)


def load_model(path: Path) -> Any:
    """A model of rows from its file, with a preprocessing; without names, for the rows it makes have none either."""
    model = crisptree.load(path)
    if takes_images(model):
        raise crisptree.ModelFileError(
            f"{path} must hold a model of rows; it holds a {type(model).__name__}. Use crisptree segment for that."
        )
    if predicts_numbers(model) and model.n_outputs_ > 1:
        raise crisptree.ModelFileError(
            f"{path} must hold a model of one number; it has {model.n_outputs_} outputs. Use it from Python."
        )
    model = taking_rows(model)
    names = model.__dict__.pop("feature_names_in_", None)
    model.__dict__.setdefault("preprocessing_", Preprocessing.plain(model.n_features_in_, names))
    return model


def taking_rows(model: Any) -> Any:
    """The model that takes rows of numbers, with its preprocessing beside it: here tables are encoded in pieces."""
    if "encoder_" not in model.__dict__:
        return model
    model = strip_encoder(model)
    stored: Preprocessing = model.preprocessing_
    if stored.named:
        model.feature_names_in_ = np.array(stored.feature_names, dtype=object)
    return model


def open_like_training(model: Any, data: Path, dialect: Dialect, out: Output) -> TableFile:
    """A table for a model: its numbers are written as in training, unless the user says otherwise."""
    stored: Preprocessing = model.preprocessing_
    source = dialect.open(data, len(stored.columns), stored.number_format)
    if source.number_format != stored.number_format:
        how, before = (with_flags(written.describe()) for written in (source.number_format, stored.number_format))
        out.note(f"numbers are read with {how}; the table of training was written with {before}.")
    return source


def id_column(model: Any, source: TableFile, given: str | None) -> str | None:
    """The column that names the rows: the given one, or that of training where it is there."""
    if given is not None:
        return source.column(given, "--id")
    known: str | None = model.preprocessing_.id
    return known if known in source.names else None


def encoder_of(
    model: Any,
    source: TableFile,
    out: Output,
    *,
    missing: Sequence[str],
    drop: Sequence[str],
    without: Sequence[str] = (),
) -> RowEncoder:
    """What turns the table into rows, by the model's preprocessing; ``without`` are columns that are no features."""
    preprocessing: Preprocessing = model.preprocessing_
    needed = {column.name for column in preprocessing.columns} if preprocessing.named else set()
    drop = source.columns(drop, "--drop")
    for name in drop:
        if name in needed:
            raise TableError(f"--drop cannot leave out {name!r}: the model was trained on that column.")
    encoder = RowEncoder(preprocessing, source, without=[*drop, *without], missing=missing)
    ignored = [name for name in find_unknown_columns(preprocessing, source) if name not in {*drop, *without}]
    if ignored:
        out.note(f"columns that the model does not use: {listed(ignored)}.")
    return encoder


def read_labelled(model: Any, data: Path, out: Output, **how: Any) -> Labelled:
    """All rows of a table, or of stdin, and their classes."""
    with on_disk(data) as path:
        return _read_labelled(model, path, out, **how)


def _read_labelled(
    model: Any,
    data: Path,
    out: Output,
    *,
    target: str | None,
    dialect: Dialect,
    missing: Sequence[str],
    drop: Sequence[str] = (),
    unknown: str = "left out",
    id: str | None = None,
) -> Labelled:
    """``unknown`` tells what the command does with rows of other classes."""
    source = open_like_training(model, data, dialect, out)
    learned = model.preprocessing_.target
    name = target or (learned if learned in source.names else source.target) or learned
    if name is None:
        what = "numbers" if predicts_numbers(model) else "classes"
        raise TableError(f"name the column of {data} that holds the {what} with --target.")
    source.column(name, "--target")
    if predicts_numbers(model):
        labels: npt.NDArray[Any] = read_numbers(source, name, missing)
    else:
        labels = read_labels(source, name, missing)
    if not len(labels):
        raise TableError(f"{data} must have rows; it has none.")
    named_by = id_column(model, source, id)
    without = [name] if named_by is None else [name, named_by]
    encoder = encoder_of(model, source, out, missing=missing, drop=drop, without=without)
    with out.progress() as progress:
        X = encoder.encode_all(lambda: progress.update(f"reading {source.path.name}", source.fraction_read()))
    out.note_all(encoder.notes())
    ids = None if named_by is None else read_texts(source, named_by)
    if predicts_numbers(model):
        return Labelled(X, labels, ids)
    truth = encode_class_labels(labels, model.classes_)
    others = labels[truth < 0]
    if len(others) == len(labels):
        raise TableError(
            f"{data} must have rows of the model's classes, {listed(model.classes_.tolist(), 5)}; in column {name!r} "
            f"it has {listed(dict.fromkeys(others), 5)}. Name the column of classes with --target."
        )
    if len(others):
        rows, named = counted(len(others), "row"), listed(dict.fromkeys(others), 5)
        out.note(f"{rows} of a class that the model does not know ({named}), {unknown}.")
    return Labelled(X, truth, ids)


def accuracies(
    model: Any, X: npt.NDArray[np.float32], truth: npt.NDArray[np.int64], classes: npt.NDArray[Any] | None = None
) -> dict[str, float]:
    """The share of rows right: hard, along one path, as the model predicts; and soft, over all leaves.

    ``classes`` are those that the truth numbers, where the model may know fewer: a class of no weight is none of its.
    """
    classes = model.classes_ if classes is None else classes
    return shares_right(truth, *said_classes(model, X, classes))


def said_classes(
    model: Any, X: npt.NDArray[np.float32], classes: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The numbers of the classes that a model says, hard and soft, a few rows at a time.  Two (n,)"""
    hard, soft = (np.empty(len(X), dtype=np.int64) for _ in range(2))
    for start in range(0, len(X), ROWS_AT_ONCE):
        some = slice(start, start + ROWS_AT_ONCE)
        hard[some] = class_numbers(model.predict(X[some]), classes)
        soft[some] = class_numbers(model.classes_[model.soft_predict_proba(X[some]).argmax(axis=1)], classes)
    return hard, soft


def shares_right(
    truth: npt.NDArray[np.int64], hard: npt.NDArray[np.int64], soft: npt.NDArray[np.int64]
) -> dict[str, float]:
    """Of what was said."""
    from sklearn.metrics import accuracy_score

    return {name: float(accuracy_score(truth, found)) for name, found in (("hard", hard), ("soft", soft))}
