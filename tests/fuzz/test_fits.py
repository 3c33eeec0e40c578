"""Rows, weights and labels of every kind: a fit answers with probabilities, or refuses with a documented error."""

import subprocess
import sys
import warnings

import hypothesis.extra.numpy as arrays
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from scipy import sparse

from crisptree import CrispTreeClassifier, TrainingOptions

DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int64", "uint64", "bool")
LABELS = {
    "numbers": st.integers(-3, 3),
    "large numbers": st.sampled_from([-(2**63), 2**63 - 1, 2**62]),
    "floats": st.sampled_from([0.0, 1.0, 2.0, -1.0]),
    "fractions": st.sampled_from([0.5, 1.0, 1.5, float("nan")]),
    "words": st.sampled_from(["a", "b", "", "ä\x00", "\x1b[2J"]),
    "truth": st.booleans(),
    "a mixture": st.sampled_from(["a", 1, None, 2.5, True]),
}
WEIGHTS = st.sampled_from([0.0, 1.0, 1e-300, 1e300, -1.0, float("nan"), float("inf"), 2.5])


@st.composite
def problems(draw):
    n_rows, n_columns = draw(st.integers(1, 12)), draw(st.integers(0, 4))
    shape = draw(st.sampled_from([(n_rows, n_columns), (n_rows, 2, 2), (n_rows,)]))
    X = draw(arrays.arrays(draw(st.sampled_from(DTYPES)), shape))
    if draw(st.booleans()) and X.dtype.kind == "f":
        X = np.nan_to_num(X)
    n_labels = n_rows + draw(st.sampled_from([0, 0, 0, 1]))
    kind = draw(st.sampled_from(list(LABELS)))
    y = draw(st.lists(LABELS[kind], min_size=n_labels, max_size=n_labels))
    weight = draw(st.none() | st.none() | st.lists(WEIGHTS, min_size=n_rows, max_size=n_rows))
    return X, np.array(y, dtype=object) if kind == "a mixture" else np.array(y), weight


@st.composite
def matrices(draw):
    """CSR as its parts: numbers that may be anything, mostly such that they fit together."""
    n_rows, n_columns = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(0, 5), min_size=n_rows, max_size=n_rows))
    total = sum(lengths)
    index = draw(st.lists(st.integers(0, n_columns - 1) | st.sampled_from([-1, 7]), min_size=total, max_size=total))
    values = st.floats(width=32) | st.sampled_from([0.0, 1e300, 1.0, -2.0])
    data = np.array(draw(st.lists(values, min_size=total, max_size=total)))
    X = sparse.csr_matrix((n_rows, n_columns))
    X.data, X.indices, X.indptr = (
        data,
        np.array(index, dtype=np.int32),
        np.append(0, np.cumsum(lengths)).astype(np.int32),
    )
    return X, np.array(draw(st.lists(st.integers(0, 1), min_size=n_rows, max_size=n_rows)))


@settings(max_examples=60, derandomize=True, suppress_health_check=list(HealthCheck))
@given(matrices())
def test_sparse_rows_of_any_kind_give_probabilities_or_a_documented_error(problem):
    X, y = problem
    model = CrispTreeClassifier(
        max_depth=2,
        training=TrainingOptions(epochs=1, finetune_epochs=1, min_updates=1),
        shrinkage=0.0,
        l1=0.0,
        random_state=0,
    )
    with warnings.catch_warnings(action="ignore"):
        try:
            model.fit(X, y)
        except (ValueError, TypeError):
            assert not hasattr(model, "tree_")
            return
        table = model.predict_proba(X)
    assert np.isfinite(table).all()
    assert np.allclose(table.sum(axis=1), 1)


@settings(max_examples=60, derandomize=True, suppress_health_check=list(HealthCheck))
@given(problems(), st.sampled_from(["oblique", "axis"]), st.integers(0, 2))
def test_a_fit_gives_probabilities_or_a_documented_error(problem, split, depth):
    X, y, weight = problem
    model = CrispTreeClassifier(
        max_depth=depth,
        split=split,
        training=TrainingOptions(epochs=1, finetune_epochs=1, min_updates=1),
        shrinkage=0.0,
        l1=0.0,
        random_state=0,
    )
    with warnings.catch_warnings(action="ignore"):
        try:
            model.fit(X, y, weight)
        except (ValueError, TypeError):
            assert not hasattr(model, "tree_")
            return
        tables = model.predict_proba(X), model.soft_predict_proba(X)
    for table in tables:
        assert table.shape == (len(X), len(model.classes_))
        assert np.isfinite(table).all()
        assert np.allclose(table.sum(axis=1), 1)
    assert set(model.predict(X).tolist()) <= set(model.classes_.tolist())


GROWING = """
import resource, sys
from tests.toys import clouds, plain_tree
import torch
torch.set_num_threads(1)
X, y = clouds(400)
def fits(number):
    for seed in range(number):
        model = plain_tree(max_depth=2, epochs=1, finetune_epochs=1, min_updates=1, random_state=seed)
        model.fit(X, y).soft_predict_proba(X)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
before = fits(40)
print(fits(200) - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process as Linux tells it")
def test_two_hundred_fits_in_one_process_take_no_more_memory_than_forty():
    run = subprocess.run([sys.executable, "-c", GROWING], capture_output=True, text=True, check=True)
    assert int(run.stdout) < 16 * 2**20
