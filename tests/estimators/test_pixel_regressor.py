import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score

import crisptree
from crisptree import CrispPixelRegressor, CrispSegmenter, StopTraining
from crisptree.data.raw_rows import Canvas, WindowView
from crisptree.inference import flat_tree as routing

QUICK = {
    "window": 3,
    "max_depth": 3,
    "epochs": 3,
    "finetune_epochs": 3,
    "min_updates": 20,
    "pixels_per_epoch": 1000,
    "learning_rate": 0.02,
    "n_jobs": 1,
    "random_state": 0,
}


def slopes(n=3, height=24, width=26, channels=None, unit=1.0, seed=0):
    """Images of noise whose number is the difference of the pixels right and left of a pixel."""
    images = np.random.default_rng(seed).normal(size=(n, height, width, channels or 1))
    padded = np.pad(images[..., -1], ((0, 0), (1, 1), (1, 1)), mode="reflect")
    targets = unit * (padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]) + 10 * unit
    return (images if channels else images[..., 0]), targets


IMAGES, TARGETS = slopes()


@pytest.fixture(scope="module")
def model():
    return CrispPixelRegressor.from_flat(**QUICK).fit(IMAGES, TARGETS)


def test_prediction_is_that_of_the_reference_on_extracted_windows_bit_for_bit(model):
    windows = Canvas.of(list(IMAGES.astype(np.float32)[..., None]), WindowView(3, (1,), 1)).windows()
    leaves = routing.route_reference(model.tree_, windows[:]).reshape(IMAGES.shape)
    assert np.array_equal(model.leaf_indices(IMAGES), leaves)
    tables = model.tree_.leaf_values()
    assert np.array_equal(model.predict(IMAGES), tables[leaves, 0])
    assert np.array_equal(model.predict_std(IMAGES), np.sqrt(tables[leaves, 1]))
    assert set(np.unique(model.leaf_image(IMAGES))) <= set(np.arange(8) / 7)


def test_leaves_predict_mean_and_spread_of_the_pixels_that_end_in_them(model):
    leaves = model.leaf_indices(IMAGES)
    for leaf in np.unique(leaves):
        here = TARGETS[leaves == leaf]
        assert model.predict(IMAGES)[leaves == leaf][0] == pytest.approx(here.mean())
        assert model.predict_std(IMAGES)[leaves == leaf][0] == pytest.approx(here.std(), rel=1e-3)


def test_it_learns_what_only_neighbours_show(model):
    new, truth = slopes(1, height=40, width=40, seed=9)
    assert model.score(new, truth) > 0.8
    assert model.score(IMAGES, TARGETS) == pytest.approx(r2_score(TARGETS.ravel(), model.predict(IMAGES).ravel()))
    low, high = model.predict_interval(new, coverage=0.9)
    assert np.mean((truth >= low) & (truth <= high)) == pytest.approx(0.9, abs=0.07)
    assert np.allclose(model.soft_predict(new, steepness=1e6), model.predict(new), atol=0.5)


def test_every_form_of_images_gives_its_own_form_of_results(model):
    several, one = model.predict(IMAGES), model.predict(IMAGES[0])
    assert several.shape == IMAGES.shape
    assert several.dtype == np.float64
    assert np.array_equal(one, several[0])
    listed = model.predict([IMAGES[0], IMAGES[1][:20, :11]])
    assert [image.shape for image in listed] == [(24, 26), (20, 11)]
    assert np.array_equal(listed[0], one)
    low, high = model.predict_interval([IMAGES[0]])
    assert low[0].shape == high[0].shape == model.soft_predict([IMAGES[0]])[0].shape == (24, 26)


def test_pixels_without_a_number_are_as_if_they_were_not_there():
    gaps = TARGETS.copy()
    gaps[:, :, :9] = np.nan
    by_nan = CrispPixelRegressor.from_flat(**QUICK).fit(IMAGES, gaps)
    by_value = CrispPixelRegressor.from_flat(**QUICK, ignore_value=-5).fit(IMAGES, np.nan_to_num(gaps, nan=-5))
    by_mask = CrispPixelRegressor.from_flat(**QUICK).fit(IMAGES, TARGETS, mask=~np.isnan(gaps))
    for other in (by_value, by_mask):
        assert np.array_equal(by_nan.tree_.weight, other.tree_.weight)
        assert np.array_equal(by_nan.tree_.leaf_values(), other.tree_.leaf_values())
    assert by_nan.tree_.statistics.node_counts[0, 0] == np.count_nonzero(~np.isnan(gaps))
    expected = r2_score(TARGETS[:, :, 9:].ravel(), by_nan.predict(IMAGES)[:, :, 9:].ravel())
    assert by_nan.score(IMAGES, gaps) == pytest.approx(expected)


def test_units_of_the_targets_change_nothing_but_the_units(model):
    scaled = CrispPixelRegressor.from_flat(**QUICK).fit(IMAGES, TARGETS * 4096)
    assert np.array_equal(scaled.tree_.weight, model.tree_.weight)
    assert np.allclose(scaled.predict(IMAGES), 4096 * model.predict(IMAGES))
    assert np.allclose(scaled.predict_std(IMAGES), 4096 * model.predict_std(IMAGES))


def test_pixels_may_have_several_outputs():
    both = np.stack([TARGETS, -3 * IMAGES], axis=-1)
    model = CrispPixelRegressor.from_flat(**QUICK | {"max_depth": 5}).fit(IMAGES, both)
    assert model.n_outputs_ == 2
    for found in (model.predict(IMAGES), model.predict_std(IMAGES), model.soft_predict(IMAGES)):
        assert found.shape == both.shape
    assert model.predict(IMAGES[0]).shape == (24, 26, 2)
    assert model.score(IMAGES, both) == pytest.approx(
        r2_score(both.reshape(-1, 2), model.predict(IMAGES).reshape(-1, 2))
    )
    both[0, 3, 4, 1] = np.nan
    assert (
        CrispPixelRegressor.from_flat(**QUICK).fit(IMAGES, both).tree_.statistics.node_counts[0, 0] == TARGETS.size - 1
    )


def test_targets_distinguish_one_image_of_three_channels_from_three_images():
    images, targets = slopes(1, channels=3)
    one = CrispPixelRegressor.from_flat(**QUICK).fit(images[0], targets[0])
    assert one.channels_ == 3
    two = CrispPixelRegressor.from_flat(**QUICK).fit(images[0], np.stack([targets[0], targets[0]], axis=2))
    assert (two.channels_, two.n_outputs_) == (3, 2)
    colours = CrispPixelRegressor.from_flat(**QUICK).fit([images[0]], [images[0]])
    assert (colours.channels_, colours.n_outputs_) == (3, 3)
    assert colours.predict([images[0]])[0].shape == (24, 26, 3)
    assert CrispPixelRegressor.from_flat(**QUICK).fit(IMAGES, TARGETS).channels_ is None


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "em"},
        {"algorithm": "alternating", "scales": (1, 2), "normalise_images": True},
        {
            "l1": 1e-3,
            "l2": 1e-3,
            "spatial_penalty": 1e-2,
            "max_leaf_nodes": 5,
            "min_samples_leaf": 10,
            "ccp_alpha": 1e-3,
        },
        {"grow": "balanced", "scale": "global", "shrinkage": 2.0},
        {"split": "axis", "scale": None},
        {"split": "conv", "window": 17, "epochs": 1, "finetune_epochs": 1, "min_updates": 1, "pixels_per_epoch": 200},
    ],
)
def test_the_options_of_training_are_those_of_the_segmenter(tmp_path, options):
    heard = []
    model = CrispPixelRegressor.from_flat(**QUICK | {"max_depth": 2} | options, callbacks=[heard.append])
    model.fit(IMAGES[:1], TARGETS[:1])
    assert heard == model.history_
    assert model.truncate(1).get_depth() <= 1
    model.set_params(training__callbacks=None).save(tmp_path / "x.crisp")
    assert np.array_equal(crisptree.load(tmp_path / "x.crisp").predict(IMAGES), model.predict(IMAGES))


def test_smoothed_weights_are_smoother():
    def roughness(strength):
        options = QUICK | {"window": 7, "max_depth": 1, "min_updates": 100, "scale": "global"}
        model = CrispPixelRegressor.from_flat(**options, spatial_penalty=strength).fit(IMAGES, TARGETS)
        image = model.tree_.weight[0].reshape(7, 7)
        return (np.diff(image, axis=0) ** 2).sum() / (image**2).sum()

    assert roughness(0.3) < 0.7 * roughness(0.0)


def test_early_stopping_and_auto_choices_hold_whole_images_out():
    options = QUICK | {"early_stopping": True, "ccp_alpha": "auto", "shrinkage": "auto"}
    held = CrispPixelRegressor.from_flat(**options).fit(IMAGES, TARGETS)
    assert held.tree_.statistics.node_counts[0, 0] == 2 * TARGETS[0].size
    given = CrispPixelRegressor.from_flat(**QUICK, early_stopping=True)
    given.fit(IMAGES[:2], TARGETS[:2], eval_set=(IMAGES[2:], TARGETS[2:]))
    scores = [record.validation_score for record in given.history_ if record.phase == "finetune"]
    assert given.score(IMAGES[2:], TARGETS[2:]) >= max(scores) - 0.01
    with pytest.raises(ValueError, match="a fit that holds images out must have at least 2"):
        CrispPixelRegressor.from_flat(**options).fit(IMAGES[0], TARGETS[0])
    with pytest.raises(ValueError, match="those left must have a number somewhere"):
        CrispPixelRegressor.from_flat(**options).fit(IMAGES[:2], np.where([[[True]], [[False]]], TARGETS[:2], np.nan))


def test_the_second_stage_gets_scaled_predictions_of_the_first(tmp_path):
    model = CrispPixelRegressor.from_flat(**QUICK, stages=2).fit(IMAGES, TARGETS)
    assert model.image_shape_ == (3, 3, 2)
    first = CrispPixelRegressor.from_flat(**QUICK).fit(IMAGES, TARGETS)
    said = (first.predict(IMAGES) - TARGETS.mean()) / TARGETS.std()
    seen = np.stack([IMAGES, said], axis=-1).astype(np.float32)
    windows = Canvas.of(list(seen), WindowView(3, (1,), 2)).windows()
    same = model.leaf_indices(IMAGES).ravel() == routing.route_reference(model.tree_, windows[:])
    assert same.mean() > 0.999  # the numbers went through the units of y and back
    model.save(tmp_path / "x.crisp")
    again = crisptree.load(tmp_path / "x.crisp")
    assert np.array_equal(again.predict(IMAGES), model.predict(IMAGES))
    assert len(again.earlier_trees_) == 1


def test_a_callback_that_ends_a_fit_ends_all_its_stages():
    def stop(record):
        raise StopTraining

    model = CrispPixelRegressor.from_flat(**QUICK, stages=3, callbacks=[stop]).fit(IMAGES, TARGETS)
    assert model.earlier_trees_ == []
    assert model.predict(IMAGES).shape == TARGETS.shape


def test_targets_far_from_zero_and_constant_targets_are_predicted_exactly():
    far = CrispPixelRegressor.from_flat(**QUICK).fit(IMAGES, TARGETS * 1e100)
    assert far.score(IMAGES, TARGETS * 1e100) > 0.8
    same = CrispPixelRegressor.from_flat(**QUICK, stages=2).fit(IMAGES, np.full(TARGETS.shape, 7.5))
    assert np.array_equal(same.predict(IMAGES), np.full(TARGETS.shape, 7.5))
    assert not same.predict_std(IMAGES).any()


def test_a_reloaded_pickled_or_repeated_model_predicts_the_same_bits_without_torch(tmp_path, model):
    model.save(tmp_path / "x.crisp")
    again = CrispPixelRegressor.from_flat(**QUICK | {"n_jobs": 2}).fit(IMAGES, TARGETS)
    for twin in (crisptree.load(tmp_path / "x.crisp"), pickle.loads(pickle.dumps(model)), again):
        assert np.array_equal(twin.predict(IMAGES), model.predict(IMAGES))
        assert np.array_equal(
            twin.before_finetuning().predict_std(IMAGES), model.before_finetuning().predict_std(IMAGES)
        )
        assert (twin.n_outputs_, twin.image_shape_) == (1, (3, 3))
    code = (
        "import sys, numpy, crisptree; crisptree.CrispPixelRegressor; "
        f"crisptree.load({str(tmp_path / 'x.crisp')!r}).predict(numpy.zeros((9, 9))); print('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_a_fit_goes_on_from_a_checkpoint(tmp_path, model):
    def stop(record):
        if record.phase == "finetune":
            raise KeyboardInterrupt

    folder = {"checkpoint": tmp_path / "kept", "checkpoint_every": 0.0}
    with pytest.raises(KeyboardInterrupt):
        CrispPixelRegressor.from_flat(**QUICK, callbacks=[stop]).fit(IMAGES, TARGETS, **folder)
    again = CrispPixelRegressor.from_flat(**QUICK).fit(IMAGES, TARGETS, **folder, resume=True)
    assert np.array_equal(again.tree_.weight, model.tree_.weight)
    with pytest.raises(crisptree.CheckpointError, match="differs in images and targets"):
        CrispPixelRegressor.from_flat(**QUICK).fit(IMAGES, TARGETS + 1, **folder, resume=True)


def with_value(value):
    targets = TARGETS.copy()
    targets[1, 3, 4] = value
    return targets


@pytest.mark.parametrize(
    ("images", "targets", "sentence"),
    [
        (IMAGES, None, "`targets` must hold a number for every pixel; got None"),
        (IMAGES, TARGETS[:2], "must have a number for every pixel"),
        (IMAGES, TARGETS[..., None, None], "must have a number for every pixel"),
        (IMAGES, TARGETS[..., None][..., :0], "must have a number for every pixel"),
        (IMAGES, 3.0, "must have a number for every pixel"),
        (list(IMAGES), [TARGETS[0], TARGETS[1], TARGETS[2][..., None]], "or as many for each"),
        (IMAGES, TARGETS.astype(str), "must hold numbers; got values of type .*For classes use CrispSegmenter"),
        (IMAGES, TARGETS.astype(complex), "must hold numbers"),
        (IMAGES, np.full(TARGETS.shape, np.nan), "at least one pixel with a number; got none"),
        (IMAGES, with_value(np.inf), "must be finite, or NaN"),
        (IMAGES, with_value(1e200), "numbers of at most 1e\\+150"),
        ([[[1, 2], [3, 4]], [[1]]], TARGETS, "nested lists that are no array"),
        (IMAGES[:, :1], TARGETS[:, :1], "more than 1 pixels on each side"),
    ],
)
def test_targets_that_cannot_be_are_refused(images, targets, sentence):
    model = CrispPixelRegressor.from_flat(**QUICK)
    with pytest.raises(ValueError, match=sentence):
        model.fit(images, targets)
    assert not hasattr(model, "tree_")


def test_wrong_use_is_refused(model):
    with pytest.raises(ValueError, match="`ignore_value` must be None or a number"):
        CrispPixelRegressor.from_flat(**QUICK, ignore_value="none").fit(IMAGES, TARGETS)
    with pytest.raises(ValueError, match=r"`eval_set` must be a pair \(images, targets\)"):
        CrispPixelRegressor.from_flat(**QUICK).fit(IMAGES, TARGETS, eval_set=IMAGES)
    with pytest.raises(ValueError, match="validation targets must have 1 outputs"):
        CrispPixelRegressor.from_flat(**QUICK).fit(
            IMAGES, TARGETS, eval_set=(IMAGES, np.stack([TARGETS, TARGETS], axis=-1))
        )
    with pytest.raises(ValueError, match="targets must have 1 outputs, as in training; got 2"):
        model.score(IMAGES, np.stack([TARGETS, TARGETS], axis=-1))
    with pytest.raises(ValueError, match="to score on; got none"):
        model.score(IMAGES, np.full(TARGETS.shape, np.nan))
    with pytest.raises(ValueError, match="must be those of fit"):
        pickle.loads(pickle.dumps(model)).set_params(window=5).predict(IMAGES)
    with pytest.raises(ValueError, match="`coverage`"):
        model.predict_interval(IMAGES, coverage=1.0)
    with pytest.raises(NotFittedError):
        clone(model).predict(IMAGES)
    with pytest.raises(ValueError, match="labels must be classes; for numbers use CrispPixelRegressor"):
        CrispSegmenter(window=3).fit(IMAGES, TARGETS)
