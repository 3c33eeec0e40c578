"""Splits whose feature is any ``torch.nn.Module`` that maps a batch to one number per row."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from crisptree.splits.base import AbstractSplits, Factory, SplitKind
from crisptree.splits.conv import ConvNet

MODULES: dict[str, Factory] = {"conv": ConvNet}
"""Split modules by their names in estimators and model files."""


_generator = RLock()


@contextmanager
def seed_torch(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Seed torch's global generators, from which modules draw, and restore them afterwards; one thread at a time."""
    cuda = [] if device is None or device.type != "cuda" else [device]
    with _generator, torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(seed)
        for one in cuda:
            with torch.cuda.device(one):
                torch.cuda.manual_seed(seed)
        yield


class _Skeletons:
    """A pool of copies of a module for functional calls from several threads."""

    def __init__(self, module: nn.Module, is_random: bool = True) -> None:
        self.module, self.pattern, self.is_random = module, copy.deepcopy(module), is_random
        self.free = [module]

    def __reduce__(self) -> tuple[type[_Skeletons], tuple[nn.Module, bool]]:
        return _Skeletons, (self.module, self.is_random)

    @contextmanager
    def borrow(self) -> Iterator[nn.Module]:
        """Provide a copy for exclusive use, in training mode if gradients are enabled."""
        try:
            module = self.free.pop()
        except IndexError:
            module = copy.deepcopy(self.pattern)
        try:
            yield module.train(torch.is_grad_enabled())
        finally:
            self.free.append(module)


class ModuleSplits(AbstractSplits):
    """Copies of one module, their parameters stacked.

    Parameters
    ----------
    skeleton : torch.nn.Module
        The module whose code is run; its own parameters are never used.
    parameters : dict of Tensor
        Every parameter of the module with a leading dimension n_splits.
    input_shape : tuple of int
        Input of the module for one row: (n_features,), or (channels, height, width) for images whose rows are flat
        (height, width, channels).
    """

    def __init__(
        self, skeleton: nn.Module | _Skeletons, parameters: dict[str, Tensor], input_shape: tuple[int, ...]
    ) -> None:
        self._skeletons = skeleton if isinstance(skeleton, _Skeletons) else _Skeletons(skeleton)
        self.parameters = parameters
        self.input_shape = input_shape

    @property
    def skeleton(self) -> nn.Module:
        """The module whose code is run."""
        return self._skeletons.module

    @property
    def is_random(self) -> bool:  # type: ignore[override]
        return self._skeletons.is_random

    @classmethod
    def build(
        cls, factory: Factory, n_splits: int, input_shape: tuple[int, ...], generator: torch.Generator
    ) -> ModuleSplits:
        """Build new modules by ``factory(input_shape)`` without changing the global random state."""
        if isinstance(factory, nn.Module):
            raise TypeError(
                "split must be a function that takes the input shape and returns a new module; got "
                f"{type(factory).__name__}. Every split has a module of its own."
            )
        with seed_torch(int(torch.randint(2**31, (1,), generator=generator))):
            try:
                modules = [factory(input_shape) for _ in range(max(n_splits, 1))]
                _check(modules[0], input_shape)
            except Exception as error:
                if len(input_shape) == 1:
                    error.add_note(
                        f"The split module was built for flat rows, input_shape={input_shape}. For images set "
                        "image_shape=(height, width) or (height, width, channels), or give X as (n, height, width)."
                    )
                raise
            skeletons = _Skeletons(modules[0], _draws(modules[0], input_shape))
        parameters, _ = stack_module_state([module.float() for module in modules])
        values = {name: value.detach()[:n_splits] for name, value in parameters.items()}
        return cls(skeletons, values, input_shape)

    @classmethod
    def initialiser(
        cls, factory: Factory, input_shape: tuple[int, ...]
    ) -> Callable[[Tensor, torch.Generator], ModuleSplits]:
        """Return ``build`` as a ``SplitKind.initial``: as many modules as centers, on their device."""

        def initial(centers: Tensor, generator: torch.Generator) -> ModuleSplits:
            return cls.build(factory, len(centers), input_shape, generator).on(centers.device)

        return initial

    @classmethod
    def from_arrays(cls, factory: Factory, parameters: dict[str, Tensor], input_shape: tuple[int, ...]) -> ModuleSplits:
        """Restore splits from stacked parameters of the modules that ``factory(input_shape)`` builds."""
        fresh = cls.build(factory, 0, input_shape, torch.Generator())
        expected = {name: tuple(value.shape) for name, value in fresh.skeleton.named_parameters()}
        shapes = {name: tuple(value.shape[1:]) for name, value in parameters.items()}
        if expected != shapes:
            raise ValueError(f"the split module must have the parameters {shapes}; the one given has {expected}.")
        return fresh.replace_parameters(parameters)

    def _inputs(self, x: Tensor) -> Tensor:
        if len(self.input_shape) == 1:
            return x
        channels, height, width = self.input_shape
        return x.reshape(-1, height, width, channels).permute(0, 3, 1, 2)

    def __call__(self, x: Tensor) -> Tensor:
        if self.n_splits == 0:
            return x.new_zeros(len(x), 0)
        inputs = self._inputs(x)
        with self._skeletons.borrow() as module:

            def one(parameters: dict[str, Tensor]) -> Tensor:
                return cast(Tensor, functional_call(module, parameters, (inputs,))).reshape(len(x))

            return vmap(one, randomness="different")(self.parameters).T

    def at(self, x: Tensor, split: Tensor) -> Tensor:
        """Evaluate every module on its own rows only."""
        scores = x.new_zeros(len(x))
        for number in torch.unique(split).tolist():
            rows = torch.nonzero(split == number)[:, 0]
            scores = scores.index_add(0, rows, self.score(x[rows], number))
        return scores

    def score(self, x: Tensor, split: int) -> Tensor:
        parameters = {name: value[split] for name, value in self.parameters.items()}
        with self._skeletons.borrow() as module:
            return cast(Tensor, functional_call(module, parameters, (self._inputs(x),))).reshape(len(x))

    def weights(self) -> list[Tensor]:
        """Return all parameters but the offsets, which have one dimension."""
        return [value for value in self.parameters.values() if value.dim() > 2]

    def replace_parameters(self, parameters: dict[str, Tensor]) -> ModuleSplits:
        return ModuleSplits(self._skeletons, parameters, self.input_shape)


def _check(module: nn.Module, input_shape: tuple[int, ...]) -> None:
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"split(input_shape) must return a torch.nn.Module; got {type(module).__name__}. "
            "Return the module itself, not its output."
        )
    if not any(True for _ in module.parameters()):
        raise ValueError("split(input_shape) must return a module with parameters to train; it has none.")
    norms = [name for name, part in module.named_modules() if isinstance(part, nn.modules.batchnorm._NormBase)]
    if norms or any(True for _ in module.buffers()):
        names = norms or [name for name, _ in module.named_buffers()]
        raise TypeError(
            "split(input_shape) must return a module without batch norm and without buffers: the score of a row must "
            f"not depend on other rows. Got {', '.join(names)}; use group or layer norm instead."
        )
    with torch.no_grad():
        output = module(torch.zeros(2, *input_shape, dtype=next(module.parameters()).dtype))
    if not isinstance(output, Tensor) or output.numel() != 2 or output.shape[0] != 2:
        shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(
            f"the split module must give one number per row, shape (n,) or (n, 1); for 2 rows it gave {shape}. "
            "End it with a layer of one output."
        )


@torch.no_grad()
def _draws(module: nn.Module, input_shape: tuple[int, ...]) -> bool:
    """Return True if the module draws from torch's global generator, as dropout does."""
    x = torch.rand(2, *input_shape, dtype=next(module.parameters()).dtype)
    before = torch.get_rng_state()
    module.train()(x)
    return not torch.equal(before, torch.get_rng_state())


def make_module_kind(split: str | Factory, input_shape: tuple[int, ...]) -> SplitKind:
    """Return the kind of splits behind a name of ``MODULES`` or a factory of modules."""
    factory = MODULES[split] if isinstance(split, str) else split
    modules = ModuleSplits.initialiser(factory, input_shape)
    return SplitKind(modules, modules, is_random=modules(torch.zeros(0), torch.Generator()).is_random)
