import pytest
import torch

from crisptree.equations.noise import correlated, damped_steepness, line_correlation, taps
from tests.toys import generator


@pytest.mark.parametrize("width", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("steepness", [0.5, 2.0, 6.0])
def test_the_damped_turn_is_the_mean_turn_under_noise_on_the_inputs(width, steepness):
    beta = torch.randn(5, generator=generator(), dtype=torch.float64)
    x = torch.randn(40, 5, generator=generator(1), dtype=torch.float64)
    noise = width * torch.randn(20_000, 1, 5, generator=generator(2), dtype=torch.float64)
    sampled = torch.sigmoid(steepness * ((x + noise) @ beta + 0.3)).mean(dim=0)
    damped = damped_steepness(steepness, width, beta.square().sum())
    closed = torch.sigmoid(damped * (x @ beta + 0.3))
    assert (closed - sampled).abs().max() < 0.03  # the sigmoid is not quite the normal distribution function


def test_without_noise_or_without_weights_the_steepness_is_the_plain_one():
    norms = torch.tensor([0.0, 1.0, 9.0])
    assert damped_steepness(3.0, 0.0, norms).tolist() == [3.0, 3.0, 3.0]
    assert damped_steepness(3.0, 1.0, norms)[0] == 3.0


def test_a_longer_hyperplane_has_a_lower_steepness_and_under_steep_turns_a_bounded_one():
    steepness = damped_steepness(2.0, 0.7, torch.tensor([0.1, 1.0, 10.0]))
    assert (steepness.diff() < 0).all()
    one, other = (damped_steepness(steepness, 0.7, torch.tensor([4.0])) for steepness in (1e5, 1e7))
    torch.testing.assert_close(one, other)


def test_the_steepness_has_the_gradient_of_its_formula():
    beta = torch.randn(4, generator=generator(), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda beta: damped_steepness(2.0, 0.5, beta.square().sum()), beta)


def both_lines(shape, correlation):
    return [line_correlation(side, correlation) for side in shape[:2]]


@pytest.mark.parametrize("correlation", [-0.4, 0.0, 0.3, 0.9])
@pytest.mark.parametrize("shape", [(3, 4), (1, 5), (2, 3, 2)])
def test_correlated_weights_are_those_of_the_dense_correlation_of_all_pairs(correlation, shape):
    height, width, channels = *shape, *[1] * (3 - len(shape))
    pixels = [(row, column, channel) for row in range(height) for column in range(width) for channel in range(channels)]

    def alike(one, other):
        few = taps(correlation) + [0.0] * 10
        return few[abs(one[0] - other[0])] * few[abs(one[1] - other[1])] * (one[2] == other[2])

    dense = torch.tensor([[alike(one, other) for other in pixels] for one in pixels], dtype=torch.float64)
    beta = torch.randn(4, len(pixels), generator=generator(), dtype=torch.float64)
    torch.testing.assert_close(correlated(beta, *both_lines(shape, correlation)), beta @ dense)
    assert torch.linalg.eigvalsh(dense).min() > -1e-5
    assert (dense.diagonal() == 1).all()


@pytest.mark.parametrize("correlation", [-0.4, 0.7])
def test_the_damped_turn_is_the_mean_turn_under_correlated_noise(correlation):
    shape, width, steepness = (3, 4), 0.8, 3.0
    lines = both_lines(shape, correlation)
    beta = 0.2 * torch.randn(1, 12, generator=generator(), dtype=torch.float64) + 0.5  # neighbours alike
    x = torch.randn(40, 12, generator=generator(1), dtype=torch.float64)
    white = torch.randn(20_000, 12, generator=generator(2), dtype=torch.float64)
    noise = width * white @ torch.linalg.cholesky(torch.kron(*lines)).T
    sampled = torch.sigmoid(steepness * (x @ beta[0] - 0.3 + (noise @ beta[0])[:, None])).mean(dim=0)
    squares = torch.linalg.vecdot(beta, correlated(beta, *lines))
    closed = torch.sigmoid(damped_steepness(steepness, width, squares) * (x @ beta[0] - 0.3))
    assert (closed - sampled).abs().max() < 0.03
    independent = torch.sigmoid(damped_steepness(steepness, width, beta.square().sum()) * (x @ beta[0] - 0.3))
    assert (independent - sampled).abs().max() > 0.05  # so the test can tell the two apart


def test_the_gradient_through_correlated_noise_is_that_of_its_formula():
    lines = both_lines((2, 3), 0.6)

    def steepness(beta):
        return damped_steepness(2.0, 0.5, torch.linalg.vecdot(beta, correlated(beta, *lines)))

    beta = torch.randn(3, 6, generator=generator(), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(steepness, beta)
    gamma = steepness(beta)
    gamma.sum().backward()
    formula = -(torch.pi / 8) * 0.5**2 * gamma[:, None] ** 3 * correlated(beta, *lines)
    torch.testing.assert_close(beta.grad, formula.detach())
