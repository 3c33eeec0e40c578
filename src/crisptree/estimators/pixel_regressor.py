"""The regressor of pixels: one deterministic tree that says a number, or several, of every pixel."""

from __future__ import annotations

from os import PathLike
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from crisptree.estimators.arguments import check_argument
from crisptree.estimators.base import Checkpoints
from crisptree.estimators.parameters import PixelRegressorParameters
from crisptree.estimators.pixel_targets import PixelNumbers
from crisptree.estimators.pixels import PixelEstimator
from crisptree.targets.regression import RegressionEncoding

Doubles = npt.NDArray[np.float64]


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
