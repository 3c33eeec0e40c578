"""The probabilistic tree: structure, splits and leaf tables; and the deterministic tree of split modules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from crisptree.data.raw_rows import Scaling
from crisptree.equations.annealing import damped_steepness
from crisptree.equations.routing import goes_right, log_class_probabilities, log_path_probabilities
from crisptree.inference.finalization import empty_statistics, leaf_tables
from crisptree.inference.flat_tree import CrispTree, FlatTree, Rows, route_rows
from crisptree.splits import AbstractSplits, AxisSplits, ModuleSplits, ObliqueSplits
from crisptree.structure import TreeStructure
from crisptree.targets import TARGETS, Target
from crisptree.threads import n_threads, one_thread, row_blocks, workers

ROWS_PER_THREAD = 1024
"""Rows of a block that a thread routes through split modules."""


@dataclass(frozen=True, eq=False)
class Tree:
    """A probabilistic tree on scaled features; growth returns a new one.

    Parameters
    ----------
    structure : TreeStructure
        The shape.
    splits : AbstractSplits
        The split features, in the structure's order.
    leaves : Tensor of shape (n_leaves, n_values)
        Leaf tables; for classes the distributions π.
    target_name : str, default="classes"
        A key of ``targets.TARGETS``.
    """

    structure: TreeStructure
    splits: AbstractSplits
    leaves: Tensor
    target_name: str = "classes"

    @property
    def target(self) -> Target:
        """The target of the leaf tables."""
        return TARGETS[self.target_name](self.leaves.shape[1])

    def log_path_probabilities(self, x: Tensor, steepness: float) -> Tensor:
        """log μ_ℓ(x).  (n, n_features) → (n, n_leaves)"""
        return log_path_probabilities(self.splits(x), self.structure, steepness)

    def log_class_probabilities(self, x: Tensor, steepness: float) -> Tensor:
        """log p(y∣x).  (n, n_features) → (n, n_classes)

        Scores that overflow are clipped and NaN becomes 0, so the result is finite for every finite row.
        """
        scores = torch.nan_to_num(self.splits(x))
        return log_class_probabilities(log_path_probabilities(scores, self.structure, steepness), self.leaves)

    @torch.no_grad()
    def route(self, x: Tensor) -> Tensor:
        """Route every row to its leaf deterministically, by the splits on its path alone.  (n,)"""
        left, right = (
            torch.from_numpy(np.array(children, dtype=np.int64)).to(x.device)
            for children in (self.structure.left, self.structure.right)
        )
        node = torch.full((len(x),), 0 if self.structure.n_splits else -1, device=x.device)
        rows = torch.nonzero(node >= 0)[:, 0]
        while len(rows):
            split = node[rows]
            turns = goes_right(self.splits.at(x[rows] if len(rows) < len(x) else x, split))
            node[rows] = torch.where(turns, right[split], left[split])
            rows = rows[node[rows] >= 0]
        return ~node

    def split_leaves(self, leaves: Sequence[int], stumps: AbstractSplits, tables: Tensor) -> Tree:
        """Return the tree with a trained stump in place of each of the leaves.

        Parameters
        ----------
        leaves : sequence of int
            Which leaves to split; see ``TreeStructure.split_leaves`` for the new numbers.
        stumps : AbstractSplits
            One split for each of them.
        tables : Tensor of shape (len(leaves), 2, n_values)
            The stumps' left and right leaf distributions.
        """
        kept = self.leaves.clone()
        kept[torch.as_tensor(list(leaves), device=kept.device)] = tables[:, 0]
        splits = AbstractSplits.concatenate([self.splits, stumps])
        return replace(
            self,
            structure=self.structure.split_leaves(leaves),
            splits=splits,
            leaves=torch.cat([kept, tables[:, 1]]),
        )

    def select_nodes(self, structure: TreeStructure, nodes: npt.NDArray[np.int64]) -> Tree:
        """Return the tree of the splits and leaves ``nodes``, in their new order; see ``TreeStructure.splice``."""
        splits, leaves = nodes[: structure.n_splits], nodes[structure.n_splits :] - self.structure.n_splits
        kept = self.leaves[torch.as_tensor(leaves, device=self.leaves.device)]
        return replace(self, structure=structure, splits=self.splits.select(splits.tolist()), leaves=kept)

    def absorb_noise(self, input_noise: float, steepness: float) -> Tree:
        """Return the tree that routes at a steepness as this one does on average under noise on the inputs.

        Its hyperplanes have smaller weights and the same position.
        """
        if not input_noise:
            return self
        factor = damped_steepness(steepness, input_noise, self.splits.squared_norms()).detach() / steepness
        parameters = {name: value.detach() for name, value in self.splits.parameters.items()}
        for name in ("weight", "bias"):
            parameters[name] = parameters[name] * factor.reshape(-1, *[1] * (parameters[name].dim() - 1))
        return replace(self, splits=self.splits.replace_parameters(parameters))

    def hard_tables(self, counts: Tensor) -> Tensor:
        """Compute the leaf tables of the deterministic tree from leaf statistics.  (n_leaves, n_values)"""
        nodes = self.structure.sums_below(counts.detach().cpu().double().numpy())
        return torch.from_numpy(leaf_tables(self.target, self.structure, nodes, prior=0.0)).to(counts)

    def crisp(self, scaling: Scaling, steepness: float) -> CrispTree:
        """Return the deterministic tree on raw features, without leaf statistics yet."""
        soft = self.leaves.detach().cpu().double().numpy()
        statistics = empty_statistics(self.structure, scaling, soft, steepness, self.target.n_statistics)
        if isinstance(self.splits, ModuleSplits):
            splits = self.splits.on(torch.device("cpu"))
            return ModuleTree(self.structure, soft, statistics, splits=splits, target_name=self.target_name)
        if not isinstance(self.splits, ObliqueSplits | AxisSplits):
            raise TypeError(f"{type(self.splits).__name__} cannot be made deterministic; select candidates first.")
        hyperplanes = (part.detach().cpu().double().numpy() for part in self.splits.hyperplanes())
        weight, bias = scaling.fold(*hyperplanes)
        return FlatTree(self.structure, soft, statistics, weight=weight, bias=bias, target_name=self.target_name)

    @classmethod
    def soft(
        cls,
        tree: CrispTree,
        device: torch.device | str = "cpu",
        linear: type[ObliqueSplits] | type[AxisSplits] = ObliqueSplits,
    ) -> Tree:
        """Restore the probabilistic tree on scaled features; hyperplanes become splits of the class ``linear``."""
        leaves = torch.as_tensor(tree.statistics.soft_leaves, dtype=torch.float32, device=device)
        splits: AbstractSplits
        if isinstance(tree, ModuleTree):
            splits = tree.splits.on(torch.device(device))
        elif isinstance(tree, FlatTree):
            weight, bias = (
                torch.as_tensor(part, dtype=torch.float32, device=device) for part in tree.scaled_hyperplanes()
            )
            splits = linear.from_hyperplanes(weight, bias)
        else:
            raise TypeError(f"there is no probabilistic tree for a {type(tree).__name__}.")
        return cls(tree.structure, splits, leaves, tree.target_name)


@dataclass(frozen=True, eq=False)
class ModuleTree(CrispTree):
    """A deterministic tree whose splits are modules on scaled features."""

    splits: ModuleSplits = field(kw_only=True)

    @property
    def n_features(self) -> int:
        return len(self.statistics.scaling.center)

    @one_thread()
    @torch.no_grad()
    def scores(self, X: npt.NDArray[np.float32], split: int) -> npt.NDArray[np.float32]:
        scaled = torch.from_numpy(self.statistics.scaling.apply(X))
        return np.asarray(self.splits.score(scaled, split).numpy(), dtype=np.float32)

    @one_thread()
    def parameter_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the stacked parameters of the modules, sorted by name."""
        return {name: value.detach().cpu().numpy() for name, value in sorted(self.splits.parameters.items())}

    @one_thread()
    def parts_of(self, splits: npt.NDArray[np.int64]) -> dict[str, Any]:
        return {"splits": self.splits.select(splits.tolist())}


@route_rows.register
def _(tree: ModuleTree, X: Rows, n_jobs: int | None = None) -> npt.NDArray[np.int64]:
    """Route rows in blocks; a module is evaluated on the rows whose path visits it."""
    leaves = np.empty(len(X), dtype=np.int64)

    def route(rows: slice) -> None:
        scaled = tree.statistics.scaling.apply(np.asarray(X[rows], dtype=np.float32))
        leaves[rows] = modules.route(torch.from_numpy(scaled)).numpy()

    # Blocks are the same for any number of threads, and so are the scores.
    blocks = list(row_blocks(len(X), ROWS_PER_THREAD))
    with one_thread(), workers(min(n_threads(n_jobs), max(len(blocks), 1))) as each:
        modules = Tree(tree.structure, tree.splits, torch.as_tensor(tree.leaves))
        for _ in each(route, blocks):
            pass
    return leaves
