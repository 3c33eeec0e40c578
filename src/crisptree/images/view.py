"""What a pixel's row of features is: the window around it, at one scale or at several."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class WindowView:
    """``window`` × ``window`` samples around a pixel, at every scale, of every channel.

    At scale 1 they are the pixels themselves; at scale s they lie s pixels apart on the smoothed image, so that the
    window reaches s times as far. Features are ordered by line, column, scale and channel: each scale of each channel
    is a plane of one image of shape (window, window, planes), and what is known of images holds for it.

    Parameters
    ----------
    window : int
        Samples along a side, odd.
    scales : tuple of int
        How far apart the samples are.
    channels : int
        Channels of the images.
    """

    window: int
    scales: tuple[int, ...]
    channels: int

    @property
    def margin(self) -> int:
        """How many pixels beyond the border of an image a window may see."""
        return self.window // 2 * max(self.scales)

    @property
    def n_planes(self) -> int:
        return self.channels * len(self.scales)

    @property
    def n_features(self) -> int:
        return self.window**2 * self.n_planes

    @property
    def image_shape(self) -> tuple[int, ...]:
        """The row as an image; a single plane has no axis of its own."""
        return (self.window, self.window) if self.n_planes == 1 else (self.window, self.window, self.n_planes)

    def offsets(self, pitch: int) -> npt.NDArray[np.int64]:
        """How far every feature's value lies from the pixel's first one, where lines have ``pitch`` pixels.

        Examples
        --------
        >>> WindowView(3, (1,), 1).offsets(pitch=10)
        array([-11, -10,  -9,  -1,   0,   1,   9,  10,  11])
        """
        steps = np.arange(self.window) - self.window // 2
        down, across = steps[:, None, None, None], steps[None, :, None, None]
        scale = np.array(self.scales)[:, None]
        plane = np.arange(self.n_planes).reshape(len(self.scales), self.channels)
        return ((down * pitch + across) * scale * self.n_planes + plane).reshape(-1)
