import json

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from crisptree.cli.rivals import OURS, size
from crisptree.cli.training import held_rows
from crisptree.encoding.column_profile import ColumnOptions, profile_table
from crisptree.encoding.preprocessing import RowEncoder
from crisptree.encoding.table_files import open_table
from tests.cli.running import QUICK, done, run
from tests.encoding.writers import customers, text, write
from tests.toys import clouds, plain_tree


@pytest.fixture(autouse=True)
def _short_times(monkeypatch):
    monkeypatch.setattr("crisptree.cli.rivals.ROWS_TIMED", 10)
    monkeypatch.setattr("crisptree.cli.rivals.REPEATS", 1)


NAMES = [OURS, "majority", "linear", "tree", "small tree", "forest"]
JUDGED = ("--holdout", "0.25")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write(customers(160), tmp_path_factory.mktemp("compare") / "t.csv")


def test_all_models_are_judged_by_the_same_rows_that_none_of_them_saw(table):
    said = json.loads(done("compare", table, "-t", "buys", *QUICK, *JUDGED, "--json").raw)
    assert list(said["models"]) == NAMES
    assert (said["rows"], said["judged"]) == (160, 40)
    source = open_table(table)
    y = np.array(customers(160)["buys"].to_pylist())
    held = held_rows(y, 0.25, seed=0)
    preprocessing, _ = profile_table(source, source.features(["buys"]), ColumnOptions(), target="buys", rows=~held)
    X = RowEncoder(preprocessing, source, without=["buys"]).encode_all()
    twins = {
        OURS: plain_tree(max_depth=2, epochs=2, finetune_epochs=2, random_state=0),
        "tree": DecisionTreeClassifier(random_state=0),
        "forest": RandomForestClassifier(random_state=0),
    }
    for name, twin in twins.items():
        found = said["models"][name]
        assert found["accuracy"] == twin.fit(X[~held], y[~held]).score(X[held], y[held])
        assert [found["leaves"], found["weights"]] == list(size(twin))
    ours = said["models"][OURS]
    assert said["models"]["small tree"]["leaves"] <= ours["leaves"]
    assert said["models"]["majority"]["accuracy"] == 0.5


def test_folds_judge_by_every_row_once(table):
    answer = done("compare", table, "-t", "buys", *QUICK, *JUDGED, "--folds", "2", "--json")
    said = json.loads(answer.raw)
    assert (said["judged"], said["folds"]) == (160, 2)
    assert all(found["accuracy_spread"] is not None for found in said["models"].values())
    assert answer.notes.count("missing values in") == len([note for note in said["notes"] if "missing" in note])


def test_people_see_a_table_with_ratios_and_sizes_and_what_they_mean(table):
    said = done("compare", table, "-t", "buys", *QUICK, *JUDGED).said
    assert "160 rows · 8 features · judged by 40 rows held out" in said
    for word in (*NAMES, "log loss", "leaves", "weights", "Times are ratios"):
        assert word in said
    assert "│ crisptree │" in said


def test_weights_of_rows_reach_all_models(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{a:.3f},{int(a + rng.normal() > 0)},{int(a > 0)}" for a in rng.normal(size=120)]
    path = text(tmp_path / "t.csv", "a,y,w", *lines)
    plain = json.loads(done("compare", path, "-t", "y", *QUICK, *JUDGED, "--drop", "w", "--json").raw)["models"]
    heavy = json.loads(done("compare", path, "-t", "y", *QUICK, *JUDGED, "--weights", "w", "--json").raw)["models"]
    for name in ("majority", "linear", OURS):
        assert plain[name]["log_loss"] != heavy[name]["log_loss"]


def test_sizes_count_what_decides():
    X, y = clouds(60)
    tree = DecisionTreeClassifier(max_leaf_nodes=3).fit(X, y)
    assert size(tree) == (3, 2)
    forest = RandomForestClassifier(2, max_leaf_nodes=3).fit(X, y)
    assert size(forest) == (6, 4)
    ours = plain_tree(max_depth=1, epochs=2, finetune_epochs=2, random_state=0).fit(X, y)
    assert size(ours) == (2, np.count_nonzero(ours.tree_.weight) + 1)
    from sklearn.pipeline import make_pipeline

    assert size(make_pipeline(LogisticRegression()).fit(X, y)) == (None, 3 * X.shape[1] + 3)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--holdout", "0"), 2, "--holdout must lie between 0 and 1"),
        (("--folds", "1"), 2, "Invalid value for '--folds'"),
        (("--folds", "90"), 1, "--folds 90 needs as many rows of every class; class 'no' has 80."),
    ],
)
def test_wrong_use_of_compare_is_said(table, options, code, said):
    answer = run("compare", table, "-t", "buys", *options)
    assert answer.code == code
    assert said in " ".join(answer.notes.replace("│", " ").split())
