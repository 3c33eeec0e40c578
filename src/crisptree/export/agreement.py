"""How far an export agrees with its model, row by row: the number that every export says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.forests import first_view, n_targets_of, trees_of
from crisptree.inference import CrispTree, FlatTree, route_rows
from crisptree.inference.reference import visits

Singles = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

UNIT = 2.0**-24
"""The largest relative error of one rounding to single precision."""

LARGEST = float(np.finfo(np.float32).max)
"""The largest number of single precision."""

SAME = 1e-6
"""Probabilities of the same leaf may differ by as much where an export keeps them in single precision."""

MODULE_ROUNDING = 1e-5
"""Of the spread of a module's scores: what another library's order of sums may change."""


@dataclass(frozen=True, eq=False)
class Rows:
    """The same rows in two forms.

    Parameters
    ----------
    X : ndarray of shape (n, n_features), float32
        As the tree sees them, after the encoder.
    columns : dict
        As a user has them, by the names of the inputs: numbers, booleans, text, and None where a value is missing.
    """

    X: Singles
    columns: Mapping[str, Sequence[Any]]

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model, or an export of it, says of rows.

    Parameters
    ----------
    leaves : ndarray of shape (n,) or (n, n_trees)
        Leaf numbers; −1 where it gives none.
    classes : ndarray of shape (n,)
        Numbers of classes; −1 where it gives none.
    probabilities : ndarray of shape (n, n_outputs)
        What the leaves say.
    notes : tuple of str
        What one should know about the run itself, such as the versions that took part.
    exact : bool
        Whether it means to reach the same leaves; whole numbers in place of weights do not.
    """

    leaves: Integers
    classes: Integers
    probabilities: Doubles
    notes: tuple[str, ...] = ()
    exact: bool = True


@dataclass(frozen=True)
class Agreement:
    """An export compared with its model, row by row; ``print`` it for a text.

    Parameters
    ----------
    target : str
        What it was exported to.
    rows : int
        Rows compared.
    equal_leaves, equal_classes : int
        Rows that reach the same leaf (of a forest: in every tree), and that get the same class.
    largest_difference : float
        Of any probability, on the rows that reach the same leaf; of numbers of a regression beyond 1, relative to them.
    near : int
        Rows so near to a boundary on their way that another order or precision of the sum may turn them.
    unexplained : int
        Rows that reach another leaf and are not near any boundary; of an exact export, anything but 0 is a fault.
    notes : tuple of str
        What one should know about the run.
    exact : bool
        Whether the export means to reach the same leaves.
    wrong_classes : int
        Rows that reach the same leaf and yet get another class.
    what : {"probabilities", "values"}
        What leaves say: probabilities of classes, or the values of a regression, which has no classes.
    overflows : int
        Rows that single precision cannot hold: a score on their path may overflow, and another order or precision of
        the sum then reaches another leaf; or the predicted value is beyond the export's output, which is infinite.
    """

    target: str
    rows: int
    equal_leaves: int
    equal_classes: int
    largest_difference: float
    near: int
    unexplained: int
    notes: tuple[str, ...] = field(default=())
    exact: bool = True
    wrong_classes: int = 0
    what: str = "probabilities"
    overflows: int = 0

    @property
    def holds(self) -> bool:
        """Whether rounding or overflow explains every difference, or the export says that it rounds."""
        explained = self.unexplained == self.wrong_classes == 0
        return not self.exact or (explained and self.largest_difference <= SAME)

    @property
    def changed(self) -> float:
        """The share of rows that get another class."""
        return 1 - self.equal_classes / max(self.rows, 1)

    def __str__(self) -> str:
        same_class = f", {self.equal_classes:,} get the same class" if self.what == "probabilities" else ""
        lines = [
            f"{self.target}: {self.equal_leaves:,} of {self.rows:,} rows reach the same leaf{same_class}; {self.what} "
            f"differ by at most {self.largest_difference:.3g}; {self.near:,} rows lie within rounding of a boundary"
        ]
        if self.overflows:
            infinite = "" if self.what == "probabilities" else ", and larger values are infinite in single precision"
            lines.append(
                f"{self.overflows:,} rows overflow single precision (±{LARGEST:.2g}), where another order or precision "
                f"of the sum may turn them{infinite}"
            )
        if self.unexplained and self.exact:
            lines.append(f"{self.unexplained:,} rows reach another leaf WITHOUT being near a boundary or overflowing")
        if self.wrong_classes and self.exact:
            lines.append(f"{self.wrong_classes:,} rows reach the same leaf and get ANOTHER class")
        if self.largest_difference > SAME and self.exact:
            lines.append(f"{self.what} of the same leaf are NOT the same")
        return "\n".join([*lines, *self.notes])


def rows_of(model: Any, X: Any) -> Rows:
    """Rows in both forms, from whatever the model itself takes."""
    view = first_view(model, "a comparison")
    encoded = view.prepare_rows(X)
    last: Any = view.transformers[-1] if view.transformers else None
    while hasattr(last, "steps"):
        last = last.steps[-1][1]
    if last is not None:
        return Rows(encoded, last.extract_columns(X))
    from crisptree.export.portable import Portable

    names = Portable.of(model).feature_names
    given = encoded if X is None or np.ndim(X) != 2 or hasattr(X, "toarray") else np.asarray(X)
    exact = np.asarray(given, dtype=np.float64)
    return Rows(encoded, {name: exact[:, place].tolist() for place, name in enumerate(names)})


def expected(model: Any, X: Singles) -> Answers:
    """What the model itself says of rows as its trees see them: of a forest the mean of what the leaves say."""
    trees = trees_of(model)
    leaves = np.stack([route_rows(tree, X, None) for tree in trees], axis=1)
    tables = np.zeros((len(X), trees[0].n_outputs))
    for tree, reached in zip(trees, leaves.T, strict=True):
        tables += tree.leaf_values(reached, X)
    tables /= len(trees)
    n_targets = n_targets_of(model)
    if n_targets is not None:
        return Answers(leaves, no_classes(len(X)), tables[:, :n_targets])
    return Answers(leaves, np.asarray(trees[0].meaning.answers(tables), np.int64), tables)


def no_classes(n: int) -> Integers:
    """What stands in the place of classes where numbers are predicted."""
    return np.full(n, -1, dtype=np.int64)


def _unit(truth: Answers, fits: npt.NDArray[np.bool_]) -> Any:
    """What gaps are measured in: 1 for probabilities; numbers of a regression may be of any size."""
    values = truth.probabilities[fits]
    if (truth.classes >= 0).any() or not len(values):
        return 1.0
    spread = np.ptp(values, axis=0)
    return np.where(spread > 0, spread, np.where(values[0] == 0, 1.0, np.abs(values[0])))


def compare(model: Any, X: Singles, found: Answers, target: str) -> Agreement:
    """An export's answers for rows beside those of its model."""
    truth = expected(model, X)
    same = np.asarray((truth.leaves == found.leaves.reshape(truth.leaves.shape)).all(axis=1))
    near, overflows = np.any([sensitive_rows(tree, X) for tree in trees_of(model)], axis=0)
    fits = np.asarray((np.abs(truth.probabilities) <= LARGEST).all(axis=1))
    size = np.maximum(np.abs(truth.probabilities), _unit(truth, fits))
    gap = np.abs(truth.probabilities - found.probabilities) / size
    gap[np.isnan(gap)] = np.inf
    # The infinity of the right sign is all that an output of single precision can give here.
    lost = (np.abs(truth.probabilities) > LARGEST) & (found.probabilities == np.copysign(np.inf, truth.probabilities))
    gap[lost] = 0.0
    overflows |= lost.any(axis=1)
    right = truth.classes == found.classes
    return Agreement(
        target,
        len(X),
        int(same.sum()),
        int(right.sum()),
        float(gap[same].max(initial=0.0)),
        int(near.sum()),
        int((~same & ~near & ~overflows).sum()),
        found.notes,
        found.exact,
        int((same & ~right).sum()),
        "probabilities" if n_targets_of(model) is None else "values",
        int(overflows.sum()),
    )


def sensitive_rows(tree: CrispTree, X: Singles) -> npt.NDArray[np.bool_]:
    """Rows that another order or precision of a sum may turn: by rounding, and by overflow.  (2, n)

    The scores of two orders or precisions of the sum of k terms differ by at most (k + 3) · 2⁻²⁴ · (Σ|w x| + |b|), and
    no partial sum exceeds Σ|w x| + |b| by more than that.
    """
    near, overflows = np.zeros((2, len(X)), dtype=bool)
    for split, rows, scores in visits(tree, X):
        if isinstance(tree, FlatTree):
            weight = tree.weight[split].astype(np.float64)
            used = np.flatnonzero(weight)
            sizes = np.abs(X[np.ix_(rows, used)].astype(np.float64)) @ np.abs(weight[used]) + abs(tree.bias[split])
            bound = (len(used) + 3) * UNIT * sizes
            overflows[rows[sizes + bound > LARGEST]] = True
        else:
            bound = np.full(len(rows), MODULE_ROUNDING * max(float(tree.statistics.score_spread[split]), 1.0))
            overflows[rows[~np.isfinite(scores)]] = True
        near[rows[np.abs(scores) <= bound]] = True
    return np.stack([near, overflows])
