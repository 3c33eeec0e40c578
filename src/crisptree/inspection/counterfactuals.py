"""Counterfactuals: the smallest change of a row that gives it another class."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import FlatTree
from crisptree.inspection.counterfactual_search import (
    MAX_PROGRAMS,
    CounterfactualSearch,
    FeasibleSet,
    LeafGoals,
    round_changes,
)
from crisptree.inspection.decision_path import Push, rank_pushes
from crisptree.inspection.display import Printable, format_change, format_short, sanitize_names
from crisptree.inspection.model_view import (
    InputColumn,
    ModelView,
    linear_models,
    require_linear_splits,
    view_model,
)
from crisptree.inspection.validation import check_boolean, check_integer

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]


class SearchLimitError(RuntimeError):
    """Raised where the search for a counterfactual reaches its limit of steps."""


@dataclass(frozen=True, eq=False)
class Counterfactual(Printable):
    """A row changed so little that the tree just gives it another class; ``print`` shows the change as text.

    Parameters
    ----------
    x : ndarray of shape (n_features,), float32
        The changed row in raw units; for a Pipeline in those of the features that reach the tree.
    predicted : object
        The prediction for the changed row.
    leaf : int
        The leaf that the changed row reaches.
    distance : float
        Euclidean length of the change in the scaled space of training: for scale="feature" in standard deviations.
    changes : tuple of Push
        The largest changes in that scale, largest first: ``value`` is the value of the feature before, ``amount`` what
        is added to it, both in raw units.
    columns : tuple of (name, before, after)
        The same by the columns of the table: numbers, levels of a category, or None for a level unknown in training.
    row : dict or None
        The changed row by the labels of the table's columns, which ``predict`` takes as a table of one row; columns
        that the model does not use are left out. None for images, and behind steps of a Pipeline that are not
        invertible.
    proven : bool
        True if no row was nearer before changes were rounded. False where the search over integers and categories
        reached its limit and returned the first feasible row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = load_iris(return_X_y=True)
    >>> fixed = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 1.0, "random_state": 0}
    >>> model = CrispTreeClassifier(**fixed, max_depth=2).fit(X, y)
    >>> change = explain.find_counterfactual(model, X[0], to=1)
    >>> int(change.predicted), [name for name, before, after in change.columns] != []
    (1, True)
    """

    x: Singles
    predicted: Any
    leaf: int
    distance: float
    changes: tuple[Push, ...]
    columns: tuple[tuple[str, Any, Any], ...] = ()
    proven: bool = True
    row: dict[Any, Any] | None = None

    def __str__(self) -> str:
        lines = [f"    {name}: {' -> '.join(_format_change(before, after))}" for name, before, after in self.columns]
        return "\n".join([self._title, *lines])

    @property
    def _title(self) -> str:
        values = np.atleast_1d(self.predicted)
        is_number = values.dtype.kind == "f"
        label = ", ".join(map(format_short, values) if is_number else sanitize_names([self.predicted]))
        near = "" if self.proven else "; there may be a nearer one"
        return f"{label} (leaf {self.leaf}) at a distance of {self.distance:.4g}{near}"


def _format_change(before: Any, after: Any) -> tuple[str, str]:
    """Format the value of a column before and after."""
    if isinstance(before, float) and isinstance(after, float):
        return format_short(before), f"{format_short(after)} ({format_change(after - before, 3)})"
    shown = sanitize_names("unknown" if value is None else value for value in (before, after))
    return shown[0], shown[1]


def find_counterfactual(
    model: Any,
    x: Any,
    *,
    to: Any = None,
    by: float | Sequence[float] | None = None,
    top: int = 5,
    fixed: Iterable[Any] = (),
    actionable: Iterable[Any] | None = None,
    costs: Mapping[Any, float] | None = None,
    as_in_training: bool | None = None,
    rounded: bool | None = None,
) -> Counterfactual | None:
    """Find the nearest row, in the scaled space of training, to which a tree with linear splits gives another class.

    A leaf is the intersection of at most ``max_depth`` half-spaces, so its nearest point is the solution of a small
    quadratic program; the linear model of a leaf adds a half-space for every other class. A best-first search over
    nodes solves only those that may hold the nearest point; integers and categories are found by branch and bound. The
    returned row has been predicted in single precision; a leaf too thin for any float32 row is skipped.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator with linear splits, or a fitted Pipeline that ends in one.
    x : array-like of shape (n_features,), (1, n_features) or the model's image shape, or Pixel
        One row. Features that were constant in training stay as they are. The earlier steps of a
        Pipeline are not inverted: the change is one of the features that they output, and ``Counterfactual.x`` is a
        row of these.
    to : class label, default=None
        Target class; None for any other than the predicted one.
    by : float or sequence of float, default=None
        Required for regression: minimal increase of the prediction, or decrease below zero. With several outputs a
        number is for the first one; a sequence has one for each, 0 where it may be anything.
    top : int, default=5
        Number of changes listed.
    fixed : list of columns, default=()
        Columns that must not change, by label, or by index from 0 where labels are text; all features of a category
        are one column.
    actionable : list of columns, default=None
        The columns that may change; None for all but the fixed ones.
    costs : dict, default=None
        Relative cost of changing a column, by its label or index: with 3 the same change is three times as far.
    as_in_training : bool, default=None
        Keep values within the training data: between minimum and maximum, integers where all were integers, one level
        of a category at a time; missing values stay missing. A value outside already may stay. None is True for
        tables and False for images. Models from older files know their categories, but not the range of numbers.
    rounded : bool, default=None
        Round changed numbers up to a twentieth of their column's spread further, or a tenth of their change, to the
        fewest digits that keep the prediction and the limits: 35,100 in place of 35,104. None is ``as_in_training``.

    Returns
    -------
    Counterfactual or None
        None where no such change gives the row such a class.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    >>> change = explain.find_counterfactual(model, [1.0])
    >>> str(change.predicted), change.x.tolist(), str(model.predict([change.x])[0])  # integers in training
    ('high', [5.0], 'high')
    >>> bool(4 < explain.find_counterfactual(model, [1.0], as_in_training=False).x[0] < 5)
    True
    >>> explain.find_counterfactual(model, [1.0], fixed=["x0"]) is None
    True
    """
    view = view_model(model, "explain.find_counterfactual")
    top, columns, labels = check_integer("top", top, 0), view.columns, view.classes.tolist()
    if to is not None and (np.ndim(to) or to not in labels):
        expected = "None for regression" if view.is_regression else f"one of the classes {labels}"
        raise ValueError(f"`to` must be {expected}; got {to!r}.")
    increases = _check_increases(view, by)
    tree, row = require_linear_splits(view.tree, "explain.find_counterfactual"), view.prepare_row(x)[0]
    is_limited = view.image_shape is None if as_in_training is None else check_boolean("as_in_training", as_in_training)
    feasible = FeasibleSet.of(
        tree,
        row,
        columns,
        free=select_free_columns(columns, fixed, actionable),
        costs=resolve_costs(columns, costs),
        as_in_training=is_limited,
    )
    rounds = is_limited if rounded is None else check_boolean("rounded", rounded)
    target = None if to is None else labels.index(to)
    return search_counterfactual(view, row, feasible, target, top, by=increases, rounds=rounds)


def _check_increases(view: ModelView, by: Any) -> Doubles | None:
    """Return the minimal increase of every regression output, 0 where it may be anything; None for classification."""
    if by is None and not view.is_regression:
        return None
    n_outputs = len(view.class_names)
    values = np.atleast_1d(np.asarray(by, dtype=np.float64)) if view.is_regression and by is not None else np.empty(0)
    has_shape = values.shape == (n_outputs,) or np.ndim(by) == 0
    if not (len(values) and has_shape and np.isfinite(values).all() and values.any()):
        must = "a nonzero number, for example 10.0 or -10.0, for regression and None for classification"
        several = f"; or one for each of {n_outputs} outputs, not all of them zero" if n_outputs > 1 else ""
        raise ValueError(f"`by` must be {must}{several}; got {by!r}.")
    return np.concatenate([values, np.zeros(n_outputs - len(values))])


def search_counterfactual(
    view: ModelView,
    row: Singles,
    feasible: FeasibleSet,
    to: int | None,
    top: int,
    max_programs: int = MAX_PROGRAMS,
    *,
    by: Doubles | None = None,
    rounds: bool = False,
) -> Counterfactual | None:
    """Find the counterfactual of a prepared row; ``to`` is a class index, ``max_programs`` the limit of the search.

    ``rounds`` rounds changed numbers.
    """
    tree = require_linear_splits(view.tree, "explain.find_counterfactual")
    current = tree.predictions(view.apply(row[None]), row[None])[0]

    def is_wanted(predictions: npt.NDArray[Any]) -> Flags:
        if by is not None:
            return np.asarray((((predictions - current) * np.sign(by)) >= np.abs(by)).all(axis=1))
        return predictions != current if to is None else predictions == to

    goals = _make_leaf_goals(tree, is_wanted, current, by)
    wanted = is_wanted(tree.labels()) if goals is None else np.ones(tree.structure.n_leaves, dtype=bool)
    search = CounterfactualSearch(tree, row, wanted, feasible, max_programs, goals)
    nearest = next(search.iterate_rows(), None) if wanted.any() else None
    if nearest is None:
        if not search.is_exact:
            raise SearchLimitError(
                f"explain.find_counterfactual found no such row in {2 * max_programs:,} steps: too many integers and "
                "categories may change. Let fewer columns change with `actionable` or `fixed`, or use "
                "as_in_training=False."
            )
        return None
    if rounds:
        nearest = round_changes(search, nearest, [column.feature for column in view.columns if column.kind == "number"])
    moved = nearest.x.astype(np.float64) - row
    sizes = moved * feasible.factor
    changes = rank_pushes(view, row, moved, sizes, top)
    by_column = _rank_changes(view.columns, row, nearest.x, sizes, top)
    label, original = view.predict_leaf(nearest.leaf, nearest.x[None]), view.restore_table_row(nearest.x)
    return Counterfactual(
        nearest.x, label, nearest.leaf, nearest.distance, changes, by_column, search.is_exact, original
    )


def _make_leaf_goals(
    tree: FlatTree, is_wanted: Callable[[npt.NDArray[Any]], Flags], current: Any, by: Doubles | None
) -> LeafGoals | None:
    """Make the goals of linear leaves: that a wanted class has the largest score, or that means change by ``by``."""
    models = linear_models(tree)
    if models is None:
        return None
    weights, offsets = (part[tree.structure.n_splits :] for part in models)

    def is_met(leaf: int, x: Singles) -> bool:
        return bool(is_wanted(tree.predictions(np.array([leaf]), x[None]))[0])

    def parts(leaf: int) -> Iterator[tuple[Doubles, Doubles]]:
        weight, bias = weights[leaf], offsets[leaf]
        if by is not None:
            sign, bounded = np.sign(by), by != 0
            yield (sign[:, None] * weight)[bounded], (sign * (bias - current) - np.abs(by))[bounded]
            return
        classes = np.arange(len(bias))
        for label in classes[is_wanted(classes)]:
            others = classes != label
            yield weight[label] - weight[others], bias[label] - bias[others]

    return LeafGoals(is_met, parts)


def _rank_changes(
    columns: tuple[InputColumn, ...], row: Singles, after: Singles, sizes: Doubles, top: int
) -> tuple[tuple[str, Any, Any], ...]:
    """Return the columns with the largest changes, largest first."""
    size = np.array([np.linalg.norm(sizes[column.all_features]) for column in columns])
    order = [number for number in np.argsort(-size, kind="stable")[:top] if size[number] > 0]
    return tuple((columns[j].name, columns[j].value(row), columns[j].value(after)) for j in order)


def select_free_columns(columns: tuple[InputColumn, ...], fixed: Any, actionable: Any) -> Flags:
    """Flag the columns that may change: those of ``actionable``, or all, without those of ``fixed``.  (n_columns,)"""
    free = np.full(len(columns), actionable is None)
    if actionable is not None:
        free[_find_columns(columns, actionable, "actionable")] = True
    free[_find_columns(columns, fixed, "fixed")] = False
    return free


def resolve_costs(columns: tuple[InputColumn, ...], costs: Mapping[Any, float] | None) -> Doubles:
    """Return the cost of every column; 1 where none is given.  (n_columns,)"""
    result = np.ones(len(columns))
    if costs is not None and not isinstance(costs, Mapping):
        raise TypeError(f"`costs` must be a dict of columns and numbers, e.g. {{'age': 3.0}}; got {costs!r}.")
    for column, cost in (costs or {}).items():
        if isinstance(cost, bool) or not isinstance(cost, int | float | np.number) or not 0 < cost < np.inf:
            raise ValueError(
                f"`costs` must be finite numbers above 0; got {cost!r} for {column!r}. Name a column in `fixed` that "
                "must not change."
            )
        result[_find_columns(columns, [column], "costs")] = cost
    return result


def _find_columns(columns: tuple[InputColumn, ...], wanted: Any, parameter: str) -> list[int]:
    """Return the indices of columns given by label, name or index."""
    if isinstance(wanted, str) or not isinstance(wanted, Iterable):
        raise TypeError(f"`{parameter}` must be a list of columns; got {wanted!r}. Write [{wanted!r}].")
    names, labels, indices = [column.name for column in columns], [column.label for column in columns], []
    by_label = not any(isinstance(label, str) for label in labels)
    for one in wanted:
        if isinstance(one, Hashable) and not isinstance(one, bool) and one in labels:
            indices.append(labels.index(one))
        elif not by_label and isinstance(one, int | np.integer) and not isinstance(one, bool) and 0 <= one < len(names):
            indices.append(int(one))
        elif isinstance(one, str) and " ".join(one.split()) in names:
            indices.append(names.index(" ".join(one.split())))
        else:
            some = ", ".join(map(repr, labels[:8])) + (", …" if len(labels) > 8 else "")
            or_index = "" if by_label else ", or their indices from 0"
            parts = [label for label in labels if isinstance(label, str) and label.startswith(f"{one} ")]
            hint = f" Of a date name the parts: {parts}." if parts else ""
            raise ValueError(f"`{parameter}` must name columns of the table, {some}{or_index}; got {one!r}.{hint}")
    return indices
