import pytest
import torch

from crisptree.learning.engines.torch_engine import Adam
from crisptree.splits import ObliqueSplits
from tests.toys import generator


def trainable(n=3, p=4, dtype=torch.float64):
    weight = torch.randn(n, p, generator=generator(), dtype=dtype)
    return ObliqueSplits(weight, torch.zeros(n, dtype=dtype)).trainable()


def push(splits, seed):
    for value in splits.parameters.values():
        value.grad = torch.randn(value.shape, generator=generator(seed), dtype=value.dtype)


def test_it_takes_the_steps_of_torchs_adam():
    ours, theirs = trainable(), trainable()
    adam, torchs = Adam(ours, 0.01), torch.optim.Adam(theirs.parameters.values(), lr=0.01)
    for step in range(5):
        push(ours, step)
        push(theirs, step)
        adam.step()
        torchs.step()
    for name, value in ours.parameters.items():
        torch.testing.assert_close(value, theirs.parameters[name], rtol=1e-12, atol=1e-14)


def test_a_split_without_rows_does_not_move_and_does_not_count_the_step():
    resting, alone = trainable(), trainable()
    adam, other = Adam(resting, 0.01), Adam(alone, 0.01)
    for step in range(4):
        push(resting, step)
        before = resting.parameters["weight"][1].clone()
        active = torch.tensor([0, 2]) if step % 2 else None
        adam.step(active)
        if step % 2:
            assert torch.equal(resting.parameters["weight"][1], before)
        else:
            push(alone, step)
            other.step()
    torch.testing.assert_close(resting.parameters["weight"][1], alone.parameters["weight"][1])


@pytest.mark.parametrize("l1", [0.5, 2.0])
def test_the_proximal_step_holds_a_weight_at_exactly_zero_while_its_gradient_is_below_l1(l1):
    splits = ObliqueSplits(torch.zeros(1, 2), torch.zeros(1)).trainable()
    adam = Adam(splits, 0.1, l1=l1)
    for _ in range(20):
        splits.parameters["weight"].grad = torch.tensor([[0.3, -1.0]])
        splits.parameters["bias"].grad = torch.tensor([0.1])
        adam.step()
    weight = splits.parameters["weight"][0]
    assert weight[0] == 0
    assert (weight[1] > 0) == (l1 < 1)
    assert splits.parameters["bias"] < 0  # the bias is never penalised
