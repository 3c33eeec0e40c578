"""Any number of trees as sections of a model file, and back: checked, so that nothing in them makes prediction fail."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np

from crisptree.inference.flat_tree import CrispTree, FlatTree, Statistics
from crisptree.persistence.arrays import Arrays, CheckedArrays, arrays_of
from crisptree.persistence.errors import ModelFileError
from crisptree.persistence.limits import check_depth
from crisptree.persistence.model_file import ModelFile, Section, Sections
from crisptree.structure import TreeStructure
from crisptree.targets import TARGETS

MODULE = "module/"
"""What the names of the parameters of split modules start with."""

STEEPEST = 1e30
"""No training goes so far, and single precision can still multiply by it."""

SHARED = "estimator"
"""The section that describes the split modules of all trees whose own sections do not."""


def known_sections(kinds: Iterable[str]) -> set[str]:
    """The sections of trees with these names, with or without numbers, for ``read``."""
    return {"statistics"}.union(*((kind, f"{kind}_statistics") for kind in kinds))


def trees_to_sections(trees: Mapping[str, CrispTree], split: Any = None, optional: Collection[str] = ()) -> Sections:
    """The sections of any number of trees, by their names; a reader may do without those that are ``optional``.

    ``split`` builds their split modules, where they have some; of a function nothing is kept.
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
    """The trees of these names, which must all be there; a leaf says ``n_outputs`` numbers, where that is known.

    ``split`` builds the split modules that have no name.
    """
    return {name: _tree(file, name, n_outputs, split) for name in names}


def _parts(tree: CrispTree, split: Any) -> tuple[dict[str, Any], Arrays]:
    """What a file says of a tree's split modules, where it has some, and all of its arrays."""
    arrays = arrays_of(tree, without=("statistics", "splits"))
    if isinstance(tree, FlatTree):
        return {"target": tree.target}, arrays
    from crisptree.persistence.modules import describe

    module, parameters = describe(tree, split)
    arrays |= {MODULE + name: value for name, value in parameters.items()}
    return {"target": tree.target, "module": module}, arrays


def _tree(file: ModelFile, name: str, n_outputs: int | None, split: Any) -> CrispTree:
    own = file.section(name)
    sizes = {} if n_outputs is None else {"outputs": n_outputs}
    arrays = CheckedArrays(name, own.arrays | file.section(_statistics_of(name)).arrays, sizes)
    structure = arrays.build(TreeStructure)
    check_depth(structure.depth)
    arrays.sizes.update(leaves=structure.n_leaves, nodes=structure.n_nodes)
    statistics = arrays.build(Statistics)
    if not 0 < statistics.steepness < STEEPEST:
        said = f"a steepness above 0 and below {STEEPEST:g}; it holds {statistics.steepness}"
        raise ModelFileError(f"the section {name!r} must hold {said}.")
    parts = {"structure": structure, "statistics": statistics, "target": _target(own.content, name)}
    shared = file.sections[SHARED].content if SHARED in file.sections else {}
    module = own.content.get("module", shared.get("module"))
    if module is None:
        tree: CrispTree = arrays.build(FlatTree, **parts)
    else:
        from crisptree.persistence.modules import read_splits
        from crisptree.tree import ModuleTree

        found = {key: arrays.take(key, np.float32) for key in own.arrays if key.startswith(MODULE)}
        parameters = {key.removeprefix(MODULE): value for key, value in found.items()}
        splits = read_splits(parameters, arrays.sizes, module, split, file.path)
        tree = arrays.build(ModuleTree, **parts, splits=splits)
    if statistics.node_counts.shape[1] != tree.meaning.n_statistics:
        said = f"{tree.meaning.n_statistics} numbers for every node; it holds {statistics.node_counts.shape[1]}"
        raise ModelFileError(f"the section {name!r} must hold {said}.")
    for what, table in (("leaves", tree.leaves), ("soft_leaves", statistics.soft_leaves)):
        wrong = tree.meaning.check(table)
        if wrong is not None:
            raise ModelFileError(f"the section {name!r} holds {what} that are {wrong}.")
    return tree


def _target(content: Mapping[str, Any], name: str) -> str:
    """What the leaves mean; the first files knew nothing but classes."""
    target = content.get("target", "classes")
    if not isinstance(target, str) or target not in TARGETS:
        raise ModelFileError(f"the section {name!r} holds leaves of {target!r}, unknown to this version. Update it.")
    return target


def _statistics_of(name: str) -> str:
    """Statistics of "tree" stand in "statistics", those of any other section in "other_statistics"."""
    return "statistics" if name == "tree" else f"{name}_statistics"
