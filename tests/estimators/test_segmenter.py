import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import crisptree
from crisptree import CrispSegmenter, ModelFileError, StopTraining
from crisptree.data.raw_rows import Canvas, WindowView
from crisptree.estimators.loading import sections_of
from crisptree.inference import flat_tree as routing
from crisptree.persistence.model_file import write

QUICK = {
    "window": 5,
    "max_depth": 3,
    "epochs": 3,
    "finetune_epochs": 3,
    "min_updates": 20,
    "pixels_per_epoch": 1000,
    "learning_rate": 0.02,
    "random_state": 0,
}
RNG = np.random.default_rng(0)


def stripes(height=24, width=26, channels=None, n_classes=2, seed=0):
    """An image of noise whose label is how many of the pixels left and right of a pixel are bright."""
    image = np.random.default_rng(seed).normal(size=(height, width, channels or 1))
    padded = np.pad(image[:, :, -1], 1, mode="reflect")
    bright = (padded[1:-1, :-2] > 0).astype(int) + (padded[1:-1, 2:] > 0)
    return (image if channels else image[:, :, 0]), np.minimum(bright, n_classes - 1)


def stack(n=3, **options):
    images, labels = zip(*(stripes(seed=seed, **options) for seed in range(n)), strict=True)
    return np.stack(images), np.stack(labels)


IMAGES, LABELS = stack()


@pytest.fixture(scope="module")
def model():
    return CrispSegmenter.from_flat(**QUICK).fit(IMAGES, LABELS)


def test_prediction_is_that_of_the_reference_on_extracted_windows_bit_for_bit(model):
    windows = Canvas.of(list(IMAGES.astype(np.float32)[..., None]), WindowView(5, (1,), 1)).windows()
    expected = routing.route_reference(model.tree_, windows[:]).reshape(IMAGES.shape)
    assert np.array_equal(model.leaf_indices(IMAGES), expected)
    assert np.array_equal(model.predict_proba(IMAGES), model.tree_.leaves[expected])
    assert np.array_equal(model.predict(IMAGES), model.classes_[model.tree_.leaves[expected].argmax(axis=-1)])


def test_it_learns_what_only_neighbours_show():
    options = {"epochs": 10, "finetune_epochs": 15, "learning_rate": 0.02}
    model = CrispSegmenter.from_flat(window=3, max_depth=3, **options, random_state=0).fit(IMAGES, LABELS)
    assert model.score(*stack(1, height=60, width=60)) > 0.93
    assert model.score(IMAGES, LABELS) >= model.before_finetuning().score(IMAGES, LABELS) - 0.01


def test_every_form_of_images_gives_its_own_form_of_results(model):
    several, one = model.predict(IMAGES), model.predict(IMAGES[0])
    assert several.shape == IMAGES.shape
    assert np.array_equal(one, several[0])
    listed = model.predict([IMAGES[0], IMAGES[1][:20, :11]])
    assert isinstance(listed, list)
    assert [image.shape for image in listed] == [(24, 26), (20, 11)]
    assert np.array_equal(listed[0], one)
    assert model.predict_proba(IMAGES[0]).shape == (24, 26, 2)
    assert np.array_equal(model.predict(IMAGES[0].tolist()), one)


def test_leaves_from_left_to_right_are_equally_spaced_greys(model):
    greys, leaves = model.leaf_image(IMAGES), model.leaf_indices(IMAGES)
    n = model.get_n_leaves()
    for place, leaf in enumerate(model.tree_.structure.leaves_left_to_right):
        assert np.allclose(greys[leaves == leaf], place / (n - 1))
    alone = CrispSegmenter.from_flat(**QUICK | {"max_depth": 0}).fit(IMAGES, LABELS)
    assert np.array_equal(alone.leaf_image(IMAGES[0]), np.zeros((24, 26)))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("channels", [1, 2, 3])
@pytest.mark.parametrize("scales", [(1,), (1, 2)])
def test_channels_scales_and_classes_may_be_any(n_classes, channels, scales):
    images, labels = stack(2, channels=channels, n_classes=n_classes)
    model = CrispSegmenter.from_flat(**QUICK, scales=scales, spatial_penalty=1e-3).fit(images, labels)
    planes = channels * len(scales)
    assert model.image_shape_ == ((5, 5) if planes == 1 else (5, 5, planes))
    assert model.predict_proba(images).shape == (*labels.shape, n_classes)
    assert np.array_equal(model.predict(images[0]), model.predict(images)[0])


def test_twenty_six_classes_and_strange_names_work():
    image, _ = stripes(40, 40)
    names = np.array([f"<b>$x_{number}$" for number in range(26)])
    labels = names[np.digitize(image, np.quantile(image, np.linspace(0, 1, 27)[1:-1]))]
    model = CrispSegmenter.from_flat(**QUICK).fit(image, labels)
    assert set(model.predict(image).ravel()) <= set(names)


def test_labels_distinguish_one_image_of_three_channels_from_three_images():
    image, labels = stripes(channels=3)
    one = CrispSegmenter.from_flat(**QUICK).fit(image, labels)
    assert one.channels_ == 3
    assert one.predict(image).shape == labels.shape
    assert CrispSegmenter.from_flat(**QUICK).fit(IMAGES, LABELS).channels_ is None


def test_images_of_unequal_size_train_as_one():
    images, labels = [IMAGES[0], IMAGES[1][:17], IMAGES[2][:, :19]], [LABELS[0], LABELS[1][:17], LABELS[2][:, :19]]
    model = CrispSegmenter.from_flat(**QUICK).fit(images, labels)
    assert model.tree_.statistics.node_counts[0].sum() == sum(image.size for image in labels)


def test_unlabelled_and_masked_pixels_do_not_train():
    labels = LABELS.copy()
    labels[:, :, :9] = 7
    by_label = CrispSegmenter.from_flat(**QUICK, ignore_label=7).fit(IMAGES, labels)
    mask = np.ones(LABELS.shape, dtype=bool)
    mask[:, :, :9] = False
    by_mask = CrispSegmenter.from_flat(**QUICK).fit(IMAGES, LABELS, mask=mask)
    assert np.array_equal(by_label.classes_, [0, 1])
    assert np.array_equal(by_label.tree_.weight, by_mask.tree_.weight)
    assert by_mask.tree_.statistics.node_counts[0].sum() == mask.sum()
    wrong = np.where(labels == 7, 7, 1 - by_label.predict(IMAGES))
    assert by_label.score(IMAGES, wrong) == 0.0


def test_any_label_may_be_a_class_where_none_is_ignored():
    model = CrispSegmenter.from_flat(**QUICK).fit(IMAGES, np.where(LABELS, 255, 0).astype(np.uint8))
    assert model.classes_.tolist() == [0, 255]
    assert model.predict(IMAGES).dtype == np.uint8


def test_balanced_weights_make_the_classes_equal_and_a_class_of_weight_zero_is_left_out():
    balanced = CrispSegmenter.from_flat(**QUICK, class_weight="balanced").fit(IMAGES, LABELS)
    counts = balanced.tree_.statistics.node_counts[0]
    assert counts[0] == pytest.approx(counts[1])
    images, labels = stack(2, n_classes=3)
    without = CrispSegmenter.from_flat(**QUICK, class_weight={0: 1, 1: 0, 2: 1}).fit(images, labels)
    assert without.classes_.tolist() == [0, 2]


def test_a_fit_repeats_bit_for_bit_on_any_number_of_threads(model):
    again = CrispSegmenter.from_flat(**QUICK, n_jobs=1).fit(IMAGES, LABELS)
    assert np.array_equal(again.tree_.weight, model.tree_.weight)
    assert np.array_equal(again.tree_.leaves, model.tree_.leaves)


def test_all_pixels_are_seen_without_a_limit():
    model = CrispSegmenter.from_flat(**QUICK | {"pixels_per_epoch": None}).fit(IMAGES, LABELS)
    limited = CrispSegmenter.from_flat(**QUICK | {"pixels_per_epoch": LABELS.size}).fit(IMAGES, LABELS)
    assert np.array_equal(model.tree_.weight, limited.tree_.weight)


@pytest.mark.parametrize(
    "options",
    [
        {"algorithm": "alternating"},
        {"algorithm": "likelihood", "l1": 1e-3, "l2": 1e-3, "max_leaf_nodes": 5, "min_samples_leaf": 10},
        {"grow": "balanced", "scale": "global", "annealing": "geometric"},
        {"split": "axis", "window": 3, "scale": None},
        {"split": "conv", "window": 17, "epochs": 1, "finetune_epochs": 1, "min_updates": 1, "pixels_per_epoch": 200},
    ],
)
def test_the_options_of_training_are_those_of_the_classifier(options):
    heard = []
    model = CrispSegmenter.from_flat(**QUICK | {"max_depth": 2} | options, callbacks=[heard.append]).fit(
        IMAGES[:1], LABELS[:1]
    )
    assert model.predict(IMAGES[1]).shape == (24, 26)
    assert heard == model.history_
    assert model.truncate(1).get_depth() <= 1


def test_early_stopping_keeps_the_best_epoch_on_validation_images():
    options = QUICK | {"early_stopping": True, "finetune_epochs": 6}
    given = CrispSegmenter.from_flat(**options).fit(IMAGES[:2], LABELS[:2], eval_set=(IMAGES[2:], LABELS[2:]))
    scores = [record.validation_score for record in given.history_ if record.phase == "finetune"]
    best = max([*scores, given.before_finetuning().score(IMAGES[2:], LABELS[2:])])
    assert given.score(IMAGES[2:], LABELS[2:]) == pytest.approx(best)
    held = CrispSegmenter.from_flat(**options).fit(IMAGES, LABELS)
    assert held.tree_.statistics.node_counts[0].sum() == 2 * LABELS[0].size
    with pytest.raises(ValueError, match="a fit that holds images out must have at least 2"):
        CrispSegmenter.from_flat(**options).fit(IMAGES[0], LABELS[0])


def test_soft_predict_proba_evaluates_the_probabilistic_tree(model):
    soft = model.soft_predict_proba(IMAGES[0])
    assert soft.shape == (24, 26, 2)
    assert np.allclose(soft.sum(axis=-1), 1)
    steep = model.soft_predict_proba(IMAGES[0], steepness=1e6).argmax(axis=-1)
    assert np.mean(steep == model.tree_.statistics.soft_leaves.argmax(axis=1)[model.leaf_indices(IMAGES[0])]) > 0.99


@pytest.mark.parametrize("n_images", [1, 3])
def test_a_second_stage_sees_the_output_of_the_first_one(n_images):
    images, labels = IMAGES[:n_images], LABELS[:n_images]
    model = CrispSegmenter.from_flat(**QUICK, stages=2).fit(images, labels)
    assert len(model.earlier_trees_) == 1
    assert model.image_shape_ == (5, 5, 2)
    first = CrispSegmenter.from_flat(**QUICK).fit(images, labels)
    said = first.predict_proba(images)[..., 1:]
    seen = np.concatenate([images[..., None], said], axis=-1).astype(np.float32)
    windows = Canvas.of(list(seen), WindowView(5, (1,), 2)).windows()
    assert np.array_equal(model.leaf_indices(images).ravel(), routing.route_reference(model.tree_, windows[:]))
    heard = []
    validated = CrispSegmenter.from_flat(**QUICK, stages=2, callbacks=[heard.append])
    validated.fit(images, labels, eval_set=(IMAGES, LABELS))
    assert validated.history_[-1].validation_score == pytest.approx(validated.score(IMAGES, LABELS))
    assert sum(record.phase == "finetune" and record.epoch == 1 for record in heard) == 2, "one tree for every stage"


@pytest.mark.parametrize(("last", "n_trees"), [(2, 1), (9, 1), (14, 2)])
def test_a_callback_that_ends_a_fit_ends_all_its_stages(tmp_path, last, n_trees):
    heard = []

    def stop(record):
        heard.append(record)
        if len(heard) == last:
            raise StopTraining

    model = CrispSegmenter.from_flat(
        **QUICK | {"max_depth": 2, "epochs": 2, "finetune_epochs": 4}, stages=3, callbacks=[stop]
    )
    model.fit(IMAGES, LABELS)
    assert len(heard) == last
    assert len(model.earlier_trees_) + 1 == n_trees
    assert model.image_shape_ == ((5, 5) if n_trees == 1 else (5, 5, 2))
    assert model.set_params(training__callbacks=None).predict(IMAGES).shape == LABELS.shape
    model.save(tmp_path / "x.crisp")
    again = crisptree.load(tmp_path / "x.crisp")
    assert again.stages == n_trees
    assert np.array_equal(again.predict(IMAGES), model.predict(IMAGES))
    assert model.fit(IMAGES, LABELS).earlier_trees_[1:]


@pytest.mark.parametrize(
    "options", [{}, {"stages": 3, "scales": (1, 2)}, {"max_depth": 0}, {"class_weight": {"no": 2, "yes": 1}}]
)
def test_a_reloaded_or_pickled_model_predicts_the_same_bits(tmp_path, options):
    images, labels = stack(2, channels=2)
    labels = np.array(["no", "yes"])[labels]
    model = CrispSegmenter.from_flat(**QUICK | options).fit(images, labels)
    model.save(tmp_path / "x.crisp")
    for again in (crisptree.load(tmp_path / "x.crisp"), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(again.predict(images), model.predict(images))
        assert np.array_equal(again.predict_proba(images[0]), model.predict_proba(images[0]))
        before, others = (one.before_finetuning().leaf_indices(images) for one in (model, again))
        assert np.array_equal(before, others)
        assert again.get_params() == model.get_params()
        assert again.image_shape_ == model.image_shape_
        assert again.channels_ == 2


def test_modules_survive_a_file_too(tmp_path):
    options = {"split": "conv", "window": 17, "max_depth": 1, "epochs": 1, "finetune_epochs": 0, "min_updates": 1}
    model = CrispSegmenter.from_flat(**QUICK | options, stages=2).fit(IMAGES[:2], LABELS[:2])
    model.save(tmp_path / "x.crisp")
    assert np.array_equal(crisptree.load(tmp_path / "x.crisp").predict(IMAGES[2]), model.predict(IMAGES[2]))


def test_a_file_whose_windows_do_not_fit_is_refused(tmp_path, model):
    twin = pickle.loads(pickle.dumps(model)).set_params(window=7)
    write(tmp_path / "x.crisp", sections_of(twin))
    with pytest.raises(ModelFileError, match="other windows"):
        crisptree.load(tmp_path / "x.crisp")
    twin = pickle.loads(pickle.dumps(model)).set_params(stages=2)
    write(tmp_path / "x.crisp", sections_of(twin))
    with pytest.raises(ModelFileError, match="stage_0"):
        crisptree.load(tmp_path / "x.crisp")


def test_loading_and_predicting_do_not_import_torch(tmp_path, model):
    model.save(tmp_path / "x.crisp")
    code = (
        "import sys, numpy, crisptree; crisptree.CrispSegmenter; "
        f"crisptree.load({str(tmp_path / 'x.crisp')!r}).leaf_image(numpy.zeros((9, 9))); print('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "False"


def test_it_can_be_copied_and_printed_like_scikit_learns_estimators(model):
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "tree_")
    assert copy.set_params(window=9).window == 9
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(windows=9)
    for method in ("predict", "predict_proba", "leaf_indices", "leaf_image", "soft_predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(copy, method)(IMAGES)
    with pytest.raises(NotFittedError):
        copy.score(IMAGES, LABELS)
    assert "window=5" in repr(model)


def test_data_are_left_as_they_are(model):
    images, labels = IMAGES.copy(), LABELS.copy()
    CrispSegmenter.from_flat(**QUICK).fit(images, labels)
    model.predict(images)
    assert np.array_equal(images, IMAGES)
    assert np.array_equal(labels, LABELS)


def test_pixels_whose_label_is_not_a_number_can_be_ignored(model, tmp_path):
    labels = np.where(LABELS == 0, 0.0, 1.0)
    labels[:, :4] = np.nan
    gaps = CrispSegmenter.from_flat(**QUICK, ignore_label=np.nan).fit(IMAGES, labels)
    masked = CrispSegmenter.from_flat(**QUICK).fit(IMAGES, np.nan_to_num(labels), mask=~np.isnan(labels))
    assert np.array_equal(gaps.tree_.weight, masked.tree_.weight)
    assert gaps.score(IMAGES, labels) == pytest.approx(np.mean((gaps.predict(IMAGES) == labels)[:, 4:]))
    gaps.save(tmp_path / "m.crisp")
    assert crisptree.load(tmp_path / "m.crisp").score(IMAGES, labels) == gaps.score(IMAGES, labels)


def test_numbers_of_numpy_as_window_and_scales_can_be_saved(tmp_path):
    parameters = QUICK | {"window": np.int64(3), "scales": (np.int32(1), np.int32(2))}
    model = CrispSegmenter.from_flat(**parameters).fit(IMAGES, LABELS)
    model.save(tmp_path / "m.crisp")
    assert np.array_equal(crisptree.load(tmp_path / "m.crisp").predict(IMAGES), model.predict(IMAGES))


@pytest.mark.parametrize("changed", [{"window": 3}, {"scales": (2,)}, {"scales": (1, 2)}, {"stages": 2}])
def test_a_fitted_model_refuses_to_look_at_other_windows(model, tmp_path, changed):
    model.save(tmp_path / "m.crisp")
    for fitted in (pickle.loads(pickle.dumps(model)), crisptree.load(tmp_path / "m.crisp")):
        fitted.set_params(**changed)
        for act in (lambda twin: twin.predict(IMAGES), lambda twin: twin.save(tmp_path / "n.crisp")):
            with pytest.raises(
                ValueError, match=r"must be those of fit, 5, \(1,\), False and 1; they have been set to"
            ):
                act(fitted)
        assert fitted.fit(IMAGES, LABELS).predict(IMAGES).shape == LABELS.shape
