"""State of a training as the arrays of a checkpoint's record, and back; ``persistence.checkpoints`` has the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from crisptree.learning.distributed.group import ProcessGroup
from crisptree.persistence.checkpoints import Arrays, CheckpointStore, Record, current, keeping
from crisptree.splits import AbstractSplits


class SharedCheckpointStore(CheckpointStore):
    """The store of rank 0, from which all processes get the same records."""

    def __init__(self, store: CheckpointStore | None, group: ProcessGroup) -> None:
        self.store, self.group = store, group

    def next_record(self, name: str, epochs: int) -> Record:
        return self.group.from_first(lambda: self._own.next_record(name, epochs))

    def keep(self, record: Record, epochs: int, *, is_over: bool, arrays: Callable[[], Arrays]) -> None:
        self.group.from_first(lambda: self._own.keep(record, epochs, is_over=is_over, arrays=arrays))

    def write(self, current: Record | None = None) -> None:
        """Do nothing: rank 0 writes when its own store is closed."""

    @property
    def _own(self) -> CheckpointStore:
        assert self.store is not None
        return self.store


@contextmanager
def keep_shared_checkpoints(group: ProcessGroup) -> Iterator[None]:
    """Keep trainings of all processes in the store of rank 0."""
    with keeping(SharedCheckpointStore(current(), group)):
        yield


class Checkpointable(Protocol):
    """A part of a training whose state a record holds."""

    def to_arrays(self) -> Arrays:
        """Return copies of its state."""

    def restore(self, record: Record) -> None:
        """Return to the state of a record."""


class Progress:
    """Progress of a training of ``n_epochs`` epochs in the store of its fit, if there is one."""

    def __init__(self, name: str, n_epochs: int) -> None:
        self.n_epochs = n_epochs
        self.store = current() if n_epochs else None
        self.record = Record(0, name) if self.store is None else self.store.next_record(name, n_epochs)

    @property
    def epochs(self) -> int:
        """Number of epochs that are done already."""
        return self.record.epochs

    @property
    def is_over(self) -> bool:
        return self.record.is_over

    def restore(self, parts: Sequence[Checkpointable]) -> None:
        """Return parts to their state after those epochs."""
        for part in parts if self.epochs else ():
            part.restore(self.record)

    def keep(
        self,
        epochs: int,
        parts: Sequence[Checkpointable],
        working: Sequence[Checkpointable] = (),
        *,
        is_over: bool = False,
    ) -> None:
        """Record that so many epochs are done; ``working`` are parts that only further epochs need."""
        if self.store is None:
            return
        is_over = is_over or epochs == self.n_epochs

        def arrays() -> Arrays:
            several = (part.to_arrays() for part in (*parts, *(() if is_over else working)))
            return {name: array for one in several for name, array in one.items()}

        self.store.keep(self.record, epochs, is_over=is_over, arrays=arrays)


class TensorState:
    """Tensors that are changed in place, such as weights and moments of an optimiser."""

    def __init__(self, prefix: str, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}

    def to_arrays(self) -> Arrays:
        return {name: array_of(tensor) for name, tensor in self.tensors.items()}

    def restore(self, record: Record) -> None:
        for name, tensor in self.tensors.items():
            tensor.data.copy_(torch.from_numpy(record.take(name, array_of(tensor))))


class LeafTableState:
    """The leaf tables of a ``TrainState``, which are replaced in every epoch."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def to_arrays(self) -> Arrays:
        return {"leaves": array_of(self.state.leaves)}

    def restore(self, record: Record) -> None:
        leaves = self.state.leaves
        self.state.leaves = torch.from_numpy(record.take("leaves", array_of(leaves)).copy()).to(leaves.device)


class RngState:
    """Random generators; torch's own too where splits draw from them, as dropout does."""

    def __init__(self, generators: Sequence[torch.Generator], splits: AbstractSplits | None = None) -> None:
        own: list[torch.Generator] = []
        if splits is not None and splits.draws:
            own.append(torch.default_generator)
            device = next(iter(splits.parameters.values())).device
            if device.type == "cuda":
                own.append(torch.cuda.default_generators[device.index or 0])
        self.generators = {f"generator.{number}": each for number, each in enumerate((*generators, *own))}

    def to_arrays(self) -> Arrays:
        return {name: generator.get_state().numpy().copy() for name, generator in self.generators.items()}

    def restore(self, record: Record) -> None:
        for name, generator in self.generators.items():
            state = torch.from_numpy(record.take(name, generator.get_state().numpy()).copy())
            try:
                generator.set_state(state)
            except RuntimeError as error:
                raise record.make_error(f"{name!r} is no state of a random generator ({error})") from error


def array_of(tensor: Tensor) -> np.ndarray[Any, Any]:
    """Copy a tensor to the host."""
    return np.array(tensor.detach().cpu().numpy(), order="C")
