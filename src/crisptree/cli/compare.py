"""``crisptree compare``: a tree beside a dummy, a linear model, and scikit-learn's tree and forest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from crisptree.cli import options
from crisptree.cli.choices import with_choices
from crisptree.cli.dialect import Dialect, with_dialect
from crisptree.cli.judging import HELD_OUT
from crisptree.cli.options import TABLE, column_option, option
from crisptree.cli.output import Output, table_of
from crisptree.cli.parameters import with_parameters
from crisptree.cli.rivals import (
    LEGEND,
    NUMBER_LEGEND,
    OURS,
    REPEATS,
    Measured,
    Settings,
    fit_rival,
    measured,
    number_rivals,
    rivals,
)
from crisptree.cli.stdin import on_disk
from crisptree.cli.training import (
    LabelledTable,
    Request,
    TrainingTable,
    check_columns,
    estimator_of,
    held_rows,
    read_training,
    says_task,
    train_on,
)
from crisptree.encoding.column_profile import ColumnOptions
from crisptree.encoding.errors import TableError, counted
from crisptree.estimators.parameters import ClassifierParameters
from crisptree.estimators.progress import ProgressDisplay

Results = dict[str, list[Measured]]

HEADS = {"accuracy": "accuracy", "log_loss": "log loss", "r2": "R²", "rmse": "RMSE"}


@with_parameters(ClassifierParameters)
@with_choices
@with_dialect
def compare(
    data: options.Data,
    *,
    target: options.Target = None,
    task: options.Task = "auto",
    parameters: dict[str, Any],
    holdout: Annotated[float, option(help="The share of the rows to judge by.", panel=TABLE, show_default=True)] = (
        HELD_OUT
    ),
    folds: Annotated[
        int | None, option(min=2, help="Judge by every row once, in so many folds, instead.", panel=TABLE)
    ] = None,
    weights: Annotated[str | None, column_option(help="A column of row weights.")] = None,
    choices: ColumnOptions,
    dialect: Dialect,
    as_json: options.Json = False,
) -> None:
    """Fit a tree and others to the same rows, and judge all of them by the same others.

    The others are scikit-learn's with its defaults, on the same encoded columns; the options of the tree are those of
    crisptree fit. Nothing is saved.

    Examples:
      crisptree compare iris.csv --target species

      crisptree compare train.parquet -t label --drop id,date --depth 6 --folds 5
    """
    if not 0 < holdout < 1:
        raise typer.BadParameter(f"--holdout must lie between 0 and 1; got {holdout}.")
    out, seed = Output(as_json), parameters["random_state"]
    choices = replace(choices, keep_constant="image_shape" in parameters)
    results: Results = {}
    n_judged = 0
    with out.progress() as progress, on_disk(data) as path:
        request = Request(path, target, weights, choices, dialect, seed, task)
        rows = read_training(check_columns(request), progress)
        if task == "auto":
            out.note_all(says_task(rows))
        for held in _parts(rows, holdout, folds, seed):
            table = rows.part(held, out, progress)
            n_judged += int(held.sum())
            for name, found in _one_part(table, parameters, out, progress):
                results.setdefault(name, []).append(found)
    document = {
        "rows": len(rows.y),
        "judged": n_judged,
        "folds": folds,
        "features": table.X.shape[1],
        "task": "regression" if rows.has_numbers else "classification",
        "models": {name: _summary(found) for name, found in results.items()},
    }
    _show(out, document)
    out.finish(document)


def _parts(rows: LabelledTable, share: float, folds: int | None, seed: int) -> Iterator[npt.NDArray[np.bool_]]:
    """Which rows judge: once a share of them, or every row in one of the folds.  (n,)"""
    if folds is None:
        yield held_rows(rows.y, share, seed, has_numbers=rows.has_numbers)
        return
    from sklearn.model_selection import KFold, StratifiedKFold

    y = rows.y
    if rows.has_numbers:
        if len(y) < folds:
            raise TableError(f"--folds {folds} needs as many rows; there are {len(y)}.")
        for _, places in KFold(folds, shuffle=True, random_state=seed).split(y):
            yield np.isin(np.arange(len(y)), places)
        return
    labels, counts = np.unique(y, return_counts=True)
    if counts.min() < folds:
        rare = str(labels[counts.argmin()])
        raise TableError(f"--folds {folds} needs as many rows of every class; class {rare!r} has {counts.min()}.")
    for _, places in StratifiedKFold(folds, shuffle=True, random_state=seed).split(y, y):
        held = np.zeros(len(y), dtype=bool)
        held[places] = True
        yield held


def _one_part(
    table: TrainingTable, parameters: dict[str, Any], out: Output, progress: ProgressDisplay
) -> Iterator[tuple[str, Measured]]:
    kind, values = estimator_of(table, parameters)
    model, weights = kind(**values), values.get("class_weight")
    yield OURS, measured(model, table, lambda model: _fit_ours(model, table, out, progress))
    chosen = Settings(parameters["random_state"], parameters.get("n_jobs"), weights, model.get_n_leaves())
    for name, make in (number_rivals() if table.has_numbers else rivals()).items():
        progress.update(f"training {name}", None)
        with out.warnings_as_notes():
            yield name, measured(make(chosen), table, lambda rival: fit_rival(rival, table))


def _fit_ours(model: Any, table: TrainingTable, out: Output, progress: ProgressDisplay) -> None:
    train_on(table, model, out, progress)


def _summary(found: list[Measured]) -> dict[str, Any]:
    """Means over the folds; None for what is infinite, which JSON cannot say."""

    def mean(values: list[Any]) -> float | None:
        return None if None in values or not np.isfinite(values).all() else float(np.mean(values))

    first = next(iter(found[0].good))
    spread = float(np.std([one.good[first] for one in found], ddof=1)) if len(found) > 1 else None
    good = {name: mean([one.good[name] for one in found]) for name in found[0].good}
    names = ("fit_seconds", "predict_seconds", "leaves", "weights")
    return good | {name: mean([getattr(one, name) for one in found]) for name in names} | {f"{first}_spread": spread}


def _show(out: Output, document: dict[str, Any]) -> None:
    models, folds = document["models"], document["folds"]
    ours = models[OURS]
    by = f"{counted(document['judged'], 'row')} held out" if folds is None else f"every row once, in {folds} folds"
    out.show(f"{counted(document['rows'], 'row')} · {counted(document['features'], 'feature')} · judged by {by}")
    first, second = ("r2", "rmse") if document["task"] == "regression" else ("accuracy", "log_loss")
    lines = []
    for name, found in models.items():
        spread = found[f"{first}_spread"]
        times = [_ratio(found[kind], ours[kind]) for kind in ("fit_seconds", "predict_seconds")]
        digits = ".4g" if second == "rmse" else ".3f"
        loss = "infinite" if found[second] is None else format(found[second], digits)
        leaves = "–" if found["leaves"] is None else f"{found['leaves']:,.0f}"
        right = "–" if found[first] is None else f"{found[first]:.4f}"
        right = right if spread is None or found[first] is None else f"{found[first]:.3f} ± {spread:.3f}"
        lines.append([name, right, loss, *times, leaves, f"{found['weights']:,.0f}"])
    out.show(table_of(("model", HEADS[first], HEADS[second], "fit", "predict", "leaves", "weights"), lines))
    out.show(NUMBER_LEGEND if first == "r2" else LEGEND)
    out.show(
        f"{'Predictions are' if first == 'r2' else 'Accuracy is'} hard. Times are ratios: crisptree takes "
        f"{ours['fit_seconds']:.2g} s to fit and "
        f"{1000 * ours['predict_seconds']:.2g} ms to predict a thousand rows, of many (the best of {REPEATS} runs)."
    )


def _ratio(seconds: float, of: float) -> str:
    """How many times as long, as people say it.

    Examples
    --------
    >>> _ratio(1.0, 1.0), _ratio(3.0, 2.0), _ratio(120.0, 1.0), _ratio(1.0, 40.0)
    ('1', '1.5', '120', '1/40')
    """
    if seconds < of:
        return f"1/{of / max(seconds, 1e-9):,.2g}" if of < 10 * seconds else f"1/{of / max(seconds, 1e-9):,.0f}"
    ratio = seconds / max(of, 1e-9)
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"
