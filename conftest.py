"""The README's examples write files; they do so in a folder of their own."""

import pytest


@pytest.fixture(autouse=True)
def _examples_in_a_folder_of_their_own(request, tmp_path, monkeypatch):
    if request.node.name == "README.md":
        monkeypatch.chdir(tmp_path)
