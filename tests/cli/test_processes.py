"""What a command knows of the processes that torchrun has started."""

import pytest
import typer

from crisptree.cli.processes import _own_gpu


def started(monkeypatch, here, rank=0):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(here))
    monkeypatch.setenv("LOCAL_RANK", str(rank))


def test_every_process_of_a_machine_has_its_own_gpu(monkeypatch):
    started(monkeypatch, 4, 3)
    assert _own_gpu("cuda", 4) == 3


def test_a_single_process_may_name_its_gpu(monkeypatch):
    started(monkeypatch, 1)
    assert _own_gpu("cuda:1", 2) == 1


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("device", "n_gpus", "message"),
    [
        ("cuda", 1, "this machine has 1 GPU, and 2 processes started. .* --nproc-per-node 1, or .* --device cpu"),
        ("cuda", 0, "no GPU that torch finds, and 2 processes started. To go on, train with --device cpu"),
        ("cuda:0", 4, "--device cuda:0; this machine has 4 GPUs, and 2 processes started. .* --nproc-per-node 1"),
    ],
)
def test_more_processes_than_gpus_are_refused_by_all(monkeypatch, rank, device, n_gpus, message):
    started(monkeypatch, 2, rank)
    with pytest.raises(typer.BadParameter, match=message):
        _own_gpu(device, n_gpus)
