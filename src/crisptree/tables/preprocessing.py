"""What is done to the columns of a table before a tree sees them: explicit, frozen, stored with the model. NumPy only.

A number stays a number; where it is missing the mean of training stands in, and if any was missing in training a
feature of its own says so. A category becomes one feature per value seen in training. Nothing else happens.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from types import UnionType
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree import limits
from crisptree.tables.errors import TableError
from crisptree.tables.number_texts import PLAIN, NumberTexts
from crisptree.targets.labels import check_utf8

VERSION = 1
KINDS = ("number", "boolean", "category")
MISSING = ("", "nan", "NaN")
"""Texts that mean a missing value, beside those the user names."""


@dataclass(frozen=True)
class Column:
    """One column of the table and the features it becomes.

    Parameters
    ----------
    name : str
        The column's name in the table.
    kind : {"number", "boolean", "category"}
        What its values are; a boolean is the number 0 or 1, and true or false as text.
    mean : float
        What stands in for a missing number: with it, a missing value pushes no hyperplane either way. NaN where
        missing values are refused, and for categories.
    missing : bool
        Whether values were missing in training; if so, one more feature tells where.
    categories : tuple of str
        The values seen in training, sorted.
    """

    name: str
    kind: str
    mean: float = math.nan
    missing: bool = False
    categories: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its features.

        Examples
        --------
        >>> Column("color", "category", categories=("blue", "red"), missing=True).features
        ('color=blue', 'color=red', 'color is missing')
        """
        own = tuple(f"{self.name}={value}" for value in self.categories) if self.kind == "category" else (self.name,)
        return (*own, f"{self.name} is missing") if self.missing else own


@dataclass(frozen=True, eq=False)
class Preprocessing:
    """The columns that a model uses, in the order of its features.

    Parameters
    ----------
    columns : tuple of Column
        The columns, in the order of the training table.
    named : bool
        Whether columns are found by name; those of .npz and LIBSVM files are found by their place.
    missing : tuple of str
        Texts that mean a missing value.
    target : str or None
        The column that was learned.
    left_out : dict
        Columns of the training table that are not used, and why.
    inputs : tuple of str
        All columns that the training table had, in its order, those that are left out among them; empty in older files.
    written : NumberTexts
        How numbers are written where they are text.
    id : str or None
        The column that names the rows, which is no feature.
    notes : tuple of str
        What the owner of the training table should know.

    Examples
    --------
    >>> columns = (Column("age", "number", mean=40.0, missing=True), Column("sex", "category", categories=("f", "m")))
    >>> Preprocessing(columns).feature_names
    ('age', 'age is missing', 'sex=f', 'sex=m')
    >>> Preprocessing(columns).origin.tolist()
    [0, 0, 1, 1]
    """

    columns: tuple[Column, ...]
    named: bool = True
    missing: tuple[str, ...] = MISSING
    target: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()
    written: NumberTexts = PLAIN
    id: str | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            check_utf8((*self.input_names, *self.feature_names), "names of columns and categories")
            check_utf8([self.target], "the name of y")
        except ValueError as error:
            raise TableError(str(error)) from None

    @classmethod
    def plain(cls, n_features: int, names: Any = None) -> Preprocessing:
        """For a model without one: numbers as they are, none missing."""
        given = [f"x{number}" for number in range(n_features)] if names is None else [str(name) for name in names]
        return cls(tuple(Column(name, "number") for name in given), named=names is not None)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The names of all features."""
        return tuple(name for column in self.columns for name in column.features)

    @property
    def n_features(self) -> int:
        """The width of the rows that it makes."""
        return len(self.feature_names)

    @cached_property
    def origin(self) -> npt.NDArray[np.int64]:
        """The number of the column that every feature comes from.  (n_features,)"""
        return np.repeat(np.arange(len(self.columns)), [len(column.features) for column in self.columns])

    @property
    def groups(self) -> tuple[tuple[int, int], ...]:
        """The first feature and the one after the last of every column that has become several.

        Examples
        --------
        >>> columns = (Column("age", "number"), Column("sex", "category", categories=("f", "m"), missing=True))
        >>> Preprocessing(columns).groups
        ((1, 4),)
        """
        bounds = np.searchsorted(self.origin, np.arange(len(self.columns) + 1)).tolist()
        return tuple((begin, end) for begin, end in pairwise(bounds) if end - begin > 1)

    @property
    def holes(self) -> dict[int, int]:
        """Features whose values may be missing, and those that tell where they are; categories have a value for it."""
        firsts = np.flatnonzero(np.diff(self.origin, prepend=-1))
        return {
            int(first): int(first) + 1
            for first, column in zip(firsts, self.columns, strict=True)
            if column.missing and column.kind != "category"
        }

    @property
    def input_names(self) -> tuple[str, ...]:
        """The columns of the table, those that are left out too where they are known."""
        return self.inputs or tuple(column.name for column in self.columns)

    @property
    def keeps_numbers(self) -> bool:
        """Whether every column stays the number that it is, so that rows of numbers need nothing done to them."""
        plain = all(column.kind != "category" and not column.missing for column in self.columns)
        return plain and len(self.input_names) == len(self.columns)

    def by_input(self, shares: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """What the features of every column of the table add up to, 0 for one that is left out.  (n_inputs,)

        Examples
        --------
        >>> columns = (Column("sex", "category", categories=("f", "m")), Column("age", "number"))
        >>> Preprocessing(columns, inputs=("id", "sex", "age")).by_input(np.array([0.25, 0.25, 0.5])).tolist()
        [0.0, 0.5, 0.5]
        """
        place = {name: number for number, name in enumerate(self.input_names)}
        places = np.array([place[column.name] for column in self.columns], dtype=np.int64)
        return np.bincount(places[self.origin], weights=shares, minlength=len(place)).astype(np.float64)

    def features_of(self, name: str) -> tuple[int, ...]:
        """The numbers of the features that a column has become; none for one that is left out.

        Examples
        --------
        >>> columns = (Column("age", "number", missing=True), Column("sex", "category", categories=("f", "m")))
        >>> Preprocessing(columns).features_of("sex")
        (2, 3)
        """
        places = {column.name: place for place, column in enumerate(self.columns)}
        return tuple(np.flatnonzero(self.origin == places.get(name, -1)).tolist())

    def says(self, feature: int, value: float) -> str:
        """What a feature says about a row, in the words of the table.

        Examples
        --------
        >>> columns = (Column("age", "number", mean=40, missing=True), Column("sex", "category", categories=("f", "m")))
        >>> [Preprocessing(columns).says(feature, value) for feature, value in enumerate([40, 1, 0, 1])]
        ['age = 40', 'age is missing', 'sex is not f', 'sex is m']
        """
        origin = int(self.origin[feature])
        column = self.columns[origin]
        place = feature - int(np.searchsorted(self.origin, origin))
        if column.kind == "category" and place < len(column.categories):
            return f"{column.name} is {'' if value else 'not '}{column.categories[place]}"
        if place > 0 or column.kind == "category":
            return f"{column.name} is {'' if value else 'not '}missing"
        if column.kind == "boolean" and value in (0, 1):
            return f"{column.name} is {'true' if value else 'false'}"
        return f"{column.name} = {value:.6g}"

    def section(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        """What a model file keeps: a JSON object and arrays."""
        columns = [
            {"name": column.name, "kind": column.kind}
            | ({"categories": list(column.categories)} if column.categories else {})
            for column in self.columns
        ]
        content = {"version": VERSION, "named": self.named, "missing": list(self.missing), "target": self.target}
        mean = np.array([column.mean for column in self.columns], dtype=np.float64)
        missing = np.array([column.missing for column in self.columns], dtype=np.uint8)
        further = {"left_out": dict(self.left_out), "inputs": list(self.inputs), "columns": columns}
        if self.written != PLAIN:
            further["written"] = asdict(self.written)
        if self.id is not None:
            further["id"] = self.id
        if self.notes:
            further["notes"] = list(self.notes)
        return {**content, **further}, {"mean": mean, "missing": missing}

    @classmethod
    def from_section(cls, content: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Preprocessing:
        """What ``section`` wrote, held to its types and lengths."""
        if content.get("version") != VERSION:
            raise TableError(
                f"the preprocessing in the model file has version {content.get('version')!r}; this version of "
                f"crisptree reads version {VERSION}. Update it."
            )
        try:
            mean, missing = _checked(arrays["mean"], "f"), _checked(arrays["missing"], "u")
            entries = _of_type(content["columns"], list)
            if not len(entries) == len(mean) == len(missing):
                raise TypeError("columns and arrays must be of one length")
            columns = tuple(_column(*entry) for entry in zip(entries, mean, missing, strict=True))
            letters = sum(len(column.name) * (len(column.categories) + 2) for column in columns)
            limits.current().check("unpacked_bytes", letters, f"has features with names of {letters:,} letters")
            if len({column.name for column in columns}) < len(columns):
                raise TypeError("columns must have different names")
            return cls(
                columns,
                named=_of_type(content["named"], bool),
                missing=tuple(_of_type(text, str) for text in content["missing"]),
                target=_of_type(content["target"], str | None),
                left_out={_of_type(name, str): _of_type(why, str) for name, why in content["left_out"].items()},
                inputs=_inputs(content.get("inputs", []), columns),
                written=_written(content.get("written", {})),
                id=_of_type(content.get("id"), str | None),
                notes=tuple(_of_type(note, str) for note in _of_type(content.get("notes", []), list)),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise TableError(
                f"the preprocessing in the model file is damaged ({error}). Write the file again."
            ) from error


def _column(entry: Any, mean: Any, missing: Any) -> Column:
    categories = tuple(_of_type(value, str) for value in entry.get("categories", ()))
    if entry["kind"] not in KINDS or (categories and entry["kind"] != "category"):
        raise TypeError(f"a column of kind {entry['kind']!r}")
    if math.isinf(mean) or len(set(categories)) < len(categories):
        raise TypeError(f"the column {entry['name']!r}")
    return Column(_of_type(entry["name"], str), entry["kind"], float(mean), bool(missing), categories)


def _inputs(names: Any, columns: tuple[Column, ...]) -> tuple[str, ...]:
    """The names of all columns of the training table, among which are those that are used; none in older files."""
    inputs = tuple(_of_type(name, str) for name in _of_type(names, list))
    if inputs and (len(set(inputs)) < len(inputs) or not {column.name for column in columns} <= set(inputs)):
        raise TypeError("the table's columns must be different, and those that are used among them")
    return inputs


def _written(content: Any) -> NumberTexts:
    """How numbers are written; plainly where the file says nothing."""
    decimal, thousands = content.get("decimal", "."), content.get("thousands")
    units = tuple(_of_type(unit, str) for unit in _of_type(content.get("units", []), list))
    return NumberTexts(_of_type(decimal, str), _of_type(thousands, str | None), units)


def _checked(array: npt.NDArray[Any], kind: str) -> npt.NDArray[Any]:
    if array.ndim != 1 or array.dtype.kind != kind:
        raise TypeError(f"an array of {array.dtype} with shape {array.shape}")
    return array


def _of_type(value: Any, kind: type | UnionType) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{value!r} must be of type {getattr(kind, '__name__', kind)}")
    return value
