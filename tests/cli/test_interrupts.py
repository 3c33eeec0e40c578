"""Ctrl-C at chosen points of a run, and streams that the shell closed; each in a process of its own."""

import subprocess
import sys

import pytest

from tests.cli.running import done, with_path

HOOKS = '''
import atexit, os, signal, sys, weakref

def interrupt():
    signal.raise_signal(signal.SIGINT)

class _Owner: pass

class _Finder:
    """Interrupts the process where the module named by INTERRUPT_AT is imported."""
    def find_spec(self, name, path=None, target=None):
        if name != os.environ["INTERRUPT_AT"]:
            return None
        sys.meta_path.remove(self)
        how = os.environ["INTERRUPT_HOW"]
        if how == "directly":
            interrupt()
        elif how == "as another error":
            try:
                interrupt()
            except KeyboardInterrupt:
                raise ImportError("numpy._core.multiarray failed to import")
        elif how == "in a callback":
            owner = _Owner()
            self.kept = weakref.ref(owner, lambda _: interrupt())
            del owner
        elif how == "at exit":
            atexit.register(interrupt)
        return None

sys.meta_path.insert(0, _Finder())
'''
STOPPED = "stopped; nothing half-written was left behind.\n"


@pytest.fixture
def interrupted(tmp_path):
    """Run the command in a process that interrupts itself where a module is imported."""
    (tmp_path / "sitecustomize.py").write_text(HOOKS)

    def run(module, *arguments, how="directly", entry=("-m", "crisptree")):
        environment = with_path(tmp_path) | {"INTERRUPT_AT": module, "INTERRUPT_HOW": how}
        return subprocess.run(
            [sys.executable, *entry, *arguments], env=environment, capture_output=True, text=True, timeout=120
        )

    return run


SCRIPT = ("-c", "import sys; from crisptree.cli import main; sys.exit(main())")
"""What the console script that pip writes does."""


@pytest.mark.parametrize(
    ("entry", "module"),
    [
        (("-m", "crisptree"), "crisptree.cli.app"),
        (("-m", "crisptree"), "numpy.linalg"),
        (("-m", "crisptree"), "crisptree.cli.segment"),
        (SCRIPT, "typer"),
    ],
)
def test_an_interrupt_while_the_command_line_is_imported_is_one_line_and_code_130(interrupted, module, entry):
    result = interrupted(module, "--version", entry=entry)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", STOPPED)


@pytest.mark.parametrize("how", ["directly", "as another error", "in a callback"])
def test_an_interrupt_while_a_command_imports_is_one_line_and_code_130(interrupted, shop, tmp_path, how):
    out = tmp_path / "m.crisp"
    command = ("fit", shop.csv, "-t", "buys", "--drop", "id", "-o", out)
    result = interrupted("torch", *command, how=how)
    assert (result.returncode, result.stdout, result.stderr) == (130, "", STOPPED)
    assert not out.exists()


def test_an_interrupt_while_python_ends_is_one_line_and_code_130(interrupted):
    result = interrupted("crisptree.cli.app", "--help", how="at exit")
    assert "Usage" in result.stdout
    assert (result.returncode, result.stderr) == (130, STOPPED)


def test_ctrl_c_that_the_shell_ignores_stays_ignored(interrupted, tmp_path):
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); from crisptree.cli import main; main()"
    result = interrupted("crisptree.cli.app", "--help", entry=("-c", code))
    assert (result.returncode, result.stderr) == (0, "")


def in_shell(*arguments):
    """Run the command by the shell, whose redirections come last."""
    command = [sys.executable, "-m", "crisptree", *map(str, arguments[:-1])]
    line = " ".join(f"'{part}'" for part in command) + " " + arguments[-1]
    return subprocess.run(line, shell=True, capture_output=True, text=True, timeout=120)


@pytest.mark.skipif(sys.platform == "win32", reason="the redirections are those of a POSIX shell")
class TestClosedStreams:
    @pytest.mark.parametrize(
        "arguments", [("--help",), ("inspect", "{model}", "--json"), ("predict", "{model}", "{csv}")]
    )
    def test_what_must_be_printed_to_a_closed_stdout_is_an_error(self, shop, arguments):
        result = in_shell(*(part.format(model=shop.model, csv=shop.csv) for part in arguments), ">&-")
        assert (result.returncode, result.stderr) == (1, "error: stdout: Bad file descriptor.\n")

    def test_a_closed_stdout_takes_nothing_from_the_file_that_is_written(self, shop, tmp_path):
        out = tmp_path / "o.csv"
        result = in_shell("predict", shop.model, shop.csv, "-o", out, ">&-")
        assert (result.returncode, result.stderr) == (1, "error: stdout: Bad file descriptor.\n")
        assert out.read_text() == done("predict", shop.model, shop.csv).raw

    def test_a_closed_stderr_loses_messages_alone(self, shop, tmp_path):
        result = in_shell("--version", "2>&-")
        assert (result.returncode, result.stdout[:10]) == (0, "crisptree ")
        result = in_shell("predict", shop.model, tmp_path / "none.csv", "2>&-")
        assert (result.returncode, result.stdout) == (1, "")

    def test_a_closed_stdin_is_an_error_where_it_is_read(self, shop):
        assert in_shell("--version", "<&-").returncode == 0
        result = in_shell("predict", shop.model, "-", "<&-")
        assert (result.returncode, result.stderr) == (1, "error: stdin: Bad file descriptor.\n")

    @pytest.mark.skipif(sys.platform != "linux", reason="the device is Linux's")
    def test_a_full_disk_behind_stdout_is_an_error(self):
        result = in_shell("--version", ">/dev/full")
        assert (result.returncode, result.stderr) == (1, "error: No space left on device.\n")
