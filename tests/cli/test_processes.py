"""What a command knows of the processes that torchrun has started."""

import numpy as np
import pytest
import typer

from crisptree.cli.dialect import Dialect
from crisptree.cli.output import Output
from crisptree.cli.processes import Processes, _own_gpu
from crisptree.cli.training import Request, check_columns, held_rows, read_training
from crisptree.encoding.column_profile import ColumnOptions


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


@pytest.mark.parametrize("size", [1, 3])
def test_a_process_keeps_its_own_rows_and_the_first_one_those_held_out(size, shop):
    request = Request(shop.csv, "buys", None, ColumnOptions(drop=["id"]), Dialect(), 0)
    out, everything = Output(False, silent=True), []
    with out.progress() as progress:
        rows = read_training(check_columns(request), progress)
        held = held_rows(rows.y, 0.25, 0)
        whole = rows.part(held, out, progress)
        for rank in range(size):
            table = rows.part(held, out, progress, crew=Processes(rank, size))
            everything.append(table.X)
            assert table.X.flags.owndata or table.X.base.shape == table.X.shape  # nothing larger is held
            assert (table.held_out is None) == (rank > 0)
            assert np.array_equal(table.y, whole.y)
    assert max(map(len, everything)) - min(map(len, everything)) <= 1
    assert np.array_equal(np.concatenate(everything), whole.X)
