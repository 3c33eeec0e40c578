"""A tiny experiment from configuration to cells: resumed, changed, capped, interrupted."""

import ast
import importlib
from dataclasses import replace
from pathlib import Path

import pytest
from experiments.run import main
from experiments.table import expected
from experiments.trees import TimeCapReached

import experiments
from crisptree.datasets import load_digits
from experiments import along, cells, configs, ours, provenance, store


def cell_of(run, method, depth, seed):
    return run.store.get(cells.CELL, method, depth, seed)


def choice_of(run, method, depth, seed):
    return run.store.get(cells.SELECTION, method, depth, seed)


def cells_of(run):
    return {(cell["method"], cell["depth"], cell["seed"]): cell for cell in run.store.records(kind=cells.CELL)}


def test_every_cell_of_a_configuration_becomes_one_record_and_is_not_run_again(tiny):
    assert tiny() == 0
    assert [path.name for path in tiny.results.iterdir()] == ["digits.jsonl"]
    assert set(cells_of(tiny)) == set(expected(configs.read(tiny.path)))
    before = tiny.store.path.stat().st_mtime_ns
    assert tiny() == 0
    assert tiny.store.path.stat().st_mtime_ns == before

    cell = cell_of(tiny, "finetuned_em", 2, 4)
    assert set(cell["metrics"]) == {
        *("train_hard", "test_hard", "train_soft", "test_soft", "leaves", "splits", "mean_path_length")
    }
    assert (cell["commit"], cell["machine"]["gpu"], cell["metrics"]["leaves"]) == ("abc", None, 4)
    assert cell["metrics"]["mean_path_length"] == 2
    assert cell["config"]["rows"] == 1437
    assert cell_of(tiny, "co2", 2, 0)["metrics"]["test_soft"] is None
    growth, finetuning = (
        ours.best(
            {n: sum(choice_of(tiny, name, 2, seed)["validation_hard"][n] for seed in (3, 5)) for n in "12"}, (1, 2)
        )
        for name in ("greedy_em", "finetuned_em")
    )
    assert (cell["epochs"], cell["finetune_epochs"]) == (growth, finetuning)
    assert cell_of(tiny, "greedy_em", 2, 4)["epochs"] == growth
    assert choice_of(tiny, "finetuned_em", 2, 3)["config"]["parameters"]["epochs"] == growth
    assert cell["fingerprint"] == provenance.fingerprint(load_digits())
    assert choice_of(tiny, "finetuned_em", 2, 3)["config"]["rows"] == 1149
    for name in ("co2", "non_greedy"):
        chosen = choice_of(tiny, name, 2, 0)
        assert {"1", "100"} <= set(chosen["validation_hard"])
        assert len(chosen["validation_hard"]) == (4 if name == "non_greedy" else 3)
        cell = cell_of(tiny, name, 2, 0)
        assert (cell["nu"], cell["config"]["parameters"]["learning_rate"]) == (chosen["nu"], chosen["rate"])


def test_deep_trees_have_seeds_of_their_own(tiny):
    tiny.path.write_text(tiny.path.read_text().replace("seeds = [0]\nepochs = 1\nnus", DEEP + "epochs = 1\nnus"))
    tiny("--methods", "axis_aligned")
    assert set(cells_of(tiny)) == {("axis_aligned", 1, seed) for seed in (0, 1)} | {("axis_aligned", 2, 0)}
    wanted = {key for key in expected(configs.read(tiny.path)) if key[0] == "axis_aligned"}
    assert set(cells_of(tiny)) == wanted


DEEP = "seeds = [0, 1]\ndeep_from = 2\ndeep_seeds = [0]\n"


def test_choices_can_be_made_alone_and_the_cells_rest_on_them(tiny):
    tiny("--stage", "choose", "--methods", "greedy_em", "--seeds", "5")
    assert not cells_of(tiny)
    assert {(record["method"], record["seed"]) for record in tiny.store.records()} == {("greedy_em", 5)}
    tiny("--stage", "choose", "--methods", "co2", "--depths", "1")
    assert choice_of(tiny, "co2", 2, 0) is None
    before = choice_of(tiny, "co2", 1, 0)
    tiny("--methods", "co2", "--depths", "1", "--commit", "later")
    assert choice_of(tiny, "co2", 1, 0) == before
    assert cell_of(tiny, "co2", 1, 0)["commit"] == "later"


def test_filters_leave_the_rest_for_later_and_give_the_same_cells(tiny):
    tiny("--methods", "greedy_em,axis_aligned", "--depths", "1", "--seeds", "0,3")
    before = cells_of(tiny)
    assert set(before) == {("axis_aligned", 1, 0), ("greedy_em", 1, 3)}
    tiny("--methods", "greedy_em,axis_aligned", "--commit", "later")
    after = cells_of(tiny)
    assert len(after) > len(before)
    assert {key for key, cell in after.items() if cell["commit"] == "abc"} == set(before)
    assert all(after[key] == cell for key, cell in before.items())


def test_a_cell_of_another_configuration_is_run_again(tiny):
    names = ("--methods", "axis_aligned,co2")
    tiny(*names)
    before = cells_of(tiny)
    tiny.path.write_text(tiny.path.read_text().replace("epochs = 1\nnus", "epochs = 2\nnus"))
    tiny(*names, "--commit", "later")
    assert set(cells_of(tiny)) == set(before)
    assert {cell["commit"] for cell in cells_of(tiny).values()} == {"later"}
    assert cell_of(tiny, "co2", 1, 0)["config"]["parameters"]["epochs"] == 2


def test_depths_reached_before_the_time_cap_count_and_deeper_ones_are_missing(tiny, monkeypatch):
    def too_slow(*_):
        raise TimeCapReached

    monkeypatch.setattr(along, "grow_on", too_slow)
    names = ("--methods", "co2,non_greedy")
    tiny(*names)
    assert [cell_of(tiny, "co2", depth, 0)["status"] for depth in (1, 2)] == [cells.DONE, cells.TIME_CAP]
    assert [cell_of(tiny, "non_greedy", depth, 0)["status"] for depth in (1, 2)] == [cells.DONE, cells.TIME_CAP]
    assert cell_of(tiny, "co2", 2, 0)["metrics"] is None
    before = tiny.store.path.stat().st_mtime_ns
    tiny(*names)
    assert tiny.store.path.stat().st_mtime_ns == before
    monkeypatch.undo()
    tiny(*names, "--time-cap", "20000", "--commit", "later")
    deeper = cell_of(tiny, "non_greedy", 2, 0)
    assert (deeper["status"], deeper["commit"]) == (cells.DONE, "later")
    assert cell_of(tiny, "co2", 1, 0)["commit"] == "abc"


def test_a_time_cap_stops_baselines_and_the_soft_tree_but_not_ours(tiny):
    tiny("--time-cap", "0.000001", "--methods", "axis_aligned,soft,greedy_em", "--seeds", "0,3")
    assert cell_of(tiny, "axis_aligned", 1, 0)["status"] == cells.TIME_CAP
    assert cell_of(tiny, "soft", 1, 0)["status"] == cells.TIME_CAP
    assert cell_of(tiny, "greedy_em", 2, 3)["status"] == cells.DONE


def test_an_interruption_leaves_whole_records_and_the_next_run_goes_on(tiny, monkeypatch, capsys):
    replace, calls = store.os.replace, []

    def interrupted(*paths):
        calls.append(paths)
        if len(calls) == 24:
            raise KeyboardInterrupt
        replace(*paths)

    names = ("--methods", "greedy_em,axis_aligned")
    monkeypatch.setattr(store.os, "replace", interrupted)
    assert tiny(*names) == 130
    assert "the same command goes on" in capsys.readouterr().out
    assert [path.name for path in tiny.results.iterdir()] == ["digits.jsonl"]
    before = cells_of(tiny)
    monkeypatch.undo()
    assert tiny(*names, "--commit", "later") == 0
    after = cells_of(tiny)
    assert 0 < len(before) < len(after)
    assert {key for key, cell in after.items() if cell["commit"] == "abc"} == set(before)


def test_data_that_is_not_there_is_named_and_left_out(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CRISPTREE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["sensit", "--results", str(tmp_path / "results")]) == 0
    said = capsys.readouterr().out
    assert "SensIT is left out: " in said
    assert str(tmp_path) in said
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"digits"', '"cats"', "`data` must be one of digits"),
        ("depths = [1, 2]", "depths = [2, 1]", "`depths` must rise"),
        ("time_cap", "cap", "must be among methods, seeds, epochs, time_cap, .*; got cap"),
        ('"axis_aligned"', '"c45"', "`methods` must be among"),
        ("seeds = [3, 4]", "seeds = []", r"`seeds` of \[ours\] must hold a seed"),
    ],
)
def test_a_wrong_configuration_reports_what_must_hold(tiny, old, new, message):
    tiny.path.write_text(tiny.path.read_text().replace(old, new))
    with pytest.raises(ValueError, match=message):
        configs.read(tiny.path)
    assert tiny() == 2


def test_all_configurations_of_the_paper_follow_its_protocol():
    for path in configs.find([]):
        config = configs.read(path)
        assert config.data == path.stem
        assert config.depths == tuple(range(2, 20, 2))
        assert config.ours.epochs == (20, 35, 50, 65)
        assert (config.fingerprint is not None) == (path.stem in ("mnist", "connect4", "fashion_mnist"))
        assert len(config.ours.seeds) == 5


def test_data_of_the_same_shape_have_another_fingerprint():
    data = load_digits()
    other = replace(data, X_test=data.X_test[::-1])
    assert provenance.fingerprint(data) == provenance.fingerprint(load_digits()) != provenance.fingerprint(other)


def test_a_commit_without_git_is_unknown_and_changes_are_reported(tmp_path, monkeypatch):
    answers = {"rev-parse": "abc", "status": " M src/crisptree/tree.py"}
    monkeypatch.setattr(provenance, "_git", lambda name, *_: answers[name])
    assert provenance.commit(tmp_path) == "abc+changes"
    assert not provenance.is_known("abc+changes")
    monkeypatch.undo()
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    assert provenance.commit(tmp_path) == "unknown"


PUBLIC = ("crisptree", "crisptree.datasets", "crisptree.metrics", "crisptree.plots", "crisptree.splits")


def test_experiments_use_the_public_interface_only():
    for path in Path(experiments.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "crisptree":
                assert node.module in PUBLIC, f"{path.name} imports {node.module}"
                names = {name.name for name in node.names}
                assert names <= set(importlib.import_module(node.module).__all__), f"{path.name} imports {names}"
            elif isinstance(node, ast.Import):
                ours = {name.name for name in node.names if name.name.split(".")[0] == "crisptree"}
                assert ours <= set(PUBLIC), f"{path.name} imports {ours}"
