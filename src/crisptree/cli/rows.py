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
from crisptree.cli.output import Output
from crisptree.cli.stdin import on_disk
from crisptree.tables.encoding import Encoder, unused
from crisptree.tables.errors import TableError, counted, listed
from crisptree.tables.labels import numbers_of, read_labels, read_numbers
from crisptree.tables.preprocessing import Preprocessing
from crisptree.tables.source import Source
from crisptree.view.model import without_encoder


@dataclass(frozen=True, eq=False)
class Labelled:
    """Encoded rows, and the numbers of their true classes: −1 for a class that the model does not know.

    For a model of numbers the truth are these.
    """

    X: npt.NDArray[np.float32]
    truth: npt.NDArray[Any]

    def known(self, classes: npt.NDArray[Any]) -> tuple[npt.NDArray[np.float32], npt.NDArray[Any]]:
        """The rows of classes that the model knows, and their labels."""
        known = self.truth >= 0
        return self.X[known], classes[self.truth[known]]


def predicts_numbers(model: Any) -> bool:
    """Whether a model is a regressor."""
    return isinstance(model, crisptree.CrispTreeRegressor)


def load_model(path: Path) -> Any:
    """A model of rows from its file, with a preprocessing; without names, for the rows it makes have none either."""
    model = crisptree.load(path)
    if not isinstance(model, crisptree.CrispTreeClassifier | crisptree.CrispTreeRegressor):
        raise crisptree.ModelFileError(
            f"{path} must hold a model of rows; it holds a {type(model).__name__}. Use crisptree segment for that."
        )
    if predicts_numbers(model) and model.n_outputs_ > 1:
        raise crisptree.ModelFileError(
            f"{path} must hold a model of one number; it has {model.n_outputs_} outputs. Use it from Python."
        )
    model = taking_rows(model)
    names = model.__dict__.pop("feature_names_in_", None)
    model.__dict__.setdefault("preprocessing_", Preprocessing.plain(model.tree_.n_features, names))
    return model


def taking_rows(model: Any) -> Any:
    """The model that takes rows of numbers, with its preprocessing beside it: here tables are encoded in pieces."""
    if "encoder_" not in model.__dict__:
        return model
    model = without_encoder(model)
    stored: Preprocessing = model.preprocessing_
    if stored.named:
        model.feature_names_in_ = np.array(stored.feature_names, dtype=object)
    return model


def encoder_of(
    model: Any, source: Source, out: Output, *, missing: Sequence[str], drop: Sequence[str], without: Sequence[str] = ()
) -> Encoder:
    """What turns the table into rows, by the model's preprocessing; ``without`` are columns that are no features."""
    preprocessing: Preprocessing = model.preprocessing_
    needed = {column.name for column in preprocessing.columns} if preprocessing.named else set()
    drop = source.columns(drop, "--drop")
    for name in drop:
        if name in needed:
            raise TableError(f"--drop cannot leave out {name!r}: the model was trained on that column.")
    encoder = Encoder(preprocessing, source, without=[*drop, *without], missing=missing)
    ignored = [name for name in unused(preprocessing, source) if name not in {*drop, *without}]
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
) -> Labelled:
    """``unknown`` tells what the command does with rows of other classes."""
    source = dialect.open(data, len(model.preprocessing_.columns))
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
    encoder = encoder_of(model, source, out, missing=missing, drop=drop, without=[name])
    with out.progress() as progress:
        X = encoder.rows(lambda: progress.update(f"reading {source.path.name}", source.fraction_read()))
    out.note_all(encoder.notes())
    if predicts_numbers(model):
        return Labelled(X, labels)
    truth = numbers_of(labels, model.classes_)
    others = labels[truth < 0]
    if len(others) == len(labels):
        raise TableError(
            f"{data} must have rows of the model's classes, {listed(model.classes_.tolist(), 5)}; in column {name!r} "
            f"it has {listed(dict.fromkeys(others), 5)}. Name the column of classes with --target."
        )
    if len(others):
        rows, named = counted(len(others), "row"), listed(dict.fromkeys(others), 5)
        out.note(f"{rows} of a class that the model does not know ({named}), {unknown}.")
    return Labelled(X, truth)


def accuracies(model: Any, X: npt.NDArray[np.float32], truth: npt.NDArray[np.int64]) -> dict[str, float]:
    """The share of rows right: hard, along one path, as the model predicts; and soft, over all leaves."""
    from sklearn.metrics import accuracy_score

    hard, soft = model.tree_.predictions(model.apply(X), X), model.soft_predict_proba(X).argmax(axis=1)
    return {name: float(accuracy_score(truth, found)) for name, found in (("hard", hard), ("soft", soft))}
