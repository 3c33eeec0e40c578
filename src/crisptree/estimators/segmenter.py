"""The segmenter: one deterministic tree that says of every pixel what it belongs to."""

from __future__ import annotations

import copy
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, check_random_state

from crisptree.distributed import check_alone
from crisptree.estimators import image_validation as checks
from crisptree.estimators.arguments import check_argument
from crisptree.estimators.base import Checkpoints, TreeEstimator
from crisptree.estimators.consistency import check_parameters
from crisptree.estimators.parameters import SegmenterParameters
from crisptree.estimators.stages import leaf_numbers, seen_by_last
from crisptree.images import Canvas, WindowView
from crisptree.inference import CrispTree

if TYPE_CHECKING:
    from crisptree.estimators.fitting import Trained
    from crisptree.persistence.model_file import Sections


class CrispSegmenter(SegmenterParameters, TreeEstimator):
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
annealing, finetune_steepness, reanneal
        How long and in what steps to train, as in ``CrispTreeClassifier``.
    l1, l2, roughness : float, default=0.0
        Strength of Σ|β|, of Σβ², and of the squared differences between weights of neighbouring pixels of the window.
    penalty_share : {"rows", "none"}, default="rows"
        Penalties of a split by its share of the rows, or one strength for all, as in ``CrispTreeClassifier``.
    input_noise : float, default=0.0
        Width of noise on the scaled pixels, integrated out, as in ``CrispTreeClassifier``.
    noise_correlation : float, default=0.0
        How alike the noise of neighbouring pixels of the window is, from -0.5 to 1.
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
        Keep the finetuned tree of the epoch with the best pixel accuracy on validation images.
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

    FITTED = (*TreeEstimator.FITTED, "earlier_trees_", "channels_", "image_shape_", "n_features_in_", "looks_at_")

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
        check_alone("segmentation")
        with self._fitting() as twin:
            parameters = self.get_params(deep=False)
            check_parameters(self.PARAMETERS, parameters)
            given = self._normalised(checks.check_new_images(images, labels))
            labelled = checks.check_labelled(given, labels, mask, self.ignore_label, self.class_weight)
            view = self._view(given.channels or 1)
            checks.check_reach(given, view)
            other = self._checked_validation(validation, given.channels, view, labelled.classes)
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            from crisptree.estimators.fitting_images import LabelledImages, fit_stages

            held = None if other is None else LabelledImages(*other)
            here = LabelledImages(given.images, labelled)
            data = {"images and labels": here, "validation": held}
            with Checkpoints(checkpoint, checkpoint_every, resume).kept(parameters, data, seed) as seed:
                stages = fit_stages(parameters, here, held, seed)
            twin._keep(labelled.classes, given.channels, stages)
        return self

    def _keep(self, classes: npt.NDArray[Any], channels: int | None, stages: list[Trained]) -> None:
        self._forget()
        self.classes_ = classes
        self.channels_: int | None = channels
        self.history_ = [record for _, history in stages for record in history]
        self.earlier_trees_: list[CrispTree] = [fitted.tree for fitted, _ in stages[:-1]]
        fitted, _ = stages[-1]
        self.greedy_tree_ = fitted.greedy
        self._settle_on(fitted.tree)

    def _settle_on(self, tree: CrispTree) -> None:
        """Take a tree as the last one, and say what it looks at."""
        self.tree_, self.n_features_in_ = tree, tree.n_features
        self.looks_at_: tuple[int, tuple[int, ...], bool, int] = self._looks_at()
        self.image_shape_ = self._view(seen_channels(self)).image_shape

    def _looks_at(self) -> tuple[int, tuple[int, ...], bool, int]:
        scales = tuple(int(scale) for scale in self.scales)
        return int(self.window), scales, bool(self.normalise_images), int(self.stages)

    def _view(self, channels: int) -> WindowView:
        return WindowView(*self._looks_at()[:2], channels)

    def _normalised(self, given: checks.Images) -> checks.Images:
        return given.normalised() if self.normalise_images else given

    def _checked_validation(
        self, validation: Any, channels: int | None, view: WindowView, classes: npt.NDArray[Any]
    ) -> tuple[list[checks.Image], checks.Labelled] | None:
        if validation is None:
            return None
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            raise ValueError(f"`validation` must be a pair (images, labels); got {type(validation).__name__}.")
        given = self._normalised(checks.check_images(validation[0], channels))
        checks.check_reach(given, view)
        return given.images, checks.check_held(given, validation[1], self.ignore_label, classes)

    def apply(self, images: Any) -> Any:
        """The number of the leaf that every pixel reaches; results come in the form of the images.

        (n, height, width[, channels]) → (n, height, width); one image gives one image, a list a list.
        """
        return self._of_leaves(images, lambda leaves: leaves)

    def predict(self, images: Any) -> Any:
        """The class of every pixel.  (n, height, width[, channels]) → (n, height, width)"""
        return self._of_leaves(images, lambda leaves: self.classes_[self.tree_.labels()][leaves])

    def predict_proba(self, images: Any) -> Any:
        """The class frequencies of every pixel's leaf.  (n, height, width[, c]) → (n, height, width, n_classes)"""
        return self._of_leaves(images, lambda leaves: self.tree_.leaf_values(leaves))

    def leaf_image(self, images: Any) -> Any:
        """The leaf of every pixel as a grey in [0, 1]: leaves from left to right are equally far apart."""
        check_is_fitted(self, "tree_")
        order = self.tree_.structure.leaves_left_to_right
        greys = np.argsort(order) / max(len(order) - 1, 1)
        return self._of_leaves(images, lambda leaves: greys[leaves])

    def soft_predict_proba(self, images: Any, steepness: float | None = None) -> Any:
        """Class probabilities of the probabilistic tree, which visits every leaf; for study, and slow.

        Parameters
        ----------
        images : array-like or list
            Images.
        steepness : float, default=None
            γ of the turns; None takes that of the end of training.
        """
        given = self._checked(images)
        if steepness is not None:
            check_argument("steepness", steepness)
        from crisptree.estimators.fitting import soft_probabilities

        results = []
        for image in given.images:
            windows = Canvas.of([self._seen(image)], self._view(seen_channels(self))).windows()
            tables = soft_probabilities(self.tree_, windows, steepness)
            results.append(tables.reshape(*image.shape[:2], -1))
        return given.like_given(results)

    def score(self, images: Any, labels: Any) -> float:
        """The share of labelled pixels that get their class."""
        given = self._checked(images)
        truth, used = checks.labelled_pixels(given, labels, self.ignore_label)
        n_used = sum(np.count_nonzero(use) for use in used)
        if not n_used:
            raise ValueError("there must be at least one labelled pixel to score on; got none.")
        right = 0
        for image, true, use in zip(given.images, truth, used, strict=True):
            if use.any():
                found = self.classes_[self.tree_.labels()][self._leaves(image)]
                right += int(np.count_nonzero((found == true)[use]))
        return float(right / n_used)

    def _of_leaves(self, images: Any, function: Callable[[npt.NDArray[np.int64]], npt.NDArray[Any]]) -> Any:
        given = self._checked(images)
        return given.like_given([function(self._leaves(image)) for image in given.images])

    def _checked(self, images: Any) -> checks.Images:
        self._check_unchanged()
        given = self._normalised(checks.check_images(images, self.channels_))
        checks.check_reach(given, self._view(self.channels_ or 1))
        return given

    def _check_unchanged(self) -> None:
        """Trees look at the windows that they were trained on, and at no others."""
        check_is_fitted(self, "tree_")
        if self._looks_at() != self.looks_at_:
            window, scales, normalised, stages = self.looks_at_
            raise ValueError(
                "`window`, `scales`, `normalise_images` and `stages` must be those of fit, "
                f"{window}, {scales}, {normalised} and {stages}; they have been set to {self.window}, {self.scales}, "
                f"{self.normalise_images} and {self.stages}. Set them back, or fit again."
            )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted segmenter to a file that ``crisptree.load`` reads.

        ``stages`` is there the number of trees, which is less than was asked for where ``StopTraining`` ended the fit.
        """
        super(CrispSegmenter, self._as_saved()).save(path)

    def _sections(self) -> Sections:
        return super(CrispSegmenter, self._as_saved())._sections()

    def _as_saved(self) -> CrispSegmenter:
        self._check_unchanged()
        twin = copy.copy(self)
        twin.stages = len(self.earlier_trees_) + 1
        return twin

    def _seen(self, image: checks.Image) -> checks.Image:
        return seen_by_last([*self.earlier_trees_, self.tree_], image, self.window, tuple(self.scales), self.n_jobs)

    def _leaves(self, image: checks.Image) -> npt.NDArray[np.int64]:
        return leaf_numbers(self.tree_, self._seen(image), self.window, tuple(self.scales), self.n_jobs)


def seen_channels(model: CrispSegmenter) -> int:
    """The channels that the last tree looks at: those of the images, and what an earlier stage says."""
    said = len(model.classes_) - 1 if model.earlier_trees_ else 0
    return (model.channels_ or 1) + said
