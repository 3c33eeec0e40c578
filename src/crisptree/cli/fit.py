"""``crisptree fit``: train a tree or a forest on a table and write a model file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import crisptree
from crisptree.cli import options
from crisptree.cli.evaluation import (
    DEFAULT_HOLDOUT,
    MIN_ROWS_FOR_HOLDOUT,
    Scores,
    diagnose,
    draw_held_out,
    name_baseline,
    score_fit,
    show_scores,
)
from crisptree.cli.options import TABLE, TRAINING, ColumnRoles, CsvFormat, option, output_option, with_options
from crisptree.cli.output import Output
from crisptree.cli.tables import stdin_as_file
from crisptree.cli.training import (
    DiskCache,
    LabelledTable,
    TrainingTable,
    open_disk_cache,
    open_training_table,
)
from crisptree.exceptions import format_count
from crisptree.parameters.estimators import MAX_TREES, READABLE, ClassifierParameters
from crisptree.pipeline.monitoring import ProgressDisplay


@dataclass
class FitOptions:
    """Flags of ``crisptree fit`` that are neither parameters of the estimator nor about the table's columns."""

    paper: Annotated[
        bool, option("--paper", help="The paper's settings; other options change them.", panel=TRAINING)
    ] = False
    readable: Annotated[
        bool,
        option(
            "--readable",
            help="A tree that people can read: 8 leaves, 3 terms per split, round numbers; other options change them.",
            panel=TRAINING,
        ),
    ] = False
    trees: Annotated[
        int | None, option("--trees", min=1, max=MAX_TREES, help="Train a forest of so many trees.", panel=TRAINING)
    ] = None
    validation: Annotated[
        Path | None, option(help="A table of validation rows, scored after every epoch.", panel=TABLE)
    ] = None
    holdout: Annotated[
        float | None,
        option(help="The fraction of rows to hold out and score at the end, by default 0.2; 0 for none.", panel=TABLE),
    ] = None
    refit: Annotated[bool, option("--refit", help="After scoring, train the saved model on all rows.", panel=TABLE)] = (
        False
    )
    stream: Annotated[
        bool | None,
        option(
            "--stream/--no-stream",
            help="Keep encoded rows on disk and train in batches; by default if they fill a quarter of the memory.",
            panel=TRAINING,
        ),
    ] = None
    checkpoint: Annotated[
        Path | None, option(help="A folder of checkpoints, from which an ended training resumes.", panel=TRAINING)
    ] = None
    checkpoint_every: Annotated[
        float, option(min=0, help="Seconds between two checkpoints.", panel=TRAINING, show_default=True)
    ] = 60.0
    resume: Annotated[bool, option("--resume", help="Resume from --checkpoint, if there is one.", panel=TRAINING)] = (
        False
    )

    def __post_init__(self) -> None:
        """Refuse values and combinations that make no sense for any table."""
        if self.holdout is not None and not 0 <= self.holdout < 1:
            raise typer.BadParameter(f"--holdout must be 0, for none, or lie between 0 and 1; got {self.holdout}.")
        if self.resume and self.checkpoint is None:
            raise typer.BadParameter("--resume needs the folder of a checkpoint: name it with --checkpoint.")
        if self.paper and self.readable:
            raise typer.BadParameter("--paper and --readable are settings of different trees; leave one out.")
        if self.trees is None:
            return
        for flag, value in {"--paper": self.paper, "--readable": self.readable}.items():
            if value:
                raise typer.BadParameter(f"{flag} is for one tree; leave out --trees.")

    def select_holdout(self, n_rows: int) -> float:
        """Return the fraction of rows to hold out: by default a fifth, none beside validation rows or of few rows."""
        fraction = self.holdout
        if fraction is None:
            is_kept_whole = self.validation is not None or n_rows < MIN_ROWS_FOR_HOLDOUT
            fraction = 0.0 if is_kept_whole else DEFAULT_HOLDOUT
        if self.refit and not fraction:
            raise typer.BadParameter("--refit follows the score of held-out rows: it needs --holdout.")
        return fraction

    def select_stream(self, parameters: dict[str, Any]) -> bool | None:
        """Decide whether rows train in batches: True, False, or None for only if memory is short."""
        excluded: dict[str, Any] = {"--trees": self.trees, "--validation": self.validation}
        excluded |= {"--paper": self.paper, "--readable": self.readable}
        excluded["--image-shape"] = "image_shape" in parameters
        conflicts = [flag for flag, value in excluded.items() if value]
        if self.stream and conflicts:
            raise typer.BadParameter(f"--stream trains one tree on batches of rows; leave out {conflicts[0]}.")
        return False if conflicts else self.stream


def can_stream(parameters: dict[str, Any]) -> bool:
    """Return True if these parameters work on batches: a fit that nobody asked to train in them must not fail."""
    from crisptree.pipeline.validation import violations

    values = crisptree.CrispTreeClassifier.from_flat(**parameters).training_parameters()
    return not any(violations(values, rows="batches", has_validation=False))


@dataclass(frozen=True)
class FitRun:
    """State that the fit and the refit of one command share."""

    rows: LabelledTable
    cache: DiskCache | None
    parameters: dict[str, Any]
    settings: FitOptions
    out: Output
    progress: ProgressDisplay

    def encode(self, fraction: float) -> TrainingTable:
        """Hold out a fraction of the rows and encode all of them."""
        held_out = draw_held_out(
            self.rows.y, fraction, self.parameters["random_state"], is_regression=self.rows.is_regression
        )
        return self.rows.encode(held_out, self.out, self.progress, self.cache)

    def fit(self, table: TrainingTable, name: str) -> tuple[Any, dict[str, Any], float]:
        """Train a model; return it, the rows to score it on, and the seconds. Checkpoints go to the folder ``name``."""
        settings, validation = self.settings, None
        if settings.validation is not None:
            validation = table.read_validation(settings.validation, self.rows.source, self.out)
        preset = "paper" if settings.paper else "readable" if settings.readable else None
        model = table.make_model(self.parameters, trees=settings.trees, preset=preset)
        more: dict[str, Any] = {"eval_set": None}
        if validation is not None:
            more["eval_set"] = (validation.X, table.decode_labels(validation.y))
        if settings.checkpoint is not None:
            more |= {"checkpoint": settings.checkpoint / name, "checkpoint_every": settings.checkpoint_every}
            more["resume"] = settings.resume
        seconds = table.fit(model, self.out, self.progress, **more)
        return model, {"validation": validation, "held out": table.held_out}, seconds

    def measure_readability(self, model: Any, table: TrainingTable) -> dict[str, Any]:
        """Score a readable tree, and one without its limits, on the held-out rows; nothing where there are none."""
        held_out = table.held_out
        if not self.settings.readable or held_out is None:
            return {}
        from crisptree.estimators.readability import score_tree

        limits = {name: value for name, value in self.parameters.items() if name not in READABLE}
        unrestricted = table.make_model(limits)
        table.fit(unrestricted, self.out, self.progress)
        y = table.decode_labels(held_out.y)
        return {
            name: score_tree(one, held_out.X, y) for name, one in (("readable", model), ("unrestricted", unrestricted))
        }

    def score(self, model: Any, table: TrainingTable, others: dict[str, Any]) -> Scores:
        """Score a model, and print notes about the scores."""
        scores = score_fit(model, table, others)
        self.out.note_all(diagnose(scores, name_baseline(table)))
        return scores


@with_options(ClassifierParameters)
def fit(
    tables: options.Tables,
    output: Annotated[Path, output_option("The model file to write (.crisp).")],
    *,
    columns: ColumnRoles,
    parameters: dict[str, Any],
    settings: FitOptions,
    id_name: options.Id = None,
    csv: CsvFormat,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Train a tree on a table and write it, with its preprocessing, to a model file.

    A target of text or of few whole numbers is a classification, one of other numbers a regression.

    Text columns become one feature per value; missing numbers are replaced by the mean of training.

    Examples:
      crisptree fit iris.csv --target species -o iris.crisp

      crisptree fit train.parquet -t label --drop id,date --depth 6 --refit -o model.crisp

      crisptree fit part-*.parquet -t label -o model.crisp

      crisptree fit folder/of/parquet -t label -o model.crisp

      crisptree fit kunden.csv -t churn --delimiter ';' --decimal , --encoding cp1252 -o model.crisp

      crisptree fit digits.npz --image-shape 8x8 --spatial-penalty 0.01 -o digits.crisp

      crisptree fit train.parquet -t label --trees 25 -o forest.crisp
    """
    options.check_output(output, (".crisp",))
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise typer.BadParameter("several processes train a tree from Python: start a script that calls fit.")
    data = tables[0] if len(tables) == 1 else tuple(tables)
    out, stream = Output(as_json), settings.select_stream(parameters)
    with (
        out.progress() as progress,
        stdin_as_file(data) as path,
        open_disk_cache(stream, partial(can_stream, parameters)) as cache,
    ):
        source = open_training_table(path, columns, csv, id=id_name, keep_constant="image_shape" in parameters)
        options.check_free([output], force)
        rows = source.read(progress, out)
        is_image = bool(source.table.image_shape)
        if is_image and stream:
            raise typer.BadParameter("--stream is for rows of a table; these rows are images. Leave it out.")
        run = FitRun(rows, None if is_image else cache, parameters, settings, out, progress)
        table = run.encode(settings.select_holdout(len(rows.y)))
        model, others, seconds = run.fit(table, "fit")
        scores = run.score(model, table, others)
        readability = run.measure_readability(model, table)
        if settings.refit:
            table = run.encode(0)
            model, _, more_seconds = run.fit(table, "refit")
            seconds += more_seconds
    if table.preprocessing.named:
        model = model.with_input_schema(feature_names=np.array(table.preprocessing.feature_names, dtype=object))
    model.save(output)
    _show(out, model, table, scores, seconds, output, readability if settings.readable else None)


def _show(
    out: Output,
    model: Any,
    table: TrainingTable,
    scores: Scores,
    seconds: float,
    output: Path,
    readability: dict[str, Any] | None,
) -> None:
    columns = [column.name for column in table.preprocessing.columns]
    n_rows, n_features, depth, n_leaves = len(table.y), table.X.shape[1], model.get_depth(), model.get_n_leaves()
    task = "regression" if table.is_regression else "classification"
    out.show(
        f"{format_count(n_rows, 'row')} · {format_count(len(columns), 'column')} · "
        f"{format_count(n_features, 'feature')} · "
        f"{task if table.is_regression else f'{len(model.classes_)} classes'} · trained in {seconds:.1f} s"
    )
    show_scores(out, scores, is_regression=table.is_regression, baseline=name_baseline(table))
    out.show(_describe_scoring(scores, n_rows))
    out.show(f"depth {depth} · {n_leaves:,} {'leaf' if n_leaves == 1 else 'leaves'} · {output}")
    document = {
        "model": str(output),
        "rows": n_rows,
        "columns": columns,
        "features": n_features,
        "left_out": table.preprocessing.left_out,
        "task": task,
        "depth": depth,
        "leaves": n_leaves,
        "seconds": seconds,
    }
    scored = {"scores": scores} if table.is_regression else {"classes": model.classes_.tolist(), "accuracy": scores}
    if readability is not None:
        from crisptree.estimators.readability import describe_held_out

        sentences = crisptree.export.sentences(model).splitlines()
        for sentence in sentences:
            out.show(sentence)
        for name, values in readability.items():
            out.show(f"{name} tree: {describe_held_out(values)}")
        scored |= {"sentences": sentences, "readability": readability}
    out.finish(document | scored)


def _describe_scoring(scores: Scores, n_rows: int) -> str:
    """Say which model the scores are of, and which one is saved."""
    if "held out" not in scores:
        few = f" of fewer than {MIN_ROWS_FOR_HOLDOUT}" if n_rows < MIN_ROWS_FOR_HOLDOUT else ""
        return f"No rows{few} were held out: the scores on new rows are unknown."
    held_out = format_count(scores["held out"]["rows"], "held-out row")
    if n_rows > scores["training"]["rows"]:
        return f"Scored without the {held_out}; the saved model was then trained on all {n_rows:,} rows."
    return f"The saved model is the scored one, trained without the {held_out}. --refit trains on all rows."
