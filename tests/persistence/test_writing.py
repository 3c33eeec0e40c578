import os
import stat
import threading

import pytest

from crisptree import report
from crisptree.persistence.writing import written_whole
from tests.report.conftest import fitted


def interrupted(path):
    with written_whole(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt


def test_a_file_takes_its_place_whole_or_not_at_all(tmp_path):
    path = tmp_path / "ä file.txt"
    with written_whole(path) as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".txt"
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert [file.name for file in tmp_path.iterdir()] == ["ä file.txt"]
    assert path.read_text() == "new"


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_file_has_the_permissions_that_the_umask_leaves(tmp_path, mask):
    before = os.umask(mask)
    try:
        with written_whole(tmp_path / "x") as temporary:
            temporary.write_text("x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o666 & ~mask


def test_the_content_is_on_the_disk_before_the_name_is(tmp_path, monkeypatch):
    order = []
    monkeypatch.setattr(os, "fsync", lambda handle: order.append((tmp_path / "x").exists()))
    with written_whole(tmp_path / "x") as temporary:
        temporary.write_text("x")
    assert order == [False]


def test_a_folder_is_not_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError), written_whole(tmp_path / "folder") as temporary:
        temporary.write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe, heard = tmp_path / "pipe", []
    os.mkfifo(pipe)
    listener = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    listener.start()
    with written_whole(pipe) as name:
        name.write_text("through the pipe")
    listener.join()
    assert heard == ["through the pipe"]
    assert pipe.is_fifo()


def test_a_report_that_cannot_be_finished_leaves_the_earlier_page(tmp_path, monkeypatch):
    path, (model, *_) = tmp_path / "r.html", fitted(max_depth=1)
    report.write(model, path)
    before = path.read_text()

    def full(handle):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="the disk is full"):
        report.write(model, path, title="Another")
    assert path.read_text() == before
    assert [file.name for file in tmp_path.iterdir()] == ["r.html"]
