"""Prediction on a CUDA tensor, which stays on its device. Imported only where such a tensor comes."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from sklearn import get_config
from torch import Tensor

from crisptree.inference import CrispTree, FlatTree
from crisptree.scaling import scaled
from crisptree.splits import ObliqueSplits
from crisptree.tree import ModuleTree, Tree

Moved = tuple[Tree, tuple[Tensor, Tensor] | None]

_kept: WeakKeyDictionary[CrispTree, dict[torch.device, Moved]] = WeakKeyDictionary()
"""Trees that are on a device already, with the center and factor that rows need where the splits take scaled ones."""

VALUES_AT_ONCE = 2**28


@torch.no_grad()
def apply(tree: CrispTree, X: Tensor) -> Tensor:
    """The leaf of every row, on the rows' device.  (n, n_features) → (n,)

    Rows become float32 first, as everywhere. Scores are summed in the device's own order, so a row may take another
    turn than on the CPU only where |f(x)| ≤ 2 (n_features + 2) ε (Σ_j |w_j x_j| + |b|) with ε = 2⁻²⁴.
    """
    if X.dim() != 2 or X.shape[1] != tree.n_features:
        raise ValueError(f"X must have shape (n, {tree.n_features}), as in training; got {tuple(X.shape)}.")
    check = not get_config()["assume_finite"]
    soft, scale = _on_device(tree, X.device)
    leaves = []
    # Convolutions in TF32 would round far beyond the bound.
    with torch.backends.cudnn.flags(allow_tf32=False):
        for piece in X.split(max(1, VALUES_AT_ONCE // tree.n_features)):
            rows = piece.float()
            if check and not bool(torch.isfinite(rows).all()):
                raise ValueError("Input X contains NaN, infinity or a value too large for float32.")
            leaves.append(soft.route(rows if scale is None else scaled(rows, *scale).float()))
    return torch.cat(leaves) if leaves else torch.zeros(0, dtype=torch.long, device=X.device)


def labels(classes: np.ndarray[Any, Any], tree: CrispTree, leaves: Tensor) -> Tensor:
    """The class of every leaf number, as a tensor; labels must be numbers for that."""
    if classes.dtype.kind not in "biuf":
        raise TypeError(
            f"predict on a CUDA tensor needs numbers as class labels; got {classes.dtype}. Use apply or predict_proba, "
            "or give predict the rows as a NumPy array."
        )
    return torch.as_tensor(classes[tree.labels()], device=leaves.device)[leaves]


def tables(tree: CrispTree, leaves: Tensor) -> Tensor:
    """The class probabilities of every leaf number, as a tensor."""
    return looked_up(tree.leaf_values(), leaves)


def looked_up(values: np.ndarray[Any, Any], leaves: Tensor) -> Tensor:
    """What a table by leaf says of every leaf number, as a tensor."""
    return torch.as_tensor(values, device=leaves.device)[leaves]


def _on_device(tree: CrispTree, device: torch.device) -> Moved:
    kept = _kept.setdefault(tree, {})
    if device not in kept:
        kept[device] = _moved(tree, device)
    return kept[device]


def _moved(tree: CrispTree, device: torch.device) -> Moved:
    leaves = torch.as_tensor(tree.leaves, device=device)
    if isinstance(tree, FlatTree):  # its weights are for raw rows
        splits = ObliqueSplits(torch.as_tensor(tree.weight, device=device), torch.as_tensor(tree.bias, device=device))
        return Tree(tree.structure, splits, leaves), None
    assert isinstance(tree, ModuleTree)
    scaling = tree.statistics.scaling
    scale = (torch.as_tensor(scaling.center, device=device), torch.as_tensor(scaling.factor, device=device))
    return Tree(tree.structure, tree.splits.on(device), leaves), scale
