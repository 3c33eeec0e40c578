"""Trials of more epochs of non-greedy training on a tiny configuration."""

from experiments import cells, more_epochs


def test_every_depth_with_a_selected_nu_is_tried_once_with_all_epochs(tiny, capsys):
    places = [str(tiny.path), "--results", str(tiny.results), "--trees", str(tiny.results.parent / "trees")]

    def run(*more):
        assert more_epochs.main([*places, "--commit", "abc", *more]) == 0
        return capsys.readouterr().out

    assert "0 records to make" in run("--dry-run")
    tiny("--methods", "non_greedy", "--depths", "1", "--stage", "choose")
    capsys.readouterr()
    assert "1 records to make (1)" in run("--dry-run")
    run()
    (record,) = tiny.store.records(kind=cells.EPOCHS)
    selected = tiny.store.get(cells.SELECTION, "non_greedy", 1, 0)
    assert (record["nu"], record["rate"], record["depth"]) == (selected["nu"], selected["rate"], 1)
    assert sorted(record["validation_hard"]) == ["1", "2"]
    assert record["validation_hard"]["1"] == max(selected["validation_hard"].values())  # the epochs of the selection
    assert "0 records to make" in run("--dry-run")
    tiny("--methods", "non_greedy", "--depths", "1", "--stage", "choose", "--dry-run")
    assert "records to make" not in capsys.readouterr().out
    tiny.store.put(selected | {"nu": 77.0})
    assert "1 records to make" in run("--dry-run")
