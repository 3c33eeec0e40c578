"""Train by the workers of a dask cluster: ``python with_dask.py /shared/folder/model.crisp``."""

import socket
import sys
from pathlib import Path

from dask.distributed import Client, LocalCluster


def train_worker(output, folder, address, rank, size):
    """Run in every worker, which joins the process group at the address of the first."""
    import sys

    import torch.distributed as dist

    sys.path.insert(0, folder)
    from training import train

    dist.init_process_group("gloo", init_method=f"tcp://{address}", rank=rank, world_size=size)
    train(output)
    dist.destroy_process_group()


def find_address():
    """Find a free port of a worker."""
    with socket.socket() as one:
        one.bind(("", 0))
        return f"{socket.gethostname()}:{one.getsockname()[1]}"


if __name__ == "__main__":
    output, folder = str(Path(sys.argv[1]).absolute()), str(Path(__file__).parent.absolute())
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        workers = list(client.scheduler_info()["workers"])
        address = client.submit(find_address, workers=workers[:1]).result()
        futures = [
            client.submit(train_worker, output, folder, address, rank, len(workers), workers=[worker], pure=False)
            for rank, worker in enumerate(workers)
        ]
        client.gather(futures)
