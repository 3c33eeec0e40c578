"""A process group on a CUDA device: run by hand with ``pytest -m gpu tests/distributed``."""

import pytest
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits

from crisptree import CrispTreeClassifier, CrispTreeRegressor
from crisptree.distributed import single_process
from tests.distributed.cases import PLAIN, digest
from tests.distributed.test_shards import communicating

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]
SHORT = {**PLAIN, "split": "oblique", "max_depth": 4, "epochs": 6, "finetune_epochs": 8, "device": "cuda"}

__all__ = ["communicating"]


@pytest.fixture
def nccl():
    torch.cuda.set_device(0)
    dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_a_group_on_cuda_fits_as_well_as_one_process(nccl, communicating):
    X, y = load_digits(return_X_y=True)
    found = CrispTreeClassifier.from_flat(**SHORT).fit(X, y).score(X, y)
    with single_process():
        assert abs(found - CrispTreeClassifier.from_flat(**SHORT).fit(X, y).score(X, y)) < 0.05


def test_a_group_on_cuda_fits_numbers_as_well_as_one_process(nccl, communicating):
    X, y = load_digits(return_X_y=True)
    numbers = y + 0.1 * X[:, 20]
    found = CrispTreeRegressor.from_flat(**SHORT).fit(X, numbers).score(X, numbers)
    with single_process():
        assert (
            abs(found - CrispTreeRegressor.from_flat(**SHORT | {"device": "cpu"}).fit(X, numbers).score(X, numbers))
            < 0.1
        )


def test_a_group_on_cuda_goes_on_from_a_checkpoint(nccl, communicating, tmp_path):
    X, y = load_digits(return_X_y=True)
    given = {"checkpoint": tmp_path / "folder", "resume": True}
    first, again = (CrispTreeClassifier.from_flat(**SHORT).fit(X, y, **given) for _ in range(2))
    assert digest(first) == digest(again)
