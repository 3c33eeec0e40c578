"""``crisptree fit``: from a table to a model file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import crisptree
from crisptree.cli import numbers, options
from crisptree.cli.choices import with_choices
from crisptree.cli.dialect import Dialect, with_dialect
from crisptree.cli.forests import check_trees, forest_of
from crisptree.cli.interrupts import is_silent
from crisptree.cli.judging import FEWEST_TO_HOLD_OUT, Scores, majority_class, remarks, scores_of, share_to_hold_out
from crisptree.cli.options import TABLE, TRAINING, column_option, option, output_option
from crisptree.cli.output import Output, table_of
from crisptree.cli.parameters import with_parameters
from crisptree.cli.processes import started, together
from crisptree.cli.rows import said_classes
from crisptree.cli.spool import spooling
from crisptree.cli.stdin import on_disk
from crisptree.cli.training import (
    Request,
    Scored,
    TrainingTable,
    check_columns,
    estimator_of,
    held_rows,
    read_training,
    read_validation,
    says_task,
    train_on,
)
from crisptree.distributed import is_together
from crisptree.encoding.column_profile import ColumnOptions
from crisptree.encoding.errors import counted
from crisptree.estimators.parameters import ClassifierParameters
from crisptree.estimators.progress import ProgressDisplay


@with_parameters(ClassifierParameters)
@with_choices
@with_dialect
def fit(
    data: options.Data,
    output: Annotated[Path, output_option("The model file to write (.crisp).")],
    *,
    target: options.Target = None,
    task: options.Task = "auto",
    parameters: dict[str, Any],
    paper: Annotated[
        bool, option("--paper", help="The paper's protocol; other options change it.", panel=TRAINING)
    ] = False,
    trees: Annotated[
        str | None, option("--trees", help="A forest of so many trees instead of one; auto chooses.", panel=TRAINING)
    ] = None,
    validation: Annotated[
        Path | None, option(help="A table of validation rows, scored after every epoch.", panel=TABLE)
    ] = None,
    holdout: Annotated[
        float | None,
        option(help="A share of the rows to keep out and score at the end, by default 0.2; 0 for none.", panel=TABLE),
    ] = None,
    refit: Annotated[
        bool, option("--refit", help="After judging, train the model that is saved on all rows.", panel=TABLE)
    ] = False,
    weights: Annotated[str | None, column_option(help="A column of row weights.")] = None,
    id_name: options.Id = None,
    choices: ColumnOptions,
    stream: Annotated[
        bool | None,
        option(
            "--stream/--no-stream",
            help="Keep encoded rows on disk and train in batches; else only where they fill a quarter of the memory.",
            panel=TRAINING,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None, option(help="A folder from which a training that was killed can go on.", panel=TRAINING)
    ] = None,
    checkpoint_every: Annotated[
        float, option(min=0, help="Seconds between two writings of it.", panel=TRAINING, show_default=True)
    ] = 60.0,
    resume: Annotated[
        bool, option("--resume", help="Go on from --checkpoint, if there is one.", panel=TRAINING)
    ] = False,
    shards: Annotated[
        int, option(min=1, help="Parts of the rows, under torchrun.", panel=TRAINING, show_default=True)
    ] = 8,
    dialect: Dialect,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Train a tree on a table and write it, with its preprocessing, to a model file.

    A target of names or of few whole numbers is one of classes, one of other numbers is to be predicted as a number.

    Text columns become one feature per value; where a number is missing the mean of training stands in.

    Examples:
      crisptree fit iris.csv --target species -o iris.crisp

      crisptree fit train.parquet -t label --drop id,date --depth 6 --refit -o model.crisp

      crisptree fit kunden.csv -t churn --delimiter ';' --decimal , --encoding cp1252 -o model.crisp

      crisptree fit digits.npz --image-shape 8x8 --roughness 0.01 -o digits.crisp

      crisptree fit train.parquet -t label --trees 25 -o forest.crisp

      torchrun --nproc-per-node 4 -m crisptree fit train.parquet -t label -o model.crisp
    """
    options.check_output(output, (".crisp",))
    options.check_share(holdout)
    choices = replace(choices, id=id_name, keep_constant="image_shape" in parameters)
    out, seed = Output(as_json, silent=is_silent()), parameters["random_state"]

    if resume and checkpoint is None:
        raise typer.BadParameter("--resume is for going on from a checkpoint: it needs its folder, so --checkpoint.")
    check_trees(trees, paper)

    def trained(table: TrainingTable, judges: Scored | None, progress: ProgressDisplay, part: str) -> tuple[Any, float]:
        kind, chosen = estimator_of(table, parameters)
        model = forest_of(trees, table, chosen) if trees else kind.paper(**chosen) if paper else kind(**chosen)
        rows = None if judges is None else (crew.part(judges[0]), table.labels(crew.part(judges[1])))
        more: dict[str, Any] = {"validation": rows}
        if is_together() and not trees:
            more |= {"shards": shards}
        if checkpoint is not None:
            more |= {"checkpoint": checkpoint / part, "checkpoint_every": checkpoint_every, "resume": resume}
        return model, train_on(table, model, out, progress, crew, **more)

    not_in_batches = {"--trees": trees, "--validation": validation, "--paper": paper}
    not_in_batches |= {"--image-shape": "image_shape" in parameters, "torchrun": started() is not None}
    forbids = [flag for flag, given in not_in_batches.items() if given]
    if stream is None and not forbids:
        from crisptree.estimators.capabilities import violations

        # What was never asked to train in batches must not fail in them.
        given = crisptree.CrispTreeClassifier(**parameters).get_params(deep=False)
        stream = False if any(violations(given, rows="batches", has_validation=False)) else None
    if stream and forbids:
        raise typer.BadParameter(f"--stream trains one tree on batches of rows; leave {forbids[0]} away.")

    with (
        together(parameters.get("device", "auto"), data) as crew,
        out.progress() as progress,
        on_disk(data) as path,
        spooling(False if forbids else stream) as spool,
    ):
        request = Request(path, target, weights, choices, dialect, seed, task)
        columns = check_columns(request)
        options.check_free([output], force)
        rows = read_training(columns, progress)
        if task == "auto":
            out.note_all(says_task(rows))
        if rows.source.image_shape:
            if stream:
                raise typer.BadParameter("--stream is for rows of a table; the rows are images. Leave it away.")
            spool = None
        share = share_to_hold_out(holdout, len(rows.y), validation is not None)
        if refit and not share:
            raise typer.BadParameter("--refit is for after judging: it needs rows that are held out, so --holdout.")
        table = rows.part(held_rows(rows.y, share, seed, has_numbers=rows.has_numbers), out, progress, spool, crew)
        judges = None if validation is None else read_validation(validation, table, request, out)
        model, seconds = trained(table, judges, progress, "fit")
        others = {"validation": judges, "held out": table.held_out}
        if table.has_numbers:
            seen = crew.gathered(*numbers.said_numbers(model, table.X))
        else:
            seen = crew.gathered(*said_classes(model, table.X, table.classes))
        if not crew.is_first:
            scores: Scores = {}
        elif table.has_numbers:
            scores = numbers.scores_of(model, table, others, seen)
            out.note_all(numbers.remarks(scores))
        else:
            scores = scores_of(model, table, others, seen)
            out.note_all(remarks(scores, majority_class(table)))
        if refit:
            table = rows.part(held_rows(rows.y, 0, seed), out, progress, spool, crew)
            judges = None if validation is None else read_validation(validation, table, request, out)
            model, more = trained(table, judges, progress, "refit")
            seconds += more
    if not crew.is_first:
        return
    if table.preprocessing.named:
        model.feature_names_in_ = np.array(table.preprocessing.feature_names, dtype=object)
    model.save(output)
    _show(out, model, table, scores, seconds, output)


def _show(out: Output, model: Any, table: TrainingTable, scores: Scores, seconds: float, output: Path) -> None:
    columns, n_features = table.preprocessing.columns, table.X.shape[1]
    out.show(
        f"{counted(len(table.y), 'row')} · {counted(len(columns), 'column')} · {counted(n_features, 'feature')} · "
        f"{'numbers' if table.has_numbers else f'{len(model.classes_)} classes'} · trained in {seconds:.1f} s"
    )
    if table.has_numbers:
        numbers.show_scores(out, scores)
    else:
        _show_accuracies(out, table, scores)
    out.show(_what_was_judged(scores, len(table.y)))
    n_leaves = model.get_n_leaves()
    out.show(f"depth {model.get_depth()} · {n_leaves:,} {'leaf' if n_leaves == 1 else 'leaves'} · {output}")
    names = [column.name for column in columns]
    document = {"model": str(output), "rows": len(table.y), "columns": names, "features": n_features}
    judged = {"scores": scores} if table.has_numbers else {"classes": model.classes_.tolist(), "accuracy": scores}
    document |= {
        "left_out": table.preprocessing.left_out,
        "task": "regression" if table.has_numbers else "classification",
    }
    document |= {"depth": model.get_depth(), "leaves": model.get_n_leaves(), "seconds": seconds, **judged}
    out.finish(document)


def _show_accuracies(out: Output, table: TrainingTable, scores: Scores) -> None:
    names = ("hard", "soft", "majority")
    shown = [
        [name, f"{score['rows']:,}", *(f"{score[number]:.4f}" for number in names)] for name, score in scores.items()
    ]
    majority = f"majority: always {str(majority_class(table))!r}"
    out.show(f"hard: one path per row, as it predicts · soft: all leaves, for comparison · {majority}")
    out.show(table_of(("accuracy on", "rows", *names), shown))


def _what_was_judged(scores: Scores, n_rows: int) -> str:
    """Which model the scores are of, and which one is saved."""
    if "held out" not in scores:
        few = f" of fewer than {FEWEST_TO_HOLD_OUT}" if n_rows < FEWEST_TO_HOLD_OUT else ""
        return f"No rows{few} were held out: how well the model does on others is not known."
    held = counted(scores["held out"]["rows"], "row")
    if n_rows > scores["training"]["rows"]:
        return f"Judged without the {held} held out; the model that is saved was then trained on all {n_rows:,} rows."
    return f"The model that is saved is the one judged: it never saw the {held} held out. --refit trains on all rows."
