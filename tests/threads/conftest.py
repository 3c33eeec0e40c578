"""Torch on several threads, whatever the environment says."""

import pytest
import torch


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)
