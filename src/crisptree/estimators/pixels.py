"""What the estimators of pixels share, whatever they predict: the order of a fit, and the way of pixels to leaves."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, check_random_state

from crisptree.data.images import Canvas, WindowView
from crisptree.data.windows import Windows
from crisptree.distributed import check_alone
from crisptree.estimators import image_validation as checks
from crisptree.estimators.arguments import check_argument
from crisptree.estimators.base import Checkpoints, TreeEstimator
from crisptree.estimators.capabilities import check_parameters
from crisptree.estimators.parameters import PixelParameters
from crisptree.estimators.pixel_targets import PixelTargets
from crisptree.estimators.stages import leaf_numbers, n_told, seen_by_last
from crisptree.estimators.validation import validation_pair
from crisptree.inference import CrispTree
from crisptree.streams import refuse_batches

if TYPE_CHECKING:
    from crisptree.estimators.fitting import Trained
    from crisptree.persistence.model_file import Sections

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
