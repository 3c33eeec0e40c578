import numpy as np
import pytest
import torch

from crisptree.equations.penalties import grid_laplacian, l2, roughness, soft_threshold
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
    torch.testing.assert_close(roughness(weights, shape), (weights @ laplacian * weights).sum(dim=1))


def test_roughness_is_the_sum_of_squared_differences_of_neighbours():
    image = torch.tensor([[1.0, 4.0], [3.0, 3.0]])
    assert roughness(image.reshape(1, 4), (2, 2)) == 3**2 + 0**2 + 2**2 + 1**2


@pytest.mark.parametrize("penalty", [l2, lambda weights: roughness(weights, (2, 3))])
def test_penalties_have_the_gradient_of_their_formula(penalty):
    weights = torch.randn(2, 6, generator=generator(), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(penalty, weights)


def test_soft_thresholding_shrinks_towards_exact_zeros():
    shrunk = soft_threshold(torch.tensor([-2.0, -0.3, 0.0, 0.3, 2.0]), torch.tensor(0.5))
    assert shrunk.tolist() == [-1.5, 0.0, 0.0, 0.0, 1.5]
