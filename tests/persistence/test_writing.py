import os
import stat
import subprocess
import sys

import pytest

from crisptree import report
from crisptree.persistence.writing import atomic_write
from tests.report.conftest import fitted


def interrupted(path):
    with atomic_write(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt


def test_a_file_takes_its_place_whole_or_not_at_all(tmp_path):
    path = tmp_path / "ä file.txt"
    with atomic_write(path) as temporary:
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
        with atomic_write(tmp_path / "x") as temporary:
            temporary.write_text("x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o666 & ~mask


def test_the_content_is_on_the_disk_before_the_name_is(tmp_path, monkeypatch):
    order = []
    monkeypatch.setattr(
        os, "fsync", lambda handle: order.append((stat.S_ISDIR(os.fstat(handle).st_mode), path.exists()))
    )
    path = tmp_path / "x"
    with atomic_write(path) as temporary:
        temporary.write_text("x")
    assert order == [(False, False), (True, True)], "the file before it has its name, the folder after"


def test_a_folder_is_not_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError), atomic_write(tmp_path / "folder") as temporary:
        temporary.write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


POSIX = pytest.mark.skipif(os.name != "posix", reason="pipes, modes and locks as POSIX has them")


@POSIX
@pytest.mark.parametrize("kind", ["pipe", "link to a device"])
def test_a_pipe_and_a_device_are_refused(tmp_path, kind):
    path = tmp_path / "x.crisp"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/null")
    with pytest.raises(OSError, match="cannot be replaced by a file"), atomic_write(path):
        raise AssertionError("nothing is written")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.crisp"]


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path):
    folder, link = tmp_path / "elsewhere", tmp_path / "link.txt"
    folder.mkdir()
    link.symlink_to(folder / "file.txt")
    for content in ("new", "newer"):  # at first the link leads nowhere
        with atomic_write(link) as temporary:
            assert temporary.parent == folder
            temporary.write_text(content)
        assert link.is_symlink()
        assert (folder / "file.txt").read_text() == content


@POSIX
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_that_is_replaced_keeps_its_mode_and_nobody_reads_the_new_one_before(tmp_path, mode):
    path = tmp_path / "secret.txt"
    path.write_text("old")
    path.chmod(mode)
    with atomic_write(path) as temporary:
        temporary.write_text("new")
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_text() == "new"


@POSIX
@pytest.mark.parametrize("name", ["n" * 255, "n" * 251 + ".svg", "." + "e" * 254, "ä" * 127])
def test_names_may_be_as_long_as_the_system_takes_them(tmp_path, name):
    with atomic_write(tmp_path / name) as temporary:
        temporary.write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@POSIX
def test_the_part_of_a_killed_writer_goes_with_the_next_write_and_that_of_a_living_one_stays(tmp_path):
    code = (
        "import os, sys\n"
        "from crisptree.persistence.writing import atomic_write\n"
        "with atomic_write(sys.argv[1]) as temporary:\n"
        "    temporary.write_text('half')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    path = tmp_path / "x.txt"
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
    (left,) = tmp_path.iterdir()
    with atomic_write(tmp_path / "y.txt") as other:
        other.write_text("y")
        assert left.exists(), "it is no part of y.txt"
    with atomic_write(path) as one:
        assert not left.exists()
        one.write_text("one")
        with atomic_write(path) as two:
            two.write_text("two")
            assert one.exists(), "its writer is at work"
        assert path.read_text() == "two"
    assert path.read_text() == "one"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["x.txt", "y.txt"]


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
