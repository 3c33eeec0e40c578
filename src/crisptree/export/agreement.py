"""Comparison of an export with its model, row by row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.portable import Portable, n_targets_of, trees_of, view_of_first_tree
from crisptree.inference import CrispTree, FlatTree, route_rows
from crisptree.inference.routing import visit_splits

Singles = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

UNIT_ROUNDOFF = 2.0**-24
"""Largest relative error of one rounding to single precision."""

LARGEST = float(np.finfo(np.float32).max)
"""Largest number of single precision."""

TOLERANCE = 1e-6
"""Allowed difference of outputs of the same leaf, because some exports store them in single precision."""

MODULE_ROUNDING = 1e-5
"""Rounding error of a module in another library, relative to the spread of its scores."""


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows before and after encoding.

    Parameters
    ----------
    X : ndarray of shape (n, n_features), float32
        After the encoder.
    columns : dict
        Before it, by the names of the inputs: numbers, booleans, text, and None for missing values.
    """

    X: Singles
    columns: Mapping[str, Sequence[Any]]

    def __len__(self) -> int:
        return len(self.X)


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of a model, or of an export of it.

    Parameters
    ----------
    leaves : ndarray of shape (n,) or (n, n_trees)
        Leaf indices; −1 if unknown.
    outputs : ndarray of shape (n, n_outputs)
        Class probabilities, or regression targets.
    classes : ndarray of shape (n,)
        Class indices; −1 for regression, or if unknown.
    notes : tuple of str
        Remarks on the run, such as versions of libraries.
    exact : bool
        Whether the export should reach the same leaves; quantized weights do not.
    """

    leaves: Integers
    outputs: Doubles
    classes: Integers
    notes: tuple[str, ...] = ()
    exact: bool = True

    @classmethod
    def of(
        cls, leaves: Any, outputs: Any, labels: Iterable[Any], classes: Iterable[Any], notes: tuple[str, ...] = ()
    ) -> Predictions:
        """Convert predicted labels to class indices; regression has no ``classes``, and any labels are ignored."""
        index = {label: number for number, label in enumerate(classes)}
        predicted = np.array([index.get(label, -1) for label in labels] if index else [-1] * len(leaves), np.int64)
        return cls(np.asarray(leaves, np.int64), np.asarray(outputs, np.float64), predicted, notes)


@dataclass(frozen=True)
class Agreement:
    """Result of the comparison of an export with its model; ``print`` it for a text.

    Parameters
    ----------
    target : str
        Name of the export format.
    rows : int
        Number of rows.
    equal_leaves, equal_classes : int
        Rows that reach the same leaf (of a forest: in every tree), and that get the same class.
    largest_difference : float
        Largest difference of any probability on rows that reach the same leaf; for regression relative to the size of
        the target.
    near : int
        Rows so near to a boundary on their path that another order or precision of the sum may change their leaf.
    unexplained : int
        Rows that reach another leaf without being near a boundary or overflowing; 0 for a correct exact export.
    notes : tuple of str
        Remarks on the run.
    exact : bool
        Whether the export should reach the same leaves.
    wrong_classes : int
        Rows that reach the same leaf but get another class.
    what : {"probabilities", "values"}
        What leaves hold: class probabilities, or the values of a regression, which has no classes.
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
        """True if rounding or overflow explains every difference, or the export is not exact by design."""
        explained = self.unexplained == self.wrong_classes == 0
        return not self.exact or (explained and self.largest_difference <= TOLERANCE)

    @property
    def changed(self) -> float:
        """Share of rows that get another class."""
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
        if self.largest_difference > TOLERANCE and self.exact:
            lines.append(f"{self.what} of the same leaf are NOT the same")
        return "\n".join([*lines, *self.notes])


def encode_rows(model: Any, X: Any) -> EncodedRows:
    """Encode rows, given in any form that the model accepts."""
    view = view_of_first_tree(model, "a comparison")
    encoded = view.prepare_rows(X)
    encoder: Any = view.transformers[-1] if view.transformers else None
    while hasattr(encoder, "steps"):
        encoder = encoder.steps[-1][1]
    if encoder is not None:
        return EncodedRows(encoded, encoder.extract_columns(X))
    names = Portable.of(model).feature_names
    given = encoded if X is None or np.ndim(X) != 2 or hasattr(X, "toarray") else np.asarray(X)
    exact = np.asarray(given, dtype=np.float64)
    return EncodedRows(encoded, {name: exact[:, index].tolist() for index, name in enumerate(names)})


def predict_with_model(model: Any, X: Singles) -> Predictions:
    """Predict encoded rows with the model itself: the mean of the outputs of its trees."""
    trees, n_targets = trees_of(model), n_targets_of(model)
    leaves = np.stack([route_rows(tree, X, None) for tree in trees], axis=1)
    outputs = np.zeros((len(X), trees[0].n_outputs))
    for tree, reached in zip(trees, leaves.T, strict=True):
        outputs += tree.leaf_values(reached, X)
    outputs /= len(trees)
    classes = np.full(len(X), -1) if n_targets is not None else trees[0].meaning.answers(outputs)
    return Predictions(leaves, outputs[:, :n_targets], np.asarray(classes, np.int64))


def _output_scale(truth: Predictions, fits: npt.NDArray[np.bool_]) -> Any:
    """Scale of differences: 1 for probabilities, the spread of each target for regression."""
    outputs = truth.outputs[fits]
    if (truth.classes >= 0).any() or not len(outputs):
        return 1.0
    spread = np.ptp(outputs, axis=0)
    return np.where(spread > 0, spread, np.where(outputs[0] == 0, 1.0, np.abs(outputs[0])))


def compare(model: Any, X: Singles, found: Predictions, target: str) -> Agreement:
    """Compare the predictions of an export with those of its model."""
    truth = predict_with_model(model, X)
    same = np.asarray((truth.leaves == found.leaves.reshape(truth.leaves.shape)).all(axis=1))
    near, overflows = np.any([sensitive_rows(tree, X) for tree in trees_of(model)], axis=0)
    sizes = np.abs(truth.outputs)
    fits = np.asarray((sizes <= LARGEST).all(axis=1))
    gap = np.abs(truth.outputs - found.outputs) / np.maximum(sizes, _output_scale(truth, fits))
    gap[np.isnan(gap)] = np.inf
    # The infinity of the right sign is all that an output of single precision can give here.
    lost = (sizes > LARGEST) & (found.outputs == np.copysign(np.inf, truth.outputs))
    gap[lost] = 0.0
    overflows |= lost.any(axis=1)
    right = truth.classes == found.classes
    return Agreement(
        target=target,
        rows=len(X),
        equal_leaves=int(same.sum()),
        equal_classes=int(right.sum()),
        largest_difference=float(gap[same].max(initial=0.0)),
        near=int(near.sum()),
        unexplained=int((~same & ~near & ~overflows).sum()),
        notes=found.notes,
        exact=found.exact,
        wrong_classes=int((same & ~right).sum()),
        what="probabilities" if n_targets_of(model) is None else "values",
        overflows=int(overflows.sum()),
    )


def sensitive_rows(tree: CrispTree, X: Singles) -> npt.NDArray[np.bool_]:
    """Find rows whose leaf another order or precision of a sum may change: by rounding, and by overflow.  (2, n)

    The scores of two orders or precisions of the sum of k terms differ by at most (k + 3) · 2⁻²⁴ · (Σ|w x| + |b|), and
    no partial sum exceeds Σ|w x| + |b| by more than that.
    """
    near, overflows = np.zeros((2, len(X)), dtype=bool)
    for split, rows, scores in visit_splits(tree, X):
        if isinstance(tree, FlatTree):
            weight = tree.weight[split].astype(np.float64)
            used = np.flatnonzero(weight)
            sizes = np.abs(X[np.ix_(rows, used)].astype(np.float64)) @ np.abs(weight[used]) + abs(tree.bias[split])
            bound = (len(used) + 3) * UNIT_ROUNDOFF * sizes
            overflows[rows[sizes + bound > LARGEST]] = True
        else:
            bound = np.full(len(rows), MODULE_ROUNDING * max(float(tree.statistics.score_spread[split]), 1.0))
            overflows[rows[~np.isfinite(scores)]] = True
        near[rows[np.abs(scores) <= bound]] = True
    return np.stack([near, overflows])
