import os
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from crisptree import report
from crisptree.files import atomic_write
from tests.report.conftest import fitted


def interrupted(path):
    with atomic_write(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt


def test_a_file_is_replaced_atomically(tmp_path):
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


def test_content_is_synchronised_before_the_rename(tmp_path, monkeypatch):
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


POSIX = pytest.mark.skipif(os.name != "posix", reason="pipes and modes as POSIX has them")


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


def test_the_target_of_a_symbolic_link_is_replaced(tmp_path):
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
def test_a_replaced_file_keeps_its_mode_and_is_private_until_then(tmp_path, mode):
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
def test_file_names_of_maximum_length_are_written(tmp_path, name):
    with atomic_write(tmp_path / name) as temporary:
        temporary.write_text("x")
    assert [path.name for path in tmp_path.iterdir()] == [name]


@POSIX
def test_an_old_temporary_file_of_a_killed_process_is_removed_by_the_next_write(tmp_path):
    code = (
        "import os, sys\n"
        "from crisptree.files import atomic_write\n"
        "with atomic_write(sys.argv[1]) as temporary:\n"
        "    temporary.write_text('half')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    path = tmp_path / "x.txt"
    assert subprocess.run([sys.executable, "-c", code, path], check=False).returncode == -9
    (left,) = tmp_path.iterdir()
    write_text(path, "one")
    assert left.exists(), "its writer may be at work"
    os.utime(left, (0, 0))
    write_text(tmp_path / "y.txt", "y")
    assert left.exists(), "it is no part of y.txt"
    write_text(path, "two")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["x.txt", "y.txt"]


def write_text(path, text):
    with atomic_write(path) as temporary:
        temporary.write_text(text)


@POSIX
def test_a_save_of_the_same_path_just_before_the_rename_leaves_the_temporary_file(tmp_path, monkeypatch):
    path, replace, seen = tmp_path / "x.txt", os.replace, []

    def replace_after_another_save(source, target):
        if not seen:
            seen.append(source)
            write_text(path, "second")
            assert path.read_text() == "second"
        replace(source, target)

    monkeypatch.setattr(os, "replace", replace_after_another_save)
    write_text(path, "first")
    assert seen
    assert path.read_text() == "first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.txt"]


def run_writer(path, number, times):
    """Save one path many times in a process of its own."""
    code = (
        "import sys\n"
        "from crisptree.files import atomic_write\n"
        "sys.stdin.readline()\n"
        "for _ in range(int(sys.argv[3])):\n"
        "    with atomic_write(sys.argv[1]) as temporary:\n"
        "        temporary.write_text(sys.argv[2] * 1000)\n"
    )
    command = [sys.executable, "-c", code, str(path), str(number), str(times)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@POSIX
def test_concurrent_saves_of_one_path_succeed(tmp_path):
    path, n_threads, n_processes, times = tmp_path / "x.txt", 4, 3, 100
    start = threading.Barrier(n_threads)

    def save(number):
        start.wait()
        for _ in range(times):
            write_text(path, str(number) * 1000)

    writers = [run_writer(path, 5 + number, times) for number in range(n_processes)]
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(save, range(n_threads)))
    assert [writer.communicate()[1] for writer in writers] == [""] * n_processes
    text = path.read_text()
    assert text == text[0] * 1000
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.txt"]


@POSIX
def test_a_pipe_or_a_link_with_the_name_of_an_old_temporary_file_is_left(tmp_path):
    path, elsewhere = tmp_path / "x.txt", tmp_path / "elsewhere"
    elsewhere.write_text("kept")
    with atomic_write(path) as temporary:
        pass
    pipe, link = temporary.with_name(f"{temporary.name}-pipe"), temporary.with_name(f"{temporary.name}-link")
    os.mkfifo(pipe)
    link.symlink_to(elsewhere)
    for left in (pipe, link):
        os.utime(left, (0, 0), follow_symlinks=False)
    write_text(path, "x")
    assert elsewhere.read_text() == "kept"
    assert sorted(tmp_path.iterdir()) == sorted([path, elsewhere, pipe, link])


def test_a_failed_report_keeps_the_earlier_page(tmp_path, monkeypatch):
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
