"""Scores of models: those of ``crisptree fit``, ``crisptree evaluate`` and, beside baselines, ``crisptree compare``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

import crisptree
from crisptree.cli import options
from crisptree.cli.options import TABLE, ColumnRoles, CsvFormat, option, with_options
from crisptree.cli.output import Output, make_table
from crisptree.cli.tables import (
    LabelledRows,
    get_classes,
    is_forest,
    is_regressor,
    load_table_model,
    read_labelled_rows,
    stdin_as_file,
)
from crisptree.cli.training import LabelledTable, TrainingTable, open_training_table
from crisptree.encoding.column_values import TableError, counted
from crisptree.inference import FlatTree
from crisptree.inspection.model_view import is_trained_softly
from crisptree.parameters.estimators import ClassifierParameters
from crisptree.pipeline.monitoring import ProgressDisplay
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

OURS = "crisptree"
TIMING_REPEATS = 5
"""Prediction is timed so often; the shortest time counts."""

ROWS_TIMED, VALUES_TIMED = 10_000, 2**24
"""Prediction is timed on so many rows, the held-out ones repeated: with a few rows only the call would be timed."""

LEGENDS = {
    "classification": "majority: the most frequent class · linear: logistic regression",
    "regression": "mean: the mean of the target · linear: ridge regression",
}
TREE_LEGEND = (
    "tree, forest: scikit-learn's axis-aligned ones, with its defaults · small tree: with as many leaves as crisptree's"
)
METRIC_NAMES = {"accuracy": "accuracy", "log_loss": "log loss", "r2": "R²", "rmse": "RMSE"}


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


def score_fit(
    model: Any, table: TrainingTable, others: dict[str, LabelledRows | None], predictions: tuple[Array, ...]
) -> Scores:
    """Score a model on the training rows, whose ``predictions`` come from all processes, and on others."""
    baseline = _baseline(table)

    def scores(y: Array, hard: Array, soft: Array) -> dict[str, Any]:
        if table.is_regression:
            return compute_errors(y, hard, soft, baseline)
        return {"rows": len(y), **compute_accuracies(y, hard, soft), "majority": float(np.mean(y == baseline))}

    hard, soft = predictions
    result = {"training": scores(table.encode_labels(table.y), hard, soft)}
    for name, rows in others.items():
        if rows is not None:
            result[name] = scores(rows.y, *predict_hard_and_soft(model, rows.X, table.classes))
    return {name: hide_untrained(model, entry) for name, entry in result.items()}


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
            "overfits. Try a smaller --depth, --prune auto, or more rows."
        )
    if is_useless:
        notes.append(f"on held-out rows the model is no better than always predicting {baseline}.")
    return notes


def show_scores(out: Output, scores: Scores, *, is_regression: bool, baseline: str = "") -> None:
    """Print a table of scores."""
    first, legend = "on", f"RMSE: root mean squared error, one path per row{SOFT_LEGEND}"
    has_soft = any(score.get(name) is not None for score in scores.values() for name in ("soft", "soft_rmse"))
    names = {key: head for key, head in SCORE_COLUMNS[is_regression].items() if has_soft or "soft" not in key}
    digits = ".4g"
    if not is_regression:
        first, digits = "accuracy on", ".4f"
        legend = f"hard: one path per row{SOFT_LEGEND} · majority: always {baseline}"
    if not has_soft:
        legend = legend.replace(SOFT_LEGEND, "")
    rows = [
        [name, f"{score['rows']:,}", *("–" if score[key] is None else format(score[key], digits) for key in names)]
        for name, score in scores.items()
    ]
    out.show(legend)
    out.show(make_table((first, "rows", *names.values()), rows))


@with_options()
def evaluate(
    model: options.Model,
    data: options.Data,
    *,
    target: options.Target = None,
    drop: options.Drop = [],  # noqa: B006 (typer makes a new list for every call)
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
    rows = read_labelled_rows(estimator, data, out, target=target, csv=csv, drop=drop, unknown="counted as errors")
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

    if is_forest(model) or model.tree_.is_linear:
        return []  # an error of many trees, or of a linear model in a leaf, is not that of one split
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
        name = "no split" if entry["split"] is None else f"split {entry['split']}"
        out.show(f"{name} causes {entry['errors']:,} errors ({entry['share']:.1%})")


Measurement = dict[str, float | int | None]
"""Scores, times and sizes of one model on held-out rows; prediction times are per thousand rows."""


@with_options(ClassifierParameters)
def compare(
    data: options.Data,
    *,
    columns: ColumnRoles,
    parameters: dict[str, Any],
    holdout: Annotated[float, option(help="The fraction of rows to score on.", panel=TABLE, show_default=True)] = (
        DEFAULT_HOLDOUT
    ),
    folds: Annotated[int | None, option(min=2, help="Cross-validate in so many folds instead.", panel=TABLE)] = None,
    csv: CsvFormat,
    as_json: options.Json = False,
) -> None:
    """Fit a tree and baselines to the same rows, and score all of them on the same held-out rows.

    The baselines are scikit-learn's with its defaults, on the same encoded columns; the options of the tree are those
    of crisptree fit. Nothing is saved.

    Examples:
      crisptree compare iris.csv --target species

      crisptree compare train.parquet -t label --drop id,date --depth 6 --folds 5
    """
    if not 0 < holdout < 1:
        raise typer.BadParameter(f"--holdout must lie between 0 and 1; got {holdout}.")
    out, seed = Output(as_json), parameters["random_state"]
    measurements: dict[str, list[Measurement]] = {}
    n_scored = 0
    with out.progress() as progress, stdin_as_file(data) as path:
        source = open_training_table(path, columns, csv, keep_constant="image_shape" in parameters)
        rows = source.read(progress, out)
        for held_out in _split(rows, holdout, folds, seed):
            table = rows.encode(held_out, out, progress)
            n_scored += int(held_out.sum())
            for name, measurement in _measure_models(table, parameters, out, progress):
                measurements.setdefault(name, []).append(measurement)
    document = {
        "rows": len(rows.y),
        "validation": n_scored,
        "folds": folds,
        "features": table.X.shape[1],
        "task": "regression" if rows.is_regression else "classification",
        "models": {name: _summarize(parts) for name, parts in measurements.items()},
    }
    _show_comparison(out, document)
    out.finish(document)


def _split(rows: LabelledTable, fraction: float, folds: int | None, seed: int) -> Iterator[npt.NDArray[np.bool_]]:
    """Yield masks of the held-out rows: one of a fraction of them, or one for every fold.  (n,)"""
    if folds is None:
        yield draw_held_out(rows.y, fraction, seed, is_regression=rows.is_regression)
        return
    from sklearn.model_selection import KFold, StratifiedKFold

    y = rows.y
    if rows.is_regression:
        if len(y) < folds:
            raise TableError(f"--folds {folds} needs as many rows; there are {len(y)}.")
    else:
        labels, counts = np.unique(y, return_counts=True)
        if counts.min() < folds:
            rare = str(labels[counts.argmin()])
            raise TableError(f"--folds {folds} needs as many rows of every class; class {rare!r} has {counts.min()}.")
    splitter = KFold if rows.is_regression else StratifiedKFold
    for _, indices in splitter(folds, shuffle=True, random_state=seed).split(y, y):
        held_out = np.zeros(len(y), dtype=bool)
        held_out[indices] = True
        yield held_out


def _measure_models(
    table: TrainingTable, parameters: dict[str, Any], out: Output, progress: ProgressDisplay
) -> Iterator[tuple[str, Measurement]]:
    model = table.make_model(parameters)
    yield OURS, _measure(model, table, partial(table.fit, model, out, progress))
    baselines = make_baselines(
        is_regression=table.is_regression,
        seed=parameters["random_state"],
        n_jobs=parameters.get("n_jobs"),
        class_weight=None if table.is_regression else model.class_weight,
        n_leaves=model.get_n_leaves(),
    )
    for name, baseline in baselines.items():
        progress.update(f"training {name}", None)
        with out.warnings_as_notes():
            yield name, _measure(baseline, table, partial(_fit_baseline, baseline, table))


def make_baselines(
    *, is_regression: bool, seed: int, n_jobs: int | None, class_weight: Any, n_leaves: int
) -> dict[str, Any]:
    """Make scikit-learn's models with its defaults, by the names that are printed."""
    from sklearn.dummy import DummyClassifier, DummyRegressor
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    shared: dict[str, Any] = {"random_state": seed}
    if is_regression:
        constant, linear = {"mean": DummyRegressor()}, Ridge()
        tree, forest = DecisionTreeRegressor, RandomForestRegressor
    else:
        constant = {"majority": DummyClassifier(strategy="prior")}
        linear = LogisticRegression(max_iter=1000, class_weight=class_weight)
        tree, forest = DecisionTreeClassifier, RandomForestClassifier
        shared["class_weight"] = class_weight
    return {
        **constant,
        "linear": make_pipeline(StandardScaler(), linear),
        "tree": tree(**shared),
        "small tree": tree(**shared, max_leaf_nodes=max(2, n_leaves)),
        "forest": forest(**shared, n_jobs=n_jobs),
    }


def _fit_baseline(model: Any, table: TrainingTable) -> None:
    name = f"{model.steps[-1][0]}__sample_weight" if hasattr(model, "steps") else "sample_weight"
    model.fit(table.X, table.y, **({} if table.weight is None else {name: table.weight}))


def _measure(model: Any, table: TrainingTable, fit: Callable[[], Any]) -> Measurement:
    """Fit a model to the training rows and score it on the held-out ones."""
    assert table.held_out is not None
    X, y = table.held_out.X, table.held_out.y
    started = time.perf_counter()
    fit()
    seconds = time.perf_counter() - started
    if table.is_regression:
        error, variance = float(np.mean((model.predict(X) - y) ** 2)), float(np.var(y))
        scores = {"r2": 1 - error / variance if variance > 0 else np.nan, "rmse": float(np.sqrt(error))}
    else:
        from crisptree import metrics

        accuracy = float(np.mean(model.predict(X) == table.decode_labels(y)))
        scores = {"accuracy": accuracy, "log_loss": metrics.log_loss(y, model.predict_proba(X))}
    leaves, weights = count_leaves_and_weights(model)
    sizes = {"leaves": leaves, "weights": weights}
    return {**scores, "fit_seconds": seconds, "predict_seconds": _time_prediction(model, X), **sizes}


def _time_prediction(model: Any, X: Any) -> float:
    """Measure the seconds of predicting a thousand rows."""
    repeated = X[np.arange(min(ROWS_TIMED, max(len(X), VALUES_TIMED // X.shape[1]))) % len(X)]
    times = []
    for _ in range(TIMING_REPEATS):
        started = time.perf_counter()
        model.predict(repeated)
        times.append(time.perf_counter() - started)
    return 1000 * min(times) / len(repeated)


def count_leaves_and_weights(model: Any) -> tuple[int | None, int]:
    """Count the leaves of a model, None without any, and the numbers that route a row.

    A hyperplane counts its nonzero weights and its threshold, an axis-aligned split its threshold alone.
    """
    if isinstance(model, crisptree.CrispTreeClassifier | crisptree.CrispTreeRegressor):
        tree: Any = model.tree_
        is_flat = isinstance(tree, FlatTree)
        return tree.structure.n_leaves, int((tree.weight != 0).sum()) + tree.structure.n_splits if is_flat else 0
    if hasattr(model, "steps"):
        linear = model.steps[-1][1]
        return None, linear.coef_.size + np.size(linear.intercept_)
    trees = [model] if hasattr(model, "tree_") else getattr(model, "estimators_", [])
    leaves = sum(tree.tree_.n_leaves for tree in trees)
    return leaves or None, sum(tree.tree_.node_count for tree in trees) - leaves


def _summarize(parts: list[Measurement]) -> dict[str, Any]:
    """Average over the folds; None for what is infinite, which JSON does not have."""

    def mean(values: list[Any]) -> float | None:
        return None if None in values or not np.isfinite(values).all() else float(np.mean(values))

    columns = {name: [part[name] for part in parts] for name in parts[0]}
    first, values = next(iter(columns.items()))
    spread = float(np.std(np.array(values, dtype=np.float64), ddof=1)) if len(parts) > 1 else None
    return {**{name: mean(values) for name, values in columns.items()}, f"{first}_spread": spread}


def _show_comparison(out: Output, document: dict[str, Any]) -> None:
    models, folds, task = document["models"], document["folds"], document["task"]
    ours = models[OURS]
    on = f"{counted(document['validation'], 'held-out row')}" if folds is None else f"every row once, in {folds} folds"
    out.show(f"{counted(document['rows'], 'row')} · {counted(document['features'], 'feature')} · scored on {on}")
    first, second, digits = ("r2", "rmse", ".4g") if task == "regression" else ("accuracy", "log_loss", ".3f")
    rows = []
    for name, model in models.items():
        spread = model[f"{first}_spread"]
        times = [_format_ratio(model[kind], ours[kind]) for kind in ("fit_seconds", "predict_seconds")]
        loss = "infinite" if model[second] is None else format(model[second], digits)
        leaves = "–" if model["leaves"] is None else f"{model['leaves']:,.0f}"
        score = "–" if model[first] is None else f"{model[first]:.4f}"
        if spread is not None and model[first] is not None:
            score = f"{model[first]:.3f} ± {spread:.3f}"
        rows.append([name, score, loss, *times, leaves, f"{model['weights']:,.0f}"])
    heads = ("model", METRIC_NAMES[first], METRIC_NAMES[second], "fit", "predict", "leaves", "weights")
    out.show(make_table(heads, rows))
    out.show(f"{LEGENDS[task]} · {TREE_LEGEND}")
    out.show(
        f"Predictions are hard. Times are ratios: crisptree takes {ours['fit_seconds']:.2g} s to fit and "
        f"{1000 * ours['predict_seconds']:.2g} ms to predict a thousand rows (the best of {TIMING_REPEATS} runs)."
    )


def _format_ratio(seconds: float, reference: float) -> str:
    """Format how many times as long something takes.

    Examples
    --------
    >>> _format_ratio(1.0, 1.0), _format_ratio(3.0, 2.0), _format_ratio(120.0, 1.0), _format_ratio(1.0, 40.0)
    ('1', '1.5', '120', '1/40')
    """
    is_faster = seconds < reference
    ratio = max(seconds, reference) / max(min(seconds, reference), 1e-9)
    text = f"{ratio:,.2g}" if ratio < 10 else f"{ratio:,.0f}"
    return f"1/{text}" if is_faster else text
