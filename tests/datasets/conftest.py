import dataclasses

import pytest

from crisptree.datasets.catalog import CATALOG


@pytest.fixture(autouse=True)
def _no_data_of_the_user(request, monkeypatch, tmp_path):
    """Tests see only the data that they write, unless they are there for real data."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.delenv("CRISPTREE_DATA", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no cache"))
        monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "no cache"))
        monkeypatch.setenv("HOME", str(tmp_path / "no home"))
        monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def published(monkeypatch):
    """Change what counts as published, so that a small file may stand for a large one."""

    def change(name, **changes):
        monkeypatch.setitem(CATALOG, name, dataclasses.replace(CATALOG[name], **changes))

    return change
