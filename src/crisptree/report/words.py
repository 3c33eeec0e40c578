"""The page's sentences and numbers that need no script."""

from __future__ import annotations

from typing import Any

from crisptree.inspection import ModelView
from crisptree.inspection.columns import find_preprocessing

UNITS = ("bytes", "kB", "MB", "GB")


def subtitle(view: ModelView, values: dict[str, Any]) -> str:
    """What kind of tree this is, in one line."""
    summary, shape = values["summary"], view.image_shape
    sides = () if shape is None else shape[:2] if shape[2] == 1 else shape
    given = getattr(view.estimator, "split", None)
    chosen = getattr(view.estimator, "chosen_", {}).get("split", "oblique")
    kind = chosen if isinstance(given, str) and given == "auto" else given
    seen = "windows" if hasattr(view.estimator, "window") else "images"  # a segmenter's tree sees parts of images
    parts = [
        f"{len(view.class_names)} classes" + ("" if values["target"] is None else f" of {values['target']}"),
        _width(view) if shape is None else f"{seen} of {' × '.join(map(str, sides))}",
        f"{kind} splits" if isinstance(kind, str) else "splits made of modules",
        f"{summary['training_rows']:,.10g} training rows" if summary["training_rows"] else "training rows not counted",
    ]
    if summary["rows"] is not None:
        parts.append(f"{summary['rows']:,} rows given with this report")
    return " · ".join(parts)


def _width(view: ModelView) -> str:
    """How many columns the table has, and how many features they have become where those are more."""
    stored, n_features = find_preprocessing(view), view.tree.n_features
    if stored is None or len(stored.columns) == n_features:
        return f"{n_features:,} features"
    return f"{len(stored.columns):,} columns (encoded: {n_features:,} features)"


def cards(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Label, value and a word of explanation for each of the figures at the top."""
    summary, baseline = values["summary"], values["baseline"]
    majority = baseline["training"] if baseline["given"] is None else baseline["given"]
    rows = f"of {summary['rows']:,} given rows" if summary["hard"] is not None else "no rows with classes given"
    splits, path = summary["splits"], summary["path"]
    share = f"{100 * path / splits:.3g} %" if splits else "none"
    unknown = "–" if summary["hard"] is None else "infinite"  # a class that was given no chance did occur

    def number(name: str) -> str:
        return unknown if summary[name] is None else f"{summary[name]:.3f}"

    figures = [
        ("Accuracy, crisp", _percent(summary["hard"]), f"one path, {rows}"),
        ("Accuracy, soft", _percent(summary["soft"]), f"all paths, γ = {summary['steepness']:.3g}"),
        ("Baseline", _percent(majority), f"always {_cut(values['classes'][baseline['class']], 24)}"),
        ("Accuracy in training", _percent(summary["training"]), "crisp, from its leaf counts"),
        ("Log loss", number("log_loss"), "crisp, mean of −log p in nats"),
        ("Brier score", number("brier_score"), "crisp, from 0 to 2"),
        ("Calibration error", number("calibration_error"), "crisp, confidence against truth"),
        ("Leaves", f"{summary['leaves']:,}", f"{splits:,} split{'s' * (splits != 1)}"),
        ("Depth", str(summary["depth"]), "splits on the longest path"),
        ("Mean path", f"{path:.2f}", "splits a row visits"),
        ("Splits evaluated", share, f"{path:.2f} of {splits:,} for a row"),
        ("Size", _bytes(summary["bytes"]), f"{summary['bytes']:,} bytes to predict with"),
    ]
    return [
        {"label": label, "value": value, "hint": hint, "strong": place < 2}
        for place, (label, value, hint) in enumerate(figures)
    ]


def notes(values: dict[str, Any], *, takes_rows: bool) -> dict[str, list[str]]:
    """Why a part of the page is missing, section by section. A report of a segmenter takes no rows."""
    advice = "Write the report with X and y to see more." if takes_rows else "A report of a segmenter has none."
    samples, blame, no_history = values["samples"], values["blame"], values["history"] is None
    no_rows, none_kept = samples is None, samples is not None and samples["count"] == 0
    no_classes = not no_rows and not values["labelled"]
    modules = (
        "The splits of this tree are modules (small networks): they have no weight for each feature to show. Scores, "
        "counts and paths are shown all the same."
    )
    unknown = "The rows came without their classes, so their accuracy is not known. Colors mean predicted classes."
    single_leaf = "This tree is a single leaf: it asks nothing and answers the same for every row."
    sections = {
        "summary": [
            (no_rows, f"No rows were given, so accuracy is known for training only. {advice}"),
            (no_classes, unknown),
        ],
        "tree": [
            (not values["linear"], modules),
            (values["summary"]["splits"] == 0, single_leaf),
            (no_rows, "No rows were given, so there are no score histograms and no example samples."),
        ],
        "samples": [
            (no_rows, f"Not shown: no rows were given. {advice}"),
            (no_classes, "No confusion matrix: the rows came without their classes."),
            (none_kept, "This report was written with max_samples=0, so it holds no samples to look at."),
        ],
        "quality": [
            (
                values["roc"] is None,
                "Not shown: classes can be told right from wrong only on rows that come with them.",
            ),
        ],
        "columns": [
            (values["importances"] is None, "Not shown: pixels and modules have no columns to name."),
            (values["importances"] == [], "No split brings any information."),
        ],
        "pruning": [
            (values["pruning"] is None, "Not shown: there is no split that training rows have counted for."),
        ],
        "blame": [
            (blame is None, "Not shown: errors can be found only on rows that come with their classes."),
            (blame == [], "Not one of the given rows is wrong, or leaves are linear and have no one class to miss."),
        ],
        "training": [
            (no_history, "Not shown: this model has no training history (models read from a file do not keep it)."),
        ],
    }
    return {name: [text for holds, text in reasons if holds] for name, reasons in sections.items()}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.2f} %"


def _bytes(size: int) -> str:
    value, unit = float(size), 0
    while value >= 1000 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.3g} {UNITS[unit]}"
