"""The commands data and demo."""

from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import crisptree
import crisptree.cli.datasets
from crisptree.cli.app import app
from crisptree.datasets import LOADERS, load_digits
from crisptree.datasets.download import DownloadError


def run(*arguments):
    result = CliRunner().invoke(app, ["data", *map(str, arguments)])
    return SimpleNamespace(code=result.exit_code, said=" ".join(result.output.split()), raw=result.stdout)


@pytest.fixture(autouse=True)
def _no_data_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("CRISPTREE_DATA", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("no_proxy", "*")


def test_the_list_names_every_data_set_and_where_it_is(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "connect4.npz").write_bytes(b"")
    answer = run("list")
    assert answer.code == 0
    for name in LOADERS:
        assert name in answer.said
    assert "comes with scikit-learn" in answer.said
    assert "11.6 MB" in answer.said
    assert str(tmp_path / "home") in answer.said


def test_files_are_fetched_into_the_home_of_data(tmp_path, monkeypatch):
    fetched = []
    monkeypatch.setattr(crisptree.cli.datasets, "fetch", lambda file, folder: fetched.append(folder / file.name) or "p")
    assert run("fetch", "sensit", "--data-home", tmp_path / "mine").code == 0
    assert fetched == [tmp_path / "mine" / "sensit" / name for name in ("combined.bz2", "combined.t.bz2")]


def test_a_download_that_fails_is_one_sentence(monkeypatch):
    def fail(*_):
        raise DownloadError("it cannot be reached.")

    monkeypatch.setattr(crisptree.cli.datasets, "fetch", fail)
    answer = run("fetch", "mnist")
    assert answer.code == 1
    assert "mnist: it cannot be reached." in answer.said


def test_digits_need_not_be_fetched():
    answer = run("fetch", "digits")
    assert answer.code == 0
    assert "nothing to fetch" in answer.said


def test_wrong_use_of_data_ends_with_code_2():
    assert "known are digits, mnist" in run("fetch", "imagenet").said
    assert run("fetch", "imagenet").code == 2
    assert run("fetch").code == 2


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


def test_wrong_use_of_demo_ends_with_code_2():
    assert CliRunner().invoke(app, ["demo", "--depth", "99"]).exit_code == 2
    assert CliRunner().invoke(app, ["dance"]).exit_code == 2
