"""Options of training: plans, limits and constraints, all frozen."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from crisptree.data.raw_rows import Scaling
from crisptree.equations.annealing import DECAYS, SCHEDULES
from crisptree.inference.flat_tree import BRANCH_LINEAR, has_linear_leaves
from crisptree.splits import AbstractSplits, AxisCandidates, Factory, ObliqueSplits


@dataclass(frozen=True)
class Constraints:
    """Constraints by feature index.

    ``signs`` are features with +1 or -1 for the sign that their weights may have, ``max_features`` bounds the nonzero
    weights of a split, and of the groups in ``interaction_groups`` a split has weights for one at most.
    """

    signs: tuple[tuple[int, int], ...] = ()
    max_features: int | None = None
    interaction_groups: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Constraints:
        """Read the constraints of an estimator's parameters, with features by index."""
        return cls(
            tuple(sorted((parameters.get("monotonic_cst") or {}).items())),
            parameters.get("max_features_per_split"),
            tuple(map(tuple, parameters.get("interaction_cst") or ())),
        )

    def on(self, scaling: Scaling, device: torch.device) -> WeightConstraints | None:
        """Convert the constraints to tensors for scaled rows; None where nothing is constrained."""
        if self == Constraints():
            return None
        signs = None
        if self.signs:
            signs = torch.zeros(len(scaling.factor), dtype=torch.int8)
            for feature, sign in self.signs:
                signs[feature] = sign
            signs = signs.to(device)
        spread = torch.as_tensor(scaling.spread * scaling.factor, device=device)
        return WeightConstraints(signs, spread, self.max_features, self.interaction_groups)


@dataclass(frozen=True, eq=False)
class WeightConstraints:
    """Constraints where a tree trains. ``spread`` is that of every scaled feature."""

    signs: Tensor | None
    spread: Tensor
    max_features: int | None
    interaction_groups: Sequence[Sequence[int]]

    @property
    def removes_weights(self) -> bool:
        """True if weights are removed after a split is trained."""
        return self.max_features is not None or bool(self.interaction_groups)

    def list_stages(self, n_features: int) -> list[WeightConstraints]:
        """Return the constraints with limits that halve the number of features down to theirs.

        Of correlated features the one that is needed shows only once others are gone.

        Examples
        --------
        >>> constraints = WeightConstraints(None, torch.ones(20), 3, ())
        >>> [stage.max_features for stage in constraints.list_stages(20)]
        [12, 6, 3]
        """
        if self.max_features is None:
            return [self]
        limits = [self.max_features]
        while 2 * limits[0] < n_features:
            limits.insert(0, 2 * limits[0])
        return [replace(self, max_features=limit) for limit in limits]

    def zeros(self, weight: Tensor) -> Tensor:
        """Mask weights to remove: all but the strongest group, then all but the largest.  (n_splits, n_features)

        The influence of a feature is |w_j| · spread_j, that of a group the root of the sum of their squares.
        """
        influence = weight.detach().abs() * self.spread.to(weight)
        if self.interaction_groups:
            groups = [torch.as_tensor(list(group), device=weight.device) for group in self.interaction_groups]
            strength = torch.stack([influence[:, group].square().sum(dim=1) for group in groups])
            winner = strength.argmax(dim=0)
            for number, group in enumerate(groups):
                lost = torch.nonzero(winner != number)[:, 0]
                influence[lost[:, None], group] = 0.0
        gone = influence == 0
        if self.max_features is not None and self.max_features < weight.shape[1]:
            largest = torch.argsort(influence, dim=1, descending=True, stable=True)[:, : self.max_features]
            gone |= torch.ones_like(gone).scatter(1, largest, False)
        return gone

    def thin(self, splits: AbstractSplits, centers: Tensor) -> tuple[ObliqueSplits, Tensor]:
        """Set weights to zero that the constraints forbid; return the splits and a mask of these weights.

        The score of each split's center stays the same: a removed weight is replaced by its mean contribution.
        """
        assert isinstance(splits, ObliqueSplits)
        weight, bias = (part.detach() for part in splits.hyperplanes())
        zeros = self.zeros(weight)
        return ObliqueSplits(weight.masked_fill(zeros, 0.0), bias + (weight * zeros * centers).sum(dim=1)), zeros


Patch = tuple[int, int]
"""Height and width of a part of an image."""


def with_drawn_features(
    splits: AbstractSplits,
    centers: Tensor,
    n_drawn: int | Patch | None,
    image_shape: tuple[int, ...] | None,
    generator: torch.Generator,
) -> tuple[AbstractSplits, Tensor | None]:
    """Splits that each may ask a few features or a patch only, drawn for it, and the weights that stay zero for that.

    Of thresholds that compete, those on other features stay zero: they part no rows, so that none of them wins.
    """
    if n_drawn is None or not isinstance(splits, ObliqueSplits | AxisCandidates):
        return splits, None
    weight = splits.parameters["weight"].detach()
    if isinstance(n_drawn, tuple):
        assert image_shape is not None
        drawn = draw_patches(len(weight), n_drawn, image_shape, generator)
    elif n_drawn < centers.shape[1]:
        drawn = torch.rand(weight.shape, generator=generator).argsort(dim=1, stable=True)[:, :n_drawn]
    else:
        return splits, None
    zeros = torch.ones(weight.shape, dtype=torch.bool).scatter_(1, drawn, False).to(weight.device)
    weight = weight.masked_fill(zeros, 0.0)
    if isinstance(splits, AxisCandidates):
        return AxisCandidates(weight, -weight * centers), zeros
    weight = torch.nn.functional.normalize(weight, dim=1)
    return ObliqueSplits(weight, -(weight * centers).sum(dim=1)), zeros


def draw_patches(n_splits: int, patch: Patch, image_shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Features of the pixels of a patch at a random place for every split, all channels.  (n_splits, n_drawn)

    Examples
    --------
    >>> draw_patches(1, (2, 1), (2, 2), torch.Generator().manual_seed(0)).tolist()
    [[1, 3]]
    """
    features = torch.arange(math.prod(image_shape)).reshape(*image_shape[:2], -1)
    tops, lefts = (
        torch.randint(side - length + 1, (n_splits,), generator=generator).tolist()
        for side, length in zip(image_shape, patch, strict=False)
    )
    height, width = patch
    return torch.stack(
        [features[top : top + height, left : left + width].flatten() for top, left in zip(tops, lefts, strict=True)]
    )


def constrain_start(
    splits: AbstractSplits, centers: Tensor, constraints: WeightConstraints | None, *, is_sparse: bool
) -> AbstractSplits:
    """Give random splits the signs that they must have, each still through its center.

    Where rows are sparse, a split begins without weights for features that none of its rows have: nothing would move
    them, and later rows would be routed at random.
    """
    signs = None if constraints is None else constraints.signs
    if not isinstance(splits, ObliqueSplits) or not (is_sparse or signs is not None):
        return splits
    weight, _ = splits.hyperplanes()
    if is_sparse:
        weight = torch.nn.functional.normalize(weight * (centers != 0), dim=1)
    if signs is not None:
        weight = torch.where(signs != 0, weight.abs() * signs.to(weight), weight)
    return ObliqueSplits(weight, -(weight * centers).sum(dim=1))


class EpochSettings(NamedTuple):
    """Values that change from epoch to epoch: γ and the learning rate."""

    steepness: float
    learning_rate: float


@dataclass(frozen=True)
class Plan:
    """Options for training a batch of stumps or a whole tree; the estimator documents each."""

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
    spatial_penalty: float = 0.0
    penalty_share: str = "rows"
    input_noise: float = 0.0
    image_shape: tuple[int, ...] | None = None
    feature_groups: tuple[tuple[int, int], ...] = ()
    """First feature and the one after the last of those that l1 keeps or drops together, such as a category's."""
    mass_threshold: float = 0.0
    optimizer: str = "adam"
    max_iterations: int = 25
    """Iterations of L-BFGS per epoch."""
    tolerance: float = 1e-4
    """Relative decrease of the objective per iteration of L-BFGS, below which an epoch ends."""
    upper_levels: int | None = None
    """Number of levels of a large tree that are finetuned first; None trains the whole tree at once."""

    def steepness_at(self, epoch: int) -> float:
        """γ during an epoch, the first one being 0."""
        return SCHEDULES[self.annealing](self.steepness, self.steepness_step, epoch)

    def settings_at(self, epoch: int) -> EpochSettings:
        """γ and the learning rate during an epoch, the first one being 0."""
        left = DECAYS[self.decay](epoch, max(self.epochs, 1))
        return EpochSettings(self.steepness_at(epoch), self.learning_rate * left)

    @property
    def later_half(self) -> Plan:
        """The same phase from the middle of its epochs on, with γ as it is there and the learning rate of its start.

        It continues a training, so that upper levels need not come first.
        """
        done = self.epochs // 2
        return replace(self, epochs=self.epochs - done, steepness=self.steepness_at(done), upper_levels=None)

    @property
    def has_penalties(self) -> bool:
        """True if weights are penalised."""
        return bool(self.l1 or self.l2 or self.spatial_penalty)

    @property
    def shrinks_groups(self) -> bool:
        """True if l1 acts on groups of features."""
        return bool(self.l1 and self.feature_groups)

    @property
    def final_steepness(self) -> float:
        """γ of the last epoch."""
        return self.steepness_at(max(self.epochs - 1, 0))


ADAM, LBFGS = "adam", "lbfgs"

LBFGS_PLAN: dict[str, Any] = {
    "optimizer": LBFGS,
    "batch_size": np.iinfo(np.int32).max,
    "min_updates": 0,
    "decay": "none",
    "annealing": "geometric",
    "steepness_step": 1.0,
    "upper_levels": None,
}
"""Full batches; γ doubles from epoch to epoch."""

LBFGS_PHASES: dict[str, dict[str, Any]] = {
    "growth": {"epochs": 1, "steepness": 2.0},
    "finetuning": {"epochs": 4, "steepness": 1.0},
}
"""Epochs of L-BFGS, each a minimisation at one γ; see docs/decisions/2026-11-18-lbfgs-for-small-tables.md."""

LBFGS_STARTS, START_FACTORS = 6, {"default": 1, "thorough": 2}
"""Random starts of a tree that L-BFGS trains, and their factors by `effort`."""

MAX_STEEPNESS = 1e12

DEFAULT_LEAF_PENALTY = 30.0
"""λ of linear leaves where nothing selects it, in rows of mean weight."""

RATE, FEATURES_AT_FULL_RATE = 0.02, 64
"""Value of learning_rate="auto"; see docs/results/defaults.md."""


@dataclass(frozen=True)
class GrowthLimits:
    """When a leaf stays a leaf; the names are scikit-learn's. Rows count as rows, whatever their weight."""

    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_fraction_leaf: float = 0.0
    min_impurity_decrease: float = 0.0

    @classmethod
    def of(cls, parameters: Mapping[str, Any], n_rows: int) -> GrowthLimits:
        """Read the limits of an estimator's parameters, with numbers of rows in place of fractions of ``n_rows``.

        Examples
        --------
        >>> shared = {"max_depth": 8, "max_leaf_nodes": None, "min_weight_fraction_leaf": 0, "min_impurity_decrease": 0}
        >>> limits = GrowthLimits.of(shared | {"min_samples_split": 0.25, "min_samples_leaf": 0.1}, n_rows=42)
        >>> limits.min_samples_split, limits.min_samples_leaf
        (11, 5)
        """
        values = {name: parameters[name] for name in cls.__dataclass_fields__}
        for name, least in (("min_samples_split", 2), ("min_samples_leaf", 1)):
            if not isinstance(values[name], Integral):
                values[name] = max(least, math.ceil(values[name] * n_rows))
        return cls(**values)


@dataclass(frozen=True)
class Spec:
    """Options for training one tree.

    Parameters
    ----------
    growth, finetuning : Plan
        Every number of the two phases.
    limits : GrowthLimits
        When growth ends.
    split : str or callable
        What a split asks: a key of ``splits.KINDS`` or ``splits.MODULES``, or a factory of modules.
    grow : str or callable
        How the structure is found; a key of ``fitting.GROWERS`` or a function of a training context and a tree.
    algorithm : str
        How the whole tree is trained: a key of ``train.ALGORITHMS``.
    patience : int or None
        With early stopping, after how many epochs without a better validation score finetuning ends, with the tree of
        the best epoch; None without.
    leaf_prior : float
        Pseudo-count of every class in the tables of the deterministic tree.
    image_shape : tuple of int or None
        The image that a row is.
    shifts : int
        The most pixels that training images are shifted.
    device : str
        Where to train.
    n_jobs : int or None
        Threads.
    seed : int
        Every random number follows from it.
    constraints : Constraints
        What the weights of splits may be.
    n_drawn : int, (height, width) or None
        How many features a split may ask, drawn for each, or the patch of the image; None lets it ask all.
    leaf_penalty : float or None
        λ of linear models in the leaves; None where leaves are constant.
    trains_models : bool
        Whether these models train alternately with the splits if memory allows, or come after them.
    grows_on_residuals : bool
        Whether a regression tree grows on the residuals of one linear model of all rows.
    has_branch_models : bool
        Whether linear models have weights only for features that a split of the tree has.
    row_weight : float
        The mean weight of a row, in which training has them; λ is in weights as they were given.
    n_init : int
        Random starts, of which the tree with the highest training score is kept.
    """

    growth: Plan
    finetuning: Plan
    limits: GrowthLimits
    split: str | Factory
    grow: str | Callable[..., Any]
    algorithm: str
    patience: int | None
    leaf_prior: float
    image_shape: tuple[int, ...] | None
    shifts: int
    device: str
    n_jobs: int | None
    seed: int
    constraints: Constraints = field(default_factory=Constraints)
    n_drawn: int | Patch | None = None
    leaf_penalty: float | None = None
    trains_models: bool = True
    grows_on_residuals: bool = False
    has_branch_models: bool = False
    row_weight: float = 1.0
    n_init: int = 1

    @classmethod
    def of(
        cls,
        parameters: Mapping[str, Any],
        *,
        input_norm: float,
        mean_weight: float,
        n_rows: int,
        image_shape: tuple[int, ...] | None,
        seed: int,
        is_small_table: bool = False,
    ) -> Spec:
        """Return the spec behind an estimator's parameters, for the rows of a ``TrainingTask``."""
        growth_rate, rate = _rates(parameters, input_norm)
        common = {
            "algorithm": parameters["algorithm"],
            "decay": parameters["learning_rate_decay"],
            "batch_size": min(parameters["batch_size"], np.iinfo(np.int32).max),
            "rows_per_epoch": parameters.get("pixels_per_epoch"),
            "leaf_prior": parameters["leaf_prior"] / mean_weight,
            "image_shape": image_shape,
            "feature_groups": parameters.get("feature_groups", ()),
            **{name: parameters[name] for name in SAME_NAMES},
        }
        growth = _plan(epochs=parameters["epochs"], learning_rate=growth_rate, **common)
        finetuning = _plan(
            **common | {"steepness": _tuning_steepness(parameters, growth)},
            epochs=parameters["finetune_epochs"],
            learning_rate=rate,
            # Linear leaves say more than a table could of what lies below upper levels.
            upper_levels=None if has_linear_leaves(parameters) else parameters["upper_levels"],
        )
        optimizer = resolve_optimizer(parameters, is_small_table=is_small_table)
        if optimizer == LBFGS:
            growth = replace(growth, **LBFGS_PLAN | LBFGS_PHASES["growth"])
            if finetuning.epochs and not has_linear_leaves(parameters):
                finetuning = replace(finetuning, **LBFGS_PLAN | LBFGS_PHASES["finetuning"])
        return cls(
            growth=growth,
            finetuning=finetuning,
            limits=GrowthLimits.of(parameters, n_rows),
            split=parameters["split"],
            grow=parameters["grow"],
            algorithm=parameters["algorithm"],
            patience=parameters["n_iter_no_change"] if parameters["early_stopping"] else None,
            leaf_prior=parameters["leaf_prior"],
            image_shape=image_shape,
            shifts=parameters.get("max_shift", 0),
            device="cpu" if optimizer == LBFGS else parameters["device"],
            n_jobs=parameters["n_jobs"],
            seed=seed,
            constraints=Constraints.of(parameters),
            n_drawn=parameters.get("n_drawn"),
            leaf_penalty=_leaf_penalty(parameters, mean_weight),
            grows_on_residuals=parameters.get("leaf_model") == "linear",
            has_branch_models=parameters.get("leaf_model") == BRANCH_LINEAR,
            row_weight=mean_weight,
            n_init=_n_init(parameters, optimizer),
        )

    @property
    def n_drawn_by_cart(self) -> int | None:
        """How many features a threshold of CART may ask, which has no patch."""
        assert not isinstance(self.n_drawn, tuple)
        return self.n_drawn

    @property
    def grows_by_lbfgs(self) -> bool:
        """True if L-BFGS trains the stumps of growth."""
        return self.growth.optimizer == LBFGS and self.grow == "greedy" and self.split == "oblique"

    @property
    def is_whole_lbfgs(self) -> bool:
        """Whether L-BFGS trains all that is trained: growth, unless CART searches thresholds, and finetuning."""
        is_tuned = self.finetuning.optimizer == LBFGS or self.finetuning.epochs == 0
        is_plain = self.algorithm == "likelihood" and self.patience is None
        return (self.grows_by_lbfgs or self.grow == "cart") and is_tuned and is_plain

    @property
    def has_linear_leaves(self) -> bool:
        """True if leaves will have linear models, fitted with the tree or afterwards."""
        return self.grows_on_residuals or self.has_branch_models

    @property
    def has_kernels(self) -> bool:
        """True if the fused CUDA steps support all options; signs, groups of features and linear leaves need torch."""
        free = not self.constraints.signs and not self.growth.shrinks_groups
        return self.split == "oblique" and free and self.leaf_penalty is None

    @property
    def input_shape(self) -> tuple[int, int, int] | None:
        """Shape of one image as a split module receives it: (channels, height, width)."""
        if self.image_shape is None:
            return None
        height, width, *channels = self.image_shape
        return channels[0] if channels else 1, height, width


SAME_NAMES = (
    "min_updates",
    "steepness",
    "steepness_step",
    "annealing",
    "l1",
    "l2",
    "spatial_penalty",
    "penalty_share",
    "input_noise",
    "mass_threshold",
)
"""Parameters that a plan takes over as they are."""


def resolve_optimizer(parameters: Mapping[str, Any], *, is_small_table: bool) -> str:
    """Resolve ``optimizer="auto"``: L-BFGS for hyperplanes on small tables, else Adam."""
    optimizer: str = parameters.get("optimizer", ADAM)
    if optimizer != "auto":
        return optimizer
    is_linear = parameters["split"] == "oblique" or (
        parameters["split"] == "axis" and parameters["grow"] not in ("greedy", "balanced")
    )
    has_patches = isinstance(parameters.get("max_features"), tuple | list)
    is_plain = not (parameters["spatial_penalty"] or parameters.get("max_shift") or has_patches)
    is_likelihood = parameters["algorithm"] == "likelihood" and parameters["device"] in ("auto", "cpu")
    return LBFGS if is_small_table and is_linear and is_plain and is_likelihood else ADAM


def _n_init(parameters: Mapping[str, Any], optimizer: str) -> int:
    """Resolve the number of random starts; trees that are not grown from random stumps and finetuned have one."""
    n_init = parameters.get("n_init", 1)
    is_random = parameters["grow"] in ("greedy", "balanced") and parameters["finetune_epochs"] > 0
    if not is_random or has_linear_leaves(parameters) or parameters["early_stopping"]:
        return 1
    if n_init == "auto":
        effort = parameters.get("effort", "default")
        return LBFGS_STARTS * START_FACTORS[effort] if optimizer == LBFGS and effort != "fast" else 1
    return int(n_init)


def _leaf_penalty(parameters: Mapping[str, Any], mean_weight: float) -> float | None:
    """λ of linear leaves; by default so many rows of mean weight."""
    if not has_linear_leaves(parameters):
        return None
    penalty = parameters["leaf_l2"]
    return DEFAULT_LEAF_PENALTY * mean_weight if penalty == "auto" else penalty


def _plan(**numbers: Any) -> Plan:
    plan = Plan(**numbers)
    if plan.final_steepness > MAX_STEEPNESS:
        raise ValueError(
            f"`steepness` must stay below {MAX_STEEPNESS:g}; {plan.epochs} epochs of annealing={plan.annealing!r} "
            f"with steepness_step={plan.steepness_step:g} would take it to {plan.final_steepness:g}. Lower the step."
        )
    return plan


def _tuning_steepness(parameters: Mapping[str, Any], growth: Plan) -> float:
    """γ of finetuning's first epoch: as in growth's first one, as in the one after growth's last, or a number.

    Only stumps that were trained with γ have one to continue from.
    """
    start = parameters["finetune_steepness"]
    if start == "continue":
        return growth.steepness_at(growth.epochs if parameters["grow"] == "greedy" else 0)
    return growth.steepness if start == "restart" else float(start)


def _rates(parameters: Mapping[str, Any], input_norm: float) -> tuple[float, float]:
    """Return the learning rates of growth and of finetuning.

    Adam moves all weights of a hyperplane by about as much, so what a step does to f(x) grows with ``input_norm``: with
    the number of weights or, for sparse rows, with the sum of absolute values. A split on one
    feature has one.
    """
    rate = parameters["learning_rate"]
    if rate != "auto":
        return rate, rate
    shared = RATE * min(1.0, FEATURES_AT_FULL_RATE / max(input_norm, 1.0))
    one_feature = parameters["split"] == "axis"
    trains_stumps = parameters["grow"] in ("greedy", "balanced") and not one_feature
    return shared if trains_stumps else RATE, RATE if one_feature else shared
