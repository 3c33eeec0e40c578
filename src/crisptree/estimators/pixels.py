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

from crisptree.data.raw_rows import Canvas, Windows, WindowView
from crisptree.encoding.containers import refuse_batches
from crisptree.estimators.base import TreeEstimator
from crisptree.estimators.loading import ESTIMATOR, STAGE, ReadTrees, read_image_shape
from crisptree.inference import CrispTree
from crisptree.parameters.estimators import (
    PAPER_PIXELS,
    PixelParameters,
    PixelRegressorParameters,
    SegmenterParameters,
    check_argument,
)
from crisptree.persistence.model_file import ModelFile, ModelFileError, Sections, check_channels
from crisptree.pipeline.monitoring import Checkpoints
from crisptree.pipeline.pixels import (
    Image,
    Images,
    PixelLabels,
    PixelTargets,
    PixelValues,
    check_images,
    check_new_images,
    check_reach,
    check_window_reach,
    last_stage_input,
    leaf_greys,
    n_output_channels,
    route_pixels,
)
from crisptree.pipeline.validation import check_parameters, draw_seed, validation_pair
from crisptree.targets.classification import ClassEncoding
from crisptree.targets.regression import RegressionEncoding, squeeze_outputs
from crisptree.threads import check_single_process

if TYPE_CHECKING:
    from crisptree.pipeline.images import Stages


Doubles = npt.NDArray[np.float64]
Leaves = npt.NDArray[np.int64]
SoftPredict = Callable[[CrispTree, Windows, float | None], npt.NDArray[np.float64]]


class PixelEstimator(PixelParameters, TreeEstimator):
    """Base of the estimators of pixels: one tree per stage, on the windows around pixels."""

    channels_: int | None
    earlier_trees_: list[CrispTree]
    looks_at_: tuple[int, tuple[int, ...], bool, int]

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Make an estimator with the training of the paper's section 4.3: a greedy tree of depth 8 by EM.

        Windows of 31 × 31, 40 epochs of all pixels for every split in batches of 1000, no finetuning.

        Examples
        --------
        >>> from crisptree import CrispSegmenter
        >>> model = CrispSegmenter.paper(window=21)
        >>> model.window, model.pixels_per_epoch, model.training.epochs
        (21, None, 40)
        """
        return cls.from_flat(**{**PAPER_PIXELS, **changes})

    @abstractmethod
    def _targets(self) -> PixelTargets:
        """Return the reader of the targets of pixels."""

    def _fit_images(self, images: Any, values: Any, mask: Any, validation: Any, checkpoints: Checkpoints) -> Self:
        """Validate images and targets and train all stages; a failed fit leaves the estimator unchanged."""
        check_single_process("the training on pixels")
        with self._fitting() as twin:
            parameters = self.training_parameters()
            check_parameters(self.declared_parameters(), parameters)
            refuse_batches(images, type(self).__name__)
            targets = self._targets()
            checked = self._normalise(check_new_images(images, targets.n_axes(images, values)))
            pixels = targets.read_training(checked, values, mask)
            view = self._view(checked.channels or 1)
            check_reach(checked, view)
            seed = draw_seed(self.random_state)
            from crisptree.pipeline.images import LabelledImages, fit_stages

            training, held_out = LabelledImages(checked.images, pixels), None
            if validation is not None:
                others, values = validation_pair(validation, f"(images, {targets.NOUN})")
                others = self._normalise(check_images(others, checked.channels))
                check_reach(others, view)
                held_out = LabelledImages(others.images, targets.read_validation(others, values, pixels.encoding))
            data = {f"images and {targets.NOUN}": training, "validation": held_out}
            with checkpoints.keep(parameters, data, seed) as seed:
                stages = fit_stages(parameters, training, held_out, seed)
            twin._set_encoding(pixels.encoding)
            twin._set_stages(stages, checked.channels)
        return self

    def _set_stages(self, stages: Stages, channels: int | None) -> None:
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
        """Restore the trees of all stages, whose windows must be those of the parameters."""
        super()._restore_trees(file, read)
        channels = file.section(ESTIMATOR).content.get("channels")
        check_channels(channels, file.path)
        check_window_reach(self.window, self.scales)
        self.channels_, self.earlier_trees_ = channels, []
        for tree in read(f"{STAGE}_{number}" for number in range(self.stages - 1)).values():
            if tree.n_features != self._view(seen_channels(self)).n_features:
                raise ModelFileError(f"{file.path} holds a stage with other windows than its parameters.")
            self.earlier_trees_.append(tree)
        if read_image_shape(file, self.tree_) != self._view(seen_channels(self)).image_shape:
            raise ModelFileError(f"{file.path} holds a tree with other windows than its parameters.")
        self.looks_at_ = self._looks_at()
        return self.tree_

    def _looks_at(self) -> tuple[int, tuple[int, ...], bool, int]:
        scales = tuple(int(scale) for scale in self.scales)
        return int(self.window), scales, bool(self.normalise_images), int(self.stages)

    def _view(self, channels: int) -> WindowView:
        return WindowView(*self._looks_at()[:2], channels)

    def _normalise(self, images: Images) -> Images:
        return images.normalised() if self.normalise_images else images

    def leaf_indices(self, images: Any) -> Any:
        """Return the leaf index of every pixel.  (n, height, width[, channels]) → (n, height, width)

        The result has the form of the images: one image for one image, a list for a list.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispSegmenter
        >>> image = np.random.default_rng(0).normal(size=(40, 40))
        >>> model = CrispSegmenter(window=3, max_depth=2, random_state=0).fit(image, image > 0)
        >>> model.leaf_indices(image).shape
        (40, 40)
        """
        return self._of_leaves(images, lambda leaves: leaves)

    def window_at(self, image: Any, row: int, column: int) -> Image:
        """Return the window around a pixel of one image as the last tree sees it: normalised, with all scales and
        the predictions of earlier stages.  → (1, n_features)

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispSegmenter
        >>> image = np.random.default_rng(0).normal(size=(40, 40))
        >>> model = CrispSegmenter(window=3, max_depth=2, random_state=0).fit(image, image > 0)
        >>> bool(np.allclose(model.window_at(image, 5, 7).reshape(3, 3), image[4:7, 6:9]))
        True
        """
        checked = self._check(image)
        if len(checked.images) != 1:
            raise ValueError(f"`image` must be one image; got {len(checked.images)}.")
        seen = self._seen(checked.images[0])
        for name, index, size in zip(("row", "column"), (row, column), seen.shape, strict=False):
            if not 0 <= index < size:
                raise ValueError(
                    f"`{name}` must lie between 0 and {size - 1} for an image of {seen.shape[0]} × {seen.shape[1]}; "
                    f"got {index}."
                )
        canvas = Canvas.of([seen], self._view(seen.shape[2]))
        window: Image = canvas.windows(canvas.places(0)[row, column].reshape(1))[:]
        return window

    def leaf_image(self, images: Any) -> Any:
        """Return the leaf of every pixel as a grey value in [0, 1], equidistant from the leftmost leaf to the last.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispSegmenter
        >>> image = np.random.default_rng(0).normal(size=(40, 40))
        >>> greys = CrispSegmenter(window=3, max_depth=2, random_state=0).fit(image, image > 0).leaf_image(image)
        >>> greys.shape, float(greys.max())
        ((40, 40), 1.0)
        """
        check_is_fitted(self)
        greys = leaf_greys(self.tree_)
        return self._of_leaves(images, lambda leaves: greys[leaves])

    def _of_leaves(self, images: Any, function: Callable[[Leaves], npt.NDArray[Any]]) -> Any:
        """Map the leaf index of every pixel, in the form of the images."""
        checked = self._check(images)
        return checked.restore_form([function(self._leaves(image)) for image in checked.images])

    def _of_windows(self, images: Any, steepness: float | None, function: SoftPredict) -> Any:
        """Predict the windows around all pixels with the probabilistic tree, in the form of the images."""
        checked = self._check(images)
        if steepness is not None:
            check_argument("steepness", steepness)
        results = []
        for image in checked.images:
            windows = Canvas.of([self._seen(image)], self._view(seen_channels(self))).windows()
            values = function(self.tree_, windows, steepness)
            results.append(values.reshape(*image.shape[:2], *values.shape[1:]))
        return checked.restore_form(results)

    def _labels(self, images: Any, targets: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Return predictions and encoded targets of the pixels that have one."""
        checked = self._check(images)
        masks, y = self._targets().read_scored(checked, targets)
        pairs = zip(checked.images, masks, strict=True)
        return np.concatenate([self.tree_.labels(self._leaves(image)[use]) for image, use in pairs if use.any()]), y

    def _check(self, images: Any) -> Images:
        self._check_unchanged()
        refuse_batches(images, f"a fitted {type(self).__name__}")
        checked = self._normalise(check_images(images, self.channels_))
        check_reach(checked, self._view(self.channels_ or 1))
        return checked

    def _check_unchanged(self) -> None:
        """Refuse parameters of windows that have been set after the fit."""
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
        return last_stage_input([*self.earlier_trees_, self.tree_], image, self.window, tuple(self.scales), self.n_jobs)

    def _leaves(self, image: Image) -> Leaves:
        return route_pixels(self.tree_, self._seen(image), self.window, tuple(self.scales), self.n_jobs)


def seen_channels(model: PixelEstimator) -> int:
    """Return the number of input channels of the last tree: those of the images and the outputs of earlier stages."""
    return (model.channels_ or 1) + n_output_channels(model.earlier_trees_)


class CrispSegmenter(SegmenterParameters, PixelEstimator):
    """A single decision tree that labels every pixel of an image from the window around it.

    Training draws pixels from the images and does not materialise their windows (on CUDA those of one epoch, if they
    fit into memory); prediction slides the window over an image and evaluates, for each pixel, only the splits on its
    path. Images are mirrored at their borders.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    tree_, greedy_tree_ : FlatTree or ModuleTree
        The deterministic tree of the last stage, and the same before finetuning.
    earlier_trees_ : list of FlatTree or ModuleTree
        The trees of earlier stages; fewer than ``stages`` if ``StopTraining`` ended the fit early.
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    channels_ : int or None
        Channels of the images; None without an axis of channels.
    image_shape_ : tuple of int
        Shape of the window, (window, window) or (window, window, planes), with a plane for every scale and channel.
    n_features_in_ : int
        Values in a window.
    looks_at_ : tuple
        ``window``, ``scales``, ``normalise_images`` and ``stages`` of the fit.
    best_iteration_ : int
        With ``early_stopping`` only: the finetuning epoch of the last stage whose tree is kept; 0 for ``greedy_tree_``.
    history_ : list of EpochRecord
        One record for every epoch of the trees above.

    Examples
    --------
    Segment pixels whose left neighbour is brighter.

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
            True for pixels to train on; None takes all that are labelled.
        eval_set : (images, labels), default=None
            Validation images, scored after every epoch of finetuning.
        checkpoint, checkpoint_every, resume : path, float, bool, default=None, 60.0, False
            As in ``CrispTreeClassifier.fit``.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispSegmenter
        >>> image = np.random.default_rng(0).normal(size=(40, 40))
        >>> labels = np.where(image < np.roll(image, 1, axis=1), "darker", "brighter")
        >>> CrispSegmenter(window=3, max_depth=2, random_state=0).fit(image, labels).classes_.tolist()
        ['brighter', 'darker']
        """
        return self._fit_images(images, labels, mask, eval_set, Checkpoints(checkpoint, checkpoint_every, resume))

    def _targets(self) -> PixelLabels:
        return PixelLabels(self.ignore_label, self.class_weight)

    def predict(self, images: Any) -> Any:
        """Predict the class of every pixel.  (n, height, width[, channels]) → (n, height, width)

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispSegmenter
        >>> image = np.random.default_rng(0).normal(size=(40, 40))
        >>> model = CrispSegmenter(window=3, max_depth=2, random_state=0).fit(image, image > 0)
        >>> model.predict(image).shape
        (40, 40)
        """
        return self._of_leaves(images, lambda leaves: self.classes_[self.tree_.labels()][leaves])

    def predict_proba(self, images: Any) -> Any:
        """Predict the class frequencies of every pixel's leaf.  (n, height, width[, c]) → (…, n_classes)

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispSegmenter
        >>> image = np.random.default_rng(0).normal(size=(40, 40))
        >>> model = CrispSegmenter(window=3, max_depth=2, random_state=0).fit(image, image > 0)
        >>> model.predict_proba(image).shape
        (40, 40, 2)
        """
        return self._of_leaves(images, lambda leaves: self.tree_.leaf_values(leaves))

    def soft_predict_proba(self, images: Any, steepness: float | None = None) -> Any:
        """Predict class probabilities with the probabilistic tree, which visits every leaf; slow.

        ``steepness`` is γ of the splits; None is that of the end of training.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispSegmenter
        >>> image = np.random.default_rng(0).normal(size=(40, 40))
        >>> model = CrispSegmenter(window=3, max_depth=2, random_state=0).fit(image, image > 0)
        >>> model.soft_predict_proba(image).shape
        (40, 40, 2)
        """
        from crisptree.pipeline.probabilistic import soft_probabilities

        return self._of_windows(images, steepness, soft_probabilities)

    def score(self, images: Any, labels: Any) -> float:
        """Compute the accuracy on the labelled pixels.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispSegmenter
        >>> image = np.random.default_rng(0).normal(size=(40, 40))
        >>> model = CrispSegmenter(window=3, max_depth=2, random_state=0).fit(image, image > 0)
        >>> bool(model.score(image, image > 0) > 0.95)
        True
        """
        predicted, true = self._labels(images, labels)
        return float(np.mean(self.classes_[predicted] == true))


class CrispPixelRegressor(PixelRegressorParameters, PixelEstimator):
    """A single regression tree that predicts a value for every pixel of an image from the window around it.

    It is to ``CrispSegmenter`` what ``CrispTreeRegressor`` is to ``CrispTreeClassifier``: for a depth, a density, a
    distance or a denoised brightness. Targets are scaled to mean 0 and variance 1, output by output. See
    docs/guide/images.md.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    n_outputs_ : int
        Number of outputs of a pixel.
    tree_, greedy_tree_, earlier_trees_, channels_, image_shape_, n_features_in_, looks_at_, best_iteration_, history_
        As in ``CrispSegmenter``; the scores in ``history_`` are 1 − squared error / variance.

    Examples
    --------
    Predict the difference to the left neighbour.

    >>> import numpy as np
    >>> from crisptree import CrispPixelRegressor
    >>> image = np.random.default_rng(0).normal(size=(40, 40))
    >>> change = image - np.roll(image, 1, axis=1)
    >>> change[:, 0] = np.nan  # not trained on
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
        """Grow a tree on the windows of the pixels that have a target, and finetune it.

        Parameters
        ----------
        images, mask, eval_set, checkpoint, checkpoint_every, resume
            As in ``CrispSegmenter.fit``.
        targets : array-like or list of the same form, without channels, or with an axis of outputs in their place
            One or several targets for every pixel; pixels with a NaN are not trained on. One image of c channels and
            its targets of c outputs must be passed as lists, because (a, b, c) and (a, b, c) are a images.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispPixelRegressor
        >>> image = np.random.default_rng(0).normal(size=(40, 40))
        >>> model = CrispPixelRegressor(window=3, max_depth=3, random_state=0).fit(image, 2 * image)
        >>> model.n_outputs_
        1
        """
        return self._fit_images(images, targets, mask, eval_set, Checkpoints(checkpoint, checkpoint_every, resume))

    def _targets(self) -> PixelValues:
        return PixelValues(self.ignore_value)

    def predict(self, images: Any) -> Any:
        """Predict the mean of every pixel's leaf, in the form of the images.

        (n, height, width[, channels]) → (n, height, width), or (n, height, width, n_outputs) for several outputs

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispPixelRegressor
        >>> image = np.random.default_rng(0).normal(size=(40, 40))
        >>> CrispPixelRegressor(window=3, max_depth=3, random_state=0).fit(image, 2 * image).predict(image).shape
        (40, 40)
        """
        return self._look_up(images, lambda mean, std: mean)

    def predict_std(self, images: Any) -> Any:
        """Predict the standard deviation of the targets in every pixel's leaf, in the form of ``predict``.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispPixelRegressor
        >>> image = np.random.default_rng(0).normal(size=(40, 40))
        >>> model = CrispPixelRegressor(window=3, max_depth=3, random_state=0).fit(image, 2 * image)
        >>> bool((model.predict_std(image) > 0).all())
        True
        """
        return self._look_up(images, lambda mean, std: std)

    def predict_interval(self, images: Any, coverage: float = 0.9) -> tuple[Any, Any]:
        """Predict intervals by the normal distribution of every pixel's leaf, in the form of ``predict``.

        ``coverage`` is their probability, above 0 and below 1.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispPixelRegressor
        >>> image = np.random.default_rng(0).normal(size=(40, 40))
        >>> model = CrispPixelRegressor(window=3, max_depth=3, random_state=0).fit(image, 2 * image)
        >>> low, high = model.predict_interval(image, coverage=0.8)
        >>> bool((low < high).all())
        True
        """
        check_argument("coverage", coverage)
        radius = float(ndtri(0.5 + coverage / 2))
        low = self._look_up(images, lambda mean, std: mean - radius * std)
        return low, self._look_up(images, lambda mean, std: mean + radius * std)

    def soft_predict(self, images: Any, steepness: float | None = None) -> Any:
        """Predict the mean of the probabilistic tree, which visits every leaf; slow.

        ``steepness`` is γ of the splits; None is that of the end of training.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispPixelRegressor
        >>> image = np.random.default_rng(0).normal(size=(40, 40))
        >>> CrispPixelRegressor(window=3, max_depth=3, random_state=0).fit(image, 2 * image).soft_predict(image).shape
        (40, 40)
        """
        from crisptree.pipeline.probabilistic import soft_means

        return self._of_windows(images, steepness, lambda *inputs: squeeze_outputs(soft_means(*inputs)))

    def score(self, images: Any, targets: Any) -> float:
        """Compute R² of the pixels that have a target, the mean over the outputs.

        Examples
        --------
        >>> import numpy as np
        >>> from crisptree import CrispPixelRegressor
        >>> image = np.random.default_rng(0).normal(size=(40, 40))
        >>> model = CrispPixelRegressor(window=3, max_depth=3, random_state=0).fit(image, 2 * image)
        >>> bool(model.score(image, 2 * image) > 0.8)
        True
        """
        predicted, true = self._labels(images, targets)
        if true.shape[1] != self.n_outputs_:
            raise ValueError(f"targets must have {self.n_outputs_} outputs, as in training; got {true.shape[1]}.")
        return float(r2_score(true, predicted))

    def _look_up(self, images: Any, function: Any) -> Any:
        """Map mean and standard deviation of every pixel's leaf, in the form of the images."""
        check_is_fitted(self)
        tables = self.tree_.leaf_values()
        values = squeeze_outputs(function(tables[:, : self.n_outputs_], np.sqrt(tables[:, self.n_outputs_ :])))
        return self._of_leaves(images, lambda leaves: values[leaves])
