"""Trees as sections of a model file, and back: checked, so that no file makes prediction fail.

Dataclasses are stored as named arrays; which there are, and of what type and shape, is read off the dataclass itself. A
field that is ``Annotated[NDArray[np.float64], "nodes", "outputs"]`` is an array of doubles with two dimensions;
dimensions of one name have one length throughout a tree. A ``float`` is an array of one number, the fields of a nested
dataclass are stored beside those of the outer one, and strings are not arrays. A field that not every file has, or that
may be None, has a default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from os import PathLike
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from crisptree.inference.flat_tree import CrispTree, FlatTree, Statistics
from crisptree.limits import MAX_TREE_DEPTH
from crisptree.persistence.model_file import Arrays, ModelFile, ModelFileError, Section, Sections
from crisptree.structure import TreeStructure
from crisptree.targets import TARGETS

Part = TypeVar("Part")

MODULE = "module/"
"""Prefix of the parameter names of split modules."""

MAX_STEEPNESS = 1e30
"""Beyond any training, and single precision can still multiply by it."""

SHARED = "estimator"
"""The section that describes the split modules of all trees whose own sections do not."""


def known_sections(kinds: Iterable[str]) -> set[str]:
    """Section names of trees, with or without numbers, for ``read``."""
    return {"statistics"}.union(*((kind, f"{kind}_statistics") for kind in kinds))


def trees_to_sections(trees: Mapping[str, CrispTree], split: Any = None, optional: Collection[str] = ()) -> Sections:
    """Convert trees to sections, by their names; readers may ignore those that are ``optional``.

    ``split`` names or builds their split modules; a function is not stored.
    """
    sections: Sections = {}
    for name, tree in trees.items():
        module, arrays = _parts(tree, split)
        sections[name] = Section(module, arrays, name not in optional)
        sections[_statistics_of(name)] = Section({}, arrays_of(tree.statistics), name not in optional)
    return sections


def trees_from_file(
    file: ModelFile, names: Iterable[str], n_outputs: int | None = None, split: Any = None
) -> dict[str, CrispTree]:
    """Read the trees of these names, which must all exist; a leaf table has ``n_outputs`` entries, if that is known.

    ``split`` builds the split modules that have no name.
    """
    return {name: _tree(file, name, n_outputs, split) for name in names}


def _parts(tree: CrispTree, split: Any) -> tuple[dict[str, Any], Arrays]:
    """Description of a tree's split modules, if any, and all of its arrays."""
    arrays = arrays_of(tree, without=("statistics", "splits"))
    if isinstance(tree, FlatTree):
        return {"target": tree.target_name}, arrays
    module, parameters = _describe_modules(tree, split)
    arrays |= {MODULE + name: value for name, value in parameters.items()}
    return {"target": tree.target_name, "module": module}, arrays


def _tree(file: ModelFile, name: str, n_outputs: int | None, split: Any) -> CrispTree:
    own = file.section(name)
    sizes = {} if n_outputs is None else {"outputs": n_outputs}
    arrays = CheckedArrays(name, own.arrays | file.section(_statistics_of(name)).arrays, sizes)
    structure = arrays.build(TreeStructure)
    if structure.depth > MAX_TREE_DEPTH:
        raise ModelFileError(
            f"the section {name!r} must hold a tree of depth {MAX_TREE_DEPTH:,} at most; it is deeper."
        )
    arrays.sizes.update(leaves=structure.n_leaves, nodes=structure.n_nodes)
    statistics = arrays.build(Statistics)
    if not 0 < statistics.steepness < MAX_STEEPNESS:
        expected = f"a steepness above 0 and below {MAX_STEEPNESS:g}; it holds {statistics.steepness}"
        raise ModelFileError(f"the section {name!r} must hold {expected}.")
    parts = {"structure": structure, "statistics": statistics, "target_name": _target(own.content, name)}
    shared = file.sections[SHARED].content if SHARED in file.sections else {}
    module = own.content.get("module", shared.get("module"))
    if module is None:
        tree: CrispTree = arrays.build(FlatTree, **parts)
    else:
        from crisptree.tree import ModuleTree

        stored = {key: arrays.take(key, np.float32) for key in own.arrays if key.startswith(MODULE)}
        parameters = {key.removeprefix(MODULE): value for key, value in stored.items()}
        splits = _read_modules(parameters, arrays.sizes, module, split, file.path)
        tree = arrays.build(ModuleTree, **parts, splits=splits)
    if statistics.node_counts.shape[1] != tree.target.n_statistics:
        expected = f"{tree.target.n_statistics} numbers for every node; it holds {statistics.node_counts.shape[1]}"
        raise ModelFileError(f"the section {name!r} must hold {expected}.")
    for what, table in (("leaves", tree.leaves), ("soft_leaves", statistics.soft_leaves)):
        wrong = tree.target.check(table)
        if wrong is not None:
            raise ModelFileError(f"the section {name!r} holds {what} that are {wrong}.")
    return tree


def _target(content: Mapping[str, Any], name: str) -> str:
    """Name of the target; the first files knew classification only."""
    target = content.get("target", "classes")
    if not isinstance(target, str) or target not in TARGETS:
        raise ModelFileError(f"the section {name!r} holds leaves of {target!r}, unknown to this version. Update it.")
    return target


def _statistics_of(name: str) -> str:
    """Statistics of "tree" are in "statistics", those of any other section in "other_statistics"."""
    return "statistics" if name == "tree" else f"{name}_statistics"


def arrays_of(part: Any, without: Collection[str] = ()) -> Arrays:
    """Convert a dataclass to arrays by their names.

    Examples
    --------
    >>> from crisptree.data.raw_rows import Scaling
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
    """Arrays of a section, whose types, shapes and finite values are checked as they are read.

    ``sizes`` are the lengths of dimensions; an unknown one is taken from the first array that has it.
    """

    section: str
    arrays: Arrays
    sizes: dict[str, int]

    def build(self, kind: Callable[..., Part], **known_fields: Any) -> Part:
        """Build a dataclass from its arrays and the fields in ``known_fields``."""
        values = dict(known_fields)
        for name, hint in _hints(kind).items():
            if name not in known_fields and (name in self.arrays or not _has_default(kind, name)):
                inner = isinstance(hint, type) and is_dataclass(hint)
                values[name] = self.build(hint) if inner else self._value(name, hint)
        try:
            return kind(**values)
        except ValueError as error:
            raise ModelFileError(f"the section {self.section!r} holds no tree: {error}") from error

    def take(self, name: str, dtype: Any, dimensions: int | None = None) -> npt.NDArray[Any]:
        """Return an array after checking its type, number of dimensions and finite values."""
        array = self.arrays.get(name)
        if array is None:
            raise ModelFileError(f"the section {self.section!r} lacks the array {name!r}.")
        n_dimensions = array.ndim if dimensions is None else dimensions
        if array.dtype != dtype or array.ndim != n_dimensions:
            raise ModelFileError(
                f"{name!r} of the section {self.section!r} must have type {np.dtype(dtype)} and {n_dimensions} "
                f"dimensions; it has {array.dtype} and {array.ndim}."
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"{name!r} of the section {self.section!r} holds values that are not finite.")
        return array

    def _value(self, name: str, hint: Any) -> Any:
        dtype, sides = _type_and_sides(name, hint)
        array = self.take(name, dtype, max(len(sides), 1))
        expected = tuple(self._length(side, length) for side, length in zip(sides, array.shape, strict=False)) or (1,)
        if array.shape != expected:
            raise ModelFileError(
                f"{name!r} of the section {self.section!r} must have shape {expected}; it has {array.shape}."
            )
        return array if sides else float(array[0])

    def _length(self, side: str, length: int) -> int:
        if side not in self.sizes and not length and side != "splits":  # a single leaf has no splits
            raise ModelFileError(f"the section {self.section!r} holds a tree of no {side}.")
        return self.sizes.setdefault(side, length)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """Type hints of the fields of a dataclass, in their order."""
    hints = get_type_hints(kind, include_extras=True)
    return {each.name: hints[each.name] for each in fields(kind)}


def _has_default(kind: Any, name: str) -> bool:
    return kind.__dataclass_fields__[name].default is not MISSING


def _type_and_sides(name: str, hint: Any) -> tuple[Any, tuple[str, ...]]:
    """Type of an array and names of its dimensions; a number has none."""
    for part in (hint, *get_args(hint)):  # what may be None is a union
        if part is float:
            return np.float64, ()
        if get_origin(part) is Annotated:
            array, *sides = get_args(part)
            last = get_args(array)[-1]  # the dtype; where NDArray is an alias of its own (Python 3.12), the scalar type
            return (get_args(last) or (last,))[0], tuple(sides)
    raise TypeError(f"the field {name!r} must be Annotated with the dimensions of its array to be stored.")


def _describe_modules(tree: CrispTree, split: Any) -> tuple[dict[str, Any], Arrays]:
    """Describe the modules of a tree, and return their stacked parameters."""
    from crisptree.tree import ModuleTree

    if not isinstance(tree, ModuleTree):
        raise TypeError(f"a {type(tree).__name__} cannot be saved to a model file.")
    name = split if isinstance(split, str) else None
    return {"name": name, "input_shape": list(tree.splits.input_shape)}, tree.parameter_arrays()


def _read_modules(
    parameters: Arrays, sizes: Mapping[str, int], module: Any, split: Any, path: str | PathLike[str]
) -> Any:
    """Build the split modules of a tree of the given sizes from the file's description ``module``."""
    import torch

    from crisptree.splits import ModuleSplits
    from crisptree.threads import one_thread

    factory, input_shape = _read_factory(module, split, path)
    wrong = {name: array.shape for name, array in parameters.items() if array.shape[:1] != (sizes["splits"],)}
    if wrong:
        raise ModelFileError(f"{path} must hold one module for each of {sizes['splits']} splits; got {wrong}.")
    if math.prod(input_shape) != sizes["features"]:
        raise ModelFileError(f"{path} stores modules for inputs of shape {input_shape}, which is invalid.")
    try:
        with one_thread():
            tensors = {name: torch.from_numpy(np.array(array)) for name, array in parameters.items()}
            return ModuleSplits.from_arrays(factory, tensors, input_shape)
    except Exception as error:  # the function that builds modules may be the user's own, and raise anything
        raise ModelFileError(f"{path} holds split modules that cannot be built: {error}") from error


def _read_factory(module: Any, split: Any, path: str | PathLike[str]) -> tuple[Any, tuple[int, ...]]:
    """Factory of the modules, and their input shape."""
    from crisptree.splits import MODULES

    try:
        name, input_shape = module["name"], tuple(int(side) for side in module["input_shape"])
        factory = MODULES.get(name) if split is None else split
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{path} must describe its split modules; it does not.") from error
    if factory is None:
        raise ModelFileError(
            f"{path} holds split modules of its author's own; the function that builds them is needed: "
            "crisptree.load(path, split=function)."
        )
    if len(input_shape) not in (1, 3) or min(input_shape) < 1:
        raise ModelFileError(f"{path} stores modules for inputs of shape {input_shape}, which is invalid.")
    return factory, input_shape
