"""Several processes fit one tree: the same bits for any number of them, and the same errors."""

import json
import os
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.base import clone

import crisptree.learning.fitting
from crisptree import CrispTreeClassifier, CrispTreeRegressor
from crisptree.distributed import single_process
from crisptree.pipeline.gathered_rows import _concatenate
from tests.distributed.cases import CASES, FORESTS, PLAIN, QUICK, digest, digest_forest, fit_case, fit_forest, rows
from tests.distributed.conftest import ROOT


@pytest.fixture(scope="module")
def two(torchrun):
    return torchrun("all_cases", 2)


@pytest.mark.parametrize("name", CASES)
def test_two_processes_train_the_tree_of_one_bit_for_bit(name, two, group_of_one):
    assert {found[name] for found in two} == {digest(fit_case(name))}


def fit_alone(name, **more):
    """The fit of a case by a single process."""
    X, y, given = rows(name)
    kind = CrispTreeRegressor if y.dtype.kind == "f" else CrispTreeClassifier
    with single_process():
        return kind.from_flat(**QUICK | PLAIN | CASES[name][1] | more).fit(X, y, **given)


def test_thresholds_of_a_group_are_those_of_a_single_process(group_of_one):
    model, alone = fit_case("thresholds"), fit_alone("thresholds", grow="cart", finetune_epochs=0)
    assert np.array_equal(model.tree_.structure.left, alone.tree_.structure.left)
    np.testing.assert_allclose(model.tree_.bias, alone.tree_.bias, rtol=1e-6)
    np.testing.assert_allclose(model.tree_.leaves, alone.tree_.leaves)
    assert np.array_equal(np.count_nonzero(model.tree_.weight, axis=1), np.ones(model.tree_.structure.n_splits))


@pytest.mark.parametrize("leaf_model", ["linear", "branch_linear"])
@pytest.mark.parametrize("name", ["linear leaves", "linear leaves of classes"])
def test_linear_leaves_of_a_group_are_those_of_a_single_process(name, leaf_model, group_of_one):
    # The same thresholds: splits that are trained differ.
    parameters = {"split": "axis", "grow": "cart", "finetune_epochs": 0, "leaf_model": leaf_model, "max_depth": 2}
    X, y, given = rows(name)
    alone = fit_alone(name, **parameters)
    model = clone(alone).fit(X, y, **given)
    assert model.tree_.linear_weight.any()
    if name == "linear leaves":
        np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=1e-5)
        np.testing.assert_allclose(model.predict_std(X), alone.predict_std(X), rtol=1e-5)
    else:
        np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=5e-3)


def test_trees_with_linear_leaves_grow_on_residuals_in_a_group(group_of_one):
    X, y, given = rows("linear leaves")
    model = fit_case("linear leaves")
    constant = CrispTreeRegressor.from_flat(**QUICK | PLAIN | {"leaf_model": "constant"}).fit(X, y, **given)
    assert model.score(X, y) > max(0.99, constant.score(X, y))


def test_thresholds_of_many_rows_are_searched_on_a_sample(group_of_one, monkeypatch):
    monkeypatch.setattr("crisptree.learning.process_group.MAX_GATHERED_VALUES", 4 * 60)
    seen = []
    fit_cart = crisptree.learning.fitting.fit_cart
    monkeypatch.setattr(
        "crisptree.learning.fitting.fit_cart", lambda rows, *more: seen.append(len(rows)) or fit_cart(rows, *more)
    )
    model = fit_case("thresholds, trained on")
    assert 60 <= min(seen) <= max(seen) <= 60 + 8  # each of eight shards gives a whole number of rows
    assert model.score(*rows("thresholds, trained on")[:2]) > 0.9


ERRORS = {
    "other features": "as many features; got 4 in process 0, 5 in process 1",
    "not finite": "row 3 has inf",
    "other parameters": "process 1 differs from process 0 in epochs",
    "other labels": "numbers in all processes, or text in all",
    "stopped": "OverflowError: enough",
    "other outputs": "y must have as many columns in all processes; got 1, 2",
    "checkpoints of a forest": "`checkpoint` must be None for a forest by several processes",
}


@pytest.mark.parametrize("name", ERRORS)
def test_all_processes_end_with_the_same_error(name, two):
    assert two[0][name] == two[1][name]
    assert ERRORS[name] in two[0][name]


def test_single_process_fits_in_a_group_have_their_own_classes(two):
    assert [found["alone"] for found in two] == [["setosa", "versicolor"], ["versicolor", "virginica"]]


def test_two_processes_train_the_forest_of_one_bit_for_bit(two):
    for name in FORESTS:
        assert {found[name] for found in two} == {digest_forest(fit_forest(name))}


@pytest.mark.slow
def test_four_processes_give_the_tree_of_two(torchrun, two):
    four = torchrun("all_cases", 4)
    for name in (*CASES, *FORESTS):
        assert {found[name] for found in four} == {two[0][name]}


@pytest.mark.slow
def test_model_selection_is_identical_for_any_number_of_processes(torchrun):
    one, three = torchrun("default_fit", 1), torchrun("default_fit", 3)
    assert all(found == one[0] for found in three)
    assert one[0]["kept"] == one[0]["default"]


@pytest.mark.slow
def test_a_killed_fit_resumes_with_another_number_of_processes(torchrun, tmp_path):
    whole = torchrun("kept", 1, tmp_path / "whole")[0]["kept"]
    folder = tmp_path / "killed"
    folder.mkdir()
    for number, at in ((2, 2), (1, 3), (4, 5), (2, 9)):
        with pytest.raises(AssertionError, match="SIGKILL"):
            torchrun("kept", number, folder, KILLED_AT=str(at))
    assert {found["kept"] for found in torchrun("kept", 3, folder)} == {whole}


@pytest.mark.slow
def test_other_processes_raise_ProcessGroupError_when_one_dies(tmp_path):
    size, processes = 3, []
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = str(one.getsockname()[1])
    for rank in range(size):
        started = {"RANK": str(rank), "WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        command = [sys.executable, "-m", "tests.distributed.worker", "one_dies", str(tmp_path)]
        environment = {**os.environ, **started, "OMP_NUM_THREADS": "1", "TIMEOUT": "20"}
        processes.append(subprocess.Popen(command, cwd=ROOT, env=environment))
    waiting = time.monotonic() + 300
    while not (tmp_path / "dying").exists():
        assert time.monotonic() < waiting
        time.sleep(0.2)
    time.sleep(5)
    processes[-1].kill()
    for process in processes:
        process.wait(300)
    for rank in range(size - 1):
        found = json.loads((tmp_path / f"one_dies-{rank}-of-{size}.json").read_text())
        assert found["error"].startswith("ProcessGroupError: all processes of the group must answer")


@pytest.mark.slow
def test_the_command_line_writes_the_same_file_for_any_number_of_processes(tmp_path):
    X, y, _ = rows("level by level")
    table = tmp_path / "iris.csv"
    lines = [",".join([*map(str, x), label]) for x, label in zip(X, y, strict=True)]
    table.write_text("\n".join(["a,b,c,d,label", *lines]))
    files, quick = [], ("--depth", 2, "--epochs", 3, "--finetune-epochs", 3, "--shrinkage", 0)
    for number in (1, 2):
        files.append(tmp_path / f"{number}.crisp")
        done = run_cli(number, table, "-o", files[-1], *quick)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("leaves ·") == 1
    assert files[0].read_bytes() == files[1].read_bytes()
    of_numbers = []
    for number in (1, 2):
        of_numbers.append(tmp_path / f"{number} numbers.crisp")
        flags = (*quick, "--drop", "label", "--task", "regression")
        done = run_cli(number, table, "-o", of_numbers[-1], *flags, target="a")
        assert done.returncode == 0, done.stderr
    assert of_numbers[0].read_bytes() == of_numbers[1].read_bytes()
    forests = [tmp_path / f"{number} forest.crisp" for number in (1, 2)]
    for number, forest in enumerate(forests, start=1):
        done = run_cli(number, table, "-o", forest, "--trees", 3)
        assert done.returncode == 0, done.stderr
    assert forests[0].read_bytes() == forests[1].read_bytes()


def run_cli(n_processes, table, *flags, target="label"):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n_processes)]
    command += ["-m", "crisptree", "fit", str(table), "-t", target, "--l1", "0", "--input-noise", "0.3"]
    command += map(str, flags)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def test_categories_that_one_process_lacks_stay_categories():
    pandas = pytest.importorskip("pandas")
    parts = [pandas.DataFrame({"c": pandas.Categorical(values), "x": [1.0, 2.0]}) for values in ([1, 2], [2, 3])]
    rows = _concatenate(parts)
    assert list(rows["c"].cat.categories) == [1, 2, 3]
    assert list(rows["c"]) == [1, 2, 2, 3]
