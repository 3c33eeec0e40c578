"""What a training needs to go on: its own tensors as the arrays of a journal's page, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from crisptree.learning.journal import Arrays, Page, current
from crisptree.splits import AbstractSplits


class Keepsake(Protocol):
    """A part of a training that a page holds."""

    def kept(self) -> Arrays:
        """Copies of what it is now."""

    def restore(self, page: Page) -> None:
        """Be what it was when the page was written."""


class Progress:
    """How far a training is, in the journal of its fit or, where there is none, nowhere.

    Parameters
    ----------
    name : str
        The training.
    n_epochs : int
        How many epochs it has.
    """

    def __init__(self, name: str, n_epochs: int) -> None:
        self.n_epochs = n_epochs
        self.journal = current() if n_epochs else None
        self.page = Page(0, name) if self.journal is None else self.journal.page(name, n_epochs)

    @property
    def epochs(self) -> int:
        """How many are done already."""
        return self.page.epochs

    @property
    def is_over(self) -> bool:
        return self.page.is_over

    def restore(self, parts: Sequence[Keepsake]) -> None:
        """Bring parts to where they were when those epochs were done."""
        for part in parts if self.epochs else ():
            part.restore(self.page)

    def keep(
        self, epochs: int, parts: Sequence[Keepsake], working: Sequence[Keepsake] = (), *, is_over: bool = False
    ) -> None:
        """So many epochs are done, all or, where ``is_over``, the last; ``working`` are parts that only epochs need."""
        if self.journal is None:
            return
        is_over = is_over or epochs == self.n_epochs

        def arrays() -> Arrays:
            several = (part.kept() for part in (*parts, *(() if is_over else working)))
            return {name: array for one in several for name, array in one.items()}

        self.journal.keep(self.page, epochs, is_over=is_over, arrays=arrays)


class Memory:
    """Tensors that are written into in place, such as weights and an optimiser's moments."""

    def __init__(self, prefix: str, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}

    def kept(self) -> Arrays:
        return {name: array_of(tensor) for name, tensor in self.tensors.items()}

    def restore(self, page: Page) -> None:
        for name, tensor in self.tensors.items():
            tensor.data.copy_(torch.from_numpy(page.take(name, array_of(tensor))))


class Leaves:
    """The leaf tables of a trainee, which are new in every epoch."""

    def __init__(self, trainee: Any) -> None:
        self.trainee = trainee

    def kept(self) -> Arrays:
        return {"leaves": array_of(self.trainee.leaves)}

    def restore(self, page: Page) -> None:
        leaves = self.trainee.leaves
        self.trainee.leaves = torch.from_numpy(page.take("leaves", array_of(leaves)).copy()).to(leaves.device)


class Chance:
    """Random generators; torch's own ones too where splits draw from them, as dropout does."""

    def __init__(self, generators: Sequence[torch.Generator], splits: AbstractSplits | None = None) -> None:
        own: list[torch.Generator] = []
        if splits is not None and splits.draws:
            own.append(torch.default_generator)
            device = next(iter(splits.parameters.values())).device
            if device.type == "cuda":
                own.append(torch.cuda.default_generators[device.index or 0])
        self.generators = {f"generator.{number}": each for number, each in enumerate((*generators, *own))}

    def kept(self) -> Arrays:
        return {name: generator.get_state().numpy().copy() for name, generator in self.generators.items()}

    def restore(self, page: Page) -> None:
        for name, generator in self.generators.items():
            state = torch.from_numpy(page.take(name, generator.get_state().numpy()).copy())
            try:
                generator.set_state(state)
            except RuntimeError as error:
                raise page.wrong(f"{name!r} is no state of a random generator ({error})") from error


def array_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    """A copy on the host."""
    return np.array(tensor.detach().cpu().numpy(), order="C")
