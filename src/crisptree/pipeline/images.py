"""Training of the stages of a pixel estimator on windows around pixels. Imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from crisptree.data.raw_rows import Canvas, Scaling, WindowView
from crisptree.inference import CrispTree
from crisptree.learning.samples import RowSet, StoppableCallback, TrainingTask
from crisptree.pipeline.pixels import Image, LabelledPixels, append_outputs
from crisptree.pipeline.trees import Trained, fit_task, restore_units
from crisptree.pipeline.validation import holds_out
from crisptree.selection.candidates import is_postprocessing_unresolved

Stages = list[Trained]
"""The tree of every stage, and the records of its epochs."""


NO_HOLDOUT = "Give fit `eval_set`, or switch early_stopping off and give ccp_alpha and shrinkage a number."


class LabelledImages(NamedTuple):
    """Images and their pixels that have a target."""

    images: list[Image]
    pixels: LabelledPixels


def fit_stages(
    parameters: Mapping[str, Any], training: LabelledImages, held_out: LabelledImages | None, seed: int
) -> Stages:
    """Train one tree per stage; the predictions of a stage are further channels of the images of the next.

    A callback that stops the training ends the fit with the stages so far, without a last one that has no split yet.
    """
    if held_out is None and (holds_out(parameters) or is_postprocessing_unresolved(parameters)):
        training, held_out = _split_off(training, parameters["validation_fraction"], seed)
    callbacks = [StoppableCallback(callback) for callback in parameters["callbacks"] or ()]
    parameters = {**parameters, "callbacks": callbacks}
    stages: Stages = []
    inputs, held_out_inputs = training, held_out
    for stage in range(parameters["stages"]):
        stages.append(_fit_one(parameters, inputs, held_out_inputs, seed + stage))
        if any(callbacks):
            return stages[:stage] if stage and not stages[-1][0].tree.structure.n_splits else stages
        if stage + 1 < parameters["stages"]:
            tree = stages[-1][0].tree
            inputs = _append_outputs(parameters, tree, training, inputs)
            if held_out is not None and held_out_inputs is not None:
                held_out_inputs = _append_outputs(parameters, tree, held_out, held_out_inputs)
    return stages


def _fit_one(
    parameters: Mapping[str, Any], training: LabelledImages, held_out: LabelledImages | None, seed: int
) -> Trained:
    view = WindowView(parameters["window"], tuple(parameters["scales"]), training.images[0].shape[2])
    canvas = Canvas.of(training.images, view)
    pixels = np.concatenate([canvas.image(number).reshape(-1, view.n_planes) for number in range(len(training.images))])
    by_plane = Scaling.learn(pixels, np.ones(len(pixels)), parameters["scale"], parameters["n_jobs"])
    task = TrainingTask(
        _windows(canvas, training.pixels),
        by_plane.repeat(view.window**2),
        training.pixels.target,
        None if held_out is None else _windows(Canvas.of(held_out.images, view), held_out.pixels),
    )
    fitted, history = fit_task(parameters, task, view.image_shape, seed, held_out=task.validation)
    return restore_units(fitted, training.pixels.encoding), history


def _windows(canvas: Canvas, pixels: LabelledPixels) -> RowSet:
    """Return the windows around pixels as rows."""
    base = np.concatenate([canvas.places(number)[use] for number, use in enumerate(pixels.used)])
    return RowSet(canvas.windows(base), pixels.y, pixels.weight)


def _split_off(training: LabelledImages, fraction: float, seed: int) -> tuple[LabelledImages, LabelledImages]:
    """Hold out whole images, since pixels of one image are correlated."""
    n = len(training.images)
    if n < 2:
        raise ValueError(f"a fit that holds images out must have at least 2; got 1. {NO_HOLDOUT}")
    is_held_out = np.zeros(n, dtype=bool)
    is_held_out[np.random.default_rng(seed).choice(n, min(max(1, round(fraction * n)), n - 1), replace=False)] = True
    flags = np.repeat(is_held_out, [np.count_nonzero(use) for use in training.pixels.used])
    kept, held_out = (LabelledImages(training.images, training.pixels.only(keep)) for keep in (~flags, flags))
    classes = training.pixels.encoding.classes
    shows_all = flags.any() and not flags.all()
    if not shows_all or (classes is not None and len(np.unique(kept.pixels.y)) < len(classes)):
        what = "have a number somewhere" if classes is None else "show every class"
        raise ValueError(f"whole images are held out, and those left must {what}; they do not. {NO_HOLDOUT}")
    return kept, held_out


def _append_outputs(
    parameters: Mapping[str, Any], tree: CrispTree, original: LabelledImages, inputs: LabelledImages
) -> LabelledImages:
    """Append the predictions of a stage to the original images as channels."""
    options = parameters["window"], tuple(parameters["scales"]), parameters["n_jobs"]
    pairs = zip(original.images, inputs.images, strict=True)
    return LabelledImages([append_outputs(tree, image, before, *options) for image, before in pairs], original.pixels)
