"""``crisptree evaluate``: how well a model does on a table, hard and soft, class by class, and which splits err."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from rich.table import Table
from rich.text import Text

from crisptree.cli import options
from crisptree.cli.rows import Labelled, accuracies, load_classifier, read_labelled, unnamed
from crisptree.cli.speaking import Speaker

MOST_CLASSES_SHOWN = 20
MOST_SPLITS_SHOWN = 5


def evaluate(
    model: options.Model,
    data: options.Data,
    target: options.KnownTarget = None,
    with_log_loss: Annotated[
        bool, typer.Option("--log-loss", help="Also the mean of −log p(y∣x), hard and soft.")
    ] = False,
    missing: options.Missing = [],  # noqa: B006 (typer makes a new list for every call)
    drop: options.Drop = [],  # noqa: B006
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
) -> None:
    """Compare predictions with the truth.

    Hard is the tree as it predicts, one path per row; soft is the probabilistic tree behind it, for comparison.

    Examples:
      crisptree evaluate iris.crisp test.csv --target species

      crisptree evaluate model.crisp test.parquet --log-loss --json
    """
    speaker = Speaker(as_json)
    estimator = load_classifier(model)
    rows = read_labelled(
        estimator,
        data,
        speaker,
        target=target,
        delimiter=options.check_delimiter(delimiter),
        missing=missing,
        drop=drop,
        strangers="counted as errors",
    )
    classes = [str(label) for label in estimator.classes_.tolist()]
    predicted = estimator.tree_.labels(unnamed(estimator).apply(rows.X))
    confusion = confusion_matrix(rows.truth, predicted, len(classes))
    document: dict[str, Any] = {
        "rows": len(rows.X),
        "accuracy": accuracies(estimator, rows.X, rows.truth),
        "classes": _by_class(confusion, estimator.classes_.tolist()),
        "confusion": confusion.tolist(),
        "blamed": _blamed(estimator, rows),
    }
    if with_log_loss:
        document["log_loss"] = _log_losses(estimator, rows)
    _show(speaker, document, classes)
    speaker.finish(document)


def confusion_matrix(
    truth: npt.NDArray[np.int64], predicted: npt.NDArray[np.int64], n_classes: int
) -> npt.NDArray[np.int64]:
    """Rows of each true class (a line; the last for classes the model does not know) predicted as each class.

    Examples
    --------
    >>> confusion_matrix(np.array([0, 1, -1]), np.array([0, 0, 1]), 2).tolist()
    [[1, 0], [1, 0], [0, 1]]
    """
    counts = np.zeros((n_classes + 1, n_classes), dtype=np.int64)
    np.add.at(counts, (truth, predicted), 1)
    return counts if counts[-1].any() else counts[:-1]


def _by_class(confusion: npt.NDArray[np.int64], labels: list[Any]) -> list[dict[str, Any]]:
    right = confusion.diagonal()
    predicted, true = confusion.sum(axis=0), confusion[: len(labels)].sum(axis=1)
    entries = []
    for number, label in enumerate(labels):
        precision, recall = _share(right[number], predicted[number]), _share(right[number], true[number])
        f1 = _share(2 * right[number], predicted[number] + true[number])
        entries.append({"class": label, "rows": int(true[number]), "precision": precision, "recall": recall, "f1": f1})
    return entries


def _share(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None


def _blamed(model: Any, rows: Labelled) -> list[dict[str, Any]]:
    from crisptree.explain import blame

    unknown = rows.truth < 0
    known = ~unknown
    table = blame(unnamed(model), rows.X[known], model.classes_[rows.truth[known]]).table()
    return [{"split": None if split < 0 else split, "errors": errors, "share": share} for split, errors, share in table]


def _log_losses(model: Any, rows: Labelled) -> dict[str, float | None]:
    """Means over the rows of known classes; None where a row's class had no chance, which would be infinite."""
    plain, known = unnamed(model), rows.truth >= 0
    losses: dict[str, float | None] = {}
    for name, table in (("hard", plain.predict_proba), ("soft", plain.soft_predict_proba)):
        chosen = table(rows.X[known])[np.arange(int(known.sum())), rows.truth[known]]
        losses[name] = float(0 - np.log(chosen).mean()) if len(chosen) and chosen.min() > 0 else None
    return losses


def _show(speaker: Speaker, document: dict[str, Any], classes: list[str]) -> None:
    accuracy = document["accuracy"]
    speaker.show(f"{document['rows']:,} rows · accuracy hard {accuracy['hard']:.4f} · soft {accuracy['soft']:.4f}")
    if "log_loss" in document:
        said = [
            f"{name} {'infinite' if loss is None else f'{loss:.4f}'}" for name, loss in document["log_loss"].items()
        ]
        speaker.show("log loss " + " · ".join(said))
    speaker.show(_class_table(document["classes"]))
    if len(classes) <= MOST_CLASSES_SHOWN:
        speaker.show(_confusion_table(document["confusion"], classes))
    else:
        speaker.show(f"The confusion of {len(classes)} classes is in --json.")
    for entry in document["blamed"][:MOST_SPLITS_SHOWN]:
        name = "no split" if entry["split"] is None else f"split {entry['split']}"
        speaker.show(f"{name} is to blame for {entry['errors']:,} errors ({entry['share']:.1%})")


def _class_table(entries: list[dict[str, Any]]) -> Table:
    table = Table()
    for column in ("class", "rows", "precision", "recall", "F1"):
        table.add_column(column, justify="left" if column == "class" else "right")
    for entry in entries:
        scores = ["–" if entry[name] is None else f"{entry[name]:.3f}" for name in ("precision", "recall", "f1")]
        table.add_row(Text(str(entry["class"])), f"{entry['rows']:,}", *scores)
    return table


def _confusion_table(confusion: list[list[int]], classes: list[str]) -> Table:
    table = Table()
    table.add_column("true \\ predicted")
    for label in classes:
        table.add_column(Text(label), justify="right")
    for label, counts in zip([*classes, "(unknown)"], confusion, strict=False):
        table.add_row(Text(label), *(f"{count:,}" if count else "·" for count in counts))
    return table
