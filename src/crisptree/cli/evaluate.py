"""``crisptree evaluate``: how well a model does on a table, hard and soft, class by class, and which splits err."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.cli import numbers, options
from crisptree.cli.dialect import Dialect, with_dialect
from crisptree.cli.output import Output, table_of
from crisptree.cli.rows import Labelled, accuracies, load_model, predicts_numbers, read_labelled
from crisptree.targets.labels import class_numbers

Numbers = npt.NDArray[np.int64]
MOST_CLASSES_SHOWN = 20
MOST_SPLITS_SHOWN = 5
PROBABILITIES = {"log_loss": "log loss", "brier_score": "Brier score", "calibration_error": "calibration error"}
"""Functions of ``crisptree.metrics``, and how people call them."""


@with_dialect
def evaluate(
    model: options.Model,
    data: options.Data,
    *,
    target: options.KnownTarget = None,
    missing: options.Missing = [],  # noqa: B006 (typer makes a new list for every call)
    drop: options.Drop = [],  # noqa: B006
    dialect: Dialect,
    as_json: options.Json = False,
) -> None:
    """Compare predictions and probabilities with the truth.

    Hard is the tree as it predicts, one path per row; soft is the probabilistic tree behind it, for comparison. Numbers
    are judged by their errors, and by how often they lie within the interval that their leaf names.

    Examples:
      crisptree evaluate iris.crisp test.csv --target species

      crisptree evaluate model.crisp test.parquet --json
    """
    out = Output(as_json)
    estimator = load_model(model)
    rows = read_labelled(
        estimator,
        data,
        out,
        target=target,
        dialect=dialect,
        missing=missing,
        drop=drop,
        unknown="counted as errors",
    )
    if predicts_numbers(estimator):
        found = numbers.evaluated(estimator, rows)
        numbers.show_evaluation(out, found)
        out.finish(found)
        return
    classes = [str(label) for label in estimator.classes_.tolist()]
    predicted = class_numbers(estimator.predict(rows.X), estimator.classes_)
    document: dict[str, Any] = {
        "rows": len(rows.X),
        "accuracy": accuracies(estimator, rows.X, rows.truth),
        **_of_probabilities(estimator, rows),
        "classes": _by_class(rows.truth, predicted, estimator.classes_.tolist()),
        "confusion": _confusion(rows.truth, predicted, len(classes)),
        "blamed": _blamed(estimator, rows),
    }
    _show(out, document, classes)
    out.finish(document)


def _confusion(truth: Numbers, predicted: Numbers, n_classes: int) -> list[list[int]]:
    """Rows of each true class (a line; the last for classes the model does not know) predicted as each class.

    Examples
    --------
    >>> _confusion(np.array([0, 1, -1]), np.array([0, 0, 1]), 2)
    [[1, 0], [1, 0], [0, 1]]
    """
    from sklearn.metrics import confusion_matrix

    counts = confusion_matrix(truth, predicted, labels=[*range(n_classes), -1])[:, :-1]
    lines: list[list[int]] = counts.tolist()
    return lines if any(lines[-1]) else lines[:-1]


def _by_class(truth: Numbers, predicted: Numbers, labels: list[Any]) -> list[dict[str, Any]]:
    """Scores of every class; None where no row could have told."""
    from sklearn.metrics import precision_recall_fscore_support

    numbers = range(len(labels))
    *scores, rows = precision_recall_fscore_support(truth, predicted, labels=numbers, zero_division=np.nan)
    names = ("precision", "recall", "f1")
    return [
        {"class": label, "rows": int(count)}
        | {name: None if np.isnan(score) else float(score) for name, score in zip(names, found, strict=True)}
        for label, count, *found in zip(labels, rows, *scores, strict=True)
    ]


def _blamed(model: Any, rows: Labelled) -> list[dict[str, Any]]:
    from crisptree.explain import attribute_errors

    if hasattr(model, "forest_") or model.tree_.is_linear:
        return []  # an error of many trees, or of a model in a leaf, has no one split behind it
    table = attribute_errors(model, *rows.known(model.classes_)).table()
    return [{"split": None if split < 0 else split, "errors": errors, "share": share} for split, errors, share in table]


def _of_probabilities(model: Any, rows: Labelled) -> dict[str, dict[str, float | None]]:
    """How good probabilities are on the rows of known classes; None for what is infinite, which JSON cannot say."""
    from crisptree import metrics

    known = rows.truth >= 0
    found: dict[str, dict[str, float | None]] = {name: {} for name in PROBABILITIES}
    for kind, tables in (("hard", model.predict_proba), ("soft", model.soft_predict_proba)):
        said = tables(rows.X[known])
        for name in PROBABILITIES:
            value = getattr(metrics, name)(rows.truth[known], said)
            found[name][kind] = value if np.isfinite(value) else None
    return found


def _show(out: Output, document: dict[str, Any], classes: list[str]) -> None:
    accuracy = document["accuracy"]
    out.show(f"{document['rows']:,} rows · accuracy hard {accuracy['hard']:.4f} · soft {accuracy['soft']:.4f}")
    for name, words in PROBABILITIES.items():
        said = [f"{kind} {'infinite' if value is None else f'{value:.4f}'}" for kind, value in document[name].items()]
        out.show(f"{words} " + " · ".join(said))
    rows = []
    for entry in document["classes"]:
        scores = (entry[name] for name in ("precision", "recall", "f1"))
        cells = ["–" if score is None else f"{score:.3f}" for score in scores]
        rows.append([str(entry["class"]), f"{entry['rows']:,}", *cells])
    out.show(table_of(("class", "rows", "precision", "recall", "F1"), rows))
    if len(classes) <= MOST_CLASSES_SHOWN:
        lines = zip([*classes, "(unknown)"], document["confusion"], strict=False)
        rows = [[label, *(f"{count:,}" if count else "·" for count in counts)] for label, counts in lines]
        out.show(table_of(["true \\ predicted", *classes], rows))
    else:
        out.show(f"The confusion of {len(classes)} classes is in --json.")
    for entry in document["blamed"][:MOST_SPLITS_SHOWN]:
        name = "no split" if entry["split"] is None else f"split {entry['split']}"
        out.show(f"{name} is to blame for {entry['errors']:,} errors ({entry['share']:.1%})")
