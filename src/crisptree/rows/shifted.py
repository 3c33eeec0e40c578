"""Rows that are images, looked at a few pixels beside their place: the same images, shifted, without copies of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from crisptree.rows.windows import Windows


@dataclass(frozen=True, eq=False)
class ShiftedImages(Windows):
    """Images with a margin that repeats their border; a row is the window in the middle, or a few pixels beside it.

    Whoever reads ``base`` where it lies sees the rows shifted while they are ``shifted``, and as they are otherwise.

    Parameters
    ----------
    home : Tensor of shape (n,), int64
        ``base`` of the images as they are.
    reach : int
        The most pixels that an image is shifted, up or down and left or right.
    pitch : int
        Values of a line, its margin included.

    Examples
    --------
    >>> rows = ShiftedImages.of(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), (2, 2), reach=1)
    >>> rows.batch(torch.tensor([0])).tolist()
    [[1.0, 2.0, 3.0, 4.0]]
    >>> with rows.shifted(torch.Generator().manual_seed(1)):
    ...     rows.batch(torch.tensor([0])).tolist()
    [[3.0, 4.0, 3.0, 4.0]]
    """

    home: Tensor | None = None
    reach: int = 0
    pitch: int = 0

    @classmethod
    def of(cls, values: Tensor, image_shape: tuple[int, ...], reach: int) -> ShiftedImages:
        """Scaled rows as images of that shape; all pixels must be scaled alike.  (n, n_features)"""
        height, width, channels = *image_shape, *[1] * (3 - len(image_shape))
        images = values.reshape(-1, height, width, channels)
        lines, columns = (
            torch.arange(-reach, side + reach, device=values.device).clamp(0, side - 1) for side in (height, width)
        )
        data = images[:, lines][:, :, columns]
        pitch = data.shape[2] * channels
        home = torch.arange(len(data), device=values.device) * data[:1].numel() + reach * (pitch + channels)
        within = torch.arange(height, device=values.device)[:, None] * pitch
        offset = (within + torch.arange(width * channels, device=values.device)).reshape(-1)
        return cls(data.reshape(-1), home.clone(), offset, channels, home, reach, pitch)

    @contextmanager
    def shifted(self, generator: torch.Generator) -> Iterator[None]:
        """Inside, every image is shifted by its own random number of pixels, all numbers up to ``reach`` alike."""
        across, down = torch.randint(-self.reach, self.reach + 1, (2, len(self)), generator=generator).to(self.device)
        assert self.home is not None
        self.base.copy_(self.home + down * self.pitch + across * self.n_planes)
        try:
            yield
        finally:
            self.base.copy_(self.home)
