"""The smallest change that gives a row another class."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.explain.allowed import Allowed, costs_of, free_columns
from crisptree.explain.search import MOST_SOLVED, Search
from crisptree.view import html
from crisptree.view.checks import boolean, whole_number
from crisptree.view.columns import RawColumn, columns_of, row_of_table
from crisptree.view.model import ModelView, linear, view_of
from crisptree.view.names import on_one_line
from crisptree.view.paths import Push, largest_pushes

Singles = npt.NDArray[np.float32]


class NotFoundInTimeError(RuntimeError):
    """The search for the nearest change was given up."""


@dataclass(frozen=True, eq=False)
class Change:
    """A row changed just so much that the tree gives it another class; ``print`` it for a text.

    Parameters
    ----------
    x : ndarray of shape (n_features,), float32
        The changed row, in raw units; of a Pipeline in those of the features that reach the tree.
    predicted : object
        The class label that the tree gives it.
    leaf : int
        The leaf that it reaches.
    distance : float
        The length of the change in the scale of the training: for scale="feature" in spreads of the features.
    changes : tuple of Push
        The largest changes in that scale, largest first: ``value`` is the feature's value before, ``amount`` what is
        added to it, both in raw units.
    columns : tuple of (name, before, after)
        The same by the columns of the table: numbers, levels of a category, or None for a level that training did not
        know.
    row : dict or None
        The changed row by the labels of the table's columns, in its own words and units, which ``predict`` takes as a
        table of one row; columns that the model leaves out are not there. None for images, and behind steps of a
        Pipeline that cannot be undone.
    proven : bool
        Whether no row is nearer. False where so many whole numbers and categories came into question that the search
        took the next one it could find.
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
        said = [f"    {name}: {' -> '.join(_now_and_then(before, after))}" for name, before, after in self.columns]
        return "\n".join([self._title, *said])

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = [(name, *_now_and_then(before, after)) for name, before, after in self.columns]
        return html.table(("column", "now", "then"), rows, self._title)

    @property
    def _title(self) -> str:
        (label,), near = on_one_line([self.predicted]), "" if self.proven else "; there may be a nearer one"
        return f"{label} (leaf {self.leaf}) at a distance of {self.distance:.4g}{near}"


def _now_and_then(before: Any, after: Any) -> tuple[str, str]:
    """A change in a few words."""
    if isinstance(before, float) and isinstance(after, float):
        return f"{before:.5g}", f"{after:.5g} ({after - before:+.3g})"
    shown = on_one_line("not known" if value is None else value for value in (before, after))
    return shown[0], shown[1]


def nearest_other(
    model: Any,
    x: Any,
    *,
    to: Any = None,
    by: float | Sequence[float] | None = None,
    top: int = 5,
    fixed: Iterable[Any] = (),
    only: Iterable[Any] | None = None,
    costs: Mapping[Any, float] | None = None,
    as_in_training: bool | None = None,
) -> Change | None:
    """The nearest point, in the scale of the training, to which a tree of hyperplanes gives another class.

    A leaf is the meeting of at most ``max_depth`` half-spaces, so the nearest point of one is a small quadratic
    programme. The search takes nodes by their distance, so it solves only those that may hold the nearest point. Where
    values must be whole, a leaf is parted at a point that is not, and the search goes on in its parts. What it returns
    has been through the prediction itself, in single precision; a leaf so thin that no float32 row enters it is passed
    over.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        A fitted estimator with linear splits, or a fitted Pipeline that ends in one.
    x : array-like of shape (n_features,), (1, n_features) or the model's image shape
        One row. Features that were constant in training stay as they are. A Pipeline's earlier steps are not undone:
        the change is one of the features that leave them, in their units, and ``Change.x`` is a row of these.
    to : class label, default=None
        The class to reach; None for any but the predicted one. The predicted one itself needs no change.
    by : float or sequence of float, default=None
        For a model of numbers, which needs it: how much higher the prediction is to be at least, below zero how much
        lower. Of several outputs one number means the first; a sequence has one for each, 0 where it may be anything.
    top : int, default=5
        How many changes to name.
    fixed : list of columns, default=()
        Columns that must not change, by their labels in the table, or counted from 0 where those are text; all features
        of a category are one column.
    only : list of columns, default=None
        The columns that may change; None for all but the fixed ones.
    costs : dict, default=None
        What a change of a column costs in proportion to others, by its label or number: with 3 it is three times as
        far.
    as_in_training : bool, default=None
        Whether every value must be such as training has seen: between the smallest and the largest one, whole where all
        were whole, one level of a category at a time; what is missing stays missing. A value that is none of these
        already may stay. None means yes for tables and no for images. Models from older files know their categories,
        but not what numbers they have seen.

    Returns
    -------
    Change or None
        None where no leaf of such a class can be entered by such a change.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, explain
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    >>> change = explain.nearest_other(model, [1.0])
    >>> str(change.predicted), change.x.tolist(), str(model.predict([change.x])[0])  # all numbers were whole
    ('high', [5.0], 'high')
    >>> bool(4 < explain.nearest_other(model, [1.0], as_in_training=False).x[0] < 5)
    True
    >>> explain.nearest_other(model, [1.0], fixed=["x0"]) is None
    True
    """
    view = view_of(model, "explain.nearest_other")
    view.check_has_constant_leaves("explain.nearest_other")
    most, columns, labels = whole_number("top", top, 0), columns_of(view), view.classes.tolist()
    if to is not None and (np.ndim(to) or to not in labels):
        there = "None for a model of numbers" if view.predicts_numbers else f"one of the classes {labels}"
        raise ValueError(f"`to` must be {there}; got {to!r}.")
    rises = _rises(view, by)
    tree, row = linear(view.tree, "explain.nearest_other"), view.row(x)[0]
    allowed = Allowed.of(
        tree,
        row,
        columns,
        free=free_columns(columns, fixed, only),
        costs=costs_of(columns, costs),
        as_in_training=view.image_shape is None
        if as_in_training is None
        else boolean("as_in_training", as_in_training),
    )
    return nearest_row(view, row, allowed, None if to is None else labels.index(to), most, by=rises)


def _rises(view: ModelView, by: Any) -> npt.NDArray[np.float64] | None:
    """How much every output is to rise at least, 0 where it may do what it likes; None for classes."""
    if by is None and not view.predicts_numbers:
        return None
    n_outputs = len(view.class_names)
    given = np.atleast_1d(np.asarray(by, dtype=np.float64)) if view.predicts_numbers and by is not None else np.empty(0)
    is_right = given.shape == (n_outputs,) or np.ndim(by) == 0
    if not (len(given) and is_right and np.isfinite(given).all() and given.any()):
        must = "a number that is not zero, for example 10.0 or -10.0, for a model of numbers and None for classes"
        several = f"; or one for each of {n_outputs} outputs, not all of them zero" if n_outputs > 1 else ""
        raise ValueError(f"`by` must be {must}{several}; got {by!r}.")
    return np.concatenate([given, np.zeros(n_outputs - len(given))])


def nearest_row(
    view: ModelView,
    row: Singles,
    allowed: Allowed,
    to: int | None,
    top: int,
    patience: int = MOST_SOLVED,
    *,
    by: npt.NDArray[np.float64] | None = None,
) -> Change | None:
    """The same for a row as the tree sees it; ``to`` is the number of a class, ``patience`` how long to go on."""
    tree = linear(view.tree, "explain.nearest_other")
    answers = tree.labels()
    now = answers[view.leaves(row[None])[0]]
    if by is not None:
        wanted = (((answers - now) * np.sign(by)) >= np.abs(by)).all(axis=1)
    else:
        wanted = answers != now if to is None else answers == to
    search = Search(tree, row, wanted, allowed, patience)
    found = next(search.landings(), None) if wanted.any() else None
    if found is None:
        if not search.proves:
            raise NotFoundInTimeError(
                f"explain.nearest_other found no such row in {2 * patience:,} steps: too many whole numbers and "
                "categories may change. Let fewer columns change with `only` or `fixed`, or say as_in_training=False."
            )
        return None
    moved = found.x.astype(np.float64) - row
    sizes = moved * allowed.factor
    changes, said = largest_pushes(view, row, moved, sizes, top), _columns(columns_of(view), row, found.x, sizes, top)
    label, original = view.predicted(found.leaf), row_of_table(view, found.x)
    return Change(found.x, label, found.leaf, found.distance, changes, said, search.proves, original)


def _columns(
    columns: tuple[RawColumn, ...], row: Singles, after: Singles, sizes: npt.NDArray[np.float64], most: int
) -> tuple[tuple[str, Any, Any], ...]:
    """The columns with the largest changes, largest first."""
    size = np.array([np.linalg.norm(sizes[list(column.all_features)]) for column in columns])
    order = [number for number in np.argsort(-size, kind="stable")[:most] if size[number] > 0]
    return tuple((columns[j].name, columns[j].value(row), columns[j].value(after)) for j in order)
