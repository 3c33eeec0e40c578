"""Training tables: roles of columns, held-out rows, process groups, encoded rows in memory or on disk, and the fit."""

from __future__ import annotations

import math
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import typer

import crisptree
from crisptree.cli.options import ColumnRoles, CsvFormat
from crisptree.cli.output import Output
from crisptree.cli.tables import LabelledRows, find_labelled, read_target
from crisptree.data.batches import Batches
from crisptree.encoding.containers import EncodedInput
from crisptree.encoding.preprocessing import ColumnOptions, Preprocessing, profile_table
from crisptree.encoding.table_files import TableFile
from crisptree.encoding.target_column import (
    is_regression_target,
    parse_class_labels,
    read_labels,
    read_numbers,
    read_weights,
)
from crisptree.exceptions import TableError, format_names, suggest_name
from crisptree.pipeline.monitoring import ProgressDisplay, share_display

Rows = npt.NDArray[np.float32]

CONTAINER_MEMORY = Path("/sys/fs/cgroup/memory.max")

MAX_MEMORY_FRACTION = 0.25
"""Larger encoded tables go to disk: reading and holding out copy them once."""

MANY_NUMBERED_CLASSES = 30
"""From so many classes on that are whole numbers, a note asks whether they are quantities."""


def usable_memory() -> float:
    """Bytes of memory of this machine or of its container; infinite if unknown."""
    try:
        physical = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return math.inf
    with suppress(OSError, ValueError):  # there is no such file, or it says "max"
        return min(physical, float(int(CONTAINER_MEMORY.read_text())))
    return physical


class DiskCache:
    """A folder for encoded rows, used ``always`` or only where memory is short and the fit ``can_stream``.

    Encoded once, a table trains from disk many times as fast as from its text.
    """

    def __init__(self, folder: Path, *, always: bool, can_stream: Callable[[], bool]) -> None:
        self.folder, self.always, self.can_stream = folder, always, can_stream

    def is_needed(self, n_rows: int, n_features: int) -> bool:
        """True if so many rows belong on disk."""
        is_large = 4 * n_rows * n_features > MAX_MEMORY_FRACTION * usable_memory()
        return self.always or (is_large and self.can_stream())

    def write(self, blocks: Iterable[Rows], masks: Sequence[npt.NDArray[np.bool_]], n_features: int) -> list[Rows]:
        """Write the encoded rows of each mask and map them into memory.  (n, n_features) each"""
        # A refit writes beside the rows of the fit before it, which may still be mapped.
        folder, start = Path(tempfile.mkdtemp(dir=self.folder)), 0
        paths = [folder / f"rows-{number}" for number in range(len(masks))]
        try:
            with ExitStack() as stack:
                files = [stack.enter_context(path.open("wb")) for path in paths]
                for block in blocks:
                    for mask, file in zip(masks, files, strict=True):
                        block[mask[start : start + len(block)]].tofile(file)
                    start += len(block)
        except OSError as error:
            raise TableError(
                f"the encoded rows must go into a temporary folder, {self.folder.parent}, and cannot: {error}. "
                "Make room there, or name another one in the environment variable TMPDIR."
            ) from error
        return [_map_rows(path, n_features) for path in paths]


@contextmanager
def open_disk_cache(stream: bool | None, can_stream: Callable[[], bool]) -> Iterator[DiskCache | None]:
    """Create a temporary folder for encoded rows: always used for True, if memory is short for None, none for False.

    ``can_stream`` is asked only where memory is short.
    """
    if stream is False:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="crisptree-rows-", ignore_cleanup_errors=True) as folder:
        yield DiskCache(Path(folder), always=bool(stream), can_stream=can_stream)


def _map_rows(path: Path, n_features: int) -> Rows:
    if not path.stat().st_size:
        return np.zeros((0, n_features), dtype=np.float32)
    return np.memmap(path, dtype=np.float32, mode="r").reshape(-1, n_features)


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Encoded training rows; held-out rows had no part in anything, the preprocessing included.

    Regression has no ``classes``.
    """

    preprocessing: Preprocessing
    X: Rows
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64] | None
    classes: npt.NDArray[Any] | None
    held_out: LabelledRows | None
    image_shape: tuple[int, ...] | None
    on_disk: bool = False

    @property
    def is_regression(self) -> bool:
        """True if the target holds numbers."""
        return self.classes is None

    def encode_labels(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the class indices of labels; values in regression stay as they are."""
        return y if self.classes is None else np.searchsorted(self.classes, y)

    def decode_labels(self, y: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the labels of class indices; values in regression stay as they are."""
        return y if self.classes is None else self.classes[y]

    def make_model(self, parameters: dict[str, Any], *, trees: int | None = None, preset: str | None = None) -> Any:
        """Make an unfitted tree, or a forest of so many ``trees``; ``preset`` is "paper", "readable" or None."""
        parameters = {"image_shape": self.image_shape, **parameters}
        if self.classes is not None:
            parameters["class_weight"] = parse_class_weight(parameters.get("class_weight"), self.y)
        elif "class_weight" in parameters:
            raise typer.BadParameter(
                "--class-weight is for classification; the target holds numbers. --weights names sample weights."
            )
        if trees:
            forest = crisptree.CrispForestRegressor if self.is_regression else crisptree.CrispForestClassifier
            for name in forest.FIXED.keys() & parameters.keys():
                flag = crisptree.CrispTreeClassifier.PARAMETERS[name].flag
                raise typer.BadParameter(f"{flag} is for one tree: the mean of many trees is regularised already.")
            return forest.from_flat(n_estimators=trees, **parameters)
        tree: Any = crisptree.CrispTreeRegressor if self.is_regression else crisptree.CrispTreeClassifier
        return getattr(tree, preset or "from_flat")(**parameters)

    def fit(self, model: Any, out: Output, progress: ProgressDisplay, **more: Any) -> float:
        """Fit a model to the encoded rows; return the seconds it took."""
        rows: list[Any] = [self.X, self.y, self.weight]
        if self.on_disk:
            rows = [Batches.from_arrays(*rows)]
        rows[0] = EncodedInput(rows[0], self.preprocessing)
        return train(model, out, progress, *rows, **more)

    def read_validation(self, path: Path, source: TrainingSource, out: Output) -> LabelledRows:
        """Read another table with the preprocessing of this one."""
        from crisptree.encoding.table_encoder import RowEncoder

        columns, csv = self.preprocessing.columns, source.csv
        other = csv.open(path, len(columns))
        target = other.target if other.matrix and source.columns.target is None else self.preprocessing.target
        if target is None:
            raise TableError(f"{path} must hold the target of its rows; it has none.")
        labels, y = read_target(other, other.column(target, "--target"), csv.missing, self.classes)
        if not len(y) or (not self.is_regression and y.min() < 0):
            values = (len(y) and format_names(dict.fromkeys(labels[y < 0]), 5)) or "no rows"
            raise TableError(f"{path} must hold rows of the training classes; it has {values}. Leave such rows out.")
        encoder = RowEncoder(self.preprocessing, other, without=[target, *other.columns(source.options.drop, "--drop")])
        X = encoder.encode_all()
        out.note_all(encoder.notes())
        return LabelledRows(X, y)


@dataclass(frozen=True, eq=False)
class TrainingSource:
    """An open training table, whose columns have one role each."""

    table: TableFile
    csv: CsvFormat
    columns: ColumnRoles
    target: str
    weights: str | None
    options: ColumnOptions

    def read(self, progress: ProgressDisplay, out: Output) -> LabelledTable:
        """Read the target and the weights of all rows."""
        table, target, missing, task = self.table, self.target, self.csv.missing, self.columns.task
        progress.update(f"reading {table.path.name}", table.fraction_read())
        kept = find_labelled(table, target, missing, out) if self.columns.drop_missing_target else None
        labels = read_labels(table, target, missing, rows=kept)
        is_regression = task == "regression" or (task == "auto" and is_regression_target(labels))
        y = (
            read_numbers(table, target, missing, rows=kept)
            if is_regression
            else parse_class_labels(labels, table.path, target)
        )
        if not len(y):
            raise TableError(f"{table.path} must have rows; it has none.")
        n_classes = 0 if is_regression or y.dtype.kind not in "iu" else len(np.unique(y))
        if n_classes >= MANY_NUMBERED_CLASSES and task == "auto":
            out.note(
                f"the target {target!r} has {n_classes:,} different whole numbers, taken for classes. "
                "If they are quantities, such as rounded prices, add --task regression."
            )
        weight = None if self.weights is None else read_weights(table, self.weights, missing, rows=kept)
        if is_regression and task == "auto":
            out.note(f"the target {target!r} holds numbers, so this is a regression (--task regression).")
        return LabelledTable(self, y, weight, is_regression, np.ones(len(y), dtype=bool) if kept is None else kept)


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """A table whose target has been read; its rows are encoded once the held-out rows are chosen.

    ``kept`` marks the rows of the file that y and weights are of: those without a target may be left out.
    """

    source: TrainingSource
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64] | None
    is_regression: bool
    kept: npt.NDArray[np.bool_]

    def _of_all_rows(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Expand values of the kept rows to all rows of the file, 0 or False for the others."""
        expanded = np.zeros(len(self.kept), dtype=values.dtype)
        expanded[self.kept] = values
        return expanded

    def encode(
        self,
        held_out: npt.NDArray[np.bool_],
        out: Output,
        progress: ProgressDisplay,
        cache: DiskCache | None = None,
    ) -> TrainingTable:
        """Profile the columns of the training rows and encode all rows, on disk where a cache takes them."""
        table, options, target = self.source.table, self.source.options, self.source.target
        without = [name for name in (target, self.source.weights, options.id, *options.drop) if name is not None]
        training, scored = self._of_all_rows(~held_out), self._of_all_rows(held_out)

        def show_reading() -> None:
            progress.update(f"reading {table.path.name}", table.fraction_read())

        preprocessing = profile_table(
            *(table, table.features(without), options),
            target=target,
            rows=None if training.all() else training,
            weights=None if self.weight is None else self._of_all_rows(self.weight),
            on_batch=show_reading,
        )
        out.note_all(preprocessing.notes)
        from crisptree.encoding.table_encoder import RowEncoder  # which imports scikit-learn: what is refused is by now

        encoder = RowEncoder(preprocessing, table, without=without, fill=True, is_training=True)
        n_rows, width = len(self.y), preprocessing.n_features
        on_disk = cache is not None and cache.is_needed(n_rows, width)
        if cache is not None and on_disk:
            if not cache.always:
                size = f"{4 * n_rows * width / 1e9:.1f} GB"
                out.note(f"the encoded rows take {size}: they stay on disk and train in batches (--stream).")
            X, X_held_out = cache.write(encoder.encode_batches(show_reading), (training, scored), width)
        else:
            X = rows = encoder.encode_all(show_reading, None if self.kept.all() else self.kept)
            X_held_out = rows[:0]
            if held_out.any():
                X, X_held_out = rows[~held_out], rows[held_out]
        out.note_all(encoder.notes())
        y, weight = self.y[~held_out], None if self.weight is None else self.weight[~held_out]
        result = TrainingTable(
            *(preprocessing, X, y, weight, None if self.is_regression else np.unique(y), None, table.image_shape),
            on_disk=on_disk,
        )
        if not held_out.any():
            return result
        return replace(result, held_out=LabelledRows(X_held_out, result.encode_labels(self.y[held_out])))


def open_training_table(
    path: Path | Sequence[Path],
    columns: ColumnRoles,
    csv: CsvFormat,
    *,
    id: str | None = None,
    keep_constant: bool = False,
) -> TrainingSource:
    """Open a table and check that the flags name columns of it, each for one role; only its head is read."""
    table = csv.open(path)
    target = columns.target or table.target or ("y" if table.matrix else None)
    if target is None:
        raise typer.BadParameter(f"name the target column with --target; {table.path} has {format_names(table.names)}.")
    single: dict[str, str | None] = {"target": target, "weights": columns.weights, "id": id}
    several = {flag: getattr(columns, flag) for flag in ("drop", "categorical", "numeric", "dates")}
    for flag, value in {"id": id, **several}.items():
        if value and table.matrix:
            raise typer.BadParameter(f"--{flag} is for tables with named columns; those of {table.path} have none.")
    named = {flag: [] if name is None else [table.column(name, f"--{flag}")] for flag, name in single.items()}
    named |= {flag: table.columns(names, f"--{flag}") for flag, names in several.items()}
    roles: dict[str, str] = {}
    for flag, names in named.items():
        for name in names:
            if roles.setdefault(name, flag) != flag:
                raise typer.BadParameter(f"--{flag} {name} is also what --{roles[name]} names; a column has one role.")
    options = ColumnOptions(
        **{flag: named[flag] for flag in several},
        missing=csv.missing,
        max_categories=columns.max_categories,
        id=id,
        keep_constant=keep_constant or bool(table.matrix),
        fill=columns.handle_missing == "fill",
        min_frequency=columns.min_frequency,
    )
    return TrainingSource(table, csv, columns, target, columns.weights, options)


def train(model: Any, out: Output, progress: ProgressDisplay, *rows: Any, **more: Any) -> float:
    """Fit a model with a progress display; return the seconds it took."""
    started = time.monotonic()
    progress.update("training", None)
    with out.warnings_as_notes(), share_display(progress):
        model.fit(*rows, **more)
    return time.monotonic() - started


def parse_class_weight(entries: list[str] | None, y: npt.NDArray[Any]) -> dict[Any, float] | str | None:
    """Convert the entries CLASS=WEIGHT of the flag to the estimator's ``class_weight``."""
    if not entries:
        return None
    if entries in (["balanced"], ["balanced_subsample"]):
        return entries[0]
    labels = {str(label): label for label in np.unique(y).tolist()}
    weights = {}
    for entry in entries:
        label, _, weight = entry.rpartition("=")
        if not re.fullmatch(r"\d+\.?\d*|\.\d+", weight) or not label:
            raise typer.BadParameter(
                f"--class-weight must be balanced or CLASS=WEIGHT, such as yes=2.5; got {entry!r}."
            )
        if label not in labels:
            hint = suggest_name(label, labels)
            raise typer.BadParameter(
                f"--class-weight names the class {label!r}; the classes are {format_names(labels)}.{hint}"
            )
        weights[labels[label]] = float(weight)
    return weights
