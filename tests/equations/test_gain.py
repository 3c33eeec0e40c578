import math

import numpy as np
import pytest
import torch

from crisptree.equations.alternating import hard_responsibilities
from crisptree.equations.routing import log_likelihoods, log_path_probabilities
from crisptree.structure import TreeStructure
from crisptree.targets import Classes, gain
from tests.toys import FIGURE_1, generator


def entropy(counts):
    return Classes(counts.shape[-1]).mean_impurity(counts, None) * math.log(2)


def information_gain(left, right):
    return gain(Classes(len(left)), np.asarray(left, dtype=float), np.asarray(right, dtype=float))


def test_a_worked_example_of_information_gain():
    # 4 of one class and 4 of another; the split keeps 3 : 1 on the left and 1 : 3 on the right.
    found = information_gain([3.0, 1.0], [1.0, 3.0])
    by_hand = math.log(2) + 0.75 * math.log(0.75) + 0.25 * math.log(0.25)
    assert math.isclose(found, by_hand, rel_tol=1e-12)


def test_a_pure_split_gains_the_whole_entropy_and_a_useless_one_nothing():
    counts = np.array([5.0, 3.0])
    assert information_gain([5.0, 0.0], [0.0, 3.0]) == pytest.approx(entropy(counts))
    assert information_gain(counts, counts) == pytest.approx(0.0, abs=1e-12)


def test_no_samples_have_no_entropy():
    assert entropy(np.zeros(3)) == 0


def steep_tree(structure, seed=0):
    scores = torch.randn(60, structure.n_splits, generator=generator(seed), dtype=torch.float64)
    scores = scores + 0.1 * scores.sign()  # nothing so near to a boundary that γ could not decide
    y = torch.randint(3, (60,), generator=generator(seed + 1))
    counts = Classes(3).statistics(hard_responsibilities(scores, structure), y)
    tables = counts / counts.sum(dim=1, keepdim=True)
    log_paths = log_path_probabilities(scores, structure, 1e4)
    evidence = Classes(3).evidence(tables.clamp_min(1e-300), y)
    return counts.numpy(), log_likelihoods(log_paths, evidence).mean().item()


def test_for_steep_splits_the_mean_log_likelihood_is_minus_the_weighted_leaf_entropies():
    counts, likelihood = steep_tree(FIGURE_1)
    share = counts.sum(axis=1) / counts.sum()
    assert likelihood == pytest.approx(-(share * entropy(counts)).sum())


def test_for_one_steep_split_the_log_likelihood_is_minus_the_conditional_entropy():
    counts, likelihood = steep_tree(TreeStructure.stump())
    conditional_entropy = entropy(counts.sum(axis=0)) - information_gain(counts[0], counts[1])
    assert likelihood == pytest.approx(-conditional_entropy)
