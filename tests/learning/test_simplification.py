import numpy as np
import pytest
import torch

from crisptree.learning import loop as training
from crisptree.learning.engines.native_engine import NativeEngine
from crisptree.learning.engines.torch_engine import TorchEngine
from crisptree.learning.finetuning import TrainedTree, finetune
from crisptree.learning.options import Plan
from crisptree.learning.simplification import Counted, SimplifiedTree, weakest_links
from crisptree.structure import TreeStructure
from crisptree.targets import Classes
from tests.toys import FIGURE_1, class_samples, clouds, generator, random_structure, random_tree


def samples(n=200, n_features=6, n_classes=4, seed=0):
    X, y = clouds(n, n_features=n_features, n_classes=n_classes, seed=seed)
    return class_samples(
        torch.from_numpy(X).double(), torch.from_numpy(y), torch.ones(n, dtype=torch.float64), n_classes
    )


PENALTIES = [{}, {"l1": 1e-3}, {"l2": 1e-2}, {"spatial_penalty": 1e-2, "image_shape": (2, 3)}]


@pytest.mark.parametrize("make", [NativeEngine, TorchEngine])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("algorithm", ["em", "likelihood", "alternating"])
def test_zeros_stay_exactly_zero_and_the_other_weights_move(make, penalty, algorithm, monkeypatch):
    monkeypatch.setattr(training, "select_engine", lambda *_: make)
    tree, zeros = with_zeros(random_tree(FIGURE_1, 6, 4))
    plan = Plan(algorithm=algorithm, epochs=3, batch_size=50, learning_rate=0.05, **penalty)
    found = finetune(tree, samples(), plan, generator=generator(), zeros=zeros).tree.splits.parameters["weight"]
    assert (found[zeros] == 0).all()
    moved = (found != tree.splits.parameters["weight"])[~zeros]
    assert moved.double().mean() > 0.9


def with_zeros(tree, seed=5):
    zeros = torch.rand(tree.splits.parameters["weight"].shape, generator=generator(seed)) < 0.5
    tree.splits.parameters["weight"][zeros] = 0.0
    return tree, zeros


def test_holding_zeros_is_training_without_those_features():
    """One split with a zero for feature 0 trains as a split on the other features alone."""
    data = samples(n_features=3)
    tree = random_tree(TreeStructure.stump(), 3, 4)
    tree.splits.parameters["weight"][:, 0] = 0.0
    zeros = torch.tensor([[True, False, False]])
    plan = Plan(epochs=4, batch_size=64, learning_rate=0.05, l2=1e-3)
    held = finetune(tree, data, plan, generator=generator(), zeros=zeros).tree
    less = random_tree(TreeStructure.stump(), 3, 4)
    less.splits.parameters["weight"] = tree.splits.parameters["weight"][:, 1:].clone()
    narrow = class_samples(data.rows.values[:, 1:].contiguous(), data.y, data.weight, 4)
    free = finetune(less, narrow, plan, generator=generator()).tree
    assert torch.allclose(held.splits.parameters["weight"][:, 1:], free.splits.parameters["weight"], atol=1e-9)
    assert torch.allclose(held.splits.parameters["bias"], free.splits.parameters["bias"], atol=1e-9)


def test_native_and_torch_steps_agree_with_zeros(monkeypatch):
    found = []
    for make in (NativeEngine, TorchEngine):
        monkeypatch.setattr(training, "select_engine", lambda *_, make=make: make)
        tree, zeros = with_zeros(random_tree(FIGURE_1, 6, 4))
        found.append(finetune(tree, samples(), Plan(epochs=3, batch_size=50), generator=generator(), zeros=zeros).tree)
    assert torch.allclose(*(tree.splits.parameters["weight"] for tree in found), atol=1e-6)


def counts_of(structure, seed=0, n_classes=3, most=20):
    rng = np.random.default_rng(seed)
    both = (rng.integers(0, most, (structure.n_leaves, n_classes)).astype(float) for _ in range(2))
    return Counted(Classes(n_classes), *both)


def score(structure, counted, ends):
    """By the definition: rows under an end get the majority of the training rows under it."""
    nodes = structure.prune(ends)[1]
    training, validation = (structure.sums_below(part) for part in counted[1:])
    return sum(validation[n, training[n].argmax()] for n in nodes[len(nodes) // 2 :]) / validation[0].sum()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loss", [0.0, 0.02, 0.2])
def test_pruning_stays_above_the_lowest_score(seed, loss):
    structure = random_structure(25, seed)
    counted = counts_of(structure, seed)
    lowest = score(structure, counted, []) - loss
    ends = weakest_links(structure, counted, lowest)
    assert score(structure, counted, ends) >= lowest - 1e-9
    kept = structure.prune(ends)[1]
    # Nothing more could go: every split that is left would take the score below.
    inner = [int(n) for n in kept if n < structure.n_splits and n not in ends]
    assert all(score(structure, counted, [*ends, split]) < lowest - 1e-9 for split in inner)


def test_more_tolerance_never_keeps_more_splits():
    structure = random_structure(40, 3)
    counted = counts_of(structure, 3)
    start = score(structure, counted, [])
    sizes = [
        structure.prune(weakest_links(structure, counted, start - loss))[0].n_splits for loss in (0, 0.01, 0.05, 1)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 0


def test_a_subtree_whose_leaves_agree_goes_for_nothing():
    # Under split 1 both leaves are class 0; the root parts the classes.
    structure = TreeStructure([1, ~0], [~2, ~1])
    classes = np.array([[5.0, 0.0], [5.0, 0.0], [0.0, 9.0]])
    assert weakest_links(structure, Counted(Classes(2), classes, classes), 1.0) == [1]


def test_a_node_without_training_rows_answers_as_the_one_above_it():
    structure = TreeStructure([1, ~0], [~2, ~1])
    training = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 9.0]])
    validation = np.array([[0.0, 3.0], [1.0, 0.0], [0.0, 4.0]])
    assert weakest_links(structure, Counted(Classes(2), training, validation), 7 / 8) == [0]


def test_a_pruned_tree_keeps_the_splits_above_and_mixes_soft_tables():
    structure = TreeStructure([1, ~0], [~2, ~1])
    tree = random_tree(structure, 1, 4)
    counts = np.array([[3.0, 0, 0, 0], [1.0, 0, 0, 0], [0, 9.0, 0, 0]])
    found = (
        SimplifiedTree(TrainedTree(tree, 2.0), None)
        .without([1], Counted(Classes(counts.shape[1]), counts, counts))
        .soft
    )
    assert found.steepness == 2.0
    assert found.tree.structure == TreeStructure.stump()
    assert torch.equal(found.tree.splits.parameters["weight"], tree.splits.parameters["weight"][:1])
    assert torch.allclose(found.tree.leaves[0], (3 * tree.leaves[0] + tree.leaves[1]) / 4)
    assert torch.equal(found.tree.leaves[1], tree.leaves[2])


def test_a_tree_from_which_nothing_goes_is_the_stage_itself():
    stage = SimplifiedTree(TrainedTree(random_tree(FIGURE_1, 6, 4), 1.0), None)
    counts = counts_of(FIGURE_1, n_classes=4)
    assert stage.without([], counts) is stage
