"""The rows that ``crisptree fit`` trains on, and the ones it is judged by."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import typer

import crisptree
from crisptree.cli.dialect import Dialect
from crisptree.cli.output import Output
from crisptree.cli.processes import ALONE, Processes
from crisptree.cli.spool import Spool
from crisptree.encoding.column_profile import ColumnOptions, profile_table
from crisptree.encoding.errors import TableError, listed, meant
from crisptree.encoding.preprocessing import Preprocessing, RowEncoder
from crisptree.encoding.table_files import TableFile
from crisptree.encoding.target_column import (
    encode_class_labels,
    is_regression_target,
    parse_class_labels,
    read_labels,
    read_numbers,
    read_weights,
)
from crisptree.estimators.progress import ProgressDisplay
from crisptree.holdout import hold_out
from crisptree.streams import Batches
from crisptree.targets import Gaussians

Rows = npt.NDArray[np.float32]
Scored = tuple[Rows, npt.NDArray[Any]]


@dataclass(frozen=True)
class Request:
    """What the user asks for."""

    data: Path
    target: str | None
    weights: str | None
    choices: ColumnOptions
    dialect: Dialect
    seed: int
    task: str = "auto"


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Encoded rows to train on; ``held_out`` rows had no part in anything, the preprocessing included.

    Where several processes train, X are the rows of this one, and y and weights those of all.
    Where y are numbers there are no classes, and rows are scored by their numbers.
    """

    preprocessing: Preprocessing
    X: Rows
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64] | None
    classes: npt.NDArray[Any]
    held_out: Scored | None
    image_shape: tuple[int, ...] | None
    has_numbers: bool = False
    on_disk: bool = False

    @property
    def truth(self) -> npt.NDArray[Any]:
        """Class numbers of the training rows, or their numbers."""
        return self.y if self.has_numbers else np.searchsorted(self.classes, self.y)

    def labels(self, truth: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """What class numbers mean; numbers mean themselves."""
        return truth if self.has_numbers else self.classes[truth]


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table whose classes are known, and whose rows are encoded when it is known which of them are held out."""

    source: TableFile
    target: str
    without: set[str]
    choices: ColumnOptions
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64] | None
    has_numbers: bool = False

    def part(
        self,
        held: npt.NDArray[np.bool_],
        out: Output,
        progress: ProgressDisplay,
        spool: Spool | None = None,
        crew: Processes = ALONE,
    ) -> TrainingTable:
        """What the columns of the other rows hold, then all rows, encoded by that; on disk where a spool takes them.

        Of several processes each keeps its own rows, and the first one those that are held out.
        """

        def read() -> None:
            progress.update(f"reading {self.source.path.name}", self.source.fraction_read())

        kept = ~held
        rows = kept if held.any() else None
        features = self.source.features(self.without)
        preprocessing, notes = profile_table(
            self.source,
            features,
            self.choices,
            target=self.target,
            rows=rows,
            weights=self.weight,
            on_batch=read,
        )
        out.note_all(notes)
        encoder = RowEncoder(preprocessing, self.source, without=self.without)
        width = preprocessing.n_features
        on_disk = spool is not None and spool.is_for(len(self.y), width)
        if spool is not None and on_disk:
            if not spool.always:
                size = f"{4 * len(self.y) * width / 1e9:.1f} GB"
                out.note(f"the encoded rows take {size}: they stay on disk and train in batches (--stream).")
            X, out_of_it = spool.written(encoder.encode_batches(read), held, width)
        else:
            own = np.zeros_like(held)
            own[crew.part(np.flatnonzero(kept))] = True
            wanted = own | held if crew.is_first else own
            rows_there = encoder.encode_all(read, None if wanted.all() else wanted)
            X, out_of_it = rows_there, rows_there[:0]
            if not np.array_equal(wanted, own):
                X, out_of_it = rows_there[own[wanted]], rows_there[held[wanted]]
        out.note_all(encoder.notes())
        classes = np.zeros(0) if self.has_numbers else np.unique(self.y[kept])
        weight = None if self.weight is None else self.weight[kept]
        scored = None
        if held.any() and crew.is_first:
            truth = self.y[held] if self.has_numbers else np.searchsorted(classes, self.y[held])
            scored = (out_of_it, truth)
        shape = self.source.image_shape
        return TrainingTable(preprocessing, X, self.y[kept], weight, classes, scored, shape, self.has_numbers, on_disk)


@dataclass(frozen=True, eq=False)
class Columns:
    """What the user says about the columns, held to the table that is there."""

    source: TableFile
    target: str
    weights: str | None
    choices: ColumnOptions
    task: str

    @property
    def without(self) -> set[str]:
        """Those that are no features."""
        others = {self.target, self.weights, self.choices.id, *self.choices.drop}
        return {name for name in others if name is not None}


def check_columns(request: Request) -> Columns:
    """The columns that a request names, each of them for one thing; nothing but the head of the table is read."""
    source = request.dialect.open(request.data)
    name = request.target or source.target or ("y" if source.matrix else None)
    if name is None:
        raise typer.BadParameter(f"name the column to learn with --target; {source.path} has {listed(source.names)}.")
    target = source.column(name, "--target")
    choices = _checked(source, request.choices)
    weights = None if request.weights is None else source.column(request.weights, "--weights")
    uses = [("--target", target), ("--weights", weights), ("--id", choices.id)]
    for flag in ("drop", "categorical", "numeric"):
        uses += [(f"--{flag}", name) for name in getattr(choices, flag)]
    taken: dict[str, str] = {}
    for flag, name in uses:
        if name is None:
            continue
        if taken.setdefault(name, flag) != flag:
            raise typer.BadParameter(f"{flag} {name} is also what {taken[name]} names; a column can be one of them.")
    return Columns(source, target, weights, choices, request.task)


def read_training(columns: Columns, progress: ProgressDisplay) -> LabelledTable:
    """The classes or numbers and the weights of all rows."""
    source, target, missing = columns.source, columns.target, columns.choices.missing
    progress.update(f"reading {source.path.name}", source.fraction_read())
    labels = read_labels(source, target, missing)
    has_numbers = columns.task == "regression" or (columns.task == "auto" and is_regression_target(labels))
    y = read_numbers(source, target, missing) if has_numbers else parse_class_labels(labels, source.path, target)
    if not len(y):
        raise TableError(f"{source.path} must have rows; it has none.")
    weight = None if columns.weights is None else read_weights(source, columns.weights, missing)
    return LabelledTable(source, target, columns.without, columns.choices, y, weight, has_numbers)


def says_task(rows: LabelledTable) -> list[str]:
    """What was recognised, where that is not classes."""
    if not rows.has_numbers:
        return []
    return [f"the target {rows.target!r} holds numbers, so numbers are predicted (--task regression)."]


def read_validation(path: Path, table: TrainingTable, request: Request, out: Output) -> Scored:
    """The rows of another table, encoded alike, and their class numbers."""
    columns = table.preprocessing.columns
    source = request.dialect.open(path, len(columns))
    target = source.target if source.matrix and request.target is None else table.preprocessing.target
    if target is None:
        raise TableError(f"{path} must hold the classes of its rows; it has none.")
    name = source.column(target, "--target")
    if table.has_numbers:
        truth: npt.NDArray[Any] = read_numbers(source, name, request.choices.missing)
        labels = truth
    else:
        labels = read_labels(source, name, request.choices.missing)
        truth = encode_class_labels(labels, table.classes)
    if not len(truth) or (not table.has_numbers and truth.min() < 0):
        unknown = (len(truth) and listed(dict.fromkeys(labels[truth < 0]), 5)) or "no rows"
        raise TableError(f"{path} must hold rows of the training's classes; it has {unknown}. Leave such rows out.")
    encoder = RowEncoder(table.preprocessing, source, without=[target, *source.columns(request.choices.drop, "--drop")])
    X = encoder.encode_all()
    out.note_all(encoder.notes())
    return X, truth


def train_on(
    table: TrainingTable, model: Any, out: Output, progress: ProgressDisplay, crew: Processes = ALONE, **more: Any
) -> float:
    """Fit a model on this process's part of the rows, which keeps how they were made; the seconds that it took."""
    model.__dict__["preprocessing_"] = table.preprocessing  # which features belong together
    rows = (table.X, crew.part(table.y), crew.part(table.weight))
    seconds = train(model, out, progress, *((Batches.from_arrays(*rows),) if table.on_disk else rows), **more)
    model.__dict__["preprocessing_"] = table.preprocessing  # a fit forgets what it does not learn
    return seconds


def train(model: Any, out: Output, progress: ProgressDisplay, *rows: Any, **more: Any) -> float:
    """Fit a model and show how far it is; the seconds that it took."""
    started = time.monotonic()
    progress.update("training", None)
    model.callbacks = [progress.show_epoch]
    with out.warnings_as_notes():
        model.fit(*rows, **more)
    model.callbacks = None
    return time.monotonic() - started


def estimator_of(table: TrainingTable, parameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The estimator for a table, and its parameters, with the weights of classes as it takes them."""
    chosen = {"image_shape": table.image_shape, **parameters}
    if not table.has_numbers:
        chosen["class_weight"] = class_weights(parameters.get("class_weight"), table.y)
        return crisptree.CrispTreeClassifier, chosen
    if "class_weight" in parameters:
        raise typer.BadParameter(
            "--class-weight is for classes; the target holds numbers. --weights names row weights."
        )
    return crisptree.CrispTreeRegressor, chosen


def class_weights(given: list[str] | None, y: npt.NDArray[Any]) -> dict[Any, float] | str | None:
    """What ``class_weight`` of the estimator takes."""
    if not given:
        return None
    if given == ["balanced"]:
        return "balanced"
    known = {str(label): label for label in np.unique(y).tolist()}
    result = {}
    for entry in given:
        label, _, weight = entry.rpartition("=")
        if not re.fullmatch(r"\d+\.?\d*|\.\d+", weight) or not label:
            raise typer.BadParameter(
                f"--class-weight must be balanced or CLASS=WEIGHT, such as yes=2.5; got {entry!r}."
            )
        if label not in known:
            there = f"the classes are {listed(known)}.{meant(label, known)}"
            raise typer.BadParameter(f"--class-weight names the class {label!r}; {there}")
        result[known[label]] = float(weight)
    return result


def held_rows(y: npt.NDArray[Any], share: float, seed: int, *, has_numbers: bool = False) -> npt.NDArray[np.bool_]:
    """Which rows to put aside; never all of a class.  (n,)"""
    held = np.zeros(len(y), dtype=bool)
    if share:
        strata = Gaussians(2).strata(y[:, None]) if has_numbers else y
        held[hold_out(strata, share, seed, keep_classes=not has_numbers)[1]] = True
        if not held.any():
            raise TableError(f"--holdout {share:g} must hold out at least one row; of {len(y)} rows it holds out none.")
    return held


def _checked(source: TableFile, choices: ColumnOptions) -> ColumnOptions:
    """What the user says about the columns, each of them by its own name."""
    named: dict[str, Any] = {}
    for name in ("drop", "categorical", "numeric", "id"):
        given = getattr(choices, name)
        if given and source.matrix:
            raise typer.BadParameter(f"--{name} is for tables with named columns; those of {source.path} have none.")
        named[name] = source.columns(given or [], f"--{name}") if name != "id" else given
    if choices.id is not None:
        named["id"] = source.column(choices.id, "--id")
    return replace(choices, **named, keep_constant=choices.keep_constant or bool(source.matrix))
