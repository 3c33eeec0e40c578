"""Training images that are shifted in every epoch, without copies of them."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from crisptree import CrispTreeClassifier
from crisptree.data.raw_rows import Scaling
from crisptree.data.rows import ShiftedImages
from crisptree.learning import loop as training_loop
from crisptree.learning.loop import ENGINES, WholeTree
from crisptree.learning.options import Plan
from crisptree.native import training
from tests.learning.comparing import largest_difference, trained
from tests.toys import FIGURE_1, class_samples, generator, plain_tree, random_tree

QUICK = {"max_depth": 3, "epochs": 3, "finetune_epochs": 3, "min_updates": 20, "random_state": 0, "device": "cpu"}
DIGITS, LABELS = load_digits(return_X_y=True)


def images(shape, n=20):
    return torch.randn(n, int(np.prod(shape)), generator=generator(), dtype=torch.float64)


def by_hand(row, shape, down, across):
    """The image that shows what lies so far below and to the right, its border repeated outside."""
    image = row.reshape(*shape[:2], -1).numpy()
    lines, columns = (
        np.clip(np.arange(side) + far, 0, side - 1) for side, far in zip(shape, (down, across), strict=False)
    )
    return torch.from_numpy(image[lines][:, columns].reshape(-1))


@pytest.mark.parametrize("shape", [(4, 5), (3, 3, 2)])
@pytest.mark.parametrize("reach", [1, 2])
def test_every_image_is_shifted_by_its_own_number_of_pixels_and_comes_back(shape, reach):
    values = images(shape)
    rows = ShiftedImages.of(values, shape, reach)
    everything = torch.arange(len(values))
    assert torch.equal(rows.batch(everything), values)
    seen = set()
    with rows.shift(generator(1)):
        for number, row in enumerate(rows.batch(everything)):
            steps = range(-reach, reach + 1)
            found = [(a, b) for a in steps for b in steps if torch.equal(row, by_hand(values[number], shape, a, b))]
            assert found
            seen.update(found)
    assert len(seen) > 4
    assert torch.equal(rows.batch(everything), values)


def test_images_come_back_after_an_error_too():
    rows = ShiftedImages.of(images((3, 3)), (3, 3), 1)
    with pytest.raises(KeyError), rows.shift(generator()):
        raise KeyError
    assert torch.equal(rows.base, rows.unshifted)


@pytest.mark.skipif(training is None, reason="installed without the kernel")
@pytest.mark.parametrize("algorithm", ["em", "likelihood", "alternating"])
def test_the_native_steps_see_the_same_shifts_as_torch(algorithm, monkeypatch):
    y = torch.arange(120) % 4
    rows = ShiftedImages.of(images((3, 4), 120) + y[:, None], (3, 4), 1)
    data = class_samples(rows, y, torch.ones(120, dtype=torch.float64), 4)
    plan = Plan(algorithm, epochs=4, batch_size=50, learning_rate=0.05)
    native, by_torch = (
        trained(ENGINES[name], WholeTree(random_tree(FIGURE_1, 12, 4), data), data, plan, monkeypatch)
        for name in ("native", "torch")
    )
    assert largest_difference(native, by_torch) < 1e-6
    monkeypatch.undo()
    still = class_samples(rows.batch(torch.arange(120)), y, data.weight, 4)
    unmoved = WholeTree(random_tree(FIGURE_1, 12, 4), still)
    training_loop.train(unmoved, still, plan, generator=generator())
    assert largest_difference(native, unmoved) > 1e-3


def test_shifts_make_a_tree_that_bears_them():
    X, y = DIGITS[:1200], LABELS[:1200]
    moved = np.roll(DIGITS[1200:].reshape(-1, 8, 8), 1, axis=2).reshape(-1, 64)
    parameters = {
        **QUICK,
        "max_depth": 6,
        "epochs": 10,
        "finetune_epochs": 20,
        "scale": "global",
        "image_shape": (8, 8),
    }
    plain, shifted = (plain_tree(**parameters, max_shift=shifts).fit(X, y) for shifts in (0, 1))
    assert shifted.score(moved, LABELS[1200:]) > plain.score(moved, LABELS[1200:]) + 0.1
    again = plain_tree(**parameters, max_shift=1).fit(X, y)
    np.testing.assert_array_equal(shifted.tree_.weight, again.tree_.weight)


def test_leaves_are_counted_and_choices_judged_by_the_images_as_they_are():
    X, y = DIGITS[:600], LABELS[:600]
    model = CrispTreeClassifier.from_flat(**QUICK, image_shape=(8, 8), max_shift=1, shrinkage=0.0).fit(X, y)
    assert len(model.cv_results_) == 3
    assert all(len(trial.row_scores) == len(X) for trial in model.cv_results_)
    np.testing.assert_array_equal(
        np.bincount(model.leaf_indices(X)), model.tree_.statistics.node_counts.sum(axis=1)[-len(model.tree_.leaves) :]
    )


def test_pixels_that_are_scaled_alike_may_take_each_others_places():
    scaling = Scaling.learn(DIGITS, np.ones(len(DIGITS)), "global")
    alike = scaling.share_between_pixels()
    assert alike.is_same_for_pixels()
    assert not scaling.is_same_for_pixels()
    assert alike.factor[0] == scaling.factor.max()
    assert alike.center[0] == pytest.approx(DIGITS.mean())
    np.testing.assert_array_equal(alike.spread, scaling.spread)
    assert scaling.share_between_pixels(2).is_same_for_pixels(2)


def test_modules_train_on_shifted_images_too():
    model = plain_tree(
        **QUICK,
        split=lambda shape: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 1)),
        max_shift=1,
        scale=None,
    ).fit(DIGITS[:100].reshape(-1, 8, 8), LABELS[:100])
    assert model.get_n_leaves() > 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scale": "feature"}, "`scale` must be 'auto', 'global' or None for max_shift=1"),
        ({"grow": "cart"}, "`max_shift` must be 0 for grow='cart'"),
        ({"max_shift": 8}, "`max_shift` must be below the sides of an image"),
        ({"max_shift": -1}, "`max_shift` must be a whole number of at least 0"),
    ],
)
def test_what_cannot_be_shifted_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        CrispTreeClassifier.from_flat(**{**QUICK, "image_shape": (8, 8), "max_shift": 1, **parameters}).fit(
            DIGITS, LABELS
        )


def test_a_warm_start_cannot_begin_to_shift():
    parameters = {**QUICK, "image_shape": (8, 8), "scale": "global", "warm_start": True}
    model = plain_tree(**parameters).fit(DIGITS[:200], LABELS[:200])
    with pytest.raises(ValueError, match="`max_shift` must be set from the first fit on"):
        model.set_params(training__max_shift=1, max_depth=4).fit(DIGITS[:200], LABELS[:200])
