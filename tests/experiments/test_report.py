"""Claims, tables and the figure on fabricated cells."""

import pytest
from experiments.cells import CELL, DONE, SELECTION, TIME_CAP
from experiments.configs import Config, Ours, Rivals, Soft
from experiments.figure import draw
from experiments.table import Results

from experiments import claims, report


def config(data="mnist", depths=(2, 4, 8), seeds=(0, 1)):
    rivals = Rivals(("oc1", "co2"), (0,), 20, 60)
    return Config(data, data.upper(), depths, Ours(("em", "alternating"), seeds, (20,)), rivals, Soft((0,), 20, 4, 60))


def cell(method, depth, seed, test, train=0.9, soft=None, status=DONE):
    metrics = {"test_hard": test, "train_hard": train, "test_soft": soft, "train_soft": soft}
    machine = {"cpu": "a processor", "cores": 2, "gpu": None}
    return {
        "kind": CELL,
        "method": method,
        "depth": depth,
        "seed": seed,
        "status": status,
        "metrics": metrics if status == DONE else None,
        "commit": "0123456789abcdef",
        "machine": machine,
        "data": "mnist",
        "config": {"parameters": {"random_state": seed, "epochs": 20}},
    }


def results(changes=(), **settings):
    """Finetuned 0.80 ± at depth 2, 0.90 at 4, 0.95 at 8; rivals 0.70, 0.80, 0.85; then the changes."""
    made = {}
    for depth, level in ((2, 0.0), (4, 0.1), (8, 0.15)):
        for seed, shift in ((0, -0.01), (1, 0.01)):
            for name, test in (("greedy", 0.75), ("finetuned", 0.80)):
                for algorithm in ("em", "alternating"):
                    key = (f"{name}_{algorithm}", depth, seed)
                    made[key] = cell(*key, test + level + shift, train=0.99, soft=0.5)
        for name in ("oc1", "co2"):
            made[name, depth, 0] = cell(name, depth, 0, 0.70 + level)
    for key, values in changes:
        if values is None:
            del made[key]
        else:
            made[key] = cell(*key, **values)
    return Results.of(config(**settings), made.values())


def verdict(judgement):
    return judgement.verdict


def test_a_claim_is_confirmed_where_every_comparison_agrees():
    found = {"mnist": results()}
    judged = claims.at_all_depths(found, "mnist", "test_hard")
    assert judged.verdict == claims.CONFIRMED
    assert "higher in 6 of 6 comparisons" in judged.words
    assert "80.00 ± 1.41 against 70.00 of OC1 (+10.00)" in judged.words
    assert claims.at_all_depths(found, "mnist", "train_hard").verdict == claims.CONFIRMED


def test_one_better_or_equal_rival_refutes_and_is_named():
    for theirs in (0.96, 0.95):
        judged = claims.at_all_depths({"mnist": results([(("co2", 8, 0), {"test": theirs})])}, "mnist", "test_hard")
        assert judged.verdict == claims.REFUTED
        assert "Not higher at depth 8" in judged.words
        assert "of CO2" in judged.words


def test_a_missing_cell_is_no_confirmation_and_the_judged_ones_are_named():
    changes = [(("co2", 8, 0), {"test": None, "status": TIME_CAP}), (("oc1", 4, 0), None)]
    judged = claims.at_all_depths({"mnist": results(changes)}, "mnist", "test_hard")
    assert judged.verdict == "confirmed where judged (4 of 6 comparisons)"
    assert "Judged: OC1 at 2, 8; CO2 at 2, 4." in judged.words
    nothing = {"mnist": Results.of(config(), [])}
    assert {verdict(judgement) for judgement in claims.judge(nothing)} == {claims.OPEN}
    assert {verdict(judgement) for judgement in claims.judge({})} == {claims.OPEN}


def test_a_shallow_tree_is_held_against_the_rivals_best_depth():
    found = {"mnist": results()}
    judged = claims.already_above(found, "mnist", 4)
    assert judged.verdict == claims.CONFIRMED
    assert "90.00 ± 1.41 against 85.00 of OC1 at depth 8 (+5.00)" in judged.words
    assert claims.already_above(found, "mnist", 2).verdict == claims.REFUTED
    gap = {"mnist": results([(("co2", 8, 0), None)])}
    assert claims.already_above(gap, "mnist", 4).verdict == "confirmed where judged (2 of 3 comparisons)"


def test_two_schemes_are_equal_within_half_a_point_or_the_spread():
    assert claims.equally_good({"mnist": results()}, "mnist").verdict == claims.CONFIRMED
    within = [(("finetuned_alternating", 8, seed), {"test": test}) for seed, test in ((0, 0.92), (1, 0.94))]
    judged = claims.equally_good({"mnist": results(within)}, "mnist")
    assert judged.verdict == claims.CONFIRMED  # 2 points apart, the spread of a difference is 2
    assert "finetuned, depth 8: +2.00 (spread 2.00)" in judged.words
    apart = [(("finetuned_alternating", 8, seed), {"test": test}) for seed, test in ((0, 0.91), (1, 0.93))]
    judged = claims.equally_good({"mnist": results(apart)}, "mnist")
    assert judged.verdict == claims.REFUTED
    assert "1 of 6 differ" in judged.words
    fewer = results([(("greedy_em", 2, seed), None) for seed in (0, 1)])
    assert claims.equally_good({"mnist": fewer}, "mnist").verdict == "confirmed where judged (5 of 6 comparisons)"


@pytest.mark.parametrize(("target", "expected"), [(94.3, claims.CONFIRMED), (95.1, claims.REFUTED)])
def test_a_target_is_reached_by_the_mean(target, expected):
    judged = claims.reaches({"mnist": results()}, "mnist", 8, target)
    assert judged.verdict == expected
    assert "95.00 ± 1.41 over 2 seeds" in judged.words


def test_tables_show_missing_cells_with_their_reason_and_keep_soft_scores_apart():
    changes = [(("co2", 8, 0), {"test": None, "status": TIME_CAP}), (("oc1", 8, 0), None), (("greedy_em", 2, 1), None)]
    page = report.page([results(changes), Results.of(config("connect4"), [])], ["paper.png"])
    assert "| CO2 | 70.00 | 80.00 | — (time cap) |" in page
    assert "| OC1 | 70.00 | 80.00 | — |" in page
    assert "| Greedy (EM) | 74.00 (1 of 2 seeds) | 85.00 ± 1.41 | 90.00 ± 1.41 |" in page
    assert "| Soft tree (visits all leaves) | — | — | — |" in page
    assert "27 of 32 cells are finished, 1 were given up at the time cap" in page
    soft = page[page.index("Soft test accuracy") :]
    assert "| OC1 |" not in soft
    assert "| Greedy (EM) | 50.00 (1 of 2 seeds) |" in soft
    assert "No cell has run: all 32 are missing." in page


def test_cells_that_the_configuration_does_not_ask_for_are_left_out():
    found = Results.of(config(seeds=(0,)), [cell("finetuned_em", 2, seed, 0.8 + seed / 10) for seed in (0, 1)])
    assert found.get("finetuned_em", 2, "test_hard").values == (80.0,)


def test_seeds_that_were_trained_with_other_parameters_are_not_averaged():
    one, other = (cell("finetuned_em", 2, seed, 0.8) for seed in (0, 1))
    other["config"]["parameters"]["epochs"] = 21
    with pytest.raises(ValueError, match=r"finetuned_em, depth 2 must come from one configuration; seeds 0 and 1"):
        Results.of(config(), [one, other])


def test_the_figure_has_test_above_train_and_rivals_dashed():
    figure = draw([results(), results(data="connect4")])
    assert len(figure.axes) == 4
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert lines["Finetuned (EM)"].get_linestyle() == "-"
    assert lines["CO2"].get_linestyle() == "--"
    assert lines["OC1"].get_ydata().tolist() == pytest.approx([70, 80, 85])
    assert figure.axes[2].get_lines()[0].get_ydata().tolist() == pytest.approx([99, 99, 99])


def test_the_report_reads_cells_and_writes_a_page_beside_its_figure(tmp_path, tiny, capsys):
    tiny.store.put(cell("axis_aligned", 1, 0, 0.5), cell("axis_aligned", 1, 0, 0.9) | {"kind": SELECTION})
    assert report.main([str(tiny.path), "--results", str(tiny.results)]) == 0
    page = (tmp_path / "results.md").read_text()
    assert "| Axis-aligned | 50.00 | — |" in page
    assert "`0123456789ab` on a processor, 2 cores" in page
    assert "![Accuracy over the maximum depth](results.png)" in page
    assert (tmp_path / "results.png").stat().st_size > 1000
    assert "written: " in capsys.readouterr().out
