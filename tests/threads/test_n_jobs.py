"""How many threads ``n_jobs`` means: scikit-learn's convention, within the cores that the process may use."""

import os
import subprocess
import sys

import joblib
import numpy as np
import pytest

from crisptree import CrispTreeClassifier, threads
from crisptree.inference import flat_tree as routing
from tests.every_kind import FITS, QUICK, Data


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.setattr(threads, "available_cores", lambda: 8)


@pytest.mark.parametrize(
    ("n_jobs", "expected"), [(None, 1), (1, 1), (3, 3), (100, 8), (-1, 8), (-2, 7), (-8, 1), (-9, 1), (-100, 1)]
)
def test_n_jobs_counts_as_in_scikit_learn(n_jobs, expected, eight_cores):
    assert threads.n_threads(n_jobs) == expected


def test_none_is_what_the_joblib_context_sets(eight_cores):
    with joblib.parallel_config(n_jobs=3):
        assert threads.n_threads(None) == 3
        assert threads.n_threads(2) == 2
    with joblib.parallel_config(backend="threading", n_jobs=5):
        assert threads.n_threads(None) == 5
    assert threads.n_threads(None) == 1


def test_processes_of_one_machine_share_its_cores(eight_cores):
    assert [threads.n_threads(-1, n_processes) for n_processes in (1, 2, 3, 9)] == [8, 4, 2, 1]
    assert threads.n_threads(None, 2) == 1


@pytest.mark.parametrize("n_jobs", [0, 1.5, True, "all"])
def test_n_jobs_that_is_no_number_of_threads_is_refused(n_jobs):
    with pytest.raises(ValueError, match="`n_jobs` must be None, or a whole number other than 0"):
        CrispTreeClassifier(n_jobs=n_jobs).fit([[0.0], [1.0]], [0, 1])


COUNT = "from crisptree.threads import n_threads; print(n_threads(-1))"


def counted(code, **environment):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | environment)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no CPU affinity")
@pytest.mark.parametrize("first", ["", "import crisptree.threads; "])
def test_all_cores_are_those_of_the_affinity(first):
    one = min(os.sched_getaffinity(0))
    assert counted(f"{first}import os; os.sched_setaffinity(0, {{{one}}}); {COUNT}") == 1


def test_all_cores_are_those_that_the_container_grants():
    assert counted(COUNT) == joblib.cpu_count()  # which reads the quota of the cgroup
    assert counted(COUNT, LOKY_MAX_CPU_COUNT="1") == 1


def test_prediction_resolves_n_jobs_as_fits_do(monkeypatch):
    X = np.random.default_rng(0).normal(size=(routing.MIN_VALUES_FOR_THREADS // 2, 2)).astype(np.float32)
    model = CrispTreeClassifier.from_flat(**QUICK).fit(X[:300], X[:300, 0] > 0)
    asked = []
    monkeypatch.setattr(routing, "n_threads", lambda n_jobs: asked.append(n_jobs) or 1)
    for n_jobs in (None, -2):
        model.set_params(n_jobs=n_jobs).predict(X)
    assert asked == [None, -2]


@pytest.mark.parametrize("kind", ["classifier", "regressor", "forest"])
def test_predictions_are_the_same_for_any_n_jobs(kind, monkeypatch):
    monkeypatch.setattr(threads, "available_cores", lambda: 3)
    data = Data.of(300, 5)
    found = [FITS[kind](data, **QUICK, n_jobs=n_jobs).predict(data.X) for n_jobs in (None, -1, -2, 2)]
    assert all(np.array_equal(found[0], other) for other in found[1:])
