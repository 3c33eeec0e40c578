"""Any number of trees in one file, their arrays by what the dataclasses say of themselves."""

from dataclasses import dataclass, field, fields, replace
from typing import Annotated

import numpy as np
import numpy.typing as npt
import pytest
from torch import nn

from crisptree import ModelFileError
from crisptree.data.raw_rows import Scaling
from crisptree.inference import CrispTree, FlatTree, Statistics, route_rows
from crisptree.persistence.model_file import read, write
from crisptree.persistence.trees import CheckedArrays, arrays_of, known_sections, trees_from_file, trees_to_sections
from crisptree.splits import ModuleSplits
from crisptree.structure import TreeStructure
from crisptree.tree import Tree
from tests.toys import FIGURE_1, generator, random_structure, random_tables, random_tree

N_FEATURES, N_CLASSES = 6, 3
ROWS = np.random.default_rng(0).normal(size=(200, N_FEATURES)).astype(np.float32)


def crisp(structure, seed=0):
    scaling = Scaling(*np.random.default_rng(seed).uniform(0.5, 2.0, (4, N_FEATURES)))
    return random_tree(structure, N_FEATURES, N_CLASSES, seed).crisp(scaling, steepness=3.5)


def test_25_trees_are_written_to_one_file_and_read_back_bit_for_bit(tmp_path):
    trees = {f"member_{number}": crisp(random_structure(number, number), number) for number in range(25)}
    write(tmp_path / "forest.crisp", trees_to_sections(trees))
    file = read(tmp_path / "forest.crisp", known_sections(["member"]))
    again = trees_from_file(file, trees, N_CLASSES)
    assert list(again) == list(trees)
    for name, tree in trees.items():
        before, after = arrays_of(tree), arrays_of(again[name])
        assert before.keys() == after.keys()
        assert all(np.array_equal(before[key], after[key]) for key in before)
        assert np.array_equal(route_rows(again[name], ROWS), route_rows(tree, ROWS))


def test_numbered_trees_of_an_unknown_kind_are_refused(tmp_path):
    write(tmp_path / "x.crisp", trees_to_sections({"member_0": crisp(TreeStructure.stump())}))
    with pytest.raises(ModelFileError, match="needs member_0, member_0_statistics, unknown to this version"):
        read(tmp_path / "x.crisp", known_sections(["tree", "stage"]))


def test_one_broken_tree_among_many_is_named(tmp_path):
    trees = {f"member_{number}": crisp(TreeStructure.balanced(2), number) for number in range(4)}
    sections = trees_to_sections(trees)
    sections["member_2"].arrays["weight"] = sections["member_2"].arrays["weight"][:, :-1]
    write(tmp_path / "x.crisp", sections)
    file = read(tmp_path / "x.crisp", known_sections(["member"]))
    with pytest.raises(ModelFileError, match="'weight' of the section 'member_2' must have shape"):
        trees_from_file(file, trees, N_CLASSES)
    with pytest.raises(ModelFileError, match="section 'member_9' is missing"):
        trees_from_file(file, ["member_9"], N_CLASSES)


def test_the_format_of_the_first_files_is_that_of_the_dataclasses():
    sections = trees_to_sections({"tree": crisp(FIGURE_1)})
    assert sorted(sections["tree"].arrays) == ["bias", "leaves", "left", "right", "weight"]
    assert sorted(sections["statistics"].arrays) == [
        *("center", "factor", "gain", "mean", "node_counts", "score_mean", "score_spread", "soft_leaves", "spread"),
        "steepness",
    ]


SIZES = {"outputs": N_CLASSES, "splits": 4, "leaves": 5, "nodes": 9, "features": N_FEATURES}


@pytest.mark.parametrize("name", sorted(arrays_of(crisp(FIGURE_1))))
def test_every_array_is_checked_for_type_and_shape(name):
    good = arrays_of(crisp(FIGURE_1))
    assert CheckedArrays("tree", good, dict(SIZES)).build(FlatTree).structure.n_splits == 4
    for wrong, message in (
        (good[name].astype(np.float16), "must have type"),
        (good[name][None], "dimensions"),
        (np.repeat(good[name], 2, axis=0), "must have shape"),
        (None, "lacks the array"),
    ):
        with pytest.raises(ModelFileError, match=message):
            CheckedArrays("tree", {**good, name: wrong}, dict(SIZES)).build(FlatTree)


@dataclass(frozen=True)
class Later(Statistics):
    """What a later version might know beside the rest."""

    leaf_spread: Annotated[npt.NDArray[np.float64], "leaves"] | None = field(default=None, kw_only=True)
    offset: float = field(default=0.5, kw_only=True)


def test_a_new_dataclass_field_is_stored_and_checked():
    before = crisp(TreeStructure.stump()).statistics
    known = {one.name: getattr(before, one.name) for one in fields(Statistics)}
    arrays = arrays_of(Later(**known, leaf_spread=np.array([1.0, 2.0]), offset=0.25))
    sizes = {"outputs": N_CLASSES, "splits": 1, "leaves": 2, "nodes": 3}
    again = CheckedArrays("tree", arrays, dict(sizes)).build(Later)
    assert again.leaf_spread.tolist() == [1.0, 2.0]
    assert again.offset == 0.25
    with pytest.raises(ModelFileError, match=r"'leaf_spread' of the section 'tree' must have shape \(2,\)"):
        CheckedArrays("tree", {**arrays, "leaf_spread": np.ones(3)}, dict(sizes)).build(Later)


def test_a_field_missing_in_an_older_file_gets_its_default():
    arrays = arrays_of(crisp(TreeStructure.stump()).statistics)
    again = CheckedArrays("tree", arrays, {"outputs": N_CLASSES}).build(Later)
    assert again.leaf_spread is None
    assert again.offset == 0.5
    assert "leaf_spread" not in arrays_of(again)


def test_a_field_without_named_dimensions_is_refused():
    @dataclass
    class Nameless:
        values: list

    with pytest.raises(TypeError, match="'values' must be Annotated with the dimensions of its array"):
        arrays_of(Nameless([1, 2]))


def module_tree(n_features, seed):
    splits = ModuleSplits.build(lambda shape: nn.Linear(*shape, 1), 4, (n_features,), generator(seed))
    return Tree(FIGURE_1, splits, random_tables(5, N_CLASSES)).crisp(Scaling.none(n_features), steepness=1.0)


def test_trees_with_modules_of_different_inputs_share_a_file(tmp_path):
    trees = {"stage_0": module_tree(4, seed=0), "stage_1": module_tree(6, seed=1)}
    write(tmp_path / "x.crisp", trees_to_sections(trees))
    file = read(tmp_path / "x.crisp", known_sections(["stage"]))
    again = trees_from_file(file, trees, N_CLASSES, split=lambda shape: nn.Linear(*shape, 1))
    for name, tree in trees.items():
        rows = ROWS[:, : tree.n_features]
        assert np.array_equal(route_rows(again[name], rows), route_rows(tree, rows))


class OddTree(CrispTree):
    n_features, scores, parts_of = 1, None, None


def test_a_tree_of_an_unknown_class_is_not_saved():
    tree = crisp(TreeStructure.stump())
    with pytest.raises(TypeError, match="a OddTree cannot be saved"):
        trees_to_sections({"tree": OddTree(tree.structure, tree.leaves, tree.statistics)})


def test_a_shrunk_tree_round_trips_and_a_negative_strength_is_rejected(tmp_path):
    tree = crisp(FIGURE_1)
    tree = replace(tree, statistics=replace(tree.statistics, shrinkage=2.5))
    sections = trees_to_sections({"tree": tree})
    write(tmp_path / "good.crisp", sections)
    again = trees_from_file(read(tmp_path / "good.crisp", known_sections(["tree"])), ["tree"], N_CLASSES)["tree"]
    assert again.statistics.shrinkage == 2.5
    sections["statistics"].arrays["shrinkage"][:] = -1
    write(tmp_path / "bad.crisp", sections)
    with pytest.raises(ModelFileError, match="shrinkage must be at least 0"):
        trees_from_file(read(tmp_path / "bad.crisp", known_sections(["tree"])), ["tree"], N_CLASSES)
