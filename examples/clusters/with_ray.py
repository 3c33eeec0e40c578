"""Train by Ray Train: ``python with_ray.py /shared/folder/model.crisp``."""

import sys
from pathlib import Path

import ray
from ray.train import ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer


def train_worker(config):
    """Run in every worker, inside the process group of Ray Train."""
    from training import train

    train(config["output"])


if __name__ == "__main__":
    here = str(Path(__file__).parent)
    ray.init(runtime_env={"env_vars": {"PYTHONPATH": here}}, include_dashboard=False)
    TorchTrainer(
        train_worker,
        train_loop_config={"output": str(Path(sys.argv[1]).absolute())},
        torch_config=TorchConfig(backend="gloo"),
        scaling_config=ScalingConfig(num_workers=2),
    ).fit()
