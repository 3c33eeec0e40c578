"""The segmenter: one deterministic tree that says of every pixel what it belongs to."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from crisptree.estimators.base import Checkpoints
from crisptree.estimators.parameters import SegmenterParameters
from crisptree.estimators.pixel_targets import PixelLabels
from crisptree.estimators.pixels import PixelEstimator
from crisptree.targets.classification import ClassEncoding


class CrispSegmenter(SegmenterParameters, PixelEstimator):
    """A single decision tree that labels every pixel of an image from the window around it.

    Training draws pixels from the images and does not write their windows down (on CUDA those of one epoch, where they
    fit); prediction slides the window over an image
    and evaluates, for each pixel, the splits on its path alone. Images are mirrored at their borders.

    Parameters
    ----------
    window : int, default=31
        Pixels along a side of the window, odd.
    scales : tuple of int, default=(1,)
        Where windows take their samples: at scale 1 from pixel to pixel, at scale s every s pixels on the image
        smoothed by a Gaussian of standard deviation s / 2. ``window=31, scales=(1, 4)`` sees 31 pixels finely and 121
        coarsely.
    normalise_images : bool, default=False
        Subtract from every image its own mean and divide by its own standard deviation, channel by channel, before
        anything else: for images whose brightness or contrast differs without a meaning.
    stages : int, default=1
        How many trees follow each other: each later one sees, beside the image, the class probabilities that the one
        before gives to every pixel.
    pixels_per_epoch : int or None, default=300_000
        How many pixels an epoch goes through, a fresh share of every node's own each time; None goes through all. A
        small node gives at least a batch, and what ``min_updates`` demands.
    ignore_label : scalar, default=None
        The label of pixels that are not labelled, which may be NaN; None where all are.
    split : {"oblique", "axis", "conv"} or callable, default="oblique"
        What a split asks of a window; see ``CrispTreeClassifier``.
    algorithm : {"em", "alternating", "likelihood"}, default="likelihood"
        How stumps and the whole tree are trained.
    grow : {"greedy", "balanced"}, default="greedy"
        Learn the structure, or start from a random complete tree of ``max_depth``.
    max_depth, max_leaf_nodes, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, min_impurity_decrease
        When a leaf stays a leaf, as in ``CrispTreeClassifier``; a sample is a pixel.
    epochs, finetune_epochs, min_updates, learning_rate, learning_rate_decay, batch_size, steepness, steepness_step, \
annealing, finetune_steepness
        How long and in what steps to train, as in ``CrispTreeClassifier``.
    l1, l2, roughness : float, default=0.0
        Strength of Σ|β|, of Σβ², and of the squared differences between weights of neighbouring pixels of the window.
    penalty_share : {"rows", "none"}, default="rows"
        Penalties of a split by its share of the rows, or one strength for all, as in ``CrispTreeClassifier``.
    input_noise : float, default=0.0
        Width of noise on the scaled pixels, integrated out, as in ``CrispTreeClassifier``.
    leaf_prior : float, default=0.0
        Pseudo-count of every class in every leaf.
    mass_threshold : float, default=1e-3
        As in ``CrispTreeClassifier``.
    upper_levels : int from 1 to 10 or None, default=4
        As in ``CrispTreeClassifier``.
    scale : {"feature", "global"} or None, default="feature"
        Subtract each channel's mean over all images and divide by its own spread, by one spread for all, or leave
        images as they are.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the pixels of each class.
    prune : float, "auto" or None, default=None
        What a leaf must save, in nats of impurity for each pixel, as in ``CrispTreeClassifier``, in every stage. Images
        that "auto" needs, where ``fit`` is given no ``validation``, stay held out.
    shrinkage : float or "auto", default=0.0
        λ, by which the tables of leaves are drawn towards those of the nodes above; "auto" as for ``prune``.
    validation_fraction : float, default=0.1
        The share of images held out, where some are needed, when ``fit`` is given no ``validation``.
    early_stopping : bool, default=False
        Stop finetuning after ``n_iter_no_change`` epochs that are no better on validation images, and keep the tree of
        the epoch with the best pixel accuracy there.
    n_iter_no_change : int, default=10
        The patience of ``early_stopping``, in epochs of finetuning; every stage counts its own.
    random_state, device, n_jobs, verbose, callbacks
        As in ``CrispTreeClassifier``.

    Attributes
    ----------
    tree_, greedy_tree_ : FlatTree or ModuleTree
        The deterministic tree, and the same before finetuning; of the last stage where there are several.
    earlier_trees_ : list of FlatTree or ModuleTree
        The trees of the stages before; fewer than ``stages`` says where ``StopTraining`` ended the fit early.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    channels_ : int or None
        Channels of the images; None where they have no axis for them.
    image_shape_ : tuple of int
        The window as an image, (window, window) or (window, window, planes): a plane for every scale of every channel.
    n_features_in_ : int
        Values in a window.
    looks_at_ : tuple
        The window and the scales of the fit, whether it normalised images, and the stages that it was to have.
    best_iteration_ : int
        With ``early_stopping`` only: the number of the finetuning epoch of the last stage whose tree is kept; 0 for the
        greedy tree.
    history_ : list of EpochRecord
        One record for every epoch of the trees above.

    Examples
    --------
    Stripes that a pixel alone does not show: whether the next one to the left is brighter.

    >>> import numpy as np
    >>> from crisptree import CrispSegmenter
    >>> image = np.random.default_rng(0).normal(size=(40, 40))
    >>> labels = (image < np.roll(image, 1, axis=1)).astype(int)
    >>> model = CrispSegmenter(window=3, max_depth=2, random_state=0)
    >>> model.fit(image, labels).predict(image).shape
    (40, 40)
    >>> bool(model.score(image, labels) > 0.95)
    True
    """

    ENCODING = ClassEncoding

    classes_: npt.NDArray[Any]

    def fit(
        self,
        images: Any,
        labels: Any = None,
        mask: Any = None,
        validation: tuple[Any, Any] | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        resume: bool = False,
    ) -> Self:
        """Grow a tree on the windows of labelled pixels and finetune it.

        Parameters
        ----------
        images : array-like of shape (n, height, width[, channels]) or (height, width[, channels]), or list of images
            Finite numbers; images of a list may differ in height and width.
        labels : array-like or list of the same form, without channels
            The class of every pixel, numbers or strings.
        mask : array-like or list of the same form as labels, default=None
            True where a pixel is to be trained on; None takes all that are labelled.
        validation : (images, labels), default=None
            Images on which the deterministic tree is scored after every epoch of finetuning.
        checkpoint, checkpoint_every, resume : path, float, bool, default=None, 60.0, False
            As in ``CrispTreeClassifier.fit``: a folder from which a fit that was killed goes on.
        """
        return self._fit_images(images, labels, mask, validation, Checkpoints(checkpoint, checkpoint_every, resume))

    def _targets(self) -> PixelLabels:
        return PixelLabels(self.ignore_label, self.class_weight)

    def predict(self, images: Any) -> Any:
        """The class of every pixel.  (n, height, width[, channels]) → (n, height, width)"""
        return self._of_leaves(images, lambda leaves: self.classes_[self.tree_.labels()][leaves])

    def predict_proba(self, images: Any) -> Any:
        """The class frequencies of every pixel's leaf.  (n, height, width[, c]) → (n, height, width, n_classes)"""
        return self._of_leaves(images, lambda leaves: self.tree_.leaf_values(leaves))

    def soft_predict_proba(self, images: Any, steepness: float | None = None) -> Any:
        """Class probabilities of the probabilistic tree, which visits every leaf; for study, and slow.

        Parameters
        ----------
        images : array-like or list
            Images.
        steepness : float, default=None
            γ of the turns; None takes that of the end of training.
        """
        from crisptree.estimators.fitting import soft_probabilities

        return self._of_windows(images, steepness, soft_probabilities)

    def score(self, images: Any, labels: Any) -> float:
        """The share of labelled pixels that get their class."""
        given = self._checked(images)
        used, true = self._targets().read(given, labels)
        pairs = zip(given.images, used, strict=True)
        predicted = [self.tree_.labels(self._leaves(image)[use]) for image, use in pairs if use.any()]
        return float(np.mean(self.classes_[np.concatenate(predicted)] == true))
