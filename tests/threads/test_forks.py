"""A process that has trained or predicted forks, and its child goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.every_kind import FITS

WATCHDOG = """
import faulthandler, multiprocessing, os, signal, sys
faulthandler.dump_traceback_later(280, exit=True)  # a hang, even on a busy machine

def in_child(work):
    child = os.fork()
    if child == 0:
        signal.alarm(200)  # the parent's watchdog is a thread, which a child has not got; a hang keeps the pipes open
        work()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""

BEGIN = """
import numpy as np, torch
from crisptree import CrispTreeClassifier, threads
threads.available_cores = lambda: 2
random = np.random.default_rng(0)
few = dict(max_depth=1, epochs=1, finetune_epochs=1, min_updates=0, batch_size=2048, device="cpu", random_state=0)
few |= dict(split="oblique", l1=0.0, input_noise=0.0, scale="feature", shrinkage=0.0)
X = random.normal(size=(22_000, 200)).astype(np.float32)
y = (X[:, 0] > 0).astype(int)

def rows():
    return CrispTreeClassifier.from_flat(**few).fit(X, y)

def soft_labels():
    return CrispTreeClassifier.from_flat(**few).fit(X, np.stack([y, 1 - y], axis=1) * 0.8 + 0.1)

images = np.tile(X[:1500], 2)
conv = CrispTreeClassifier.from_flat(**{**few, "split": "conv", "image_shape": (20, 20)}).fit(images[:60], y[:60])

def pictures():
    return conv.predict(images)

def probabilities():
    return conv.soft_predict_proba(images)
"""

ROOT = Path(__file__).parents[2]


def ends(work, begin=BEGIN):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    command = [sys.executable, "-c", WATCHDOG + begin + work]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=ROOT, env=environment)
    assert result.returncode == 0, result.stderr[-3000:]


def size_of(kind):
    """More values than one thread gets; models in leaves take minutes for many features."""
    return "110_000, 40" if kind.startswith("linear leaves") else "24_000, 200, 1_500, 160"


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("classifier", "40_000, 4"),  # more rows than torch puts on one thread, which selection scores
        *(pytest.param(kind, size_of(kind), marks=pytest.mark.slow) for kind in FITS),  # and than we put on one of ours
    ],
)
def test_a_child_repeats_a_default_fit_of_its_parent(kind, sizes):
    ends(
        f"work = lambda: FITS[{kind!r}](data, **QUICK)\nwork()\nin_child(work)",
        f"""
import torch
torch.set_num_threads(2)
from crisptree import threads
from tests.every_kind import FITS, QUICK, Data
threads.available_cores = lambda: 2
QUICK |= dict(max_depth=1, epochs=1, finetune_epochs=1, batch_size=2048, n_jobs=2)
data = Data.of({sizes})
""",
    )


@pytest.mark.slow
@pytest.mark.parametrize("work", ["rows", "soft_labels", "pictures", "probabilities"])
def test_what_the_parent_did_its_child_can_do(work):
    ends(f"{work}()\nin_child({work})\n{work}()")


def test_a_child_fits_and_predicts_after_its_parent_has_done_both_and_used_torch():
    ends("""
rows(); pictures()
a = torch.randn(600, 600); a @ a  # on all threads of torch
in_child(lambda: (rows(), pictures()))
""")


@pytest.mark.slow
def test_a_pool_of_forked_processes_fits_and_predicts():
    ends("""
rows(); pictures()
with multiprocessing.get_context("fork").Pool(2) as pool:
    trees = [pool.apply_async(rows) for _ in range(3)]
    assert len({tree.get(250).tree_.weight.tobytes() for tree in trees}) == 1
    pool.apply_async(pictures).get(250)
""")


@pytest.mark.slow
def test_a_callback_that_forks_leaves_its_child_free_to_end():
    ends("""
def fork(record):
    child = os.fork()
    if child == 0:
        signal.alarm(200)
        CrispTreeClassifier.from_flat(**few).fit(X[:500], y[:500])
        os._exit(0)  # as the children of multiprocessing end
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
CrispTreeClassifier.from_flat(**few, callbacks=[fork]).fit(X, y)
""")


def test_a_child_trains_although_another_thread_of_its_parent_was_setting_threads():
    ends(
        """
def work():
    with threads.one_thread():
        torch.ones(3).sum()

with threads._lock:  # as another thread holds it at the moment of the fork
    in_child(work)
""",
        "import torch\nfrom crisptree import threads\n",
    )
