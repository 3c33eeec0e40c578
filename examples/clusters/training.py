"""What every process of a cluster runs: its own rows, one tree, one file.

The examples beside this file start it: torchrun (also by Slurm), Ray Train, Spark's TorchDistributor and dask.
"""

import torch.distributed as dist
from sklearn.datasets import load_breast_cancer

from crisptree import CrispTreeClassifier


def train(output):
    """Train a tree on the rows of all processes of the process group; the first process writes it."""
    rank, size = dist.get_rank(), dist.get_world_size()
    X, y = load_breast_cancer(return_X_y=True)
    own = slice(len(y) * rank // size, len(y) * (rank + 1) // size)  # in practice: a file of its own
    parameters = {"split": "oblique", "l1": 0.0, "input_noise": 0.3, "shrinkage": 1.0}
    model = CrispTreeClassifier(max_depth=3, **parameters, random_state=0).fit(X[own], y[own])
    if rank == 0:
        model.save(output)
