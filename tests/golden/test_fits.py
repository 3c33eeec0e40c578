"""Training gives the same bits as before; ``python -m tests.golden.test_fits`` writes down what it gives now.

Bits depend on the instruction sets of kernels and torch, on libraries and on the processor, so they are compared where
all of these are those of the record. On other machines the numbers that a user sees are compared instead.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crisptree.inference import FlatTree
from tests.golden.cases import FITS, REAL_FITS
from tests.golden.machine import machine

RECORD = Path(__file__).parent / "fits.json"
COUNT_TOLERANCE = 0.1
"""On another machine so many of the rows may end in leaves of another size."""


def trees_of(model: Any) -> list[Any]:
    return [model.tree_, model.greedy_tree_, *model.__dict__.get("earlier_trees_", [])]


def arrays_of(tree: Any) -> list[np.ndarray]:
    if isinstance(tree, FlatTree):
        splits = [tree.weight, tree.bias]
    else:
        splits = [value.detach().numpy() for _, value in sorted(tree.splits.parameters.items())]
    counts = tree.statistics
    shape = [tree.structure.left, tree.structure.right, tree.leaves]
    return [*shape, *splits, counts.node_counts, counts.gain, counts.soft_leaves, counts.score_spread]


def found(model: Any) -> dict[str, Any]:
    digest = hashlib.sha256()
    for tree in trees_of(model):
        for array in arrays_of(tree):
            digest.update(np.ascontiguousarray(array).tobytes())
    digest.update(np.array([record.loss for record in model.history_]).tobytes())
    counts = model.tree_.statistics.node_counts[model.tree_.structure.n_splits :]
    return {
        "bits": digest.hexdigest(),
        "epochs": len(model.history_),
        "right": float(counts.max(axis=1).sum() / counts.sum()),
    }


@pytest.mark.parametrize("name", [*FITS, *(pytest.param(name, marks=pytest.mark.slow) for name in REAL_FITS)])
def test_a_fit_gives_what_it_gave_before(name):
    record = json.loads(RECORD.read_text())
    now, before = found((FITS | REAL_FITS)[name]()), record["fits"][name]
    if record["machine"] == machine():
        assert now["bits"] == before["bits"]
    assert now["epochs"] == pytest.approx(before["epochs"], rel=0.3)
    assert now["right"] == pytest.approx(before["right"], abs=COUNT_TOLERANCE)


def test_every_recorded_fit_is_a_case():
    assert set(json.loads(RECORD.read_text())["fits"]) == {*FITS, *REAL_FITS}


if __name__ == "__main__":
    fits = {name: found(fit()) for name, fit in (FITS | REAL_FITS).items()}
    RECORD.write_text(json.dumps({"machine": machine(), "fits": fits}, indent=1) + "\n")
