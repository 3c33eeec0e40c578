"""Tables from stdin and in other formats, and existing files."""

import gzip

import numpy as np
import pytest

import crisptree
from crisptree.cli.evaluation import draw_held_out
from tests.cli.running import QUICK, done, run
from tests.encoding.writers import customers, text, write


@pytest.mark.parametrize("form", ["csv", "gz", "parquet"])
def test_a_table_may_come_from_stdin(shop, tmp_path, form):
    data = shop.parquet.read_bytes() if form == "parquet" else shop.csv.read_bytes()
    data = gzip.compress(data) if form == "gz" else data
    expected = done("predict", shop.model, shop.csv, "--proba").stdout
    assert done("predict", shop.model, "-", "--proba", stdin=data).stdout == expected


def test_rows_without_names_may_come_from_stdin(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2)).round(3)
    lines = "".join(f"{int(a > b)} 1:{a} 2:{b}\n" for a, b in X)
    done("fit", "-", "-o", tmp_path / "m.crisp", *QUICK, stdin=lines)
    np.savez(tmp_path / "t.npz", X=X)
    from_pipe = done("predict", tmp_path / "m.crisp", "-", stdin=(tmp_path / "t.npz").read_bytes()).stdout
    assert from_pipe == done("predict", tmp_path / "m.crisp", "-", stdin=lines).stdout


def test_a_model_of_stdin_is_that_of_the_file(shop, tmp_path):
    done("fit", "-", "-t", "buys", "--drop", "id", "-o", tmp_path / "m.crisp", *QUICK, stdin=shop.csv.read_bytes())
    assert (tmp_path / "m.crisp").read_bytes() == shop.model.read_bytes()
    said = done("evaluate", tmp_path / "m.crisp", "-", stdin=shop.csv.read_bytes()).text
    assert said == done("evaluate", shop.model, shop.csv).text


def test_errors_about_stdin_name_it_and_leave_nothing_behind(shop, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    lines = "age,income,color,member\n1,much,rot,true\n"
    result = run("predict", shop.model, "-", stdin=lines)
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "error: stdin: column 'income' must hold numbers, as in training; row 0 has 'much'."
    )
    assert "stdin is empty" in run("predict", shop.model, "-", stdin="").stderr
    result = run("fit", "-", "-o", tmp_path / "m.crisp", stdin=lines)
    assert result.exit_code == 2
    assert "stdin has 'age', 'income', 'color', 'member'." in " ".join(result.stderr.replace("│", " ").split())
    assert not list(tmp_path.iterdir())


def outputs(shop):
    """A command for every kind of file that is written, but for the file."""
    return {
        "m.crisp": ("fit", shop.csv, "-t", "buys", "--drop", "id", *QUICK),
        "o.csv": ("predict", shop.model, shop.csv),
        "p.svg": ("plot", shop.model),
        "r.html": ("report", shop.model, shop.csv),
    }


def test_files_that_are_there_are_kept_without_force(shop, tmp_path):
    for name, command in outputs(shop).items():
        path = tmp_path / name
        path.write_text("precious")
        result = run(*command, "-o", path)
        assert result.exit_code == 1
        assert result.stderr == f"error: {path} already exists and is kept. Use --force to replace it.\n"
        assert path.read_text() == "precious"
        done(*command, "-o", path, "--force")
        assert path.read_bytes() != b"precious"


def test_the_demo_keeps_what_is_there(tmp_path):
    (tmp_path / "tree.png").write_text("precious")
    result = run("demo", "-o", tmp_path)
    assert result.exit_code == 1
    assert "tree.png already exists" in result.stderr


def test_numbers_and_letters_of_another_country_are_read_and_predicted(tmp_path):
    table = customers(160).to_pydict()
    rows = zip(*(table[name] for name in ("age", "income", "color", "buys")), strict=True)

    def price(number):
        return f"{number:,.2f} €".translate(str.maketrans(".,", ",."))

    lines = [f"{'' if age is None else int(age)};{price(pay)};{color or ''};{buys}" for age, pay, color, buys in rows]
    data = tmp_path / "kunden.csv"
    data.write_bytes("\r\n".join(["alter;einkommen;farbe;käufer", *lines, ""]).encode("cp1252"))
    how = ("--delimiter", ";", "--encoding", "cp1252", "--decimal", ",", "--thousands", ".", "--unit", "€")
    done("fit", data, "-t", "käufer", *how, "-o", tmp_path / "m.crisp", *QUICK)
    assert (
        done("predict", tmp_path / "m.crisp", data, *how, "--keep", "alter,einkommen")
        .stdout.splitlines()[1]
        .endswith(f'"{price(table["income"][0])}","{table["buys"][0]}"')
    )
    plain = text(
        tmp_path / "plain.csv",
        "alter,einkommen,farbe",
        *(f"{a or ''},{b},{c or ''}" for a, b, c in zip(table["age"], table["income"], table["color"], strict=True)),
    )
    ours, theirs = (
        done("predict", tmp_path / "m.crisp", *rest).stdout for rest in ((plain, "--decimal", "."), (data, *how))
    )
    assert ours == theirs
    assert "160 rows" in done("evaluate", tmp_path / "m.crisp", data, *how).text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--decimal", ";"), "--decimal must be '.' or ','; got ';'."),
        (("--thousands", "."), "--thousands must be one of"),
        (("--encoding", "klingon"), "--encoding must be an encoding of text that Python knows"),
        (("--unit", "5"), "--unit must be a sign or word without digits"),
    ],
)
def test_invalid_number_formats_are_wrong_use(shop, tmp_path, options, said):
    result = run("fit", shop.csv, "-t", "buys", "-o", tmp_path / "m.crisp", *options)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())


def test_columns_are_dropped_with_commas_and_all_that_are_refused_are_named_at_once(shop, tmp_path):
    table = shop.table.append_column("since", [[f"2024-01-{row % 28 + 1:02}" for row in range(len(shop.table))]])
    data = write(table, tmp_path / "t.csv")
    result = run("fit", data, "-t", "buys", "-o", tmp_path / "m.crisp", *QUICK)
    assert result.exit_code == 1
    first, *_, last = result.stderr.splitlines()
    assert first == f"error: {data} has 2 columns that cannot be used as they are:"
    assert last == "All of them are left out, or become numbers, with --drop id --dates since."
    done("fit", data, "-t", "buys", "--drop", "id", "--dates", "since", "-o", tmp_path / "m.crisp", *QUICK)


@pytest.mark.parametrize("target", ["word", "number"])
@pytest.mark.parametrize("streams", [(), ("--stream",)])
def test_rows_without_a_target_are_left_out_on_request(tmp_path, target, streams):
    words, numbers = ["u", "v", ""], ["0.5", "1.25", ""]
    rows = [f"{row}.5,{words[row % 3]},{numbers[row % 3]},{1 + row % 2}" for row in range(240)]
    path = text(tmp_path / "t.csv", "a,word,number,w", *rows)
    other = "number" if target == "word" else "word"
    command = ["fit", path, "-t", target, "--drop", other, "--weights", "w", *QUICK, *streams]
    command += ["--split", "oblique", "--algorithm", "likelihood"] if streams else []
    refused = run(*command, "-o", tmp_path / "m.crisp")
    assert refused.exit_code == 1
    assert "row 2 has none. Remove rows without one, or leave them out with --drop-missing-target." in refused.text
    left = done(*command, "--drop-missing-target", "--holdout", "0.2", "-o", tmp_path / "m.crisp")
    assert "note: 80 rows without a target, left out." in left.text
    assert "128 rows" in left.text
    complete = text(tmp_path / "c.csv", "a,word,number,w", *(row for row in rows if ",,," not in row))
    again = done("fit", complete, *command[2:], "--holdout", "0.2", "-o", tmp_path / "c.crisp")
    assert again.text.count("128 rows") == 1
    model, same = crisptree.load(tmp_path / "m.crisp"), crisptree.load(tmp_path / "c.crisp")
    assert np.array_equal(model.tree_.weight, same.tree_.weight)
    assert model.encoder_.preprocessing_.columns == same.encoder_.preprocessing_.columns
    assert run("evaluate", tmp_path / "m.crisp", path).exit_code == 1
    scores = done("evaluate", tmp_path / "m.crisp", path, "--drop-missing-target")
    assert "note: 80 rows without a target, left out." in scores.text
    assert scores.stdout == done("evaluate", tmp_path / "m.crisp", complete).stdout
    page = tmp_path / "report.html"
    done("report", tmp_path / "m.crisp", path, "--drop-missing-target", "--id", "a", "-o", page)
    assert '"1.5"' in page.read_text(encoding="utf-8")
    assert '"2.5"' not in page.read_text(encoding="utf-8")


def test_a_value_that_only_held_out_rows_have_gets_the_remedies_of_a_fit(tmp_path):
    bad = 0
    while not draw_held_out(np.arange(100) % 2, 0.2, 0)[bad]:
        bad += 1
    rows = [f"{'?' if row == bad else row},{'uv'[row % 2]}" for row in range(100)]
    path = text(tmp_path / "t.csv", "a,y", *rows)
    refused = run("fit", path, "-t", "y", "-o", tmp_path / "m.crisp", *QUICK, "--holdout", "0.2")
    assert refused.exit_code == 1
    assert (
        "If that means a missing value, say --missing '?'; if the column holds names of categories, say "
        in refused.text
    )


def test_rare_values_are_grouped_and_strict_models_made_by_flags(tmp_path):
    rows = [f"{'abcde'[min(row % 60, 4) if row < 6 else row % 2]},{row % 7},{'uv'[row % 2]}" for row in range(100)]
    path = text(tmp_path / "t.csv", "a,b,y", *rows)
    flags = ("--min-frequency", "3", "--handle-missing", "error")
    done("fit", path, "-t", "y", "-o", tmp_path / "m.crisp", *QUICK, *flags)
    assert crisptree.load(tmp_path / "m.crisp").encoder_.preprocessing_.feature_names == ("a=a", "a=b", "b")
    new = text(tmp_path / "n.csv", "a,b", "a,")
    assert "column 'b' must have a value in every row" in run("predict", tmp_path / "m.crisp", new).text
    wrong = run("fit", path, "-t", "y", "-o", tmp_path / "w.crisp", "--min-frequency", "0")
    assert "--min-frequency must be a number of rows, or a share of them, above 0; got 0." in wrong.text
