"""Every number a training phase needs. A plan travels whole, so nothing is lost on the way to a deep node."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from crisptree.equations.annealing import SCHEDULES
from crisptree.equations.decay import DECAYS


class Pace(NamedTuple):
    """What changes from epoch to epoch: γ and the learning rate."""

    steepness: float
    learning_rate: float


@dataclass(frozen=True)
class Plan:
    """How to train a batch of stumps or a whole tree; the estimator's page explains each number."""

    algorithm: str = "em"
    epochs: int = 20
    learning_rate: float = 0.001
    decay: str = "none"
    batch_size: int = 1000
    rows_per_epoch: int | None = None
    min_updates: int = 0
    steepness: float = 1.0
    steepness_step: float = 0.1
    annealing: str = "linear"
    l1: float = 0.0
    l2: float = 0.0
    leaf_prior: float = 0.0
    roughness: float = 0.0
    penalty_share: str = "rows"
    input_noise: float = 0.0
    image_shape: tuple[int, ...] | None = None
    feature_groups: tuple[tuple[int, int], ...] = ()
    """First feature and the one after the last of those that l1 keeps or drops together, such as a category's."""
    mass_threshold: float = 0.0
    upper_levels: int | None = None
    """How many levels of a large tree are finetuned first; None trains the whole of it at once."""

    def steepness_at(self, epoch: int) -> float:
        """γ during an epoch, the first one being 0."""
        return SCHEDULES[self.annealing](self.steepness, self.steepness_step, epoch)

    def pace(self, epoch: int) -> Pace:
        """γ and the learning rate during an epoch, the first one being 0."""
        left = DECAYS[self.decay](epoch, max(self.epochs, 1))
        return Pace(self.steepness_at(epoch), self.learning_rate * left)

    @property
    def later_half(self) -> Plan:
        """The same phase from the middle of its epochs on, with γ as it is there and the learning rate of its start.

        It goes on with what was trained before, so that upper levels need not come first.
        """
        done = self.epochs // 2
        return replace(self, epochs=self.epochs - done, steepness=self.steepness_at(done), upper_levels=None)

    @property
    def has_penalties(self) -> bool:
        """Whether weights are penalised at all."""
        return bool(self.l1 or self.l2 or self.roughness)

    @property
    def shrinks_groups(self) -> bool:
        """Whether l1 keeps or drops some features together."""
        return bool(self.l1 and self.feature_groups)

    @property
    def final_steepness(self) -> float:
        """γ of the last epoch."""
        return self.steepness_at(max(self.epochs - 1, 0))
