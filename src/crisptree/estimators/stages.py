"""What the trees of an estimator of pixels say of an image, one stage after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from crisptree.data.images import Canvas, WindowView
from crisptree.estimators.image_validation import Image
from crisptree.inference import CrispTree, route_rows


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
