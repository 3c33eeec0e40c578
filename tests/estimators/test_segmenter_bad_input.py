import numpy as np
import pytest

from crisptree import CrispSegmenter
from tests.estimators.test_segmenter import IMAGES, LABELS, QUICK, stack, stripes


def with_value(value):
    images = IMAGES.copy()
    images[1, 3, 4] = value
    return images


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"window": 4}, "`window` must be an odd whole number"),
        ({"window": 0}, "`window` must be an odd whole number"),
        ({"window": -3}, "`window` must be an odd whole number"),
        ({"window": 5.0}, "`window` must be an odd whole number"),
        ({"scales": ()}, "`scales` must be a tuple"),
        ({"scales": (1, 1)}, "`scales` must be a tuple of different"),
        ({"scales": 2}, "`scales` must be a tuple"),
        ({"scales": (0,)}, "`scales` must be a tuple"),
        ({"stages": 0}, "`stages` must be a whole number from 1"),
        ({"pixels_per_epoch": 0}, "`pixels_per_epoch` must be"),
        ({"algorithm": "sgd"}, "`algorithm` must be one of 'em'"),
        ({"grow": "cart"}, "`grow` must be one of 'greedy', 'balanced'"),
        ({"class_weight": "fair"}, "`class_weight` must be"),
        ({"class_weight": {0: 0, 1: 1}}, "at least two classes with a positive weight"),
        ({"max_depth": -1}, "`max_depth` must be"),
        ({"device": "nowhere"}, "`device` must be"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        CrispSegmenter.from_flat(**QUICK | parameters).fit(IMAGES, LABELS)


@pytest.mark.parametrize(
    ("images", "labels", "sentence"),
    [
        (IMAGES[:, :3], LABELS[:, :3], None),
        (IMAGES[:, :2], LABELS[:, :2], "more than 2 pixels on each side"),
        (IMAGES, LABELS[:2], "one value for every pixel"),
        (IMAGES, LABELS[:, :-1], "one value for every pixel"),
        (IMAGES, LABELS[..., None], "one value for every pixel.*Leave the channels out"),
        (IMAGES, LABELS[0], "one value for every pixel"),
        (IMAGES, 3, "one value for every pixel"),
        (IMAGES[0, 0], LABELS[0, 0], "got an array of shape"),
        (IMAGES[None, None], LABELS, "got an array of shape"),
        ([], [], "at least one image"),
        ([[[1, 2], [3, 4]], [[1]]], LABELS, "nested lists that are no array"),
        (np.moveaxis(stripes(channels=3)[0], 2, 0), LABELS[0], "Channels come last"),
        (IMAGES[:1], LABELS[0], "several images \\(n, height, width\\) have labels of that same shape"),
        (IMAGES[:0], LABELS[:0], "at least one image"),
        ([IMAGES[0], IMAGES[1][..., None]], list(LABELS[:2]), "must all be"),
        ([IMAGES[0][:, :0]], [LABELS[0][:, :0]], "not be empty"),
        (IMAGES.astype(complex), LABELS, "must hold numbers"),
        (IMAGES.astype(str), LABELS, "must hold numbers"),
        (np.array([["a", "b"], ["c", "d"]]), np.zeros((2, 2)), "must hold numbers"),
        (IMAGES.astype(object), LABELS, "must hold numbers"),
        (with_value(np.nan), LABELS, "finite numbers"),
        (with_value(np.inf), LABELS, "finite numbers"),
        (with_value(1e300), LABELS, "finite numbers"),
        (IMAGES, np.zeros_like(LABELS), "at least two classes"),
        (IMAGES, IMAGES, "Unknown label type"),
        (IMAGES, np.where(LABELS == 0, np.nan, 1.0), "labels must be finite"),
    ],
)
def test_images_and_labels_that_cannot_be_are_refused(images, labels, sentence):
    model = CrispSegmenter.from_flat(**QUICK)
    if sentence is None:
        model.fit(images, labels)
        return
    with pytest.raises(ValueError, match=sentence):
        model.fit(images, labels)
    assert not hasattr(model, "tree_")


def test_masks_that_cannot_be_are_refused():
    model = CrispSegmenter.from_flat(**QUICK)
    with pytest.raises(ValueError, match="mask must have one value for every pixel"):
        model.fit(IMAGES, LABELS, mask=np.ones((2, 2)))
    with pytest.raises(ValueError, match="mask must be True where"):
        model.fit(IMAGES, LABELS, mask=np.full(LABELS.shape, 3))
    with pytest.raises(ValueError, match="at least one labelled pixel"):
        model.fit(IMAGES, LABELS, mask=np.zeros(LABELS.shape))


def test_validation_that_cannot_be_is_refused():
    model = CrispSegmenter.from_flat(**QUICK)
    with pytest.raises(ValueError, match="a pair"):
        model.fit(IMAGES, LABELS, eval_set=IMAGES)
    with pytest.raises(ValueError, match="among the training classes"):
        model.fit(IMAGES, LABELS, eval_set=(IMAGES, LABELS + 1))
    with pytest.raises(ValueError, match="channels"):
        model.fit(IMAGES, LABELS, eval_set=(IMAGES[..., None, None], LABELS))


def test_images_of_other_channels_are_refused_when_predicting():
    grey, colour = (
        CrispSegmenter.from_flat(**QUICK).fit(IMAGES, LABELS),
        CrispSegmenter.from_flat(**QUICK).fit(*stack(2, channels=3)),
    )
    for images in (IMAGES[..., None], [IMAGES[0][..., None]], IMAGES[0, 0]):
        with pytest.raises(ValueError, match="no axis for channels"):
            grey.predict(images)
    for images in (IMAGES[..., None], np.zeros((9, 9)), [np.zeros((9, 9))], np.zeros((9, 9, 2))):
        with pytest.raises(ValueError, match="3 channels"):
            colour.predict(images)
    with pytest.raises(ValueError, match="more than 2 pixels"):
        grey.predict(IMAGES[:, :2])
    with pytest.raises(ValueError, match="finite numbers"):
        grey.predict(with_value(np.nan))
    with pytest.raises(ValueError, match="one value for every pixel"):
        grey.score(IMAGES, LABELS[:1])
