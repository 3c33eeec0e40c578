"""The examples of Markdown pages write files and draw; they do so in a folder of their own, without a window."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _examples_in_a_folder_of_their_own(request, tmp_path, monkeypatch):
    if request.node.name.endswith(".md"):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("MPLBACKEND", "agg")


@pytest.fixture(autouse=True)
def _figures_are_closed():
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
