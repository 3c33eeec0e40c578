import pytest
import torch
from torch import nn

from crisptree.splits import AbstractSplits, AxisCandidates, AxisSplits, ConvNet, ModuleSplits, ObliqueSplits
from tests.toys import generator


def small_net(input_shape):
    return nn.Sequential(nn.Flatten(), nn.Linear(torch.Size(input_shape).numel(), 4), nn.Tanh(), nn.Linear(4, 1))


def make(kind, n_splits):
    centers = torch.zeros(n_splits, 6)
    if kind == "oblique":
        return ObliqueSplits.initial(centers, generator())
    if kind == "axis":
        return AxisSplits.initial(centers, generator())
    return ModuleSplits.build(small_net, n_splits, (6,) if kind == "module" else (1, 2, 3), generator())


KINDS = ["oblique", "axis", "module", "image module"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_splits", [1, 3, 12])
def test_the_score_at_its_own_split_is_that_column_of_all_scores(kind, n_splits):
    splits, x = make(kind, n_splits), torch.randn(9, 6, generator=generator(1))
    own = torch.randint(n_splits, (9,), generator=generator(2))
    everything = splits(x)
    assert everything.shape == (9, n_splits)
    torch.testing.assert_close(splits.at(x, own), everything[torch.arange(9), own])
    torch.testing.assert_close(splits.score(x, n_splits - 1), everything[:, -1])


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_of_one_row_keeps_its_shape(kind):
    splits = make(kind, 3)
    assert splits(torch.zeros(1, 6)).shape == (1, 3)
    assert splits.at(torch.zeros(1, 6), torch.tensor([2])).shape == (1,)


@pytest.mark.parametrize("kind", KINDS)
def test_selecting_and_concatenating_keep_every_split_as_it_was(kind):
    splits, x = make(kind, 4), torch.randn(5, 6, generator=generator(1))
    again = AbstractSplits.concatenate([splits.select([2, 0]), splits.select([3])])
    torch.testing.assert_close(again(x), splits(x)[:, [2, 0, 3]])


@pytest.mark.parametrize("kind", KINDS)
def test_a_frozen_copy_does_not_follow_the_original(kind):
    splits = make(kind, 2).trainable()
    frozen = splits.detach()
    with torch.no_grad():
        for value in splits.parameters.values():
            value += 1
    assert not any(torch.equal(frozen.parameters[name], value) for name, value in splits.parameters.items())


def test_first_directions_have_unit_length_and_pass_through_their_centers():
    centers = torch.randn(5, 6, generator=generator(3))
    splits = ObliqueSplits.initial(centers, generator())
    torch.testing.assert_close(splits.parameters["weight"].norm(dim=1), torch.ones(5))
    torch.testing.assert_close(splits(centers).diagonal(), torch.zeros(5), atol=1e-6, rtol=0)


def test_every_feature_is_a_candidate_and_the_selected_one_keeps_its_threshold():
    candidates = AxisCandidates.initial(torch.randn(3, 6, generator=generator(1)), generator())
    x, node, winner = torch.randn(3, 6, generator=generator(2)), torch.arange(3), torch.tensor([5, 0, 2])
    chosen = candidates.select_candidates(winner)
    torch.testing.assert_close(chosen.at(x, node), candidates.at(x, node)[node, winner])
    with pytest.raises(TypeError, match="their own node only"):
        candidates(x)


def test_an_axis_split_is_a_hyperplane_with_one_weight():
    splits, x = make("axis", 4), torch.randn(5, 6, generator=generator(1))
    weight, bias = splits.hyperplanes()
    assert ((weight != 0).sum(dim=1) == 1).all()
    torch.testing.assert_close(x @ weight.T + bias, splits(x))
    torch.testing.assert_close(AxisSplits.from_hyperplanes(weight, bias)(x), splits(x))


def test_building_modules_leaves_the_global_random_state_alone_and_is_repeatable():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, second = make("module", 2), make("module", 2)
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(value, second.parameters[name]) for name, value in first.parameters.items())


def test_modules_of_images_receive_channels_first():
    seen = []

    class Spy(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))

        def forward(self, x):
            seen.append(x)
            return x[:, 1, 0, 2] * self.weight

    splits = ModuleSplits.build(lambda shape: Spy(), 1, (3, 2, 4), generator())
    row = torch.arange(24.0)[None]
    # Rows are flat (height, width, channels): pixel (0, 2), channel 1.
    assert splits.at(row, torch.tensor([0])).item() == row.reshape(2, 4, 3)[0, 2, 1]
    assert seen[-1].shape == (1, 3, 2, 4)


@pytest.mark.parametrize(
    ("factory", "error", "message"),
    [
        (nn.Sequential(nn.Linear(6, 1)), TypeError, "must be a function that takes the input shape.*got Sequential"),
        (lambda shape: "net", TypeError, "must return a torch.nn.Module; got str"),
        (lambda shape: nn.Flatten(), ValueError, "with parameters to train"),
        (lambda shape: nn.Linear(6, 2), ValueError, r"one number per row.*\(2, 2\)"),
        (lambda shape: nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 1)), TypeError, "group or layer norm"),
        (
            lambda shape: nn.Sequential(nn.BatchNorm1d(6, track_running_stats=False), nn.Linear(6, 1)),
            TypeError,
            "must not depend on other rows",
        ),
    ],
)
def test_a_module_that_cannot_split_is_refused_with_advice(factory, error, message):
    with pytest.raises(error, match=message):
        ModuleSplits.build(factory, 1, (6,), generator())


def image_net(input_shape):
    channels, height, width = input_shape
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * height * width, 1))


def test_a_network_for_images_on_flat_rows_is_refused_with_advice_to_set_the_image_shape():
    with pytest.raises(ValueError, match="not enough values to unpack") as refused:
        ModuleSplits.build(image_net, 1, (64,), generator())
    assert "set image_shape=(height, width)" in refused.value.__notes__[0].replace("\n", " ")
    assert "input_shape=(64,)" in refused.value.__notes__[0]


def test_the_papers_network_has_96_values_before_its_hidden_layer_on_28_by_28():
    net = ConvNet((1, 28, 28))
    assert [tuple(value.shape) for value in net.parameters() if value.dim() == 2] == [(50, 96), (1, 50)]
    assert ConvNet((3, 16, 20))(torch.zeros(2, 3, 16, 20)).shape == (2, 1)


def test_l2_reaches_the_weights_of_modules_and_not_their_offsets():
    splits = make("module", 2)
    assert sorted(value.dim() for value in splits.weights()) == [3, 3]
    assert len(splits.parameters) == 4
