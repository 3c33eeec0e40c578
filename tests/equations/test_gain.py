import math

import torch

from crisptree.equations.alternating import hard_responsibilities
from crisptree.equations.em import class_counts
from crisptree.equations.gain import entropy, information_gain
from crisptree.equations.routing import log_likelihoods, log_path_probabilities
from crisptree.structure import TreeStructure
from tests.toys import FIGURE_1, generator


def test_a_worked_example_of_information_gain():
    # 4 of one class and 4 of another; the split keeps 3 : 1 on the left and 1 : 3 on the right.
    gain = information_gain(torch.tensor([3.0, 1.0]), torch.tensor([1.0, 3.0]))
    by_hand = math.log(2) + 0.75 * math.log(0.75) + 0.25 * math.log(0.25)
    assert math.isclose(gain.item(), by_hand, rel_tol=1e-6)


def test_a_pure_split_gains_the_whole_entropy_and_a_useless_one_nothing():
    counts = torch.tensor([5.0, 3.0])
    pure = information_gain(torch.tensor([5.0, 0.0]), torch.tensor([0.0, 3.0]))
    torch.testing.assert_close(pure, entropy(counts))
    torch.testing.assert_close(information_gain(counts, counts), torch.tensor(0.0), atol=1e-7, rtol=0)


def test_no_samples_have_no_entropy():
    assert entropy(torch.zeros(3)) == 0


def steep_tree(structure, seed=0):
    scores = torch.randn(60, structure.n_splits, generator=generator(seed), dtype=torch.float64)
    scores = scores + 0.1 * scores.sign()  # nothing so near to a boundary that γ could not decide
    y = torch.randint(3, (60,), generator=generator(seed + 1))
    counts = class_counts(hard_responsibilities(scores, structure), y, 3)
    tables = counts / counts.sum(dim=1, keepdim=True)
    log_paths = log_path_probabilities(scores, structure, 1e4)
    return counts, log_likelihoods(log_paths, tables.clamp_min(1e-300), y).mean()


def test_for_steep_splits_the_mean_log_likelihood_is_minus_the_weighted_leaf_entropies():
    counts, likelihood = steep_tree(FIGURE_1)
    share = counts.sum(dim=1) / counts.sum()
    torch.testing.assert_close(likelihood, -(share * entropy(counts)).sum())


def test_for_one_steep_split_the_log_likelihood_is_minus_the_conditional_entropy():
    counts, likelihood = steep_tree(TreeStructure.stump())
    conditional_entropy = entropy(counts.sum(dim=0)) - information_gain(counts[0], counts[1])
    torch.testing.assert_close(likelihood, -conditional_entropy)
