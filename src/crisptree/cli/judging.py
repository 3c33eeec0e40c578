"""How good a fitted tree is, beside what costs nothing, and the sentences that say when that is not much."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.cli.rows import accuracies, shares_right
from crisptree.cli.training import Scored, TrainingTable

HELD_OUT = 0.2
FEWEST_TO_HOLD_OUT = 50
"""Of fewer rows a fifth says next to nothing, and the tree needs all of them."""

LARGE_GAP = 0.05
"""A difference in accuracy that is worth a sentence, if it is also more than twice its standard error."""

Scores = dict[str, dict[str, Any]]
Seen = tuple[npt.NDArray[Any], ...]


def share_to_hold_out(asked: float | None, n_rows: int, has_validation: bool) -> float:
    """What the user asks for; else a fifth, unless other rows judge or there are too few."""
    if asked is not None:
        return asked
    return 0.0 if has_validation or n_rows < FEWEST_TO_HOLD_OUT else HELD_OUT


def scores_of(model: Any, table: TrainingTable, others: dict[str, Scored | None], seen: Seen) -> Scores:
    """For the training rows and others: how many they are, and the share that is right hard, soft and by majority.

    ``seen`` is what the model says of the training rows, of which this process may have a part only.
    """
    majority = np.searchsorted(table.classes, majority_class(table))
    shares = {"training": (table.truth, shares_right(table.truth, *seen))}
    for name, rows in others.items():
        if rows is not None:
            shares[name] = rows[1], accuracies(model, *rows, table.classes)
    return {
        name: {"rows": len(truth), **right, "majority": float(np.mean(truth == majority))}
        for name, (truth, right) in shares.items()
    }


def majority_class(table: TrainingTable) -> Any:
    """The commonest class of the training rows."""
    return table.classes[int(np.bincount(table.truth).argmax())]


def remarks(scores: Scores, majority: Any) -> list[str]:
    r"""What a user should notice.

    Examples
    --------
    >>> training = {"rows": 400, "hard": 0.99, "majority": 0.6}
    >>> remarks({"training": training, "held out": {"rows": 100, "hard": 0.95, "majority": 0.6}}, "no")
    []
    >>> held = {"rows": 100, "hard": 0.6, "majority": 0.6}
    >>> print(*remarks({"training": training, "held out": held}, "no"), sep="\n")  # doctest: +ELLIPSIS
    of training rows 99.0% are right, of rows held out 60.0%: the tree has learned much ...
    on rows held out the tree is no better than always saying 'no'.
    """
    if "held out" not in scores:
        return []
    seen, held, said = scores["training"], scores["held out"], []
    error = math.sqrt(sum(part["hard"] * (1 - part["hard"]) / part["rows"] for part in (seen, held)))
    if seen["hard"] - held["hard"] > max(LARGE_GAP, 2 * error):
        said.append(
            f"of training rows {seen['hard']:.1%} are right, of rows held out {held['hard']:.1%}: the tree has learned "
            "much that holds for its own rows only. Try a smaller --depth, --prune auto, or more rows."
        )
    if held["hard"] <= held["majority"]:
        said.append(f"on rows held out the tree is no better than always saying {str(majority)!r}.")
    return said
