"""The contents of the page: all of its values as JSON, and its texts. The target decides which sections appear."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import auc, r2_score, roc_curve

from crisptree import metrics
from crisptree.export.javascript import read_runtime
from crisptree.inference import FlatTree
from crisptree.inference.finalization import iterate_path
from crisptree.inference.flat_tree import visit_splits
from crisptree.inference.node_arrays import node_tables
from crisptree.inspection import ModelView
from crisptree.inspection.display import format_number
from crisptree.inspection.linear_splits import compute_effects, feature_importances, rank_columns
from crisptree.inspection.model_view import is_trained_softly
from crisptree.inspection.sentences import describe_leaf, describe_split, is_readable, split_lines
from crisptree.report.encoding import csp_hash, downsample, find_step, pack, read_resource, signed_bytes, to_json
from crisptree.report.samples import ReportRows, collect_error_attribution, collect_samples

Doubles = npt.NDArray[np.float64]

SCRIPTS = (
    *("data", "draw", "charts", "layout", "view", "nodes"),
    *("tree", "panel", "whatif", "sample", "confusion", "quality", "importances", "main"),
)
"""In the order in which they are joined, after the code of the JavaScript export; they share one scope."""

OPTIONAL_SECTIONS = (
    "confusion",
    "samples",
    "error_attribution",
    "roc",
    "residuals",
    "importances",
    "pixel_importances",
    "pruning",
)
"""Sections that need rows, their classes, or a certain kind of model."""

HISTOGRAM_BINS = 30
"""Of a score histogram, at most two more."""

TAIL = 0.5
"""Percentile that the outermost bins start at, so that outliers do not flatten the rest."""

MAX_TERMS = 12
"""Weights listed at a split of tabular data."""

MAX_WEIGHT_VALUES = 4_000_000
"""Larger sets of weight images are downsampled."""

MAX_SEARCHED_WEIGHTS = 4_000_000
"""In larger trees the search box finds a feature only among the largest weights of a split."""

LIGHTNESS = (0.44, 0.62)
"""Alternating lightness of neighbouring hues beyond ten classes."""

PROBABILITY_METRICS = ("log_loss", "brier_score", "calibration_error")
"""Functions of ``crisptree.metrics`` that are shown beside the accuracy."""

MAX_POINTS = 80
"""Of a curve."""

MAX_CURVES = 12
"""Classes with a ROC curve: those with the most rows."""

CALIBRATION_BINS = 10
"""Of the calibration curve, with equally many rows each."""

MAX_DOTS, RESIDUAL_BINS = 1000, 31
"""Of the diagrams of a regression: rows drawn, and bins of the histogram of residuals."""

MAX_IMPORTANCES = 300
"""Columns whose importance is listed."""

COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf")
"""matplotlib's tab10, which ``crisptree.plots`` uses; the page needs no matplotlib."""


def build_context(view: ModelView, rows: ReportRows | None, max_samples: int, target: str | None) -> dict[str, Any]:
    """Collect the values of ``page.html``; ``target`` is the name of the target."""
    from markupsafe import Markup

    values = collect(view, rows, max_samples, target)
    script = "\n".join([read_runtime(), *(read_resource("scripts", f"{name}.js") for name in SCRIPTS)])
    return {
        "subtitle": make_subtitle(view, values),
        "cards": make_cards(values),
        "notes": make_notes(values, takes_rows=not hasattr(view.estimator, "window")),
        "regression": view.is_regression,
        "has": {name: values[name] is not None for name in OPTIONAL_SECTIONS},
        "script": Markup(script),
        "script_hash": csp_hash(script),
        "data": Markup(to_json(values)),
    }


def collect(view: ModelView, rows: ReportRows | None, max_samples: int, target: str | None = None) -> dict[str, Any]:
    """Collect everything that the page shows as values that JSON can hold."""
    tree, labelled = view.tree, rows is not None and rows.y is not None
    classified = labelled and not view.is_regression
    return {
        "regression": view.is_regression,
        "classes": view.class_names,  # or the outputs of a regression
        "colors": class_colors(len(view.class_names)),
        "features": view.feature_names if view.image_shape is None else None,  # pixels are shown, not named
        "image": view.image_shape is not None,
        "linear": isinstance(tree, FlatTree),
        "labelled": labelled,
        "summary": _summary(view, rows),
        "tree": _tree(view, rows),
        "weights": _weights(view),
        "histograms": None if rows is None else _histograms(view, rows),
        "confusion": pack(view.confusion_matrix(rows.labels, rows.predicted), "uint32")
        if rows and classified
        else None,
        "samples": None if rows is None else collect_samples(view, rows, max_samples),
        "error_attribution": collect_error_attribution(view, rows) if rows and classified else None,
        "target": target,
        **_texts(view),
        **collect_quality(view, rows),
        "residuals": collect_residuals(view, rows) if rows and labelled and view.is_regression else None,
    }


def class_colors(n_classes: int) -> list[str]:
    """Return the ten colors of tab10, or evenly spaced hues."""
    if n_classes <= len(COLORS):
        return list(COLORS[:n_classes])
    hues = [colorsys.hls_to_rgb(number / n_classes, LIGHTNESS[number % 2], 0.62) for number in range(n_classes)]
    return ["#" + "".join(f"{round(255 * channel):02x}" for channel in color) for color in hues]


def _summary(view: ModelView, rows: ReportRows | None) -> dict[str, Any]:
    tree, structure = view.tree, view.tree.structure
    passing = view.node_weights[structure.n_splits :]
    trained = float(passing.sum())
    if rows is not None:
        passing = np.bincount(rows.leaf, minlength=structure.n_leaves).astype(np.float64)
    return {
        **({} if view.is_regression else _score_classes(view, rows, trained)),
        "rows": None if rows is None else len(rows.X),
        "training_rows": trained,
        "leaves": structure.n_leaves,
        "splits": structure.n_splits,
        "depth": structure.depth,
        "path": float(passing @ structure.leaf_depths / max(float(passing.sum()), np.finfo(float).tiny)),
        "steepness": float(tree.statistics.steepness),
    }


def _score_soft(view: ModelView, rows: ReportRows) -> float:
    """Return the accuracy of the probabilistic tree."""
    return float(np.mean(view.soft_predict_proba(rows.X).argmax(axis=1) == rows.y))


def _score_classes(view: ModelView, rows: ReportRows | None, trained: float) -> dict[str, float | None]:
    """Score the classes and their probabilities; None without labels."""
    tree, structure = view.tree, view.tree.structure
    correct = tree.statistics.node_counts[structure.n_splits + np.arange(structure.n_leaves), tree.labels()].sum()
    truth = None if rows is None or rows.y is None else rows
    has_soft = truth is not None and is_trained_softly(view.estimator)
    return {
        "hard": None if truth is None else float(np.mean(~truth.wrong)),
        "soft": _score_soft(view, truth) if has_soft and truth is not None else None,
        "training": float(correct / trained) if trained and not tree.is_linear else None,  # counts know no formulas
        **_score_probabilities(view, truth),
    }


def _score_probabilities(view: ModelView, rows: ReportRows | None) -> dict[str, float | None]:
    """Score the probabilities of the deterministic tree; None without labels, and where the score is infinite."""
    if rows is None:
        return dict.fromkeys(PROBABILITY_METRICS)
    probabilities = view.tree.leaf_values(rows.leaf, rows.X)
    return {name: _finite(getattr(metrics, name)(rows.y, probabilities)) for name in PROBABILITY_METRICS}


def _tree(view: ModelView, rows: ReportRows | None) -> dict[str, Any]:
    """Collect the structure, and at every node the training rows, the given rows and what it predicts."""
    structure, statistics, n_outputs = view.tree.structure, view.tree.statistics, len(view.class_names)
    on_rows, moments, values = None, None, view.node_values
    if rows is not None:
        labels = np.zeros_like(rows.leaf) if view.is_regression else rows.labels
        counts = np.zeros((structure.n_leaves, 1 if view.is_regression else n_outputs))
        np.add.at(counts, (rows.leaf, labels), 1)
        on_rows = pack(structure.sums_below(counts), "float32")
    if view.is_regression:
        moments = pack(np.hstack([values[:, :n_outputs], np.sqrt(values[:, n_outputs:])]), "float32")
    return {
        "left": pack(structure.left_nodes, "int32"),
        "right": pack(structure.right_nodes, "int32"),
        "train": pack(view.node_weights[:, None] if view.is_regression else statistics.node_counts, "float32"),
        "given": on_rows,
        "bars": pack(view.bar_heights, "float32"),
        "moments": moments,  # means and standard deviations
        "tables": pack(values[structure.n_splits :, :n_outputs], "float32"),
        "gain": pack(statistics.gain, "float32"),
        "spread": pack(statistics.score_spread, "float32"),
    }


def _weights(view: ModelView) -> dict[str, Any] | None:
    """Collect weight images in the scaled space of training, or the most influential features of every split."""
    tree = view.tree
    if not isinstance(tree, FlatTree) or not tree.structure.n_splits:
        return None
    if view.image_shape is None:
        effect = compute_effects(tree)
        order = np.argsort(-np.abs(effect), axis=1, kind="stable")[:, :MAX_TERMS]
        searchable = tree.weight.size <= MAX_SEARCHED_WEIGHTS
        return {
            "features": pack(order, "int32"),
            "values": pack(np.take_along_axis(effect, order, axis=1), "float32"),
            "raw": pack(np.take_along_axis(tree.weight, order, axis=1), "float32"),
            "nonzero": pack(np.count_nonzero(tree.weight, axis=1), "int32"),
            "used": pack(tree.weight != 0, "uint8") if searchable else None,
        }
    weights = tree.scaled_hyperplanes()[0]
    step = find_step(len(weights), view.image_shape, MAX_WEIGHT_VALUES)
    images, scale = signed_bytes(downsample(weights.reshape(-1, *view.image_shape), step))
    return {"images": pack(images, "int8"), "scale": pack(scale, "float32"), "step": step}


def _texts(view: ModelView) -> dict[str, Any]:
    """Collect the texts of nodes in raw units; each is None where the tree has none.

    ``lines`` are the terms of every split with their effects and the comparison, for its box, ``rules`` the same with
    more terms; ``sentences`` describe leaves where that is short, ``models`` linear leaves.
    """
    tree, splits, leaves = view.tree, range(view.tree.structure.n_splits), range(view.tree.structure.n_leaves)
    has_rules = isinstance(tree, FlatTree) and view.image_shape is None
    models = [view.linear_leaf_terms(tree.structure.n_splits + leaf, MAX_TERMS) for leaf in leaves]
    return {
        "lines": [split_lines(view, split) for split in splits] if has_rules else None,
        "rules": [describe_split(view, split, MAX_TERMS, 4) for split in splits] if has_rules else None,
        "sentences": [describe_leaf(view, leaf) for leaf in leaves] if is_readable(view) else None,
        "models": [[f"{name} = {' '.join(parts)}" for name, parts in model] for model in models]
        if tree.is_linear
        else None,
    }


def _histograms(view: ModelView, rows: ReportRows) -> dict[str, Any]:
    """Count the scores of the rows at each split, of classes one by one, in bins with an edge at zero."""
    tree, n_splits = view.tree, view.tree.structure.n_splits
    labels = np.zeros_like(rows.leaf) if view.is_regression else rows.labels
    n_classes = 1 if view.is_regression else len(view.class_names)
    start, width = np.zeros(n_splits), np.zeros(n_splits)
    counts = np.zeros((n_splits, HISTOGRAM_BINS + 2, n_classes), dtype=np.int64)
    for split, visitors, scores in visit_splits(tree, rows.X):
        values = scores.astype(np.float64)
        low, high = np.percentile(values, (TAIL, 100 - TAIL))
        width[split] = (max(high, 0.0) - min(low, 0.0)) / HISTOGRAM_BINS or 1.0
        first = min(int(np.floor(low / width[split])), -1) if (values <= 0).any() else 0
        last = max(int(np.ceil(high / width[split])) - 1, 0)
        # Bins are closed on the right, as a score of zero goes left.
        number = np.ceil(np.clip(values / width[split], first, last + 1)).astype(np.int64) - 1
        bins = np.where(values > 0, np.clip(number, 0, last), np.clip(number, first, -1)) - first
        start[split] = first * width[split]
        np.add.at(counts[split], (bins, labels[visitors]), 1)
    return {"start": pack(start, "float32"), "width": pack(width, "float32"), "counts": pack(counts, "uint32")}


def _finite(value: float | None) -> float | None:
    """Round a number for JSON; None where it is not finite."""
    return None if value is None or not np.isfinite(value) else round(float(value), 6)


def collect_quality(view: ModelView, rows: ReportRows | None) -> dict[str, Any]:
    """Collect the values about the quality of the predictions; None for what needs true classes."""
    truth = None if rows is None or rows.y is None or not len(rows.y) or view.is_regression else rows
    roc = calibration = None
    if truth is not None:
        probabilities = view.tree.leaf_values(truth.leaf, truth.X)
        roc, calibration = roc_curves(truth.labels, probabilities), calibration_curve(truth.labels, probabilities)
    has_columns = view.image_shape is None and isinstance(view.tree, FlatTree)
    return {
        "baseline": None if view.is_regression else _baseline(view, truth),
        "roc": roc,
        "calibration": calibration,
        "pruning": _pruning(view, rows if rows is not None and rows.y is not None and len(rows.y) else None),
        "importances": rank_columns(view, MAX_IMPORTANCES) if has_columns else None,
        "pixel_importances": _pixel_importances(view),
    }


def _pixel_importances(view: ModelView) -> dict[str, Any] | None:
    """Collect the importance of every pixel, its channels added up; None for tables and modules.  (height, width)"""
    if not view.has_weight_images or view.image_shape is None:
        return None
    importances = feature_importances(view.tree).reshape(view.image_shape).sum(axis=2)
    step = find_step(1, (*importances.shape, 1), MAX_WEIGHT_VALUES)
    return pack(downsample(importances[None, :, :, None], step)[0, :, :, 0] * step**2, "float32")


def _baseline(view: ModelView, rows: ReportRows | None) -> dict[str, Any]:
    """Score the classifier that always predicts the most frequent class of training."""
    counts = view.tree.statistics.node_counts[0]
    first = int(view.node_values[0].argmax())
    trained = float(counts.sum())
    on_rows = None if rows is None else float(np.mean(rows.labels == first))
    return {"class": first, "training": float(counts[first] / trained) if trained else None, "given": on_rows}


def collect_residuals(view: ModelView, rows: ReportRows) -> list[dict[str, Any]] | None:
    """Score every output of a regression, and collect some of its rows and the histogram of all residuals."""
    if rows.y is None or not len(rows.y):
        return None
    some, outputs = np.random.default_rng(0).permutation(len(rows.y))[:MAX_DOTS], []
    for name, true, predicted in zip(view.class_names, rows.y.T, rows.predicted.T, strict=True):
        residuals = true - predicted
        spread, limit = float(np.std(true)), float(np.abs(residuals).max(initial=0.0)) or 1.0
        counts, _ = np.histogram(residuals, bins=RESIDUAL_BINS, range=(-limit, limit))
        scores = {
            "r2": 1 - float(np.mean(residuals**2)) / spread**2 if spread > 0 else None,
            "rmse": float(np.sqrt(np.mean(residuals**2))),
            "mae": float(np.mean(np.abs(residuals))),
            "spread": spread,
        }
        dots = {"true": pack(true[some], "float32"), "predicted": pack(predicted[some], "float32")}
        outputs.append({"name": name, **scores, **dots, "limit": limit, "counts": counts.tolist()})
    return outputs


def roc_curves(truth: npt.NDArray[np.int64], probabilities: Doubles) -> list[dict[str, Any]]:
    """Compute the one-versus-rest ROC curve and its area for every class.

    Two classes have one curve, that of the second; of many classes some have an area only.
    """
    n_classes = probabilities.shape[1]
    sizes = np.bincount(truth, minlength=n_classes)
    shown = set(np.argsort(-sizes, kind="stable")[:MAX_CURVES].tolist())
    curves = []
    for number in [1] if n_classes == 2 else range(n_classes):
        positive = truth == number
        if not positive.any() or positive.all():
            continue
        fpr, tpr, _ = roc_curve(positive, probabilities[:, number], drop_intermediate=False)
        kept = _thin(len(tpr)) if number in shown else np.zeros(0, dtype=np.intp)
        area = float(auc(fpr, tpr))
        curves.append({"class": number, "alarms": _round(fpr[kept]), "found": _round(tpr[kept]), "area": area})
    return curves


def calibration_curve(truth: npt.NDArray[np.int64], probabilities: Doubles) -> dict[str, Any]:
    """Compute the calibration curve: observed frequency per bin of predicted probability.

    For two classes it is the probability of the second; for more, that of the predicted class. Unlike in scikit-learn's
    ``calibration_curve``, rows of equal probability, of which trees have many, stay in one bin.
    """
    two = probabilities.shape[1] == 2
    predicted = probabilities[:, 1] if two else probabilities.max(axis=1)
    observed = truth == 1 if two else probabilities.argmax(axis=1) == truth
    edges = np.unique(np.quantile(predicted, np.arange(1, CALIBRATION_BINS) / CALIBRATION_BINS, method="inverted_cdf"))
    bins = np.searchsorted(edges, predicted)
    rows = np.bincount(bins)
    used = rows > 0
    mean, frequency = (_round(np.bincount(bins, values)[used] / rows[used]) for values in (predicted, observed))
    return {"class": 1 if two else None, "predicted": mean, "observed": frequency, "rows": rows[used].tolist()}


def _pruning(view: ModelView, rows: ReportRows | None) -> dict[str, Any] | None:
    """Score every tree on the path of cost-complexity pruning, the largest tree first."""
    tree, structure = view.tree, view.tree.structure
    if not structure.n_splits or not tree.statistics.node_counts.any() or tree.is_linear:
        return None
    alphas, leaves, on_rows, in_training = [], [], [], []
    score = _score_pruned_means if view.is_regression else _score_pruned_classes
    for alpha, ends in iterate_path(tree):
        alphas.append(alpha)
        leaves.append(len(np.unique(ends)))
        trained, given = score(view, rows, ends)
        in_training.append(trained)
        on_rows.append(given)
    kept = _thin(len(alphas))
    return {
        "alphas": [float(f"{alphas[index]:.4g}") for index in kept],
        "leaves": [leaves[index] for index in kept],
        "training": _round(np.array(in_training)[kept]),
        "given": None if rows is None else _round(np.array(on_rows)[kept]),
    }


def _score_pruned_classes(
    view: ModelView, rows: ReportRows | None, ends: npt.NDArray[np.int64]
) -> tuple[float, float | None]:
    """Accuracy on the training rows and on the given ones of the tree whose leaves end in these nodes."""
    tree, n_splits = view.tree, view.tree.structure.n_splits
    outputs = tree.target.predict(node_tables(tree))[ends]
    trained = tree.statistics.node_counts[n_splits:]
    in_training = float(trained[np.arange(len(ends)), outputs].sum() / trained.sum())
    return in_training, None if rows is None else float(np.mean(outputs[rows.leaf] == rows.labels))


def _score_pruned_means(
    view: ModelView, rows: ReportRows | None, ends: npt.NDArray[np.int64]
) -> tuple[float, float | None]:
    """R² on the training rows and on the given ones, the mean over all outputs."""
    tree, n_outputs = view.tree, len(view.class_names)
    impurity = tree.target.impurity(tree.statistics.node_counts)
    in_training = 1 - float(impurity[np.unique(ends)].sum() / max(float(impurity[0]), np.finfo(float).tiny))
    if rows is None or rows.y is None:
        return in_training, None
    predicted = view.node_values[ends, :n_outputs][rows.leaf]
    return in_training, float(r2_score(rows.y, predicted))


def _thin(length: int) -> npt.NDArray[np.intp]:
    """Return the indices of the points of a curve that are kept."""
    return np.unique(np.linspace(0, length - 1, min(length, MAX_POINTS)).round().astype(np.intp))


def _round(values: Doubles) -> list[float]:
    return [round(float(value), 5) for value in values]


def make_subtitle(view: ModelView, values: dict[str, Any]) -> str:
    """Describe the tree in one line."""
    summary, shape = values["summary"], view.image_shape
    sides = () if shape is None else shape[:2] if shape[2] == 1 else shape
    kind = getattr(view.estimator, "split", None)
    if isinstance(kind, str) and kind == "auto":
        kind = getattr(view.estimator, "best_params_", {}).get("split", "oblique")
    inputs = "windows" if hasattr(view.estimator, "window") else "images"
    parts = [
        count_outputs(view) + ("" if values["target"] is None else f" of {values['target']}"),
        _count_features(view) if shape is None else f"{inputs} of {' × '.join(map(str, sides))}",
        f"{kind} splits" if isinstance(kind, str) else "splits made of modules",
        f"{summary['training_rows']:,.10g} training rows" if summary["training_rows"] else "training rows not counted",
    ]
    if summary["rows"] is not None:
        parts.append(f"{summary['rows']:,} rows given with this report")
    return " · ".join(parts)


def count_outputs(view: ModelView) -> str:
    """Count the classes, or the outputs of a regression."""
    n_outputs = len(view.class_names)
    if not view.is_regression:
        return f"{n_outputs} classes"
    return "Regression" if n_outputs == 1 else f"Regression with {n_outputs} outputs"


def _count_features(view: ModelView) -> str:
    """Describe the number of columns of the table, and of features where these are more."""
    stored, n_features = view.preprocessing, view.tree.n_features
    if stored is None or len(stored.columns) == n_features:
        return f"{n_features:,} features"
    return f"{len(stored.columns):,} columns (encoded: {n_features:,} features)"


def make_cards(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Make label, value and explanation of each of the figures at the top."""
    summary = values["summary"]
    splits, path = summary["splits"], summary["path"]
    share = f"{100 * path / splits:.3g} %" if splits else "none"
    figures = [
        *(_residual_figures(values) if values["regression"] else _class_figures(values)),
        ("Leaves", f"{summary['leaves']:,}", f"{splits:,} split{'s' * (splits != 1)}"),
        ("Depth", str(summary["depth"]), "splits on the longest path"),
        ("Mean path", f"{path:.2f}", "splits a row visits"),
        ("Splits evaluated", share, f"{path:.2f} of {splits:,} for a row"),
    ]
    return [
        {"label": label, "value": value, "hint": hint, "strong": position < 2}
        for position, (label, value, hint) in enumerate(figures)
    ]


def _class_figures(values: dict[str, Any]) -> list[tuple[str, str, str]]:
    summary, baseline = values["summary"], values["baseline"]
    majority = baseline["training"] if baseline["given"] is None else baseline["given"]
    rows = f"of {summary['rows']:,} given rows" if summary["hard"] is not None else "no rows with classes given"
    unknown = "–" if summary["hard"] is None else "infinite"  # a true class had probability 0

    def number(name: str) -> str:
        return unknown if summary[name] is None else f"{summary[name]:.3f}"

    soft = ("Accuracy, soft", _percent(summary["soft"]), f"all paths, γ = {summary['steepness']:.3g}")
    training = ("Accuracy in training", _percent(summary["training"]), "crisp, from its leaf counts")
    return [
        ("Accuracy, crisp", _percent(summary["hard"]), f"one path, {rows}"),
        *([soft] if summary["soft"] is not None else []),
        ("Baseline", _percent(majority), f"always {_truncate(values['classes'][baseline['class']], 24)}"),
        *([training] if summary["training"] is not None else []),
        ("Log loss", number("log_loss"), "crisp, mean of −log p in nats"),
        ("Brier score", number("brier_score"), "crisp, from 0 to 2"),
        ("Calibration error", number("calibration_error"), "crisp, confidence against truth"),
    ]


def _residual_figures(values: dict[str, Any]) -> list[tuple[str, str, str]]:
    figures, several = [], len(values["classes"]) > 1
    for output in values["residuals"] or []:
        of = f" of {_truncate(output['name'], 24)}" if several else ""
        figures += [
            (f"R²{of}", "–" if output["r2"] is None else f"{output['r2']:.3f}", "of the given rows"),
            (f"RMSE{of}", format_number(output["rmse"]), "root mean squared error"),
            (f"MAE{of}", format_number(output["mae"]), "mean absolute error"),
            (f"Baseline{of}", format_number(output["spread"]), "RMSE of always predicting the mean"),
        ]
    return figures


def make_notes(values: dict[str, Any], *, takes_rows: bool) -> dict[str, list[str]]:
    """Explain which parts of the page are missing, by section. A report of a segmenter takes no rows."""
    advice = "Write the report with X and y to see more." if takes_rows else "A report of a segmenter has none."
    samples, attribution = values["samples"], values["error_attribution"]
    classes = not values["regression"]
    known = "accuracy is known for training only" if classes else "errors are unknown"
    no_rows, none_kept = samples is None, samples is not None and samples["count"] == 0
    no_classes = classes and not no_rows and not values["labelled"]
    modules = (
        "The splits of this tree are modules (small networks): they have no weight for each feature to show. Scores, "
        "counts and paths are shown all the same."
    )
    unknown = "The rows have no true classes, so their accuracy is unknown. Colors show predicted classes."
    single_leaf = (
        "This tree is a single leaf with one linear model: it has no splits."
        if values["models"]
        else "This tree is a single leaf: it predicts the same for every row."
    )
    sections = {
        "summary": [
            (
                no_rows,
                f"No rows were given, so {known}. {advice}",
            ),
            (no_classes, unknown),
        ],
        "tree": [
            (not values["linear"], modules),
            (values["summary"]["splits"] == 0, single_leaf),
            (no_rows, "No rows were given, so there are no score histograms and no example samples."),
        ],
        "samples": [
            (no_rows, f"Not shown: no rows were given. {advice}"),
            (no_classes, "No confusion matrix: the rows have no true classes."),
            (none_kept, "This report was written with max_samples=0, so it holds no samples to look at."),
        ],
        "quality": [
            (
                values["roc"] is None and values["residuals"] is None,
                "Not shown: these metrics need rows with true values.",
            )
        ],
        "columns": [
            (
                values["importances"] is None and values["pixel_importances"] is None,
                "Not shown: modules have no weights.",
            ),
            (values["importances"] == [], "No split and no leaf has an information gain."),
        ],
        "pruning": [
            (
                values["pruning"] is None,
                "Not shown: the path of pruning needs splits with counts of training rows, and constant leaves.",
            )
        ],
        "error_attribution": [
            (attribution is None, "Not shown: errors are known only for rows with true classes."),
            (attribution == [], "None of the rows is misclassified."),
        ],
    }
    return {name: [text for holds, text in reasons if holds] for name, reasons in sections.items()}


def _truncate(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.2f} %"
