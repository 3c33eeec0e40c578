"""Train by Spark's TorchDistributor: ``python with_spark.py /shared/folder/model.crisp``.

``local_mode=True`` starts the processes on the driver; leave it out for those of the cluster.
"""

import sys
from pathlib import Path

from pyspark.ml.torch.distributor import TorchDistributor
from pyspark.sql import SparkSession


def train_worker(output, folder):
    """Run in every process, which makes the process group."""
    import sys

    import torch.distributed as dist

    sys.path.insert(0, folder)
    from training import train

    dist.init_process_group("gloo")
    train(output)
    dist.destroy_process_group()


if __name__ == "__main__":
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    distributor = TorchDistributor(num_processes=2, local_mode=True, use_gpu=False)
    distributor.run(train_worker, str(Path(sys.argv[1]).absolute()), str(Path(__file__).parent.absolute()))
    session.stop()
