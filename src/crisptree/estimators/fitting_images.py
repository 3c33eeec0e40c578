"""The fit of a segmenter: windows in place of rows, stage after stage. Imported only when something trains."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from crisptree.estimators.fitting import Fitted, Problem, trained, training_on, weighed
from crisptree.estimators.pictures import Image, Labelled
from crisptree.estimators.stages import beside, leaf_numbers, opinion
from crisptree.estimators.validation import TrainingData
from crisptree.images import Canvas, WindowView
from crisptree.inference import CrispTree
from crisptree.learning.samples import WindowRows
from crisptree.scaling import Scaling

if TYPE_CHECKING:
    from crisptree.estimators.segmenter import CrispSegmenter


class Part(NamedTuple):
    """Images and the pixels of them that count."""

    images: list[Image]
    labelled: Labelled


def fit_stages(segmenter: CrispSegmenter, part: Part, held: Part | None, seed: int) -> list[Fitted]:
    """One tree per stage; each later one sees the class probabilities of the one before beside the image."""
    if held is None and segmenter.early_stopping and segmenter.finetune_epochs:
        part, held = _split_off(part, segmenter.validation_fraction, seed)
    stages: list[Fitted] = []
    now, held_now = part, held
    for stage in range(segmenter.stages):
        fitted = _fit_one(segmenter, now, held_now, seed + stage)
        stages.append(fitted)
        if stage + 1 < segmenter.stages:
            now = _with_opinions(segmenter, fitted.tree, part, now)
            if held is not None and held_now is not None:
                held_now = _with_opinions(segmenter, fitted.tree, held, held_now)
    return stages


def _fit_one(segmenter: CrispSegmenter, part: Part, held: Part | None, seed: int) -> Fitted:
    view = WindowView(segmenter.window, tuple(segmenter.scales), part.images[0].shape[2])
    canvas, labelled = Canvas.of(part.images, view), part.labelled
    base, n_jobs = _places(canvas, labelled), segmenter.n_jobs
    data = TrainingData(canvas.windows(base), labelled.y, labelled.weight, labelled.classes, view.image_shape)
    with training_on(segmenter.device, n_jobs, data.X.size, seed) as device:
        pixels = np.concatenate([canvas.image(number).reshape(-1, view.n_planes) for number in range(len(part.images))])
        by_plane = Scaling.learn(pixels, np.ones(len(pixels)), segmenter.scale, n_jobs)
        del pixels
        n_classes, validation = len(labelled.classes), None
        if held is not None:
            other = Canvas.of(held.images, view)
            rows = _scaled_windows(other, by_plane, _places(other, held.labelled), device, n_jobs)
            validation = weighed(rows, held.labelled.y, held.labelled.weight, n_classes)
        rows = _scaled_windows(canvas, by_plane, base, device, n_jobs)
        samples = weighed(rows, labelled.y, labelled.weight, n_classes)
        scaling = by_plane.repeated(segmenter.window**2)
        problem = Problem(data, scaling, samples, validation, segmenter.pixels_per_epoch)
        return trained(segmenter, problem, None, seed)


def _split_off(part: Part, fraction: float, seed: int) -> tuple[Part, Part]:
    """Hold out whole images: pixels of one image resemble each other too much."""
    n = len(part.images)
    if n < 2:
        raise ValueError(
            "early_stopping must have an image to hold out, so at least 2; got 1. Give fit `validation`, or switch "
            "early_stopping off."
        )
    out = np.zeros(n, dtype=bool)
    out[np.random.default_rng(seed).choice(n, min(max(1, round(fraction * n)), n - 1), replace=False)] = True
    sizes = [np.count_nonzero(use) for use in part.labelled.used]
    flags = np.repeat(out, sizes)
    kept, held = (Part(part.images, part.labelled.only(keep)) for keep in (~flags, flags))
    if len(np.unique(kept.labelled.y)) < len(part.labelled.classes) or not flags.any():
        raise ValueError(
            "early_stopping holds whole images out, and those left must show every class; they do not. Give fit "
            "`validation`, or switch early_stopping off."
        )
    return kept, held


def _with_opinions(segmenter: CrispSegmenter, tree: CrispTree, part: Part, seen: Part) -> Part:
    """The images, and beside each what the tree says of what it has seen of it."""
    window, scales = segmenter.window, tuple(segmenter.scales)
    said = [opinion(tree, leaf_numbers(tree, image, window, scales, segmenter.n_jobs)) for image in seen.images]
    return Part(list(map(beside, part.images, said)), part.labelled)


def _places(canvas: Canvas, labelled: Labelled) -> npt.NDArray[np.int64]:
    return np.concatenate([canvas.places(number)[use] for number, use in enumerate(labelled.used)])


def _scaled_windows(
    canvas: Canvas, by_plane: Scaling, base: npt.NDArray[np.int64], device: torch.device, n_jobs: int | None
) -> WindowRows:
    """The windows of the scaled images, on the training device. A line of pixels is scaled as a row is."""
    n_lines, pitch, n_planes = canvas.pixels.shape
    scaled = by_plane.repeated(pitch).apply(canvas.pixels.reshape(n_lines, -1), n_jobs)
    windows = canvas.redrawn(scaled.reshape(n_lines, pitch, n_planes)).windows(base)
    arrays = (windows.data, windows.base, windows.offset)
    return WindowRows(*(torch.from_numpy(array).to(device) for array in arrays))
