"""Threads of a command: all available cores unless --jobs says otherwise, and none of it in model files."""

import pytest

import crisptree
from crisptree import threads
from crisptree.cli import predict
from tests.cli.running import QUICK, done, run


@pytest.mark.parametrize(("given", "n_jobs"), [((), -1), (("--jobs", "3"), 3), (("-j", "-1"), -1), (("-j", "-2"), -2)])
def test_a_command_takes_all_cores_by_default(shop, tmp_path, monkeypatch, given, n_jobs):
    seen = []
    route_rows = predict.route_rows
    monkeypatch.setattr(
        predict, "route_rows", lambda tree, X, jobs: seen.append(threads.n_threads(jobs)) or route_rows(tree, X, jobs)
    )
    done("predict", shop.model, shop.csv, "-o", tmp_path / "out.csv", *given)
    assert set(seen) == {threads.n_threads(n_jobs)}
    assert threads.n_threads(None) == 1


def test_the_number_of_cores_does_not_get_into_the_model_file(shop, tmp_path):
    done("fit", shop.csv, "--target", "buys", "--drop", "id", "-o", tmp_path / "model.crisp", *QUICK)
    assert crisptree.load(tmp_path / "model.crisp").n_jobs is None


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_no_threads_are_refused(shop, tmp_path, command):
    out = ("-o", tmp_path / "out.crisp", "--target", "buys") if command == "fit" else ("-o", tmp_path / "out.csv")
    rows = (shop.csv,) if command == "fit" else (shop.model, shop.csv)
    result = run(command, *rows, *out, "--jobs", "0")
    assert result.exit_code == 2
    assert "must be None, or a whole number other than 0" in result.text
