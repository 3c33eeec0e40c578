"""How good a tree of numbers is, on the command line: beside always saying the mean, and in words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.blocks import row_blocks
from crisptree.cli.output import Output, table_of
from crisptree.cli.rows import ROWS_AT_ONCE, Labelled
from crisptree.cli.training import Scored, TrainingTable

LARGE_GAP = 0.1
"""A difference in R² that is worth a sentence."""

WORDS = {"r2": "R²", "rmse": "RMSE", "mae": "mean |error|", "soft_rmse": "soft RMSE", "mean_rmse": "RMSE of the mean"}


def said_numbers(model: Any, X: npt.NDArray[np.float32]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """What a model says, hard and soft, a few rows at a time: they may be more than the memory holds.  Two (n,)"""
    hard, soft = np.empty(len(X)), np.empty(len(X))
    for rows in row_blocks(len(X), ROWS_AT_ONCE):
        hard[rows], soft[rows] = model.predict(X[rows]), model.soft_predict(X[rows])
    return hard, soft


def errors(true: npt.NDArray[Any], found: npt.NDArray[Any], soft: npt.NDArray[Any], mean: float) -> dict[str, Any]:
    """How many rows there are and how far predictions are off, hard and soft, and how far the mean of training is."""

    def rmse(predicted: Any) -> float:
        return math.sqrt(float(np.mean((true - predicted) ** 2)))

    hard, spread = rmse(found), float(np.std(true))
    return {
        "rows": len(true),
        "r2": 1 - hard**2 / spread**2 if spread > 0 else None,
        "rmse": hard,
        "mae": float(np.mean(np.abs(true - found))),
        "soft_rmse": rmse(soft),
        "mean_rmse": rmse(mean),
    }


def scores_of(
    model: Any, table: TrainingTable, others: dict[str, Scored | None], seen: tuple[npt.NDArray[Any], ...]
) -> dict[str, dict[str, Any]]:
    """For the training rows, of which the model says what it has ``seen``, and others."""
    mean = float(np.average(table.y, weights=table.weight))
    hard, soft = seen
    scores = {"training": errors(table.y, hard, soft, mean)}
    for name, rows in others.items():
        if rows is not None:
            scores[name] = errors(rows[1], *said_numbers(model, rows[0]), mean)
    return scores


def remarks(scores: dict[str, dict[str, Any]]) -> list[str]:
    r"""What a user should notice.

    Examples
    --------
    >>> seen = {"rows": 400, "r2": 0.9, "rmse": 1.0, "mean_rmse": 3.2}
    >>> held = {"rows": 100, "r2": -0.1, "rmse": 3.3, "mean_rmse": 3.2}
    >>> print(*remarks({"training": seen, "held out": held}), sep="\n")  # doctest: +ELLIPSIS
    R² is 0.900 on training rows and -0.100 on rows held out: the tree has learned much ...
    on rows held out the tree is no better than always saying the mean.
    """
    if "held out" not in scores:
        return []
    seen, held, said = scores["training"], scores["held out"], []
    if None not in (seen["r2"], held["r2"]) and seen["r2"] - held["r2"] > LARGE_GAP:
        said.append(
            f"R² is {seen['r2']:.3f} on training rows and {held['r2']:.3f} on rows held out: the tree has learned much "
            "that holds for its own rows only. Try a smaller --depth, --prune auto, or more rows."
        )
    if held["rmse"] >= held["mean_rmse"]:
        said.append("on rows held out the tree is no better than always saying the mean.")
    return said


def show_scores(out: Output, scores: dict[str, dict[str, Any]]) -> None:
    """A table of them."""
    lines = [
        [name, f"{score['rows']:,}", *("–" if score[word] is None else f"{score[word]:.4g}" for word in WORDS)]
        for name, score in scores.items()
    ]
    out.show(
        "RMSE: root of the mean squared error, one path per row, as it predicts · soft: all leaves, for comparison"
    )
    out.show(table_of(("on", "rows", *WORDS.values()), lines))


COVERAGES = (0.5, 0.9)
"""Of the intervals that ``evaluate`` looks at."""


def evaluated(model: Any, rows: Labelled) -> dict[str, Any]:
    """Errors on a table, and how many of its rows lie in the intervals of their leaves."""
    trees = [*model.forest_] if hasattr(model, "forest_") else [model.tree_]
    roots = [tree.in_units(tree.meaning.tables(tree.statistics.node_counts[:1]))[0, 0] for tree in trees]
    mean = float(np.mean(roots))
    within = {}
    for coverage in COVERAGES:
        low, high = model.predict_interval(rows.X, coverage)
        within[f"{coverage:.0%}"] = float(np.mean((rows.truth >= low) & (rows.truth <= high)))
    return {**errors(rows.truth, *said_numbers(model, rows.X), mean), "within_interval": within}


def show_evaluation(out: Output, found: dict[str, Any]) -> None:
    """The same in words."""
    show_scores(out, {"this table": found})
    said = ", ".join(f"{share:.1%} within that of {name}" for name, share in found["within_interval"].items())
    out.show(f"intervals of the leaves: {said}")
