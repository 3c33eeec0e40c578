"""The page's sentences and numbers that need no script."""

from __future__ import annotations

from typing import Any

from crisptree.view import ModelView

UNITS = ("bytes", "kB", "MB", "GB")


def subtitle(view: ModelView, values: dict[str, Any]) -> str:
    """What kind of tree this is, in one line."""
    summary, shape = values["summary"], view.image_shape
    kind = getattr(view.estimator, "split", None)
    seen = "windows" if hasattr(view.estimator, "window") else "images"  # a segmenter's tree sees parts of images
    parts = [
        f"{len(view.class_names)} classes",
        f"{view.tree.n_features:,} features" if shape is None else f"{seen} of {' × '.join(map(str, _plain(shape)))}",
        f"{kind} splits" if isinstance(kind, str) else "splits made of modules",
        f"{summary['training_rows']:,.10g} training rows" if summary["training_rows"] else "training rows not counted",
    ]
    if summary["rows"] is not None:
        parts.append(f"{summary['rows']:,} rows given with this report")
    return " · ".join(parts)


def cards(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Label, value and a word of explanation for each of the figures at the top."""
    rows = f"of {summary['rows']:,} given rows" if summary["hard"] is not None else "no rows with classes given"
    splits, path = summary["splits"], summary["path"]
    share = f"{100 * path / splits:.3g} %" if splits else "none"
    return [
        {"label": "Accuracy, crisp", "value": _percent(summary["hard"]), "hint": f"one path, {rows}", "strong": True},
        {
            "label": "Accuracy, soft",
            "value": _percent(summary["soft"]),
            "hint": f"all paths, γ = {summary['steepness']:.3g}",
            "strong": True,
        },
        {
            "label": "Accuracy in training",
            "value": _percent(summary["training"]),
            "hint": "crisp, from its leaf counts",
        },
        *_probability_cards(summary),
        {"label": "Leaves", "value": f"{summary['leaves']:,}", "hint": f"{splits:,} splits"},
        {"label": "Depth", "value": str(summary["depth"]), "hint": "splits on the longest path"},
        {"label": "Mean path", "value": f"{path:.2f}", "hint": "splits a row visits"},
        {"label": "Splits evaluated", "value": share, "hint": f"{path:.2f} of {splits:,} for a row"},
        {"label": "Size", "value": _bytes(summary["bytes"]), "hint": f"{summary['bytes']:,} bytes to predict with"},
    ]


def _probability_cards(summary: dict[str, Any]) -> list[dict[str, Any]]:
    unknown = "–" if summary["hard"] is None else "infinite"  # a class that was given no chance did occur

    def number(name: str) -> str:
        return unknown if summary[name] is None else f"{summary[name]:.3f}"

    return [
        {"label": "Log loss", "value": number("log_loss"), "hint": "crisp, mean of −log p in nats"},
        {"label": "Brier score", "value": number("brier_score"), "hint": "crisp, from 0 to 2"},
        {"label": "Calibration error", "value": number("calibration_error"), "hint": "crisp, confidence against truth"},
    ]


SECTIONS = ("summary", "tree", "samples", "blame", "training")


def notes(values: dict[str, Any], *, takes_rows: bool) -> dict[str, list[str]]:
    """Why a part of the page is missing, section by section. A report of a segmenter takes no rows."""
    advice = "Write the report with X and y to see more." if takes_rows else "A report of a segmenter has none."
    samples, blame = values["samples"], values["blame"]
    no_rows = samples is None
    no_classes = not no_rows and not values["labelled"]
    reasons = [
        ("summary", no_rows, f"No rows were given, so accuracy is known for training only. {advice}"),
        (
            "summary",
            no_classes,
            "The rows came without their classes, so their accuracy is not known. Colors mean predicted classes.",
        ),
        (
            "tree",
            not values["linear"],
            "The splits of this tree are modules (small networks): they have no weight for each feature to show. "
            "Scores, counts and paths are shown all the same.",
        ),
        (
            "tree",
            not values["summary"]["splits"],
            "This tree is a single leaf: it asks nothing and answers the same for every row.",
        ),
        ("tree", no_rows, "No rows were given, so there are no score histograms and no example samples."),
        ("samples", no_rows, f"Not shown: no rows were given. {advice}"),
        ("samples", no_classes, "No confusion matrix: the rows came without their classes."),
        (
            "samples",
            not no_rows and samples["count"] == 0,
            "This report was written with max_samples=0, so it holds no samples to look at.",
        ),
        ("blame", blame is None, "Not shown: errors can be found only on rows that come with their classes."),
        ("blame", blame == [], "Not one of the given rows is wrong."),
        (
            "training",
            values["history"] is None,
            "Not shown: this model has no training history (models read from a file do not keep it).",
        ),
    ]
    return {name: [text for section, holds, text in reasons if holds and section == name] for name in SECTIONS}


def _plain(shape: tuple[int, int, int]) -> tuple[int, ...]:
    return shape[:2] if shape[2] == 1 else shape


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.2f} %"


def _bytes(size: int) -> str:
    value, unit = float(size), 0
    while value >= 1000 and unit < len(UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.3g} {UNITS[unit]}"
