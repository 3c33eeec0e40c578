"""The commands data and demo."""

import dataclasses
import hashlib
import json
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import crisptree
import crisptree.cli.datasets
from crisptree.cli.app import app
from crisptree.datasets import LOADERS, load_digits, load_sensit
from crisptree.datasets.catalog import CATALOG, Checksum
from tests.datasets.writers import write_libsvm


def run(*arguments):
    result = CliRunner().invoke(app, ["data", *map(str, arguments)])
    return SimpleNamespace(code=result.exit_code, said=" ".join(result.output.split()), raw=result.stdout)


@pytest.fixture(autouse=True)
def _no_data_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("CRISPTREE_DATA", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no cache"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def site(monkeypatch, tmp_path):
    """A small SensIT at a file:// address, with checksums that are right."""
    folder, generator = tmp_path / "site", np.random.default_rng(0)
    for name, n in (("combined.bz2", 30), ("combined.t.bz2", 6)):
        write_libsvm(folder / name, generator.random((n, 100)), np.arange(n) % 3 + 1)
    files = []
    for file in CATALOG["sensit"].files:
        data = (folder / file.name).read_bytes()
        checksum = Checksum("sha256", hashlib.sha256(data).hexdigest())
        url = (folder / file.name).as_uri()
        files.append(dataclasses.replace(file, url=url, size=len(data), checksum=checksum))
    small = dataclasses.replace(CATALOG["sensit"], files=tuple(files), rows={"train": 30, "test": 6})
    monkeypatch.setitem(CATALOG, "sensit", small)
    return folder


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


def test_the_list_as_json_holds_files_sizes_checksums_and_places(tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "connect4.npz").write_bytes(b"")
    answer = run("list", "--json", "--data-home", tmp_path / "other")
    assert answer.code == 0
    entries = {entry["name"]: entry for entry in json.loads(answer.raw)}
    assert list(entries) == list(CATALOG)
    assert entries["connect4"]["paths"] == [str(tmp_path / "other" / "connect4.npz")]
    assert entries["digits"]["here"]
    assert not entries["mnist"]["here"]
    assert entries["mnist"]["files"][1]["size"] == 28_881
    assert entries["mnist"]["files"][1]["checksum"].startswith("sha256:3552534a")
    assert entries["isbi"]["files"][0]["checksum"] is None
    assert entries["protein"]["files"][0]["confirmed"] is False


def test_what_was_fetched_can_be_loaded(site, tmp_path):
    answer = run("fetch", "sensit")
    assert answer.code == 0, answer.said
    assert answer.said.count("fetched, checksum verified") == 2
    assert load_sensit(tmp_path / "home").X_test.shape == (6, 100)
    assert run("fetch", "sensit").said.count("already here, checksum verified") == 2


def test_a_mirror_and_another_home_may_be_named(site, tmp_path):
    answer = run("fetch", "sensit", "--mirror", site.as_uri() + "/", "--data-home", tmp_path / "mine")
    assert answer.code == 0, answer.said
    assert load_sensit(tmp_path / "mine").X_train.shape == (24, 100)


def test_a_file_that_was_tampered_with_fails_and_the_others_go_on(site, tmp_path):
    changed = bytearray((site / "combined.bz2").read_bytes())
    changed[-1] ^= 1
    (site / "combined.bz2").write_bytes(changed)
    answer = run("fetch", "sensit")
    assert answer.code == 1
    assert "combined.bz2 must have sha256" in answer.said
    assert [path.name for path in (tmp_path / "home" / "sensit").iterdir()] == ["combined.t.bz2"]


def test_a_file_of_unknown_checksum_is_refused_unless_it_is_asked_for(tmp_path):
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "ISBI-2012-challenge.zip").write_bytes(b"anything")
    answer = run("fetch", "isbi", "--mirror", mirror.as_uri())
    assert answer.code == 1
    assert "checksum of ISBI-2012-challenge.zip is not known" in answer.said
    answer = run("fetch", "isbi", "--mirror", mirror.as_uri(), "--unverified")
    assert answer.code == 0
    assert f"NOT verified, sha256 {hashlib.sha256(b'anything').hexdigest()}" in answer.said


def test_without_a_network_the_command_fails_with_a_sentence(tmp_path):
    pytest.importorskip("pooch", reason="needs the extra: pip install crisptree[datasets]")
    answer = run("fetch", "mnist", "--mirror", "http://127.0.0.1:1")
    assert answer.code == 1
    assert "http://127.0.0.1:1/train-images-idx3-ubyte.gz cannot be reached" in answer.said
    assert "Traceback" not in answer.said


def test_an_interrupt_ends_the_command_and_leaves_nothing(site, tmp_path, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(crisptree.cli.datasets, "fetch", interrupted)
    answer = run("fetch", "sensit")
    assert answer.code == 130
    assert "stopped; of combined.bz2 nothing was kept" in answer.said


def test_digits_need_not_be_fetched():
    answer = run("fetch", "digits")
    assert answer.code == 0
    assert "nothing to fetch" in answer.said


def test_wrong_use_of_data_ends_with_code_2():
    assert "known are digits, mnist" in run("fetch", "imagenet").said
    assert run("fetch", "imagenet").code == 2
    assert run("fetch").code == 2
    assert run("fetch", "mnist", "--mirror", "gopher://here").code == 2


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
