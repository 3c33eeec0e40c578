"""Estimators of pixels: the segmenter and the pixel regressor, one tree per stage on the windows around pixels."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted, check_random_state

from crisptree.data.images import Canvas, WindowView
from crisptree.data.windows import Windows
from crisptree.distributed import check_alone
from crisptree.estimators import pixel_targets as checks
from crisptree.estimators.base import Checkpoints, TreeEstimator
from crisptree.estimators.capabilities import check_parameters
from crisptree.estimators.parameters import (
    PixelParameters,
    PixelRegressorParameters,
    SegmenterParameters,
    check_argument,
)
from crisptree.estimators.pixel_targets import Image, PixelLabels, PixelNumbers, PixelTargets
from crisptree.estimators.validation import validation_pair
from crisptree.inference import CrispTree, route_rows
from crisptree.streams import refuse_batches
from crisptree.targets.classification import ClassEncoding
from crisptree.targets.regression import RegressionEncoding

if TYPE_CHECKING:
    from crisptree.estimators.fitting import Trained
    from crisptree.persistence.model_file import Sections


Doubles = npt.NDArray[np.float64]
Leaves = npt.NDArray[np.int64]
SoftAnswers = Callable[[CrispTree, Windows, float | None], npt.NDArray[np.float64]]


class PixelEstimator(PixelParameters, TreeEstimator):
    """An estimator of one tree, or one per stage, for the windows around pixels. What y is, its subclasses know."""

    FITTED = (*TreeEstimator.FITTED, "earlier_trees_", "channels_", "image_shape_", "n_features_in_", "looks_at_")

    @abstractmethod
    def _targets(self) -> PixelTargets:
        """How the values of pixels are read."""

    def _fit_images(self, images: Any, values: Any, mask: Any, validation: Any, checkpoints: Checkpoints) -> Self:
        """A fit: checks, windows, training; the estimator is as it was if any of it fails."""
        check_alone("the training on pixels")
        with self._fitting() as twin:
            parameters = self.get_params(deep=False)
            check_parameters(self.PARAMETERS, parameters)
            refuse_batches(images, type(self).__name__)
            targets = self._targets()
            given = self._normalised(checks.check_new_images(images, targets.n_axes(images, values)))
            known = targets.read_training(given, values, mask)
            view = self._view(given.channels or 1)
            checks.check_reach(given, view)
            other = self._checked_validation(validation, given.channels, view, known)
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            from crisptree.estimators.fitting_images import KnownImages, fit_stages

            held = None if other is None else KnownImages(*other)
            here = KnownImages(given.images, known)
            data = {f"images and {targets.NOUN}": here, "validation": held}
            with checkpoints.kept(parameters, data, seed) as seed:
                stages = fit_stages(parameters, here, held, seed)
            twin._keep(known, given.channels, stages)
        return self

    def _keep(self, known: checks.KnownPixels, channels: int | None, stages: list[Trained]) -> None:
        self._forget()
        self._keep_encoding(known.encoding)
        self.channels_: int | None = channels
        self.history_ = [record for _, history in stages for record in history]
        self.earlier_trees_: list[CrispTree] = [fitted.tree for fitted, _ in stages[:-1]]
        fitted, _ = stages[-1]
        self.greedy_tree_ = fitted.greedy
        if fitted.best_iteration is not None:
            self.best_iteration_ = fitted.best_iteration
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
        self, validation: Any, channels: int | None, view: WindowView, known: checks.KnownPixels
    ) -> tuple[list[checks.Image], checks.KnownPixels] | None:
        if validation is None:
            return None
        targets = self._targets()
        images, values = validation_pair(validation, f"(images, {targets.NOUN})")
        given = self._normalised(checks.check_images(images, channels))
        checks.check_reach(given, view)
        return given.images, targets.read_validation(given, values, known.encoding)

    def apply(self, images: Any) -> Any:
        """The number of the leaf that every pixel reaches; results come in the form of the images.

        (n, height, width[, channels]) → (n, height, width); one image gives one image, a list a list.
        """
        return self._of_leaves(images, lambda leaves: leaves)

    def leaf_image(self, images: Any) -> Any:
        """The leaf of every pixel as a grey in [0, 1]: leaves from left to right are equally far apart."""
        check_is_fitted(self, "tree_")
        greys = leaf_greys(self.tree_)
        return self._of_leaves(images, lambda leaves: greys[leaves])

    def _of_leaves(self, images: Any, function: Callable[[Leaves], npt.NDArray[Any]]) -> Any:
        """What follows from the leaf of every pixel, in the form of the images."""
        given = self._checked(images)
        return given.like_given([function(self._leaves(image)) for image in given.images])

    def _of_windows(self, images: Any, steepness: float | None, function: SoftAnswers) -> Any:
        """What a probabilistic tree says of the windows around all pixels, in the form of the images."""
        given = self._checked(images)
        if steepness is not None:
            check_argument("steepness", steepness)
        results = []
        for image in given.images:
            windows = Canvas.of([self._seen(image)], self._view(seen_channels(self))).windows()
            said = function(self.tree_, windows, steepness)
            results.append(said.reshape(*image.shape[:2], *said.shape[1:]))
        return given.like_given(results)

    def _checked(self, images: Any) -> checks.Images:
        self._check_unchanged()
        refuse_batches(images, f"a fitted {type(self).__name__}")
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
        """Write the fitted estimator to a file that ``crisptree.load`` reads.

        ``stages`` is there the number of trees, which is less than was asked for where ``StopTraining`` ended the fit.
        """
        super(PixelEstimator, self._as_saved()).save(path)

    def _sections(self) -> Sections:
        return super(PixelEstimator, self._as_saved())._sections()

    def _as_saved(self) -> Self:
        self._check_unchanged()
        twin = copy.copy(self)
        twin.stages = len(self.earlier_trees_) + 1
        return twin

    def _seen(self, image: checks.Image) -> checks.Image:
        return seen_by_last([*self.earlier_trees_, self.tree_], image, self.window, tuple(self.scales), self.n_jobs)

    def _leaves(self, image: checks.Image) -> Leaves:
        return leaf_numbers(self.tree_, self._seen(image), self.window, tuple(self.scales), self.n_jobs)


def leaf_greys(tree: CrispTree) -> npt.NDArray[np.float64]:
    """A grey in [0, 1] for every leaf: from left to right they are equally far apart.  (n_leaves,)"""
    order = tree.structure.leaves_left_to_right
    return np.argsort(order) / max(len(order) - 1, 1)


def seen_channels(model: PixelEstimator) -> int:
    """The channels that the last tree looks at: those of the images, and what an earlier stage says."""
    return (model.channels_ or 1) + n_told(model.earlier_trees_)


def leaf_numbers(
    tree: CrispTree, image: Image, window: int, scales: tuple[int, ...], n_jobs: int | None
) -> npt.NDArray[np.int64]:
    """The leaf that every pixel reaches.  (height, width, channels) → (height, width)"""
    windows = Canvas.of([image], WindowView(window, scales, image.shape[2])).windows()
    return route_rows(tree, windows, n_jobs).reshape(image.shape[:2])


def opinion(tree: CrispTree, leaves: npt.NDArray[np.int64]) -> Image:
    """What the tree says of every pixel as channels: probabilities of all classes but the first, or scaled numbers."""
    return tree.meaning.told(tree.leaves).astype(np.float32)[leaves]


def n_told(trees: Sequence[CrispTree]) -> int:
    """How many channels an opinion of the trees has; none where there is no tree."""
    return trees[-1].meaning.told(trees[-1].leaves).shape[1] if trees else 0


def beside(image: Image, said: Image) -> Image:
    """The image with what the stage before says of it as further channels."""
    return np.concatenate([image, said], axis=2)


def seen_by_last(
    trees: Sequence[CrispTree], image: Image, window: int, scales: tuple[int, ...], n_jobs: int | None
) -> Image:
    """What the last of the trees looks at: the image, and beside it the opinion of the tree before."""
    seen = image
    for tree in trees[:-1]:
        seen = beside(image, opinion(tree, leaf_numbers(tree, seen, window, scales, n_jobs)))
    return seen


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


class CrispPixelRegressor(PixelRegressorParameters, PixelEstimator):
    """A single regression tree that says of every pixel of an image a number, from the window around it.

    What ``CrispSegmenter`` is for classes this is for numbers: a depth, a density, a distance, the brightness without
    the noise. Its leaves are those of ``CrispTreeRegressor``, normal distributions of the targets, which are scaled
    inside to mean 0 and variance 1, output by output. See docs/segmentation.md.

    Parameters
    ----------
    window, scales, normalise_images, pixels_per_epoch
        What a pixel's window is, and how many an epoch sees, as in ``CrispSegmenter``.
    stages : int, default=1
        How many trees follow each other: each later one sees, beside the image, the numbers that the one before gives
        to every pixel.
    ignore_value : float or None, default=None
        The target of pixels that have no number, such as 0 in maps of depths. NaN always says so.
    split, algorithm, grow, max_depth, max_leaf_nodes, min_samples_split, min_samples_leaf, min_weight_fraction_leaf
        What a split asks, how trees are trained, and when a leaf stays a leaf, as in ``CrispSegmenter``.
    min_impurity_decrease : float, default=0.0
        The least reduction of variance (as a share of that of all pixels, times the node's share of them) of a split.
    epochs, finetune_epochs, min_updates, learning_rate, learning_rate_decay, batch_size, steepness, steepness_step, \
annealing, finetune_steepness
        How long and in what steps to train, as in ``CrispTreeRegressor``.
    l1, l2, roughness : float, default=0.0
        Strength of Σ|β|, of Σβ², and of the squared differences between weights of neighbouring pixels of the window.
    penalty_share, input_noise, mass_threshold, scale
        As in ``CrispSegmenter``.
    leaf_prior : float, default=0.0
        Pixels that every leaf has more than it has, spread like all training pixels together.
    prune : float, "auto" or None, default=None
        What a leaf must save, as a share of the variance of the targets for each pixel, in every stage. Images that
        "auto" needs, where ``fit`` is given no ``validation``, stay held out.
    shrinkage : float or "auto", default=0.0
        λ, by which means and variances of leaves are drawn towards those of the nodes above; "auto" as for ``prune``.
    validation_fraction : float, default=0.1
        The share of images held out, where some are needed, when ``fit`` is given no ``validation``.
    early_stopping : bool, default=False
        Stop finetuning after ``n_iter_no_change`` epochs that are no better on validation images, and keep the tree of
        the epoch with the least squared error there.
    n_iter_no_change : int, default=10
        The patience of ``early_stopping``, in epochs of finetuning; every stage counts its own.
    random_state, device, n_jobs, verbose, callbacks
        As in ``CrispTreeRegressor``.

    Attributes
    ----------
    tree_, greedy_tree_ : FlatTree or ModuleTree
        The deterministic tree, and the same before finetuning; of the last stage where there are several.
    earlier_trees_ : list of FlatTree or ModuleTree
        The trees of the stages before.
    n_outputs_ : int
        How many numbers a pixel has.
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
        One record for every epoch of the trees above; its scores are R² about, 1 − squared error / variance.

    Examples
    --------
    How much brighter than its left neighbour a pixel is.

    >>> import numpy as np
    >>> from crisptree import CrispPixelRegressor
    >>> image = np.random.default_rng(0).normal(size=(40, 40))
    >>> change = image - np.roll(image, 1, axis=1)
    >>> change[:, 0] = np.nan  # of which nothing is known
    >>> model = CrispPixelRegressor(window=3, max_depth=4, random_state=0).fit(image, change)
    >>> model.predict(image).shape, bool(model.score(image, change) > 0.8)
    ((40, 40), True)
    """

    FITTED = (*PixelEstimator.FITTED, "n_outputs_")

    ENCODING = RegressionEncoding

    n_outputs_: int

    def fit(
        self,
        images: Any,
        targets: Any = None,
        mask: Any = None,
        validation: tuple[Any, Any] | None = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        resume: bool = False,
    ) -> Self:
        """Grow a tree on the windows of the pixels that have a number, and finetune it.

        Parameters
        ----------
        images : array-like of shape (n, height, width[, channels]) or (height, width[, channels]), or list of images
            Finite numbers; images of a list may differ in height and width.
        targets : array-like or list of the same form, without channels, or with an axis of outputs in their place
            The number of every pixel, or several; a pixel of which one is NaN is not trained on. One image of c
            channels and its targets of c outputs must come as lists, because (a, b, c) and (a, b, c) are a images.
        mask : array-like or list of the same form as targets, without outputs, default=None
            True where a pixel is to be trained on; None takes all that have a number.
        validation : (images, targets), default=None
            Images on which the deterministic tree is scored after every epoch of finetuning.
        checkpoint, checkpoint_every, resume : path, float, bool, default=None, 60.0, False
            As in ``CrispTreeClassifier.fit``: a folder from which a fit that was killed goes on.
        """
        return self._fit_images(images, targets, mask, validation, Checkpoints(checkpoint, checkpoint_every, resume))

    def _targets(self) -> PixelNumbers:
        return PixelNumbers(self.ignore_value)

    def predict(self, images: Any) -> Any:
        """The mean of the leaf that every pixel reaches, in the form of the images.

        (n, height, width[, channels]) → (n, height, width), or (n, height, width, n_outputs) for several outputs
        """
        return self._looked_up(images, lambda mean, spread: mean)

    def predict_std(self, images: Any) -> Any:
        """The standard deviation of the targets in the leaf that every pixel reaches, in the form of ``predict``."""
        return self._looked_up(images, lambda mean, spread: spread)

    def predict_interval(self, images: Any, coverage: float = 0.9) -> tuple[Any, Any]:
        """From where to where numbers lie with a probability, by the normal distribution of every pixel's leaf.

        Parameters
        ----------
        images : array-like or list
            Images.
        coverage : float, default=0.9
            The probability, above 0 and below 1.

        Returns
        -------
        low, high : array or list of arrays
            In the form of ``predict``.
        """
        check_argument("coverage", coverage)
        reach = float(ndtri(0.5 + coverage / 2))
        low = self._looked_up(images, lambda mean, spread: mean - reach * spread)
        return low, self._looked_up(images, lambda mean, spread: mean + reach * spread)

    def soft_predict(self, images: Any, steepness: float | None = None) -> Any:
        """The mean of the probabilistic tree, which visits every leaf; for study, and slow.

        Parameters
        ----------
        images : array-like or list
            Images.
        steepness : float, default=None
            γ of the turns; None takes that of the end of training.
        """
        from crisptree.estimators.fitting import soft_means

        return self._of_windows(images, steepness, lambda *asked: self._flat(soft_means(*asked)))

    def score(self, images: Any, targets: Any) -> float:
        """R² of the pixels that have numbers: which share of their variance is explained; of several outputs the mean.

        As of any R², the mean of the targets scores 0.
        """
        given = self._checked(images)
        used, true = self._targets().read(given, targets)
        if true.shape[1] != self.n_outputs_:
            raise ValueError(f"targets must have {self.n_outputs_} outputs, as in training; got {true.shape[1]}.")
        pairs = zip(given.images, used, strict=True)
        found = [self.tree_.labels(self._leaves(image)[use]) for image, use in pairs if use.any()]
        return float(r2_score(true, np.concatenate(found)))

    def _looked_up(self, images: Any, function: Any) -> Any:
        """What follows from the mean and the spread of every pixel's leaf."""
        check_is_fitted(self, "tree_")
        tables = self.tree_.leaf_values()
        said = self._flat(function(tables[:, : self.n_outputs_], np.sqrt(tables[:, self.n_outputs_ :])))
        return self._of_leaves(images, lambda leaves: said[leaves])

    def _flat(self, values: Doubles) -> Doubles:
        """One number per pixel where there is one output."""
        return values[:, 0] if self.n_outputs_ == 1 else values
