"""Claims, tables and the figure on fabricated cells."""

from dataclasses import replace

import pytest
from experiments.cells import CELL, DONE, EPOCHS, SELECTION, TIME_CAP
from experiments.comparing import Comparison
from experiments.configs import Baselines, Config, Ours, Soft
from experiments.figure import draw_depths, draw_schemes
from experiments.methods import SEARCHES
from experiments.published import Published
from experiments.table import Results, Summary, chosen_epochs

from experiments import claims, report


def config(data="mnist", depths=(2, 4, 8), seeds=(0, 1)):
    baselines = Baselines(("oc1", "co2"), (0,), 20, 60)
    return Config(
        data, data.upper(), depths, Ours(("em", "alternating"), seeds, (20,)), baselines, Soft((0,), 20, 4, 60)
    )


def cell(method, depth, seed, test, train=0.9, soft=None, status=DONE, search="now"):
    metrics = {"test_hard": test, "train_hard": train, "test_soft": soft, "train_soft": soft}
    machine = {"cpu": "a processor", "cores": 2, "gpu": None}
    return {
        "kind": CELL,
        "method": method,
        "depth": depth,
        "seed": seed,
        "status": status,
        "seconds": 1800.0,
        "metrics": metrics if status == DONE else None,
        "commit": "0123456789abcdef",
        "machine": machine,
        "data": "mnist",
        "epochs": 20,
        "config": {"parameters": {"random_state": seed, "epochs": 20}}
        | ({"search": SEARCHES[method]} if method in SEARCHES and search else {}),
    }


def results(changes=(), **settings):
    """Finetuned 0.80 ± at depth 2, 0.90 at 4, 0.95 at 8; baselines 0.70, 0.80, 0.85; then the changes."""
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


def page_of(found, stem="paper"):
    """The page in one line: its prose is wrapped."""
    return " ".join(report.page(found, stem).split())


def test_two_accuracies_tie_within_the_spread_of_a_difference_between_seeds():
    ours = Summary((79.0, 81.0))  # spread √2
    for theirs, outcome in (((76.0, 78.0), "higher"), ((77.1, 79.1), "tied"), ((82.0, 84.0), "lower")):
        assert Comparison(ours, Summary(theirs), "depth 2", "CO2").outcome() == outcome


def test_a_baseline_with_one_seed_is_taken_to_spread_as_ours_does():
    ours = Summary((79.0, 81.0))
    assert Comparison(ours, Summary((78.1,)), "depth 2", "CO2").width == pytest.approx(2.0)
    assert Comparison(ours, Summary((78.1,)), "depth 2", "CO2").outcome() == "tied"
    assert Comparison(Summary((80.0,)), Summary((79.9,)), "depth 2", "CO2").outcome() == "higher"


def test_at_all_depths_needs_every_comparison():
    result = claims.at_all_depths({"mnist": results()}, "mnist")
    assert result.verdict == claims.CONFIRMED
    assert result.counts == ("6 / 0 / 0", "6 / 0 / 0")


def test_one_lower_depth_refutes_and_a_tie_does_neither():
    for theirs, verdict, outcome in ((0.98, claims.REFUTED, "lower"), (0.95, claims.NOT_REFUTED, "tied")):
        result = claims.at_all_depths({"mnist": results([(("co2", 8, 0), {"test": theirs})])}, "mnist")
        assert result.verdict == verdict
        assert result.tally[outcome] == 1
        assert f"depth 8: 95.00 ± 1.41 against {100 * theirs:.2f} of CO2" in result.words


def test_a_missing_cell_is_no_confirmation():
    changes = [(("co2", 8, 0), {"test": None, "status": TIME_CAP}), (("oc1", 4, 0), None)]
    result = claims.at_all_depths({"mnist": results(changes)}, "mnist")
    assert result.verdict == "confirmed, where tested (4 of 6)"
    nothing = {"mnist": Results.of(config(), [])}
    for found in (nothing, {}):
        assert {each.verdict for each in claims.evaluate_claims(found)} == {claims.OPEN}


def test_the_claims_on_sensit_and_protein_are_listed_where_nothing_has_run():
    open_claims = [each for each in claims.evaluate_claims({"mnist": results()}) if each.verdict == claims.OPEN]
    assert {(each.data, each.claim.split(" with")[0]) for each in open_claims} >= {
        ("SensIT", "better than or on par"),
        ("Protein", "better than or on par"),
    }


def test_generally_is_a_share_of_the_comparisons():
    def with_better(number):
        keys = [(name, depth, 0) for name in ("oc1", "co2") for depth in (2, 4, 8)][:number]
        return {"mnist": results([(key, {"test": 0.5, "train": 0.999}) for key in keys])}

    assert claims.generally(with_better(1), "mnist").verdict == claims.CONFIRMED  # 5 of 6
    result = claims.generally(with_better(2), "mnist")
    assert result.verdict == claims.REFUTED  # 4 of 6
    assert result.counts == ("4 / 0 / 2", "4 / 0 / 2")


def test_a_shallow_tree_is_held_against_the_baselines_best_depth():
    found = {"mnist": results()}
    assert claims.already_above(found, "mnist", 4).verdict == claims.CONFIRMED
    result = claims.already_above(found, "mnist", 2)
    assert result.verdict == claims.REFUTED
    assert "depth 2: 80.00 ± 1.41 against 85.00 of OC1 at depth 8 (-5.00" in result.words


def test_two_schemes_are_equal_where_most_comparisons_tie():
    assert claims.equally_good({"mnist": results()}, "mnist").verdict == claims.CONFIRMED

    def apart(*depths):
        shifted = [(("finetuned_alternating", depth, seed), seed) for depth in depths for seed in (0, 1)]
        return {"mnist": results([(key, {"test": 0.6 + seed / 50}) for key, seed in shifted])}

    result = claims.equally_good(apart(8), "mnist")
    assert result.verdict == claims.CONFIRMED
    assert result.counts == ("1 / 5 / 0", "1 / 5 / 0")
    assert claims.equally_good(apart(4, 8), "mnist").verdict == claims.REFUTED


def test_the_page_reports_from_which_depth_on_ours_is_higher():
    said = claims.higher_from(results([(("co2", 2, 0), {"test": 0.9})]))
    assert "from depth 4 on Finetuned (EM) has the higher mean in all 4 finished comparisons" in said
    assert "at the largest depth a baseline has the higher mean" in claims.higher_from(
        results([(("co2", 8, 0), {"test": 0.99})])
    )


def test_the_summary_shows_the_hardest_comparison_of_every_verdict():
    said = page_of([results([(("co2", 2, 0), {"test": 0.9})])])
    assert "| **refuted** | 5 / 0 / 1 | depth 2: 80.00 against 90.00 of CO2 (-10.00) |" in said
    assert "| **confirmed** | 1 / 0 / 0 | depth 8: 95.00 against 85.59 of Axis-aligned, published (+9.41) |" in said
    narrowest = claims.at_all_depths({"mnist": results([(("co2", 4, 0), {"test": 0.85})])}, "mnist").hardest
    assert narrowest.brief == "depth 4: 90.00 against 85.00 of CO2 (+5.00)"


def test_claims_that_nothing_has_tested_are_listed_once_with_their_data_sets():
    said = page_of([results()])
    assert "Open, as no cell has run: better than or on par with Non-greedy on test rows at all depths" in said
    assert "(SensIT, Protein)" in said
    assert "| SensIT | better than" not in said


def test_seeds_of_a_baseline_that_left_nothing_to_select_are_averaged_together():
    fixed, free = cell("co2", 2, 0, 0.7), cell("co2", 2, 1, 0.8)
    free["config"]["parameters"] |= {"optimizer": "auto", "n_init": "auto", "leaf_model": "auto"}
    asked = config()
    asked = replace(asked, baselines=replace(asked.baselines, seeds=(0, 1)))
    assert Results.of(asked, [fixed, free]).get("co2", 2, "test_hard").values == pytest.approx((70.0, 80.0))
    fixed["config"]["parameters"]["leaf_model"] = "linear"
    assert len(Results.of(asked, [fixed, free]).get("co2", 2, "test_hard").values) == 1


def test_the_page_reports_what_more_epochs_would_give_a_baseline():
    assert "epochs in place of" not in page_of([results()])
    trials = [
        {"kind": EPOCHS, "method": "non_greedy", "depth": depth, "seed": 0, "validation_hard": {"20": 0.7, "35": best}}
        for depth, best in ((2, 0.72), (4, 0.69))
    ]
    found = Results.of(config(), [one for group in results().done.values() for one in group] + trials)
    said = page_of([found])
    assert "the best of 20, 35 epochs in place of 20 would raise the accuracy of Non-greedy" in said
    assert "by 1.00 points in the mean over 2 depths, by 2.00 at depth 2 at most" in said


def test_published_values_are_judged_apart_with_their_sources():
    published = Published.read()
    found = {"mnist": results(), "connect4": Results.of(config("connect4"), [])}
    known, _, shallow, _, _ = published.evaluate_claims(found)
    assert (known.data, known.verdict, known.counts) == ("MNIST", claims.CONFIRMED, ("1 / 0 / 0", "1 / 0 / 0"))
    assert "of Axis-aligned, published" in known.words
    assert shallow.counts == ("1 / 1 / 0", "1 / 1 / 0")  # 90.0 ± 1.4 against 85.59 and 90 ± 1
    header, rows = published.table(list(found.values()))
    assert header == ["", "MNIST", "CONNECT4"]
    assert ["OC1", "", ""] in rows
    assert all(value.source in published.sources for value in published.values)


def test_tables_show_missing_cells_with_their_reason_and_keep_soft_scores_apart():
    changes = [(("co2", 8, 0), {"test": None, "status": TIME_CAP}), (("oc1", 8, 0), None), (("greedy_em", 2, 1), None)]
    changes.append((("oc1", 2, 0), {"test": 0.7, "search": None}))
    page = page_of([results(changes), Results.of(config("connect4"), [])])
    assert "| CO2 (re-implemented) | 70.00 | 80.00 | — (time cap) |" in page
    assert "| OC1 (re-implemented) | 70.00 † | 80.00 | — (not run) |" in page
    assert page.count("† This cell is of an earlier set-up") == 1
    assert "One after another the fits took 13.5 h" in page
    assert "| Greedy (EM) | 74.00 (1 of 2 seeds) | 85.00 ± 1.41 | 90.00 ± 1.41 |" in page
    assert "| Soft tree (visits all leaves) | — (not run) | — (not run) | — (not asked) |" in page
    assert "27 of 32 cells are finished, 1 were given up at the time cap" in page
    soft = page[page.index("Soft test accuracy") :]
    assert "OC1" not in soft[: soft.index("## CONNECT4")]
    assert "| Greedy (EM) | 50.00 (1 of 2 seeds) |" in soft
    assert "No cell has run: all 32 are missing." in page


def test_cells_that_the_configuration_does_not_list_are_left_out():
    found = Results.of(config(seeds=(0,)), [cell("finetuned_em", 2, seed, 0.8 + seed / 10) for seed in (0, 1)])
    assert found.get("finetuned_em", 2, "test_hard").values == (80.0,)


def test_seeds_that_were_trained_with_other_parameters_are_not_averaged():
    group = [cell("finetuned_em", 2, seed, 0.8 + seed / 100) for seed in (0, 1, 2)]
    group[1]["config"]["parameters"]["epochs"] = 21
    found = Results.of(config(seeds=(0, 1, 2)), group).get("finetuned_em", 2, "test_hard")
    assert found.values == pytest.approx((80.0, 82.0))
    assert found.is_partial


def test_a_baselines_cells_of_now_go_before_those_of_an_earlier_set_up():
    wanted = config()
    wanted = replace(wanted, baselines=replace(wanted.baselines, seeds=(0, 1, 2)))
    group = [cell("oc1", 2, seed, 0.8 + seed / 100, search=None if seed < 2 else "now") for seed in (0, 1, 2)]
    found = Results.of(wanted, group)
    assert found.get("oc1", 2, "test_hard").values == pytest.approx((82.0,))
    assert not found.is_earlier("oc1", 2)


def with_epochs(record, epochs):
    return record | {"config": {"parameters": record["config"]["parameters"] | {"epochs": epochs}}}


def test_finetuned_cells_that_start_from_another_tree_than_greedy_are_marked():
    assert "* MNIST: Finetuned starts from the Greedy line's tree in 6 of 6 cases." in page_of([results()])
    other = [with_epochs(cell("greedy_em", 2, seed, 0.7), 35) for seed in (0, 1)]
    both = [*other, *(cell("finetuned_em", 2, seed, 0.8) for seed in (0, 1))]
    page = page_of([Results.of(config(), both)])
    assert "in 0 of 1 cases" in page
    assert "| Finetuned (EM) | 80.00 ± 0.00 † |" in page
    assert "| Greedy (EM) | 70.00 ± 0.00 |" in page


def test_trials_of_finetuning_count_where_they_start_from_the_best_epochs_of_growth():
    def trial(method, scores, **parameters):
        made = cell(method, 2, 0, 0.8) | {"kind": SELECTION, "validation_hard": scores, "epochs": 20}
        return made | {"config": {"parameters": parameters}}

    greedy = trial("greedy_em", {"20": 0.6, "35": 0.8})
    for epochs, best in ((35, 50), (20, None)):
        tuned = trial("finetuned_em", {"20": 0.1, "50": 0.9}, epochs=epochs)
        found = chosen_epochs([tuned, greedy])
        assert (found["greedy_em", 2], found.get(("finetuned_em", 2))) == (35, best)


def test_the_page_reports_where_the_grid_of_nu_ends_too_early():
    tried = {"0.1": 0.5, "100": 0.9, "by gain": 0.7}
    trial = cell("co2", 2, 0, 0.8) | {"kind": SELECTION, "validation_hard": tried, "nu": 100.0}
    found = results()
    page = page_of([replace(found, trials=[trial])])
    assert "CO2's best ν is the largest tried at 1 of its depths, and trials of larger ν are missing" in page


def test_cells_of_other_data_with_the_same_name_are_left_out():
    known = replace(config(), fingerprint="abc")
    made = [cell("finetuned_em", 2, 0, 0.8) | {"fingerprint": "abc"}, cell("finetuned_em", 2, 1, 0.1)]
    made.append(cell("co2", 2, 0, 0.5) | {"fingerprint": "xyz"})
    found = Results.of(known, made)
    assert (found.get("co2", 2, "test_hard"), found.n_other_data) == (None, 1)
    assert found.get("finetuned_em", 2, "test_hard").values == (80.0, 10.0)  # the second has none: an early record
    assert "1 of other data with the same name were left out" in page_of([found])


def test_a_verdict_on_data_of_unknown_origin_is_marked():
    found = results()
    group = [one | {"fingerprint": "xyz"} for one in found.done["finetuned_em", 2]]
    found = replace(found, done=found.done | {("finetuned_em", 2): group})
    assert claims.at_all_depths({"mnist": found}, "mnist").verdict.endswith("on data that could not be verified")
    assert replace(found, config=replace(found.config, made=True)).is_verified


def test_a_margin_of_practical_relevance_stands_beside_the_spread():
    close, far = Comparison(Summary((80.0, 80.1)), Summary((79.7, 79.8)), "", ""), Summary((70.0,), known_spread=1.0)
    assert (close.outcome(), close.outcome(0.5)) == ("higher", "tied")
    assert Comparison(Summary((70.8, 70.9)), far, "", "").outcome(0.5) == "tied"  # within the error of the reading


def test_shallow_trees_and_slopes_are_compared_seed_by_seed():
    found = {"mnist": results()}
    assert claims.especially_shallow(found, "mnist").verdict == claims.NOT_REFUTED  # the same lead everywhere
    assert claims.especially_shallow({"mnist": results([(("co2", 8, 0), {"test": 0.9})])}, "mnist").verdict == (
        claims.CONFIRMED
    )
    deep = {"mnist": results(depths=(2, 4, 6, 8))}
    assert claims.steeper(deep, "mnist").verdict == claims.OPEN  # nothing at depth 6
    assert claims.largest_gain(found | {"connect4": found["mnist"]}).verdict.startswith(claims.NOT_REFUTED)


def with_gamma_continued(less):
    """Results whose continued trees are so much less accurate than the finetuned ones."""
    found = results()
    asked = replace(found.config, ours=replace(found.config.ours, stages=("greedy", "finetuned", "continued")))
    every = [one for group in found.done.values() for one in group]
    more = [
        cell(one["method"].replace("finetuned", "continued"), one["depth"], one["seed"], test - less, train=0.99)
        for one in every
        if one["method"].startswith("finetuned")
        for test in [one["metrics"]["test_hard"]]
    ]
    return Results.of(asked, every + more)


def test_the_verdicts_that_depend_on_the_start_of_gamma_are_listed():
    said = page_of([with_gamma_continued(0.14)])
    for training in ("EM", "alternating"):
        assert f"| MNIST | {training} | 3 / 0 / 0 | 3 / 0 / 0 | +14.00, +14.00, +14.00 |" in said
    assert "| MNIST | more accurate on test rows at all depths | confirmed | refuted |" in said
    assert "| MNIST | generally more accurate on the rows trained on | confirmed |" not in said
    assert "No verdict on a claim depends on it." in page_of([with_gamma_continued(0.0)])


def test_a_continued_line_that_has_not_run_is_reported_as_missing():
    asked = replace(with_gamma_continued(0.1), done=results().done)
    assert "The continued line has not been run on MNIST." in page_of([asked])
    assert "γ at the start" not in page_of([results()])


def test_the_figures_have_a_panel_for_test_lead_and_training():
    lines = {line.get_label(): line for line in draw_depths(results()).axes[0].get_lines()}
    assert lines["Finetuned (EM)"].get_linestyle() == "-"
    assert lines["CO2 (re-implemented)"].get_linestyle() == "--"
    assert lines["OC1 (re-implemented)"].get_ydata().tolist() == pytest.approx([70, 80, 85])
    assert "Finetuned (alternating)" not in lines
    train = draw_depths(results()).axes[2]
    assert train.get_lines()[0].get_ydata().tolist() == pytest.approx([99, 99, 99])
    assert len(draw_schemes(results()).axes[0].get_lines()) == 4
    continued = with_gamma_continued(0.1)
    assert len(draw_schemes(continued).axes[0].get_lines()) == 6
    half = {key: group for key, group in continued.done.items() if key[0] != "continued_alternating"}
    assert len(draw_schemes(replace(continued, done=half)).axes[0].get_lines()) == 4


def test_a_panel_shows_our_lead_from_depth_six_on():
    leads = {bar.get_label(): bar for bar in draw_depths(results()).axes[1].containers}
    assert leads["OC1 (re-implemented)"].lines[0].get_xdata().tolist() == [8]
    assert leads["OC1 (re-implemented)"].lines[0].get_ydata().tolist() == pytest.approx([10.0])
    assert "Finetuned (EM)" not in leads


def test_the_report_reads_cells_and_writes_a_page_beside_its_figure(tmp_path, tiny, capsys):
    tiny.store.put(cell("axis_aligned", 1, 0, 0.5), cell("axis_aligned", 1, 0, 0.9) | {"kind": SELECTION})
    assert report.main([str(tiny.path), "--results", str(tiny.results)]) == 0
    page = " ".join((tmp_path / "results.md").read_text().split())
    assert "| Axis-aligned (re-implemented) | 50.00 | — (not run) |" in page
    assert "`0123456789ab` on a processor, 2 cores" in page
    assert "![depths](results-digits-depths.png)" in page
    assert (tmp_path / "results-digits-depths.png").stat().st_size > 1000
    assert "written: " in capsys.readouterr().out
