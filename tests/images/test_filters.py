import numpy as np
import pytest

from crisptree import CrispSegmenter, load
from crisptree.data.raw_rows import normalise_image


def image(seed=0, channels=2):
    return np.random.default_rng(seed).gamma(2.0, 30.0, size=(20, 24, channels)).astype(np.float32)


def test_every_channel_has_mean_zero_and_spread_one():
    found = normalise_image(image())
    assert found.dtype == np.float32
    np.testing.assert_allclose(found.mean(axis=(0, 1)), 0, atol=1e-6)
    np.testing.assert_allclose(found.std(axis=(0, 1)), 1, rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e30])
def test_a_channel_of_one_value_becomes_zero(value):
    flat = image()
    flat[:, :, 1] = value
    assert not normalise_image(flat)[:, :, 1].any()
    assert normalise_image(flat)[:, :, 0].any()


def test_brightness_and_contrast_do_not_matter():
    bright = image().astype(np.float64) * 3 + 200
    np.testing.assert_allclose(normalise_image(bright.astype(np.float32)), normalise_image(image()), atol=1e-5)


@pytest.fixture(scope="module")
def stripes():
    """Stripes in images of which every one has a brightness of its own."""
    rng = np.random.default_rng(0)
    labels = np.tile((np.arange(40) // 5) % 2, (6, 40, 1))
    shift = rng.uniform(-50, 50, size=(6, 1, 1))
    return labels + 0.1 * rng.normal(size=labels.shape) + shift, labels


@pytest.fixture(scope="module")
def model(stripes):
    images, labels = stripes
    return CrispSegmenter(window=1, max_depth=1, normalise_images=True, random_state=0).fit(images[:4], labels[:4])


def test_a_normalising_segmenter_is_invariant_to_brightness(stripes, model):
    images, labels = stripes
    assert model.score(images[4:], labels[4:]) > 0.99
    plain = CrispSegmenter(window=1, max_depth=1, random_state=0).fit(images[:4], labels[:4])
    assert plain.score(images[4:], labels[4:]) < 0.8


def test_images_are_normalised_one_by_one_in_every_container(stripes, model):
    images, _ = stripes
    together = model.predict(images)
    assert np.array_equal(together[5], model.predict(images[5]))
    assert np.array_equal(together, model.predict(list(images)))


def test_validation_images_are_normalised_too(stripes):
    images, labels = stripes
    heard = []
    settings = {"window": 1, "max_depth": 1, "normalise_images": True, "finetune_epochs": 2, "random_state": 0}
    CrispSegmenter.from_flat(**settings, callbacks=[heard.append]).fit(
        images[:4], labels[:4], eval_set=(images[4:], labels[4:])
    )
    assert heard[-1].validation_score > 0.99


def test_a_loaded_model_normalises_as_before_and_rejects_a_change(stripes, model, tmp_path):
    images, _ = stripes
    model.save(tmp_path / "model.crisp")
    again = load(tmp_path / "model.crisp")
    assert again.normalise_images
    assert np.array_equal(again.predict_proba(images), model.predict_proba(images))
    with pytest.raises(ValueError, match=r"those of fit, 1, \(1,\), True and 1"):
        again.set_params(normalise_images=False).predict(images)
