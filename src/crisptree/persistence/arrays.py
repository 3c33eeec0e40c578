"""Dataclasses as named arrays, and back: which there are, of what type and shape, is read off the dataclass itself.

A field that is ``Annotated[NDArray[np.float64], "nodes", "outputs"]`` is an array of doubles with two sides; sides of
one name have one length throughout a tree. A ``float`` is an array of one number, and the fields of a dataclass inside
another stand beside those of the outer one; words are no arrays. A field that not every file has, or that may be None,
has a default.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from crisptree.persistence.errors import ModelFileError

Arrays = dict[str, npt.NDArray[Any]]
Part = TypeVar("Part")


def arrays_of(part: Any, without: Collection[str] = ()) -> Arrays:
    """The arrays of a dataclass by their names.

    Examples
    --------
    >>> from crisptree.data.scaling import Scaling
    >>> {name: array.tolist() for name, array in arrays_of(Scaling.none(2)).items()}
    {'center': [0.0, 0.0], 'factor': [1.0, 1.0], 'mean': [0.0, 0.0], 'spread': [1.0, 1.0]}
    """
    arrays: Arrays = {}
    for name, hint in _hints(part.__class__).items():
        value = None if name in without or hint is str else getattr(part, name)
        if is_dataclass(value):
            arrays |= arrays_of(value)
        elif value is not None:
            arrays[name] = np.atleast_1d(np.asarray(value, dtype=_type_and_sides(name, hint)[0]))
    return arrays


@dataclass(frozen=True, eq=False)
class CheckedArrays:
    """The arrays of a tree, held to their types, lengths and finite values as they are taken out of their section.

    ``sizes`` are the lengths of the sides; one that is not yet known is learned from the first array that has it.
    """

    section: str
    arrays: Arrays
    sizes: dict[str, int]

    def build(self, kind: Callable[..., Part], **given: Any) -> Part:
        """A dataclass from its arrays; fields that are ``given`` are not looked for."""
        values = dict(given)
        for name, hint in _hints(kind).items():
            if name not in given and (name in self.arrays or not _has_default(kind, name)):
                inner = isinstance(hint, type) and is_dataclass(hint)
                values[name] = self.build(hint) if inner else self._value(name, hint)
        try:
            return kind(**values)
        except ValueError as error:
            raise ModelFileError(f"the section {self.section!r} holds no tree: {error}") from error

    def take(self, name: str, dtype: Any, dimensions: int | None = None) -> npt.NDArray[Any]:
        """An array of a type, of as many dimensions as must be, with no value that is not finite."""
        array = self.arrays.get(name)
        if array is None:
            raise ModelFileError(f"the section {self.section!r} lacks the array {name!r}.")
        wanted = array.ndim if dimensions is None else dimensions
        if array.dtype != dtype or array.ndim != wanted:
            raise ModelFileError(
                f"{name!r} of the section {self.section!r} must have type {np.dtype(dtype)} and {wanted} dimensions; "
                f"it has {array.dtype} and {array.ndim}."
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"{name!r} of the section {self.section!r} holds values that are not finite.")
        return array

    def _value(self, name: str, hint: Any) -> Any:
        dtype, sides = _type_and_sides(name, hint)
        array = self.take(name, dtype, max(len(sides), 1))
        expected = tuple(self._length(side, found) for side, found in zip(sides, array.shape, strict=False)) or (1,)
        if array.shape != expected:
            raise ModelFileError(
                f"{name!r} of the section {self.section!r} must have shape {expected}; it has {array.shape}."
            )
        return array if sides else float(array[0])

    def _length(self, side: str, found: int) -> int:
        if side not in self.sizes and not found and side != "splits":  # a single leaf has no splits
            raise ModelFileError(f"the section {self.section!r} holds a tree of no {side}.")
        return self.sizes.setdefault(side, found)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """What a dataclass says of its fields, in their order."""
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: hints[each.name] for each in fields(kind)}


def _has_default(kind: Any, name: str) -> bool:
    return kind.__dataclass_fields__[name].default is not MISSING


def _type_and_sides(name: str, hint: Any) -> tuple[Any, tuple[str, ...]]:
    """The type of an array and its sides; a number has none."""
    for part in (hint, *get_args(hint)):  # what may be None is a union
        if part is float:
            return np.float64, ()
        if get_origin(part) is Annotated:
            array, *sides = get_args(part)
            last = get_args(array)[-1]  # the dtype; where NDArray is an alias of its own (Python 3.12), the scalar type
            return (get_args(last) or (last,))[0], tuple(sides)
    raise TypeError(f"the field {name!r} must be Annotated with the sides of its array to stand in a file.")
