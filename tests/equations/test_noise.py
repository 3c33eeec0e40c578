import pytest
import torch

from crisptree.equations.annealing import damped_steepness
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
