"""A fit on pixels: windows in place of rows, stage after stage. Imported only when something trains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from crisptree.data.images import Canvas, WindowView
from crisptree.data.scaling import Scaling
from crisptree.inference import CrispTree
from crisptree.learning.history import StoppableCallback
from crisptree.learning.task import RowSet, TrainingTask
from crisptree.pipeline.pixels import Image, KnownPixels, beside, leaf_numbers, opinion
from crisptree.pipeline.trees import Trained, fit_problem, in_units_of_y
from crisptree.pipeline.validation import holds_out
from crisptree.selection.parameters import is_postprocessing_unresolved


class KnownImages(NamedTuple):
    """Images and the pixels of them that count."""

    images: list[Image]
    known: KnownPixels


def fit_stages(parameters: Mapping[str, Any], given: KnownImages, held: KnownImages | None, seed: int) -> list[Trained]:
    """One tree per stage; each later one sees beside the image what the one before says of it.

    Where a callback ends the fit, the stages that are there are all; a later one that has no split yet is none.
    """
    if held is None and (holds_out(parameters) or is_postprocessing_unresolved(parameters)):
        given, held = _split_off(given, parameters["validation_fraction"], seed)
    endings = [StoppableCallback(callback) for callback in parameters["callbacks"] or ()]
    parameters = {**parameters, "callbacks": endings}
    stages: list[Trained] = []
    now, held_now = given, held
    for stage in range(parameters["stages"]):
        stages.append(_fit_one(parameters, now, held_now, seed + stage))
        if any(endings):
            return stages[:stage] if stage and not stages[-1][0].tree.structure.n_splits else stages
        if stage + 1 < parameters["stages"]:
            tree = stages[-1][0].tree
            now = _with_opinions(parameters, tree, given, now)
            if held is not None and held_now is not None:
                held_now = _with_opinions(parameters, tree, held, held_now)
    return stages


def _fit_one(parameters: Mapping[str, Any], given: KnownImages, held: KnownImages | None, seed: int) -> Trained:
    view = WindowView(parameters["window"], tuple(parameters["scales"]), given.images[0].shape[2])
    canvas = Canvas.of(given.images, view)
    pixels = np.concatenate([canvas.image(number).reshape(-1, view.n_planes) for number in range(len(given.images))])
    by_plane = Scaling.learn(pixels, np.ones(len(pixels)), parameters["scale"], parameters["n_jobs"])
    problem = TrainingTask(
        _windows(canvas, given.known),
        by_plane.repeated(view.window**2),
        given.known.target,
        None if held is None else _windows(Canvas.of(held.images, view), held.known),
    )
    fitted, history = fit_problem(parameters, problem, view.image_shape, seed, held=problem.validation)
    return in_units_of_y(fitted, given.known.encoding), history


def _windows(canvas: Canvas, known: KnownPixels) -> RowSet:
    """The windows around the pixels that count."""
    base = np.concatenate([canvas.places(number)[use] for number, use in enumerate(known.used)])
    return RowSet(canvas.windows(base), known.y, known.weight)


def _split_off(given: KnownImages, fraction: float, seed: int) -> tuple[KnownImages, KnownImages]:
    """Hold out whole images: pixels of one image resemble each other too much."""
    n = len(given.images)
    if n < 2:
        raise ValueError(
            "a fit that holds images out must have at least 2; got 1. Give fit `eval_set`, or switch early_stopping "
            "off and give prune and shrinkage a number."
        )
    out = np.zeros(n, dtype=bool)
    out[np.random.default_rng(seed).choice(n, min(max(1, round(fraction * n)), n - 1), replace=False)] = True
    sizes = [np.count_nonzero(use) for use in given.known.used]
    flags = np.repeat(out, sizes)
    kept, held = (KnownImages(given.images, given.known.only(keep)) for keep in (~flags, flags))
    classes = given.known.encoding.classes
    shows_all = flags.any() and not flags.all()
    if not shows_all or (classes is not None and len(np.unique(kept.known.y)) < len(classes)):
        what = "have a number somewhere" if classes is None else "show every class"
        raise ValueError(
            f"whole images are held out, and those left must {what}; they do not. Give fit `eval_set`, or switch "
            "early_stopping off and give prune and shrinkage a number."
        )
    return kept, held


def _with_opinions(
    parameters: Mapping[str, Any], tree: CrispTree, given: KnownImages, seen: KnownImages
) -> KnownImages:
    """The images, and beside each what the tree says of what it has seen of it."""
    window, scales, n_jobs = parameters["window"], tuple(parameters["scales"]), parameters["n_jobs"]
    said = [opinion(tree, leaf_numbers(tree, image, window, scales, n_jobs)) for image in seen.images]
    return KnownImages(list(map(beside, given.images, said)), given.known)
