"""No operation of torch runs on several threads while something of ours trains, predicts, saves or loads.

A process that has used torch's threads cannot use them in a child that it forks, and sums would depend on their number.
"""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.every_kind import FITS, QUICK, Data, use

QUICK_ONES = ("classifier", "regressor", "conv", "segmenter")


class Watch(TorchDispatchMode):
    """Keep the operations that run while torch may use several threads."""

    def __init__(self):
        super().__init__()
        self.n_operations, self.on_several_threads = 0, set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.n_operations += 1
        if torch.get_num_threads() != 1:
            self.on_several_threads.add(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "kind", [kind if kind in QUICK_ONES else pytest.param(kind, marks=pytest.mark.slow) for kind in FITS]
)
def test_every_operation_of_a_fit_and_of_what_follows_runs_on_one_thread(kind, three_threads):
    data = Data.of(300, 5)
    with Watch() as watch:
        model = FITS[kind](data, **QUICK)
        use(model, data)
    assert watch.n_operations
    assert watch.on_several_threads == set()
