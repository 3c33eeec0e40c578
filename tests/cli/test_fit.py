import json
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import crisptree
from crisptree import CrispTreeClassifier, load
from crisptree.cli.app import app
from crisptree.datasets import make_churn
from crisptree.encoding.table_encoder import RowEncoder
from crisptree.encoding.table_files import open_table
from crisptree.selection.search import UNTUNED_SHRINKAGE
from tests.cli.running import QUICK, done, run
from tests.encoding.writers import customers, text, write
from tests.toys import clouds, plain_tree

PARAMETERS = {"max_depth": 2, "epochs": 2, "finetune_epochs": 2, "random_state": 0}


def rows_of(model, path):
    return RowEncoder(model.encoder_.preprocessing_, open_table(path)).encode_all()


def small(path, *, n=40, header="a,b,y"):
    rng = np.random.default_rng(0)
    return text(path, header, *(f"{a:.3f},{b:.3f},{'yes' if a > b else 'no'}" for a, b in rng.normal(size=(n, 2))))


def test_the_model_is_that_of_the_python_interface_on_the_encoded_rows(shop):
    model = crisptree.load(shop.model)
    X = rows_of(model, shop.csv)
    twin = plain_tree(**PARAMETERS).fit(X, np.array(shop.table["buys"].to_pylist()))
    assert np.array_equal(twin.tree_.weight, model.tree_.weight)
    assert np.array_equal(twin.tree_.leaves, model.tree_.leaves)
    names = [
        "age",
        "age is missing",
        "income",
        "color=blue green",
        "color=grün",
        "color=rot",
        "color is missing",
        "member",
    ]
    assert model.encoder_.get_feature_names_out().tolist() == names
    assert model.feature_names_in_.tolist() == ["id", "age", "income", "color", "member"]


def test_parts_and_folders_of_parquet_are_one_table(tmp_path):
    table = customers(300)
    whole = write(table, tmp_path / "whole.parquet")
    (tmp_path / "parts").mkdir()
    parts = [write(table.slice(start, 100), tmp_path / "parts" / f"part-{start}.parquet") for start in (0, 100, 200)]
    for number, data in enumerate(([whole], parts, [tmp_path / "parts"])):
        done("fit", *data, "-t", "buys", *QUICK, "--seed", 0, "-o", tmp_path / f"{number}.crisp")
    first, second, third = ((tmp_path / f"{number}.crisp").read_bytes() for number in range(3))
    assert first == second == third


def test_a_model_with_preprocessing_is_saved_again_with_it_and_a_new_fit_forgets_it(shop, tmp_path):
    model = crisptree.load(shop.model)
    model.before_finetuning().save(tmp_path / "again.crisp")
    assert crisptree.load(tmp_path / "again.crisp").encoder_.preprocessing_.target == "buys"
    X, y = clouds(30)
    assert not hasattr(model.fit(X, y), "encoder_")


def test_parquet_gives_the_same_model_as_csv(shop, tmp_path):
    done("fit", shop.parquet, "-t", "buys", "--drop", "id", "-o", tmp_path / "m.crisp", *QUICK)
    ours, theirs = crisptree.load(shop.model), crisptree.load(tmp_path / "m.crisp")
    assert np.array_equal(ours.tree_.weight, theirs.tree_.weight)


def test_json_is_one_document_with_scores_hard_and_soft(shop, tmp_path):
    model = tmp_path / "m.crisp"
    answer = done(
        "fit",
        shop.csv,
        "-t",
        "buys",
        "--drop",
        "id",
        "-o",
        model,
        *QUICK,
        "--holdout",
        0.25,
        "--validation",
        shop.parquet,
        "--json",
    )
    said = json.loads(answer.stdout)
    assert set(said["accuracy"]) == {"training", "held out", "validation"}
    assert set(said["accuracy"]["held out"]) == {"rows", "hard", "soft", "majority"}
    assert said["rows"] == 120
    assert said["left_out"] == {"id": "dropped"}
    assert any("missing values in 'age'" in note for note in said["notes"])
    assert crisptree.load(model).get_n_leaves() == said["leaves"]


def test_held_out_rows_are_scored_by_a_model_that_never_saw_them(tmp_path):
    data = small(tmp_path / "t.csv", n=60)
    said = json.loads(
        done("fit", data, "-t", "y", "-o", tmp_path / "m.crisp", *QUICK, "--holdout", "0.5", "--json").stdout
    )
    model = crisptree.load(tmp_path / "m.crisp")
    assert model.tree_.statistics.node_counts[0].sum() == said["rows"] == 30
    again = done("fit", data, "-t", "y", "-o", tmp_path / "m.crisp", "--force", *QUICK, "--holdout", "0.5").text
    assert "30 rows · 2 columns" in again
    assert "The saved model is the scored one, trained without the 30 held-out rows." in again


def test_images_in_npz_keep_their_shape_and_labels_their_type(tmp_path):
    X, y = clouds(60, n_features=6)
    np.savez(tmp_path / "t.npz", X=X.reshape(60, 2, 3), y=y + 1)
    done("fit", tmp_path / "t.npz", "-o", tmp_path / "m.crisp", *QUICK, "--spatial-penalty", "0.01")
    model = crisptree.load(tmp_path / "m.crisp")
    assert tuple(model.image_shape) == (2, 3)
    assert model.classes_.tolist() == [1, 2, 3]
    assert "feature_names_in_" not in model.__dict__


def test_libsvm_and_npz_of_the_same_rows_give_the_same_model(tmp_path):
    X, y = clouds(60)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{float(x)!r}" for j, x in enumerate(row))
        for row, label in zip(X, y, strict=True)
    ]
    text(tmp_path / "t.svm", *lines)
    for name in ("t.npz", "t.svm"):
        done("fit", tmp_path / name, "-o", tmp_path / f"{name}.crisp", *QUICK)
    ours, theirs = (crisptree.load(tmp_path / f"{name}.crisp") for name in ("t.npz", "t.svm"))
    assert np.array_equal(ours.tree_.weight, theirs.tree_.weight)
    assert ours.classes_.tolist() == theirs.classes_.tolist() == [0, 1, 2]


def test_weights_and_class_weights_reach_the_fit(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y, w = np.where(X[:, 0] > 0.3, "yes", "no"), rng.integers(0, 4, 60)
    data = write(pa.table({"a": X[:, 0], "b": X[:, 1], "w": w, "y": y.astype(object)}), tmp_path / "t.csv")
    options = ("-t", "y", "--weights", "w", "--class-weight", "yes=2.5", "--class-weight", "no=1", "--l2", "0.01")
    done("fit", data, "-o", tmp_path / "m.crisp", *QUICK, *options)
    twin = plain_tree(**PARAMETERS, l2=0.01, class_weight={"yes": 2.5, "no": 1}).fit(X, y, w)
    assert np.array_equal(crisptree.load(tmp_path / "m.crisp").tree_.weight, twin.tree_.weight)


def test_the_papers_protocol_is_an_option(tmp_path):
    done("fit", small(tmp_path / "t.csv"), "-t", "y", "-o", tmp_path / "m.crisp", "--paper", *QUICK)
    model = crisptree.load(tmp_path / "m.crisp")
    assert (model.training.batch_size, model.training.min_updates, model.max_depth) == (1000, 0, 2)


def test_a_readable_tree_is_an_option_and_its_cost_and_sentences_are_shown(tmp_path):
    data = small(tmp_path / "t.csv", n=80)
    options = ("-t", "y", *QUICK, "--holdout", "0.25", "--readable")
    said = json.loads(done("fit", data, "-o", tmp_path / "m.crisp", *options, "--json").stdout)
    model = crisptree.load(tmp_path / "m.crisp")
    assert (model.max_leaf_nodes, model.training.round_splits, model.max_depth) == (8, True, 2)
    assert said["sentences"] == crisptree.export.sentences(model).splitlines()
    assert said["readability"]["readable"]["accuracy"] == said["accuracy"]["held out"]["hard"]
    assert set(said["readability"]["unrestricted"]) == {"accuracy", "log_loss", "leaves"}
    shown = done("fit", data, "-o", tmp_path / "n.crisp", *options, "--leaves", "3").stdout
    assert crisptree.load(tmp_path / "n.crisp").get_n_leaves() <= 3
    assert "\nif " in shown
    assert "\nunrestricted tree: accuracy " in shown


def test_a_readable_regression_without_held_out_rows_has_no_cost(tmp_path):
    x = np.random.default_rng(0).normal(size=60)
    data = write(pa.table({"x": x, "y": np.where(x > 0, 1.5, 0.25)}), tmp_path / "t.csv")
    options = ("-t", "y", "-o", tmp_path / "m.crisp", *QUICK, "--readable", "--json")
    said = json.loads(done("fit", data, *options).stdout)
    assert said["readability"] == {}
    assert said["sentences"][0].startswith("if x ")


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--trees", "3"], "--readable is for one tree; leave out --trees."),
        (["--paper"], "--paper and --readable are settings of different trees"),
        (["--stream"], "--stream trains one tree on batches of rows; leave out --readable."),
    ],
)
def test_readable_trees_are_neither_forests_nor_the_papers_nor_streamed(tmp_path, flags, text):
    result = run("fit", small(tmp_path / "t.csv"), "-t", "y", "-o", tmp_path / "m.crisp", "--readable", *flags)
    assert result.exit_code == 2
    assert text in " ".join(result.text.replace("│", " ").split())


def test_warnings_of_the_library_become_notes(tmp_path, monkeypatch):
    def fit(self, *arguments, **options):
        warnings.warn("the moon is full", crisptree.CrispTreeWarning, stacklevel=2)
        raise ValueError("and it sets")

    monkeypatch.setattr(CrispTreeClassifier, "fit", fit)
    answer = run("fit", small(tmp_path / "t.csv"), "-t", "y", "-o", tmp_path / "m.crisp")
    assert answer.exit_code == 1
    assert "note: the moon is full" in answer.stderr
    assert "error: and it sets" in answer.stderr


@pytest.mark.parametrize(
    ("lines", "options", "said"),
    [
        (
            ["a,species", "1,x", "2,y"],
            ["-t", "specis"],
            "has no column 'specis' (--target); it has 'a', 'species'. Did you mean 'species'?",
        ),
        (["a,y", "1,x", "2,x"], ["-t", "y"], "must have at least two classes; every row has 'x'"),
        (["a,y", "1,x", "2,"], ["-t", "y"], "must have a value in every row; row 1 has none"),
        (["a,y"], ["-t", "y"], "must have rows; it has none"),
        (["a,a,y", "1,2,x"], ["-t", "y"], "has two columns named 'a'"),
        (["a,y", "1,x", "2,y"], ["-t", "y", "--drop", "b"], "has no column 'b' (--drop)"),
        (
            ["a,y", "1,x", "2,y"],
            ["-t", "y", "--categorical", "A"],
            "(--categorical); it has 'a', 'y'. Did you mean 'a'?",
        ),
        (["a,y", "1,x", "2,y"], ["-t", "y", "--weights", "w"], "has no column 'w' (--weights)"),
        (
            ["a,y", "1,x", "2,y"],
            ["-t", "y", "--device", "abacus"],
            "--device must be 'auto', 'cpu' or a device that torch finds here",
        ),
        (
            ["a,y", "1,x", "2,y"],
            ["-t", "y", "--image-shape", "2x2"],
            "--image-shape HxW[xC] must have as many pixels as X has features",
        ),
        (["a,y", "1,x", "2,y"], ["-t", "y", "--holdout", "0.1"], "must hold out at least one row"),
    ],
)
def test_what_is_wrong_with_the_data_is_reported_and_the_code_is_1(tmp_path, lines, options, said):
    answer = run("fit", text(tmp_path / "t.csv", *lines), *options, "-o", tmp_path / "m.crisp")
    assert answer.exit_code == 1
    assert said in answer.stderr
    assert answer.stderr.startswith("error: ")
    assert not answer.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "name the target column with --target"),
        (["-t", "y", "--holdout", "1.5"], "--holdout must be 0, for none, or lie between 0 and 1"),
        (["-t", "y", "--image-shape", "28"], "--image-shape HxW[xC] must be None, (height, width) or"),
        (["-t", "y", "--algorithm", "magic"], "is not one of 'em'"),
        (["-t", "y", "--depth", "-1"], "--depth must be 'auto' or a whole number of at least 0"),
        (["-t", "y", "--class-weight", "heavy"], "--class-weight must be balanced or CLASS=WEIGHT"),
        (["-t", "y", "--class-weight", "Yes=2"], "the classes are 'no', 'yes'. Did you mean 'yes'?"),
        (["-t", "y", "--categorical", "y"], "--categorical y is also what --target names"),
        (["-t", "y", "--delimiter", "::"], "--delimiter must be one character"),
    ],
)
def test_wrong_use_is_reported_and_the_code_is_2(tmp_path, options, said):
    answer = run("fit", small(tmp_path / "t.csv"), *options, "-o", tmp_path / "m.crisp")
    assert answer.exit_code == 2
    assert said in " ".join(answer.stderr.replace("│", " ").split())


def test_the_place_of_the_model_is_checked_before_anything_is_read(tmp_path):
    missing = tmp_path / "no data.csv"
    assert "-o must end in .crisp" in run("fit", missing, "-t", "y", "-o", tmp_path / "m.txt").text
    assert "there is no folder" in run("fit", missing, "-t", "y", "-o", tmp_path / "none" / "m.crisp").text
    (tmp_path / "d.crisp").mkdir()
    assert "is a folder" in run("fit", missing, "-t", "y", "-o", tmp_path / "d.crisp").text
    assert "there is no file" in run("fit", missing, "-t", "y", "-o", tmp_path / "m.crisp").text


def test_options_for_named_columns_do_not_go_with_matrices(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.ones((4, 2)), y=[0, 1, 0, 1])
    answer = run("fit", tmp_path / "t.npz", "--drop", "x0", "-o", tmp_path / "m.crisp")
    assert answer.exit_code == 2
    assert "--drop is for tables with named columns" in answer.text


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (None, "has no column 'y' (--target); it has no labels"),
        (
            np.zeros((4, 1)),
            "'y' (--target) must have one number or text for each of the 4 rows; it has the shape (4, 1)",
        ),
        (np.zeros(3), "it has the shape (3,) and the type float64"),
        (np.array([b"a", b"b", b"a", b"b"]), "it has the shape (4,) and the type |S1"),
    ],
)
def test_labels_of_npz_that_are_none_are_refused_with_what_they_are(tmp_path, y, said):
    np.savez(tmp_path / "t.npz", X=np.ones((4, 2)), **({} if y is None else {"y": y}))
    answer = run("fit", tmp_path / "t.npz", "-o", tmp_path / "m.crisp")
    assert answer.exit_code == 1
    assert said in answer.text


def test_a_column_of_a_matrix_without_any_value_keeps_its_place(tmp_path):
    X, y = clouds(30, n_features=3)
    X[:, 1] = np.nan
    np.savez(tmp_path / "t.npz", X=X, y=y)
    done("fit", tmp_path / "t.npz", "-o", tmp_path / "m.crisp", *QUICK)
    done("predict", tmp_path / "m.crisp", tmp_path / "t.npz", "-o", tmp_path / "out.csv")
    model = crisptree.load(tmp_path / "m.crisp")
    expected = model.predict(X)
    assert np.array_equal(np.loadtxt(tmp_path / "out.csv", skiprows=1), expected)


def test_what_is_wrong_in_a_matrix_is_reported_without_options_that_do_not_go_with_it(tmp_path):
    X = np.ones((4, 2))
    X[2, 1] = np.inf
    np.savez(tmp_path / "t.npz", X=X, y=[0, 1, 0, 1])
    said = run("fit", tmp_path / "t.npz", "-o", tmp_path / "m.crisp").text
    assert "row 2 has inf. Correct it." in said
    assert "--drop" not in said


def test_the_shell_completes_columns_and_choices(shop):
    from crisptree.cli.options import complete_columns

    line = SimpleNamespace(params={}, args=[str(shop.model), str(shop.csv)])
    assert complete_columns(line, "") == list(shop.table.column_names)
    assert complete_columns(SimpleNamespace(params={"data": shop.csv}, args=[]), "in") == ["income"]
    assert complete_columns(SimpleNamespace(params={}, args=["not there.csv"]), "") == []
    environment = {"_CRISPTREE_COMPLETE": "complete_bash", "COMP_CWORD": "4"}
    for words, expected in (
        (f"crisptree fit '{shop.csv}' --target in", ["income"]),
        (f"crisptree fit '{shop.csv}' --algorithm al", ["alternating"]),
    ):
        result = CliRunner().invoke(app, prog_name="crisptree", env={**environment, "COMP_WORDS": words})
        assert result.stdout.split() == expected


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "inspect", "plot", "report"])
def test_every_command_has_help_with_examples(command):
    assert done(command, "-h").text == done(command, "--help").text
    answer = done(command, "--help")
    assert "Example" in answer.text
    assert f"crisptree {command} " in answer.text.split("Example")[1]


def test_imputed_values_do_not_count_as_values_of_training(tmp_path):
    frame = pd.DataFrame(make_churn(120)).drop(columns=["customer_id", "joined"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    done("fit", tmp_path / "t.csv", "--target", "churned", "-o", tmp_path / "m.crisp", *QUICK)
    model = crisptree.load(tmp_path / "m.crisp")
    seen = model.tree_.statistics
    feature = model.encoder_.preprocessing_.features_of("satisfaction")[0]
    assert frame["satisfaction"].isna().any()
    assert seen.whole[feature]
    assert (seen.lowest[feature], seen.highest[feature]) == (frame["satisfaction"].min(), frame["satisfaction"].max())


def test_a_fit_of_few_rows_reports_that_nothing_was_tuned(tmp_path):
    rows = [f"{row % 20},{'uv'[row % 20 > 9]}" for row in range(40)]
    path = text(tmp_path / "t.csv", "a,y", *rows)
    said = done("fit", path, "-t", "y", "-o", tmp_path / "m.crisp", "--depth", "1").text
    assert "note: fewer than 60 rows to train on: nothing was tuned, and leaves are shrunk by a fixed strength." in said
    model = load(tmp_path / "m.crisp")
    assert model.shrinkage_ == UNTUNED_SHRINKAGE  # of at least 40 rows
    said = done("fit", path, "-t", "y", "-o", tmp_path / "n.crisp", *QUICK).text
    assert "nothing was tuned" not in said
