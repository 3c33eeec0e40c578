"""The paper's small convolutional network as a split feature (section 4.4)."""

from __future__ import annotations

from torch import Tensor, nn

MIN_IMAGE_SIDE = 16
"""Two 5 × 5 convolutions, each followed by 2 × 2 pooling, leave nothing of a smaller image."""


class ConvNet(nn.Module):
    """5×5 @ 3 → max-pool 2 → ReLU → 5×5 @ 6 → max-pool 2 → ReLU → 50 → ReLU → 1; 96 values before the 50 for 28 × 28.

    Parameters
    ----------
    input_shape : tuple of int
        (channels, height, width) of the images.

    Examples
    --------
    >>> import torch
    >>> ConvNet((1, 28, 28))(torch.zeros(7, 1, 28, 28)).shape
    torch.Size([7, 1])
    """

    def __init__(self, input_shape: tuple[int, ...]) -> None:
        super().__init__()
        if len(input_shape) != 3 or min(input_shape[1:]) < MIN_IMAGE_SIDE:
            raise ValueError(
                f"split='conv' needs images of at least {MIN_IMAGE_SIDE} × {MIN_IMAGE_SIDE} pixels; got the input "
                f"shape {input_shape}. Set image_shape to (height, width) or (height, width, channels). For a "
                "segmenter, its window is the image."
            )
        channels, height, width = input_shape
        rest = 6 * _after_two_stages(height) * _after_two_stages(width)
        self.layers = nn.Sequential(
            nn.Conv2d(channels, 3, 5),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(3, 6, 5),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(rest, 50),
            nn.ReLU(),
            nn.Linear(50, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.layers(x)
        return scores


def _after_two_stages(side: int) -> int:
    return ((side - 4) // 2 - 4) // 2
