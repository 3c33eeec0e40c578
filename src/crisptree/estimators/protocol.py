"""The parameters of published protocols."""

from __future__ import annotations

PAPER = {
    "split": "oblique",
    "algorithm": "em",
    "grow": "greedy",
    "max_depth": 8,
    "epochs": 50,
    "finetune_epochs": 50,
    "min_updates": 0,
    "learning_rate": 0.001,
    "learning_rate_decay": "none",
    "batch_size": 1000,
    "steepness": 1.0,
    "steepness_step": 0.1,
    "annealing": "linear",
    "finetune_steepness": "restart",
    "l1": 0.0,
    "l2": 0.0,
    "leaf_prior": 0.0,
    "roughness": 0.0,
    "input_noise": 0.0,
    "upper_levels": None,
    "shifts": 0,
    "prune": None,
    "shrinkage": 0.0,
    "scale": "feature",
}
"""The protocol of the paper's section 4.1."""
