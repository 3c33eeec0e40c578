from typer.testing import CliRunner

import crisptree
from crisptree.cli.app import app
from crisptree.datasets import load_digits


def test_the_demo_trains_prints_both_trees_and_writes_a_model_and_a_picture(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--depth", "2", "-o", str(tmp_path / "my demo")])
    assert result.exit_code == 0, result.output
    for word in ("greedy", "finetuned", "train hard", "test soft", "depth 2", "4 leaves", "splits on average"):
        assert word in result.output
    model = crisptree.load(tmp_path / "my demo" / "digits.crisp")
    digits = load_digits()
    assert model.score(digits.X_test, digits.y_test) > 0.35  # four leaves can name at most four of ten digits
    picture = (tmp_path / "my demo" / "tree.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert str(tmp_path / "my demo" / "tree.png") in result.output.replace("\n", "")


def test_the_version_is_printed():
    result = CliRunner().invoke(app, ["--version"])
    assert result.output.strip() == f"crisptree {crisptree.__version__}"


def test_wrong_use_ends_with_code_2():
    assert CliRunner().invoke(app, ["demo", "--depth", "99"]).exit_code == 2
    assert CliRunner().invoke(app, ["dance"]).exit_code == 2
