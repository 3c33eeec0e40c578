"""Distillation: rows and noisy copies of them, labelled by a teacher model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    column_or_1d,
)

from crisptree.data.validation import needs_encoder
from crisptree.encoding.containers import as_table, materialize, refuse_batches
from crisptree.pipeline.validation import draw_seed
from crisptree.targets.base import check_sample_weight, class_numbers
from crisptree.targets.classification import Probabilities, check_probabilities, one_hot
from crisptree.targets.regression import check_regression_target, squeeze_outputs
from crisptree.threads import check_single_process
from crisptree.typing import ArrayLike

DEFAULT_COPIES = 4
"""Noisy copies of a numeric row."""

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]


class TeacherRows(NamedTuple):
    """Rows that a teacher labels: the original ones first, then their copies, in ``X`` concatenated."""

    rows: list[Any]
    X: Any
    source: npt.NDArray[np.intp]
    weight: Doubles | None
    rng: np.random.Generator

    @property
    def n_rows(self) -> int:
        """Number of original rows."""
        return len(self.source) // len(self.rows)


def label_by_classifier(teacher: Any, rows: TeacherRows, y: Any, labels: str, trust: float | None) -> Probabilities:
    """Label rows by a fitted classifier, and the original ones by y too where it is given."""
    _check_trust(trust, y)
    classes = _classes(teacher)
    predictions = [_class_probabilities(teacher, part, classes, rows.n_rows) for part in rows.rows]
    truth = np.full(len(rows.source), -1)
    if y is not None:
        truth[: rows.n_rows] = numbers = _true_numbers(y, classes, rows.n_rows)
        predictions[0] = _mix(predictions[0], one_hot(numbers, len(classes)), trust)
    return Probabilities(LABELS[labels](np.concatenate(predictions), truth, rows.rng), classes, rows.source)


def label_by_regressor(teacher: Any, rows: TeacherRows, y: Any, trust: float | None) -> Doubles:
    """Predict rows by a fitted regressor, mixed with y where it is given.  (n,) or (n, n_outputs)"""
    _check_trust(trust, y)
    predictions = [_predict(teacher, part, rows.n_rows) for part in rows.rows]
    if y is not None:
        truth = check_regression_target(y)
        check_consistent_length(np.empty(rows.n_rows), truth)
        if truth.shape[1] != predictions[0].shape[1]:
            raise ValueError(
                f"y must have as many columns as `teacher` predicts, {predictions[0].shape[1]}; got {truth.shape[1]}."
            )
        predictions[0] = _mix(predictions[0], truth, trust)
    return squeeze_outputs(np.concatenate(predictions))


def make_copies(
    parameters: Mapping[str, Any], teacher: Any, X: Any, copies: int | str, noise: float, sample_weight: Any
) -> TeacherRows:
    """Make copies of rows with Gaussian noise on every feature; ``parameters`` are those of the tree.

    Columns of whole numbers keep to the values that they have, so that codes of categories and counts stay such.
    """
    check_single_process("distill")
    refuse_batches(X, "distill")
    X = materialize(X)
    is_table = needs_encoder(parameters["categorical_features"], X)
    if isinstance(copies, str):
        copies = 0 if is_table else DEFAULT_COPIES
    n_copies = copies if noise > 0 else 0
    values = _check_features(X, teacher, is_table, n_copies)
    if sample_weight is not None:
        sample_weight = check_sample_weight(sample_weight, values)
    rng = np.random.default_rng(draw_seed(parameters["random_state"]))
    spread = values.std(axis=0, dtype=np.float64)
    discrete = _find_discrete(values) if n_copies else {}
    rows = [X, *(_like(X, _add_noise(values, noise * spread, discrete, rng)) for _ in range(n_copies))]
    all_rows = X if n_copies == 0 else _like(X, np.concatenate([values, *map(np.asarray, rows[1:])]))
    weight = None if sample_weight is None else np.tile(sample_weight, len(rows))
    return TeacherRows(rows, all_rows, np.tile(np.arange(len(values)), len(rows)), weight, rng)


def _check_trust(trust: float | None, y: Any) -> None:
    if trust is not None and y is None:
        raise ValueError(
            f"`trust` must come with y, true labels that it is weighed against; got trust={trust!r} and no y. Give "
            "y, or leave trust None."
        )


def _predict(teacher: Any, X: Any, n_rows: int) -> Doubles:
    """Predict with a regressor.  (n, n_outputs)"""
    kind = type(teacher).__name__
    if not hasattr(teacher, "predict"):
        raise TypeError(f"`teacher` must be a fitted regressor with predict; got {kind}.")
    if hasattr(teacher, "classes_"):
        raise TypeError(f"`teacher` must predict numbers; a {kind} predicts classes. Use CrispTreeClassifier.distill.")
    predictions = check_regression_target(teacher.predict(X), "what `teacher.predict` gives")
    if len(predictions) != n_rows:
        raise ValueError(f"`teacher.predict` must give a number for each of {n_rows} rows; got {len(predictions)}.")
    return predictions


def _hard(probabilities: Doubles, truth: Numbers, rng: np.random.Generator) -> Doubles:
    """Assign the most probable class; in ties, up to rounding, the true one."""
    labels = probabilities.argmax(axis=1)
    labelled = np.flatnonzero(truth >= 0)
    ties = labelled[probabilities[labelled, truth[labelled]] >= probabilities[labelled].max(axis=1) - 1e-9]
    labels[ties] = truth[ties]
    return one_hot(labels, probabilities.shape[1])


def _sampled(probabilities: Doubles, truth: Numbers, rng: np.random.Generator) -> Doubles:
    """Draw a class from the probabilities."""
    below = probabilities.cumsum(axis=1) <= rng.random((len(probabilities), 1))
    # Rounding may leave the last sum below 1.
    drawn = np.minimum(below.sum(axis=1), probabilities.shape[1] - 1)
    return one_hot(drawn, probabilities.shape[1])


def _soft(probabilities: Doubles, truth: Numbers, rng: np.random.Generator) -> Doubles:
    return probabilities


LABELS = {"hard": _hard, "sample": _sampled, "soft": _soft}
"""Labels from mixed probabilities; true classes are −1 where they are unknown."""


def _classes(teacher: Any) -> npt.NDArray[Any]:
    """Return the classes of a fitted teacher, at least two."""
    kind = type(teacher).__name__
    if not (hasattr(teacher, "predict") or hasattr(teacher, "predict_proba")):
        raise TypeError(f"`teacher` must be a fitted classifier with predict_proba or predict; got {kind}.")
    classes = getattr(teacher, "classes_", None)
    if classes is None:
        raise NotFittedError(
            f"`teacher` must be a fitted classifier, which knows its classes_; this {kind} has none. Call its fit "
            "first; a regressor cannot teach classes."
        )
    if isinstance(classes, list) or np.ndim(classes) != 1:
        raise ValueError(f"`teacher` must answer with one class per row; this {kind} has several outputs.")
    if len(classes) < 2:
        raise ValueError(f"`teacher` must know at least 2 classes; it knows {np.asarray(classes).tolist()}.")
    return np.asarray(classes)


def _check_features(X: Any, teacher: Any, is_table: bool, n_copies: int) -> npt.NDArray[np.float32]:
    """Return rows as float32, with the number of features that the teacher was fitted on; no columns for a table."""
    if is_table:
        if n_copies:
            raise ValueError(
                f"`copies` must be 0 for a table with text or missing values, because noise goes with numbers; got "
                f"{n_copies}. Leave it 'auto', or distill from numbers, with the teacher in a Pipeline behind what "
                "makes them."
            )
        return np.zeros((as_table(X).num_rows, 0), dtype=np.float32)
    with np.errstate(over="ignore", under="ignore"):  # what does not fit is infinite, and named as such, or 0
        values: npt.NDArray[np.float32] = check_array(X, dtype=np.float32, allow_nd=True, input_name="X")
    n_features = getattr(teacher, "n_features_in_", None)
    if n_features is not None and values.ndim == 2 and values.shape[1] != n_features:
        raise ValueError(
            f"X must have the features that `teacher` was fitted on; got {values.shape[1]} instead of {n_features}. "
            "Put a transformer of columns into a Pipeline with the teacher."
        )
    return values


def _find_discrete(values: Floats) -> dict[tuple[int, ...], Floats]:
    """Return the sorted values of every feature that has whole numbers only, by its index."""
    is_whole = (values == np.round(values)).all(axis=0)
    return {feature: np.unique(values[:, *feature]) for feature in zip(*np.nonzero(is_whole), strict=True)}


@np.errstate(under="ignore")  # what is too small for single precision is 0
def _add_noise(
    values: Floats, width: Doubles, discrete: Mapping[tuple[int, ...], Floats], rng: np.random.Generator
) -> Floats:
    """Add Gaussian noise; discrete features take the nearest of their values."""
    noisy = (values + width * rng.normal(size=values.shape)).astype(np.float32)
    for feature, known in discrete.items():
        column: tuple[Any, ...] = (slice(None), *feature)
        noisy[column] = known[np.searchsorted(known[1:] / 2 + known[:-1] / 2, noisy[column])]
    return noisy


def _like(X: Any, values: npt.NDArray[np.float32]) -> Any:
    """Return rows in the container and with the column names of X."""
    if hasattr(X, "iloc"):
        return X.__class__(values, columns=X.columns)
    return X.__class__(values, schema=X.columns, orient="row") if hasattr(X, "with_columns") else values


def _class_probabilities(teacher: Any, X: Any, classes: npt.NDArray[Any], n_rows: int) -> Doubles:
    """Predict probabilities with the teacher; one-hot predictions if it has none."""
    if not hasattr(teacher, "predict_proba"):
        numbers = class_numbers(teacher.predict(X), classes)
        if (numbers < 0).any():
            raise ValueError(f"`teacher` must predict its own classes_, {classes.tolist()}; it predicts others too.")
        return one_hot(numbers, len(classes))
    probabilities = np.asarray(teacher.predict_proba(X))
    if probabilities.shape != (n_rows, len(classes)):
        raise ValueError(
            f"`teacher.predict_proba` must give a column for each of its {len(classes)} classes_; got the shape "
            f"{probabilities.shape} for {n_rows} rows."
        )
    return check_probabilities(probabilities, "what `teacher.predict_proba` gives")


def _true_numbers(y: ArrayLike, classes: npt.NDArray[Any], n_rows: int) -> Numbers:
    """Encode true labels as indices of the teacher's classes."""
    labels = column_or_1d(y)
    check_consistent_length(np.empty(n_rows), labels)
    numbers = class_numbers(labels, classes)
    if (numbers < 0).any():
        unknown = list(dict.fromkeys(labels[numbers < 0].tolist()))
        raise ValueError(
            f"y must be among the teacher's classes {classes.tolist()}; got {unknown} too. Leave those rows out, or y."
        )
    return numbers


def _mix(predictions: Doubles, truth: Doubles, trust: float | None) -> Doubles:
    """trust · teacher + (1 − trust) · truth, with a trust of 0.5 by default."""
    share = 0.5 if trust is None else trust
    return share * predictions + (1 - share) * truth
