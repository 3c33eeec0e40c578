"""Train by torchrun: ``torchrun --standalone --nproc-per-node 2 with_torchrun.py model.crisp``.

By Slurm, on two nodes of four processes each::

    #SBATCH --nodes=2 --ntasks-per-node=1 --cpus-per-task=16
    head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
    srun torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint "$head:29500" \
        with_torchrun.py model.crisp
"""

import sys

import torch.distributed as dist
from training import train

dist.init_process_group("gloo")
train(sys.argv[1])
dist.destroy_process_group()
