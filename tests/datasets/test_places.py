from pathlib import Path

import pytest

from crisptree.datasets import LOADERS, DataNotFoundError, load_mnist
from crisptree.datasets.catalog import CATALOG, find, get_cache_folder, get_folders, get_homes

WITH_FILES = [name for name, publication in CATALOG.items() if publication.files]


def test_every_data_set_has_a_loader_and_an_entry_in_the_catalog():
    assert set(LOADERS) == set(CATALOG)


def test_data_home_is_the_only_folder_when_it_is_given(monkeypatch, tmp_path):
    monkeypatch.setenv("CRISPTREE_DATA", "elsewhere")
    assert get_homes(tmp_path) == [tmp_path]
    assert get_homes("~/data") == [Path.home() / "data"]


def test_the_variable_comes_before_the_cache(monkeypatch):
    assert get_homes() == [get_cache_folder()]
    monkeypatch.setenv("CRISPTREE_DATA", "elsewhere")
    assert get_homes() == [Path("elsewhere"), get_cache_folder()]
    monkeypatch.setenv("CRISPTREE_DATA", "")
    assert get_homes() == [get_cache_folder()]


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_cache_folder_is_that_of_the_platform(monkeypatch, platform):
    monkeypatch.setattr("sys.platform", platform)
    assert get_cache_folder().name == "crisptree"
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name)
    assert get_cache_folder().is_relative_to(Path.home())


@pytest.mark.parametrize("name", WITH_FILES)
def test_the_error_for_a_missing_data_set_lists_files_folders_and_remedies(name, tmp_path):
    with pytest.raises(DataNotFoundError) as caught:
        LOADERS[name](tmp_path)
    letter = str(caught.value)
    for file in CATALOG[name].files:
        assert file.name in letter
    for folder in get_folders(name, tmp_path):
        assert str(folder) in letter
    assert f"crisptree data fetch {name}" in letter
    assert "CRISPTREE_DATA" in letter


def test_a_missing_data_set_raises_file_not_found_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_mnist(tmp_path / "nowhere")


def test_the_own_folder_of_a_data_set_comes_first(tmp_path):
    (tmp_path / "mnist").mkdir()
    for path in (tmp_path / "mnist.npz", tmp_path / "mnist" / "mnist.npz"):
        path.write_bytes(b"")
        assert find("mnist", tmp_path).paths == (path,)


def test_a_folder_is_not_accepted_as_a_file(tmp_path):
    (tmp_path / "mnist.npz").mkdir()
    assert find("mnist", tmp_path) is None


def test_other_data_is_not_accepted_as_protein(tmp_path):
    for name in ("protein_val_partial.npz", "protein.npz", "protein", "protein.t"):
        (tmp_path / name).write_bytes(b"")
    assert find("protein", tmp_path) is None
