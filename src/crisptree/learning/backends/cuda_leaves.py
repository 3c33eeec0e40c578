"""What the kernels on CUDA are told of leaves at the start of an epoch: their tables, in the form quickest there."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from crisptree.equations.gaussian import LOG_TWO_PI
from crisptree.learning.backends.base import Trainee
from crisptree.learning.samples import Samples
from crisptree.targets import Classes, Gaussians, Target


class CudaLeaves(Protocol):
    """The leaves of a trainee; ``n_outputs`` is 0 where ``y`` are classes, and tells the kernels what they work on."""

    n_outputs: int
    y: Tensor

    def __init__(self, trainee: Trainee, samples: Samples) -> None: ...

    def tables(self, leaves: Tensor) -> Tensor:
        """What the kernels are given of the tables as they are."""


class CudaClasses:
    """Distributions over classes; of a tree their logarithms, which all rows share."""

    n_outputs = 0

    def __init__(self, trainee: Trainee, samples: Samples) -> None:
        self.y, self.is_whole_tree = samples.y, trainee.is_whole_tree

    def tables(self, leaves: Tensor) -> Tensor:
        return leaves.log() if self.is_whole_tree else leaves


class CudaGaussians:
    """Normal distributions of numbers: m, 1 / 2v and the log of the highest density.

    Those of a stump follow each other; those of a tree stand leaf beside leaf, as the lanes of a kernel read them.
    """

    def __init__(self, trainee: Trainee, samples: Samples) -> None:
        self.y, self.is_whole_tree = samples.y.to(samples.rows.dtype).contiguous(), trainee.is_whole_tree
        self.n_outputs = self.y.shape[1]

    def tables(self, leaves: Tensor) -> Tensor:
        mean, variance = leaves.double().reshape(len(leaves), -1, 2, self.n_outputs).unbind(dim=2)
        peaks = -0.5 * (variance.log() + LOG_TWO_PI).sum(dim=-1, keepdim=True)
        forms = torch.cat([mean, 0.5 / variance, peaks], dim=-1).to(leaves.dtype)
        return forms[:, 0].T.contiguous() if self.is_whole_tree else forms.reshape(len(leaves), -1)


LEAVES: dict[type[Target], type[CudaLeaves]] = {Classes: CudaClasses, Gaussians: CudaGaussians}
"""By the target, which must be this one and none that is derived from it."""
