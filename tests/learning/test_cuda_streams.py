"""How many trees are finetuned on a device at once."""

import pytest
import torch

from crisptree.learning.engines import cuda_graphs
from crisptree.learning.engines.cuda_graphs import n_streams, streams

GIB = 2**30


@pytest.mark.parametrize(
    ("n_works", "bytes_each", "number"), [(25, GIB, 3), (2, GIB, 2), (25, 3 * GIB, 2), (25, 9 * GIB, 1), (25, 0, 3)]
)
def test_works_that_share_a_device_take_half_of_its_memory_at_most(monkeypatch, n_works, bytes_each, number):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (16 * GIB, 16 * GIB))
    assert n_streams(torch.device("cuda"), n_works, bytes_each) == number


def test_versions_of_torch_without_threads_on_a_device_get_one_work_after_the_other(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (16 * GIB, 16 * GIB))
    monkeypatch.setattr(cuda_graphs, "MIN_TORCH_FOR_THREADS", "99.0")
    assert n_streams(torch.device("cuda"), 25, GIB) == 1


def test_one_stream_needs_no_device():
    assert n_streams(torch.device("cpu"), 25, 1) == 1
    with streams(torch.device("cpu"), 1) as each_of:
        assert list(each_of(abs, [-1, 2])) == [1, 2]
