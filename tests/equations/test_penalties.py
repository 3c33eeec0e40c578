import numpy as np
import pytest
import torch

from crisptree.equations.penalties import grid_laplacian, group_threshold, l2, soft_threshold, spatial_penalty
from tests.toys import generator

SHAPES = [(1, 1), (1, 5), (4, 3), (3, 4, 2)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_laplacian_is_symmetric_and_its_rows_sum_to_zero(shape):
    laplacian = grid_laplacian(shape)
    assert np.array_equal(laplacian, laplacian.T)
    assert not laplacian.sum(axis=1).any()


def test_the_laplacian_of_a_small_grid_is_the_papers():
    expected = [[2, -1, -1, 0], [-1, 2, 0, -1], [-1, 0, 2, -1], [0, -1, -1, 2]]
    assert grid_laplacian((2, 2)).tolist() == expected


@pytest.mark.parametrize("shape", SHAPES)
def test_roughness_is_the_quadratic_form_of_the_laplacian(shape):
    weights = torch.randn(3, int(np.prod(shape)), generator=generator(), dtype=torch.float64)
    laplacian = torch.from_numpy(grid_laplacian(shape))
    torch.testing.assert_close(spatial_penalty(weights, shape), (weights @ laplacian * weights).sum(dim=1))


def test_roughness_is_the_sum_of_squared_differences_of_neighbours():
    image = torch.tensor([[1.0, 4.0], [3.0, 3.0]])
    assert spatial_penalty(image.reshape(1, 4), (2, 2)) == 3**2 + 0**2 + 2**2 + 1**2


@pytest.mark.parametrize("penalty", [l2, lambda weights: spatial_penalty(weights, (2, 3))])
def test_penalties_have_the_gradient_of_their_formula(penalty):
    weights = torch.randn(2, 6, generator=generator(), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(penalty, weights)


def test_soft_thresholding_shrinks_towards_exact_zeros():
    shrunk = soft_threshold(torch.tensor([-2.0, -0.3, 0.0, 0.3, 2.0]), torch.tensor(0.5))
    assert shrunk.tolist() == [-1.5, 0.0, 0.0, 0.0, 1.5]


def members_of(*sizes):
    return torch.block_diag(*(torch.ones(size, 1, dtype=torch.float64) for size in sizes))


def test_a_group_with_equal_thresholds_is_shrunk_by_its_norm():
    weights = torch.tensor([[3.0, 4.0, 0.3, -0.4]], dtype=torch.float64)
    shrunk = group_threshold(weights, torch.ones_like(weights), members_of(2, 2))
    torch.testing.assert_close(shrunk, torch.tensor([[3 * 0.8, 4 * 0.8, 0.0, 0.0]], dtype=torch.float64))
    assert torch.equal(shrunk[0, 2:], torch.zeros(2, dtype=torch.float64))


def test_groups_of_one_are_shrunk_as_single_weights():
    weights = torch.randn(50, 3, generator=generator(), dtype=torch.float64)
    threshold = torch.rand(50, 3, generator=generator(), dtype=torch.float64)
    torch.testing.assert_close(
        group_threshold(weights, threshold, members_of(1, 1, 1)), soft_threshold(weights, threshold)
    )


@pytest.mark.parametrize("size", [2, 5, 40])
def test_group_thresholds_of_any_scale_end_where_the_penalised_square_is_least(size):
    random = generator()
    weights = torch.randn(300, size, generator=random, dtype=torch.float64)
    threshold = 10 ** (9 * torch.rand(300, size, generator=random, dtype=torch.float64) - 5)
    shrunk = group_threshold(weights, threshold, members_of(size))
    norm = shrunk.norm(dim=1, keepdim=True)
    gone = norm[:, 0] == 0
    assert gone.any() or size > 5
    assert ((weights / threshold).norm(dim=1)[gone] <= 1 + 1e-12).all()
    # Where the group is left the gradient of the square and of the norm cancel.
    pull = (shrunk - weights) / threshold + shrunk / norm
    torch.testing.assert_close(pull[~gone], torch.zeros_like(pull[~gone]), atol=1e-9, rtol=0)


def test_a_threshold_of_zero_changes_no_group_and_zeros_stay():
    weights = torch.tensor([[1.0, -2.0], [0.0, 0.0]])
    shrunk = group_threshold(weights, torch.zeros(2, 2), members_of(2).float())
    torch.testing.assert_close(shrunk, weights)
