"""Scores of models: those of ``crisptree fit`` and ``crisptree evaluate``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.cli import options
from crisptree.cli.options import CsvFormat, with_options
from crisptree.cli.output import Output, make_table
from crisptree.cli.tables import (
    LabelledRows,
    get_classes,
    is_forest,
    is_regressor,
    load_table_model,
    read_labelled_rows,
)
from crisptree.cli.training import TrainingTable
from crisptree.exceptions import TableError, format_count
from crisptree.inspection.display import format_number
from crisptree.inspection.model_view import is_trained_softly
from crisptree.targets.base import class_numbers, hold_out, quantile_strata
from crisptree.threads import row_blocks

Array = npt.NDArray[Any]
Scores = dict[str, dict[str, Any]]
"""By the set of rows: training, validation, held out."""

ROWS_PER_BLOCK = 65_536
"""Rows may be on disk, and larger than the memory."""

DEFAULT_HOLDOUT = 0.2
MIN_ROWS_FOR_HOLDOUT = 50
"""Of fewer rows a fifth is too small for a score, and the tree needs all of them."""

MIN_ACCURACY_GAP, MIN_R2_GAP = 0.05, 0.1
"""Differences between training and held-out rows that deserve a note; of accuracy, if also above 2 standard errors."""

COVERAGES = (0.5, 0.9)
MAX_CLASSES_SHOWN, MAX_SPLITS_SHOWN = 20, 5
PROBABILITY_METRICS = {"log_loss": "log loss", "brier_score": "Brier score", "calibration_error": "calibration error"}
"""Functions of ``crisptree.metrics``, and their names in print."""

SCORE_COLUMNS = {
    False: {"hard": "hard", "soft": "soft", "majority": "majority"},
    True: {
        **{"r2": "R²", "rmse": "RMSE", "mae": "mean |error|"},
        **{"soft_rmse": "soft RMSE", "mean_rmse": "RMSE of the mean"},
    },
}
"""By whether it is a regression: scores, and the heads of their columns."""

SOFT_LEGEND = " · soft: all leaves, for comparison"


def draw_held_out(
    y: npt.NDArray[Any], fraction: float, seed: int, *, is_regression: bool = False
) -> npt.NDArray[np.bool_]:
    """Draw a stratified fraction of the rows, never all of a class.  (n,)"""
    held_out = np.zeros(len(y), dtype=bool)
    if fraction:
        strata = quantile_strata(y) if is_regression else y
        held_out[hold_out(strata, fraction, seed, keep_classes=not is_regression)[1]] = True
        if not held_out.any():
            raise TableError(
                f"--holdout {fraction:g} must hold out at least one row; of {len(y)} rows it holds out none."
            )
    return held_out


def predict_hard_and_soft(model: Any, X: npt.NDArray[np.float32], classes: Array | None) -> tuple[Array, Array]:
    """Predict along one path and over all leaves: indices into ``classes``, or values in regression.  Two (n,)

    The model may know fewer classes: one whose rows have no weight is none of its.
    """
    hard, soft = (np.empty(len(X), dtype=np.float64 if classes is None else np.int64) for _ in range(2))
    for rows in row_blocks(len(X), ROWS_PER_BLOCK):
        if classes is None:
            hard[rows], soft[rows] = model.predict(X[rows]), model.soft_predict(X[rows])
        else:
            hard[rows] = class_numbers(model.predict(X[rows]), classes)
            soft[rows] = class_numbers(model.classes_[model.soft_predict_proba(X[rows]).argmax(axis=1)], classes)
    return hard, soft


def compute_accuracies(y: Array, hard: Array, soft: Array) -> dict[str, float]:
    """Return the accuracy of hard and of soft predictions."""
    return {"hard": float(np.mean(y == hard)), "soft": float(np.mean(y == soft))}


def compute_errors(y: Array, hard: Array, soft: Array, mean: float) -> dict[str, Any]:
    """Return R² and errors of predictions, and the error of always predicting the mean of training."""

    def rmse(predicted: Any) -> float:
        return math.sqrt(float(np.mean((y - predicted) ** 2)))

    error, spread = rmse(hard), float(np.std(y))
    return {
        "rows": len(y),
        "r2": 1 - error**2 / spread**2 if spread > 0 else None,
        "rmse": error,
        "mae": float(np.mean(np.abs(y - hard))),
        "soft_rmse": rmse(soft),
        "mean_rmse": rmse(mean),
    }


def score_fit(model: Any, table: TrainingTable, others: dict[str, LabelledRows | None]) -> Scores:
    """Score a model on the training rows and on others."""
    baseline = _baseline(table)
    result: Scores = {}
    for name, rows in {"training": LabelledRows(table.X, table.encode_labels(table.y)), **others}.items():
        if rows is None:
            continue
        y, (hard, soft) = rows.y, predict_hard_and_soft(model, rows.X, table.classes)
        if table.is_regression:
            scores = compute_errors(y, hard, soft, baseline)
        else:
            scores = {"rows": len(y), **compute_accuracies(y, hard, soft), "majority": float(np.mean(y == baseline))}
        result[name] = hide_untrained(model, scores)
    return result


def hide_untrained(model: Any, scores: dict[str, Any]) -> dict[str, Any]:
    """Replace scores of the probabilistic tree by None where the splits were not trained as one."""
    if is_trained_softly(model):
        return scores
    return scores | {name: None for name in ("soft", "soft_rmse") if name in scores}


def _baseline(table: TrainingTable) -> Any:
    """Return the constant prediction: the index of the majority class, or the mean."""
    if table.is_regression:
        return float(np.average(table.y, weights=table.weight))
    return int(np.bincount(table.encode_labels(table.y)).argmax())


def name_baseline(table: TrainingTable) -> str:
    """Name the constant prediction."""
    return "the mean" if table.classes is None else repr(str(table.classes[_baseline(table)]))


def diagnose(scores: Scores, baseline: str) -> list[str]:
    r"""Describe overfitting, and a model that is no better than the baseline.

    Examples
    --------
    >>> training = {"rows": 400, "hard": 0.99, "majority": 0.6}
    >>> diagnose({"training": training, "held out": {"rows": 100, "hard": 0.95, "majority": 0.6}}, "'no'")
    []
    >>> held_out = {"rows": 100, "hard": 0.6, "majority": 0.6}
    >>> print(*diagnose({"training": training, "held out": held_out}, "'no'"), sep="\n")  # doctest: +ELLIPSIS
    accuracy is 99.0% on training rows and 60.0% on held-out rows: the model overfits. ...
    on held-out rows the model is no better than always predicting 'no'.
    """
    if "held out" not in scores:
        return []
    training, held_out, notes = scores["training"], scores["held out"], []
    if "r2" in training:
        name, pair, digits, limit = "R²", (training["r2"], held_out["r2"]), ".3f", MIN_R2_GAP
        is_useless = held_out["rmse"] >= held_out["mean_rmse"]
    else:
        name, pair, digits = "accuracy", (training["hard"], held_out["hard"]), ".1%"
        error = math.sqrt(sum(part["hard"] * (1 - part["hard"]) / part["rows"] for part in (training, held_out)))
        limit = max(MIN_ACCURACY_GAP, 2 * error)
        is_useless = held_out["hard"] <= held_out["majority"]
    if None not in pair and pair[0] - pair[1] > limit:
        notes.append(
            f"{name} is {pair[0]:{digits}} on training rows and {pair[1]:{digits}} on held-out rows: the model "
            "overfits. Try a smaller --depth, --ccp-alpha auto, or more rows."
        )
    if is_useless:
        notes.append(f"on held-out rows the model is no better than always predicting {baseline}.")
    return notes


def show_scores(out: Output, scores: Scores, *, is_regression: bool, baseline: str = "") -> None:
    """Print a table of scores."""
    first, legend = "on", f"RMSE: root mean squared error, one path per row{SOFT_LEGEND}"
    has_soft = any(score.get(name) is not None for score in scores.values() for name in ("soft", "soft_rmse"))
    names = {key: head for key, head in SCORE_COLUMNS[is_regression].items() if has_soft or "soft" not in key}
    if not is_regression:
        first = "accuracy on"
        legend = f"hard: one path per row{SOFT_LEGEND} · majority: always {baseline}"
    if not has_soft:
        legend = legend.replace(SOFT_LEGEND, "")

    def show(value: float | None) -> str:
        if value is None:
            return "–"
        return format_number(value) if is_regression else f"{value:.4f}"

    rows = [[name, f"{score['rows']:,}", *map(show, (score[key] for key in names))] for name, score in scores.items()]
    out.show(legend)
    out.show(make_table((first, "rows", *names.values()), rows))


@with_options()
def evaluate(
    model: options.Model,
    data: options.Data,
    *,
    target: options.Target = None,
    drop: options.Drop = [],  # noqa: B006 (typer makes a new list for every call)
    drop_missing_target: options.DropMissingTarget = False,
    csv: CsvFormat,
    as_json: options.Json = False,
) -> None:
    """Score predictions and probabilities on a table with known target.

    Hard is the deterministic tree, one path per row; soft is the probabilistic tree behind it, for comparison.
    Regression is scored by errors, and by how often values lie within the interval of their leaf.

    Examples:
      crisptree evaluate iris.crisp test.csv --target species

      crisptree evaluate model.crisp test.parquet --json
    """
    out = Output(as_json)
    estimator = load_table_model(model)
    how: dict[str, Any] = {"target": target, "csv": csv, "drop": drop, "drop_missing_target": drop_missing_target}
    rows = read_labelled_rows(estimator, data, out, unknown="counted as errors", **how)
    predictions = predict_hard_and_soft(estimator, rows.X, get_classes(estimator))
    if is_regressor(estimator):
        document = _evaluate_regression(estimator, rows, *predictions)
        _show_regression(out, document)
    else:
        document = _evaluate_classification(estimator, rows, *predictions)
        _show_classification(out, document)
    out.finish(document)


def _evaluate_regression(model: Any, rows: LabelledRows, hard: Array, soft: Array) -> dict[str, Any]:
    """Compute errors, and the coverage of prediction intervals."""
    trees = [*model.forest_] if is_forest(model) else [model.tree_]
    means = [tree.restore_units(tree.target.tables(tree.statistics.node_counts[:1]))[0, 0] for tree in trees]
    within = {}
    for coverage in COVERAGES:
        low, high = model.predict_interval(rows.X, coverage)
        within[f"{coverage:.0%}"] = float(np.mean((rows.y >= low) & (rows.y <= high)))
    errors = hide_untrained(model, compute_errors(rows.y, hard, soft, float(np.mean(means))))
    return {**errors, "within_interval": within}


def _show_regression(out: Output, document: dict[str, Any]) -> None:
    show_scores(out, {"this table": document}, is_regression=True)
    within = [f"{share:.1%} within the {name} interval" for name, share in document["within_interval"].items()]
    out.show(f"prediction intervals: {', '.join(within)}")


def _evaluate_classification(model: Any, rows: LabelledRows, hard: Array, soft: Array) -> dict[str, Any]:
    """Compute accuracy, metrics of probabilities, scores by class, confusion matrix and error attribution."""
    labels = model.classes_.tolist()
    return {
        "rows": len(rows.X),
        "accuracy": hide_untrained(model, compute_accuracies(rows.y, hard, soft)),
        **_score_probabilities(model, rows),
        "classes": _score_classes(rows.y, hard, labels),
        "confusion": _count_confusion(rows.y, hard, len(labels)),
        "error_attribution": _attribute_errors(model, rows),
    }


def _count_confusion(y: Array, predicted: Array, n_classes: int) -> list[list[int]]:
    """Count the rows of each true class (a line; the last for unknown classes) predicted as each class.

    Examples
    --------
    >>> _count_confusion(np.array([0, 1, -1]), np.array([0, 0, 1]), 2)
    [[1, 0], [1, 0], [0, 1]]
    """
    from sklearn.metrics import confusion_matrix

    counts = confusion_matrix(y, predicted, labels=[*range(n_classes), -1])[:, :-1]
    lines: list[list[int]] = counts.tolist()
    return lines if any(lines[-1]) else lines[:-1]


def _score_classes(y: Array, predicted: Array, labels: list[Any]) -> list[dict[str, Any]]:
    """Compute precision, recall and F1 of every class; None where they are undefined."""
    from sklearn.metrics import precision_recall_fscore_support

    indices = range(len(labels))
    *scores, rows = precision_recall_fscore_support(y, predicted, labels=indices, zero_division=np.nan)
    names = ("precision", "recall", "f1")
    return [
        {"class": label, "rows": int(count)}
        | {name: None if np.isnan(score) else float(score) for name, score in zip(names, values, strict=True)}
        for label, count, *values in zip(labels, rows, *scores, strict=True)
    ]


def _attribute_errors(model: Any, rows: LabelledRows) -> list[dict[str, Any]]:
    from crisptree.explain import attribute_errors

    if is_forest(model):
        return []  # an error of many trees is not that of one split
    table = attribute_errors(model, *rows.of_known_classes(model.classes_)).table()
    return [{"split": None if split < 0 else split, "errors": errors, "share": share} for split, errors, share in table]


def _score_probabilities(model: Any, rows: LabelledRows) -> dict[str, dict[str, float | None]]:
    """Score probabilities on the rows of known classes; None for infinite values, which JSON does not have."""
    from crisptree import metrics

    is_known = rows.y >= 0
    scores: dict[str, dict[str, float | None]] = {name: {} for name in PROBABILITY_METRICS}
    kinds = {"hard": model.predict_proba, "soft": model.soft_predict_proba}
    if not is_trained_softly(model):
        del kinds["soft"]
    for kind, predict_proba in kinds.items():
        probabilities = predict_proba(rows.X[is_known])
        for name in PROBABILITY_METRICS:
            value = getattr(metrics, name)(rows.y[is_known], probabilities)
            scores[name][kind] = value if np.isfinite(value) else None
    return scores


def _show_classification(out: Output, document: dict[str, Any]) -> None:
    accuracy = document["accuracy"]
    soft = "" if accuracy["soft"] is None else f" · soft {accuracy['soft']:.4f}"
    out.show(f"{document['rows']:,} rows · accuracy hard {accuracy['hard']:.4f}{soft}")
    for name, title in PROBABILITY_METRICS.items():
        values = [f"{kind} {'infinite' if value is None else f'{value:.4f}'}" for kind, value in document[name].items()]
        out.show(f"{title} " + " · ".join(values))
    rows = []
    for entry in document["classes"]:
        scores = (entry[name] for name in ("precision", "recall", "f1"))
        cells = ["–" if score is None else f"{score:.3f}" for score in scores]
        rows.append([str(entry["class"]), f"{entry['rows']:,}", *cells])
    out.show(make_table(("class", "rows", "precision", "recall", "F1"), rows))
    classes = [str(entry["class"]) for entry in document["classes"]]
    if len(classes) <= MAX_CLASSES_SHOWN:
        lines = zip([*classes, "(unknown)"], document["confusion"], strict=False)
        rows = [[label, *(f"{count:,}" if count else "·" for count in counts)] for label, counts in lines]
        out.show(make_table(["true \\ predicted", *classes], rows))
    else:
        out.show(f"The confusion matrix of {len(classes)} classes is in --json.")
    for entry in document["error_attribution"][:MAX_SPLITS_SHOWN]:
        name = "no single split" if entry["split"] is None else f"split {entry['split']}"
        out.show(f"{name} causes {format_count(entry['errors'], 'error')} ({entry['share']:.1%})")
