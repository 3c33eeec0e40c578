"""Estimators of pixels: the segmenter and the pixel regressor, one tree per stage on the windows around pixels."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from crisptree.data.images import Canvas, Windows, WindowView
from crisptree.distributed import check_single_process
from crisptree.encoding.containers import refuse_batches
from crisptree.estimators.base import TreeEstimator
from crisptree.estimators.loading import ESTIMATOR, STAGE, ReadTrees, read_image_shape
from crisptree.inference import CrispTree
from crisptree.parameters.estimators import (
    PixelParameters,
    PixelRegressorParameters,
    SegmenterParameters,
    check_argument,
)
from crisptree.persistence.model_file import ModelFile, ModelFileError, Sections, check_channels
from crisptree.pipeline.capabilities import check_parameters
from crisptree.pipeline.checkpoints import Checkpoints
from crisptree.pipeline.pixels import (
    Image,
    Images,
    KnownPixels,
    PixelLabels,
    PixelNumbers,
    PixelTargets,
    check_images,
    check_new_images,
    check_reach,
    check_window_reach,
    leaf_greys,
    leaf_numbers,
    n_told,
    seen_by_last,
)
from crisptree.pipeline.validation import draw_seed, validation_pair
from crisptree.targets.classification import ClassEncoding
from crisptree.targets.regression import RegressionEncoding

if TYPE_CHECKING:
    from crisptree.pipeline.trees import Trained


Doubles = npt.NDArray[np.float64]
Leaves = npt.NDArray[np.int64]
SoftAnswers = Callable[[CrispTree, Windows, float | None], npt.NDArray[np.float64]]


class PixelEstimator(PixelParameters, TreeEstimator):
    """An estimator of one tree, or one per stage, for the windows around pixels. What y is, its subclasses know."""

    channels_: int | None
    earlier_trees_: list[CrispTree]
    looks_at_: tuple[int, tuple[int, ...], bool, int]

    @abstractmethod
    def _targets(self) -> PixelTargets:
        """How the values of pixels are read."""

    def _fit_images(self, images: Any, values: Any, mask: Any, validation: Any, checkpoints: Checkpoints) -> Self:
        """A fit: checks, windows, training; the estimator is as it was if any of it fails."""
        check_single_process("the training on pixels")
        with self._fitting() as twin:
            parameters = self.training_parameters()
            check_parameters(self.declared_parameters(), parameters)
            refuse_batches(images, type(self).__name__)
            targets = self._targets()
            given = self._normalised(check_new_images(images, targets.n_axes(images, values)))
            known = targets.read_training(given, values, mask)
            view = self._view(given.channels or 1)
            check_reach(given, view)
            other = self._checked_validation(validation, given.channels, view, known)
            seed = draw_seed(self.random_state)
            from crisptree.pipeline.images import KnownImages, fit_stages

            held = None if other is None else KnownImages(*other)
            here = KnownImages(given.images, known)
            data = {f"images and {targets.NOUN}": here, "validation": held}
            with checkpoints.kept(parameters, data, seed) as seed:
                stages = fit_stages(parameters, here, held, seed)
            twin._set_encoding(known.encoding)
            twin._set_stages(stages, given.channels)
        return self

    def _set_stages(self, stages: list[Trained], channels: int | None) -> None:
        """Set the fitted attributes of trained stages, of which the last one predicts."""
        (fitted, _), *_ = reversed(stages)
        self.channels_, self.earlier_trees_ = channels, [stage.tree for stage, _ in stages[:-1]]
        self.history_ = [record for _, history in stages for record in history]
        self._set_fitted(fitted)
        self.n_features_in_, self.looks_at_ = self.tree_.n_features, self._looks_at()
        self.image_shape_ = self._view(seen_channels(self)).image_shape

    def _named_trees(self) -> dict[str, CrispTree]:
        stages = {f"{STAGE}_{number}": tree for number, tree in enumerate(self.earlier_trees_)}
        return super()._named_trees() | stages

    def _restore_trees(self, file: ModelFile, read: ReadTrees) -> CrispTree:
        """Restore the trees of all stages, which must look at the windows that the parameters describe."""
        super()._restore_trees(file, read)
        channels = file.section(ESTIMATOR).content.get("channels")
        check_channels(channels, file.path)
        check_window_reach(self.window, self.scales)
        self.channels_, self.earlier_trees_ = channels, []
        for tree in read(f"{STAGE}_{number}" for number in range(self.stages - 1)).values():
            if tree.n_features != self._view(seen_channels(self)).n_features:
                raise ModelFileError(f"{file.path} holds a stage that looks at other windows than its parameters say.")
            self.earlier_trees_.append(tree)
        if read_image_shape(file, self.tree_) != self._view(seen_channels(self)).image_shape:
            raise ModelFileError(f"{file.path} holds a tree that looks at other windows than its parameters say.")
        self.looks_at_ = self._looks_at()
        return self.tree_

    def _looks_at(self) -> tuple[int, tuple[int, ...], bool, int]:
        scales = tuple(int(scale) for scale in self.scales)
        return int(self.window), scales, bool(self.normalise_images), int(self.stages)

    def _view(self, channels: int) -> WindowView:
        return WindowView(*self._looks_at()[:2], channels)

    def _normalised(self, given: Images) -> Images:
        return given.normalised() if self.normalise_images else given

    def _checked_validation(
        self, validation: Any, channels: int | None, view: WindowView, known: KnownPixels
    ) -> tuple[list[Image], KnownPixels] | None:
        if validation is None:
            return None
        targets = self._targets()
        images, values = validation_pair(validation, f"(images, {targets.NOUN})")
        given = self._normalised(check_images(images, channels))
        check_reach(given, view)
        return given.images, targets.read_validation(given, values, known.encoding)

    def apply(self, images: Any) -> Any:
        """The number of the leaf that every pixel reaches; results come in the form of the images.

        (n, height, width[, channels]) → (n, height, width); one image gives one image, a list a list.
        """
        return self._of_leaves(images, lambda leaves: leaves)

    def leaf_image(self, images: Any) -> Any:
        """The leaf of every pixel as a grey in [0, 1]: leaves from left to right are equally far apart."""
        check_is_fitted(self)
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

    def _checked(self, images: Any) -> Images:
        self._check_unchanged()
        refuse_batches(images, f"a fitted {type(self).__name__}")
        given = self._normalised(check_images(images, self.channels_))
        check_reach(given, self._view(self.channels_ or 1))
        return given

    def _check_unchanged(self) -> None:
        """Trees look at the windows that they were trained on, and at no others."""
        check_is_fitted(self)
        if self._looks_at() != self.looks_at_:
            window, scales, normalised, stages = self.looks_at_
            raise ValueError(
                "`window`, `scales`, `normalise_images` and `stages` must be those of fit, "
                f"{window}, {scales}, {normalised} and {stages}; they have been set to {self.window}, {self.scales}, "
                f"{self.normalise_images} and {self.stages}. Set them back, or fit again."
            )

    def _sections(self) -> Sections:
        """Return what a model file keeps; ``stages`` is there the number of trees, fewer where the fit was stopped."""
        self._check_unchanged()
        twin = copy.copy(self)
        twin.stages = len(self.earlier_trees_) + 1
        return super(PixelEstimator, twin)._sections()

    def _seen(self, image: Image) -> Image:
        return seen_by_last([*self.earlier_trees_, self.tree_], image, self.window, tuple(self.scales), self.n_jobs)

    def _leaves(self, image: Image) -> Leaves:
        return leaf_numbers(self.tree_, self._seen(image), self.window, tuple(self.scales), self.n_jobs)


def seen_channels(model: PixelEstimator) -> int:
    """The channels that the last tree looks at: those of the images, and what an earlier stage says."""
    return (model.channels_ or 1) + n_told(model.earlier_trees_)


class CrispSegmenter(SegmenterParameters, PixelEstimator):
    """A single decision tree that labels every pixel of an image from the window around it.

    Training draws pixels from the images and does not write their windows down (on CUDA those of one epoch, where they
    fit); prediction slides the window over an image
    and evaluates, for each pixel, the splits on its path alone. Images are mirrored at their borders.

    Parameters
    ----------
    {parameters}

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
        eval_set: tuple[Any, Any] | None = None,
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
        eval_set : (images, labels), default=None
            Images on which the deterministic tree is scored after every epoch of finetuning.
        checkpoint, checkpoint_every, resume : path, float, bool, default=None, 60.0, False
            As in ``CrispTreeClassifier.fit``: a folder from which a fit that was killed goes on.
        """
        return self._fit_images(images, labels, mask, eval_set, Checkpoints(checkpoint, checkpoint_every, resume))

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
        from crisptree.pipeline.trees import soft_probabilities

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
    {parameters}

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

    ENCODING = RegressionEncoding

    n_outputs_: int

    def fit(
        self,
        images: Any,
        targets: Any = None,
        mask: Any = None,
        eval_set: tuple[Any, Any] | None = None,
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
        eval_set : (images, targets), default=None
            Images on which the deterministic tree is scored after every epoch of finetuning.
        checkpoint, checkpoint_every, resume : path, float, bool, default=None, 60.0, False
            As in ``CrispTreeClassifier.fit``: a folder from which a fit that was killed goes on.
        """
        return self._fit_images(images, targets, mask, eval_set, Checkpoints(checkpoint, checkpoint_every, resume))

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
        from crisptree.pipeline.trees import soft_means

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
        check_is_fitted(self)
        tables = self.tree_.leaf_values()
        said = self._flat(function(tables[:, : self.n_outputs_], np.sqrt(tables[:, self.n_outputs_ :])))
        return self._of_leaves(images, lambda leaves: said[leaves])

    def _flat(self, values: Doubles) -> Doubles:
        """One number per pixel where there is one output."""
        return values[:, 0] if self.n_outputs_ == 1 else values
