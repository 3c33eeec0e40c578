"""A run in several processes: the units, their order, what they lack, and the same records as one process makes."""

from pathlib import Path

import pytest
from experiments.session import Filter
from experiments.table import expected

from experiments import cells, configs, parallel

EVERYTHING = Filter()


def planned(tiny, wanted=EVERYTHING):
    return parallel.waves(configs.read(tiny.path), tiny.path, wanted)


def test_units_hold_every_cell_once():
    for path in configs.find([]):
        config = configs.read(path)
        units = [unit for wave in parallel.waves(config, path, EVERYTHING) for unit in wave if unit.stage == "all"]
        found = [(name, d, s) for unit in units for name in unit.methods for d in unit.depths for s in unit.seeds]
        assert sorted(found) == sorted(expected(config))


def test_what_others_rest_on_comes_first(tiny):
    waves = planned(tiny)
    assert {unit.stage for wave in waves[:2] for unit in wave} == {"choose"}
    assert {unit.stage for wave in waves[2:] for unit in wave} == {"all"}
    assert {unit.methods for unit in waves[3]} == {("non_greedy",)}
    tuned = {(f"{stage}_{algorithm}",) for stage in ("finetuned", "continued") for algorithm in ("em", "alternating")}
    assert {unit.methods for unit in waves[1]} == tuned | {("non_greedy",)}
    assert {("greedy_em",), ("greedy_alternating",)} <= {unit.methods for unit in waves[0]}
    assert ("co2",) in {unit.methods for unit in waves[0]}
    assert ("co2",) in {unit.methods for unit in waves[2]}


def test_a_filter_leaves_choices_their_own_seeds(tiny):
    waves = planned(tiny, Filter(frozenset({"greedy_em"}), frozenset({1}), frozenset({4})))
    choices, _, trained, _ = waves
    assert [unit.seeds for unit in choices] == [(3,), (5,)]
    assert [(unit.methods, unit.seeds, unit.depths) for unit in trained] == [(("greedy_em",), (4,), (1,))]


def test_finetuned_trees_need_the_choices_of_greedy_ones(tiny):
    for name in ("finetuned_em", "continued_em"):
        waves = planned(tiny, Filter(frozenset({name})))
        assert [{unit.methods for unit in wave} for wave in waves[:2]] == [{("greedy_em",)}, {(name,)}]


def test_a_choice_that_lacks_candidates_of_a_larger_grid_is_missing(tiny, capsys):
    names = ("--methods", "co2", "--depths", "1")
    tiny(*names)
    tiny.path.write_text(tiny.path.read_text().replace("nus = [1, 100]", "nus = [1, 100, 1000]"))
    capsys.readouterr()
    tiny(*names, "--dry-run")
    assert "choices of co2, seed 0, depth 1: 1 records to make" in capsys.readouterr().out


def test_a_dry_run_makes_nothing_and_guesses_from_records(tiny, capsys):
    wanted = ("--methods", "axis_aligned,greedy_em", "--dry-run")
    assert tiny(*wanted) == 0
    assert "2 records to make, no record to guess from" in capsys.readouterr().out
    assert not tiny.results.exists()
    tiny("--methods", "axis_aligned", "--depths", "1")
    capsys.readouterr()
    record = tiny.store.get(cells.CELL, "axis_aligned", 1, 0)
    tiny.store.put(record | {"depth": 2, "seconds": 50.0, "status": cells.DONE, "seed": 9})
    assert tiny(*wanted, "--jobs", "4") == 0
    said = capsys.readouterr().out
    assert "axis_aligned, seed 0, depth 1, 2: 1 records to make, about 50 s" in said
    assert "with 4 at a time" in said
    assert "These are times of the records' machines: " in said


def test_a_dry_run_counts_the_growth_of_non_greedy_candidates_once_and_takes_continued_trees_for_finetuned_ones(tiny):
    def cell(method):
        more = {"seconds": 50.0, "seconds_growing": 40.0, "data": "digits"}
        return {"kind": cells.CELL, "method": method, "depth": 1, "seed": 9} | more

    config = configs.read(tiny.path)
    units = {unit.methods: unit for unit in planned(tiny, Filter(depths=frozenset({1})))[1]}
    for names, known, seconds in (
        (("non_greedy",), "non_greedy", 40 + 4 * 10),  # two ν, two steps
        (("continued_em",), "finetuned_em", 40 + 2 * 10),  # one start, two numbers of epochs
    ):
        assert units[names].config == config
        assert parallel.estimate(units[names], tiny.results, [cell(known)]).seconds == seconds
    (greedy,) = {unit for unit in planned(tiny, Filter())[0] if unit.methods == ("greedy_em",) and unit.seeds == (3,)}
    cells_of_both = [cell("greedy_em"), cell("greedy_em") | {"depth": 2}]
    assert parallel.estimate(greedy, tiny.results, cells_of_both).seconds == 2 * 40 + 2 * 2 * 10
    for depth in (1, 2):
        tried = {"kind": cells.SELECTION, "method": "greedy_em", "depth": depth, "seed": 3, "epochs": None}
        tiny.store.put(tried | {"validation_hard": {"1": 0.5}, "config": {"parameters": {}}})
    assert parallel.estimate(greedy, tiny.results, cells_of_both).seconds == 40 + 2 * 10, "one trial is left"


def test_a_dry_run_sees_broken_off_choices_and_cells_of_other_epochs(tiny, capsys):
    names = ("--methods", "greedy_em", "--depths", "1")
    tiny(*names)
    capsys.readouterr()
    assert tiny(*names, "--dry-run") == 0
    assert "records to make" not in capsys.readouterr().out
    choices = [tiny.store.get(cells.SELECTION, "greedy_em", 1, seed) for seed in (3, 5)]
    used = tiny.store.get(cells.CELL, "greedy_em", 1, 3)["epochs"]
    better = {str(epochs): float(epochs != used) for epochs in (1, 2)}
    for choice in choices:
        tiny.store.put(choice | {"validation_hard": better})
    tiny(*names, "--dry-run")
    assert capsys.readouterr().out.count("1 records to make") == 2, "a cell of each seed was trained with the loser"
    tiny.store.put(choices[0] | {"validation_hard": {"1": 0.5}, "epochs": None})
    tiny(*names, "--dry-run")
    assert "choices of greedy_em, seed 3, depth 1: 1 records to make" in capsys.readouterr().out


def test_a_dry_run_sees_cells_of_another_nu_than_the_chosen_one(tiny, capsys):
    names = ("--methods", "co2", "--depths", "1")
    tiny(*names)
    capsys.readouterr()
    tiny(*names, "--dry-run")
    assert "records to make" not in capsys.readouterr().out
    choice = tiny.store.get(cells.SELECTION, "co2", 1, 0)
    tiny.store.put(choice | {"nu": 77.0})
    tiny(*names, "--dry-run")
    assert "co2, seed 0, depth 1: 1 records to make" in capsys.readouterr().out


@pytest.mark.slow
def test_several_processes_make_the_records_of_one(tiny, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ("--methods", "axis_aligned,non_greedy", "--depths", "1")
    assert tiny(*names, "--jobs", "2") == 0
    together = tiny.store.records()
    Path(tiny.store.path).unlink()
    assert tiny(*names) == 0
    for one, other in zip(together, tiny.store.records(), strict=True):
        for name in ("kind", "method", "depth", "seed", "config", "metrics", "validation_hard", "nu"):
            assert one.get(name) == other.get(name)


@pytest.mark.slow
def test_a_unit_that_fails_is_reported(tiny, capsys):
    tiny.path.write_text(tiny.path.read_text().replace("epochs = 1\nnus = [1, 100]", "epochs = -1\nnus = [1]"))
    assert tiny("--methods", "co2", "--depths", "1", "--jobs", "2") == 1
    assert "`epochs` must be" in capsys.readouterr().out
