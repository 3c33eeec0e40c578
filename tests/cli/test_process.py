"""The command in its own process: signals, pipes, closed streams, memory, missing dependencies."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.main import get_command

from crisptree.cli.app import COMMANDS, app
from tests.cli.running import done, with_path
from tests.encoding.writers import write

COMMAND = [sys.executable, "-m", "crisptree"]


@pytest.fixture(scope="module")
def large(shop, tmp_path_factory):
    """Rows for many seconds of explanations."""
    folder = tmp_path_factory.mktemp("large")
    lines = write(shop.table, folder / "small.csv").read_text().splitlines(keepends=True)
    path = folder / "large.csv"
    path.write_text(lines[0] + "".join(lines[1:]) * 400)
    return path


@pytest.fixture
def interruptible():
    """Shells ignore SIGINT for jobs in the background, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_leaves_no_half_written_file_and_gives_code_130(shop, large, tmp_path, interruptible):
    out = tmp_path / "out.csv"
    out.write_text("earlier")
    process = subprocess.Popen(
        [*COMMAND, "predict", shop.model, large, "--explain", "-o", out, "--force"], stderr=subprocess.PIPE, text=True
    )
    limit = time.monotonic() + 300
    while len(list(tmp_path.iterdir())) == 1 and time.monotonic() < limit:
        time.sleep(0.05)
    assert len(list(tmp_path.iterdir())) == 2, "the temporary file never came"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130, said
    assert said.splitlines()[-1] == "stopped; nothing half-written was left behind."
    assert "Traceback" not in said
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"out.csv": "earlier"}


def test_a_reader_that_has_enough_is_no_reason_for_a_traceback(shop, large):
    command = " ".join(f"'{part}'" for part in [*COMMAND, "predict", str(shop.model), str(large), "--proba"])
    result = subprocess.run(f"{command} | head -n 2", shell=True, capture_output=True, text=True, timeout=300)
    assert result.stdout.startswith('"prediction","probability of no"')
    assert result.stdout.count("\n") == 2
    assert result.stderr == ""


@pytest.mark.slow
def test_a_terminal_without_our_letters_is_no_reason_to_fail(shop):
    def ended(*arguments):
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        return subprocess.run([*COMMAND, *arguments], env=environment, capture_output=True, check=False)

    assert ended("evaluate", "--help").returncode == 0
    document = json.loads(ended("inspect", shop.model, "--json").stdout.decode("ascii"))
    assert "grün" in document["preprocessing"]["columns"][2]["categories"]


def test_a_mistake_is_one_line_on_stderr_and_nothing_on_stdout(shop, tmp_path):
    result = subprocess.run(
        [*COMMAND, "predict", shop.model, tmp_path, "--json", "-o", tmp_path / "o.csv"], capture_output=True, text=True
    )
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == f"error: {tmp_path} is a folder without .parquet files; name a file in it.\n"


def peak(arguments):
    """The most memory, in MB, that a run of the command held."""
    code = (
        "import resource, sys; from crisptree.cli import main\n"
        "try: main()\n"
        "finally: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return int(result.stderr.split()[-1])


@pytest.mark.slow
def test_memory_does_not_grow_with_the_table(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 19))
    head = ",".join([*(f"c{j}" for j in range(19)), "y"]) + "\n"
    block = "".join(",".join(f"{x:.6f}" for x in row) + f",{'ab'[int(row[0] > 0)]}\n" for row in X)
    peaks = {}
    for blocks in (1, 30, 150):
        path = tmp_path / f"{blocks}.csv"
        with path.open("w") as file:
            file.write(head)
            for _ in range(blocks):
                file.write(block)
        if blocks == 1:
            done(
                "fit",
                path,
                "-t",
                "y",
                "--depth",
                "2",
                "--epochs",
                "1",
                "--finetune-epochs",
                "0",
                "-o",
                tmp_path / "m.crisp",
            )
        else:
            peaks[blocks] = peak(["predict", str(tmp_path / "m.crisp"), str(path), "-o", str(tmp_path / "out.parquet")])
    # 1.2 million more rows are 220 MB of text; the peak may wobble with the allocator.
    assert peaks[150] < peaks[30] + 60


def test_without_pyarrow_models_load_and_the_command_reports_what_to_install(shop, tmp_path):
    (tmp_path / "pyarrow.py").write_text("raise ModuleNotFoundError('no pyarrow', name='pyarrow')")
    environment = with_path(tmp_path)
    command = [*COMMAND, "evaluate", shop.model, shop.csv]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.returncode == 1
    assert result.stderr == "error: this needs pyarrow; install it with: pip install 'crisptree[all]'\n"
    code = "import crisptree, sys; model = crisptree.load(sys.argv[1])\n"
    code += "print(model.encoder_.preprocessing_.target, 'torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code, shop.model], capture_output=True, text=True, env=environment)
    assert result.stdout == "buys False\n"


HEAVY = {"torch", "sklearn", "scipy", "pandas", "pyarrow", "matplotlib"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["fit", "--help"], 0),
        (["predict", "--help"], 0),
        (["fit", "nosuch.csv", "-t", "y", "-o", "x.crisp"], 1),
        (["fit", "table.csv", "-t", "z", "-o", "x.crisp"], 1),
        (["fit", "table.csv", "-t", "y", "-o", "x.crisp", "--drop", "z"], 1),
        (["fit", "table.csv", "-t", "y", "-o", "x.crisp", "--trees", "none"], 2),
        (["fit", "table.csv", "-t", "y", "-o", "table.crisp"], 1),
        (["predict", "nosuch.crisp", "table.csv", "-o", "x.csv"], 1),
        (["predict", "table.csv", "table.csv", "-o", "x.csv"], 1),
        (["evaluate", "table.crisp", "table.csv"], 1),
        (["inspect", "document.json"], 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_help_and_refusals_of_arguments_files_and_columns_import_nothing_slow(arguments, code, tmp_path):
    (tmp_path / "table.csv").write_text("a,y\n1,u\n2,v\n")
    (tmp_path / "table.crisp").write_text("")
    (tmp_path / "document.json").write_text('{"format": "other"}')
    source = (
        "import sys, crisptree.cli as cli\n"
        f"names = {HEAVY!r}\n"
        "def leave(code):\n"
        "    print(sorted(names & set(sys.modules)), file=sys.__stderr__)\n"
        "    raise SystemExit(code)\n"
        "cli._exit_now = leave\n"
        "try:\n"
        "    cli.main()\n"
        "except SystemExit as exit_:\n"
        "    exit_.code or leave(0)\n"
        "    raise\n"
    )
    command = [sys.executable, "-c", source, *arguments]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert result.returncode == code, result.stderr
    assert result.stderr.splitlines()[-1] == "[]"


def test_the_commands_are_listed_without_their_modules(tmp_path):
    code = "import sys, crisptree.cli as cli\ntry:\n    cli.main()\nfinally:\n    print('numpy' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines()[-1] == "False"
    assert all(f" {name} " in result.stdout for name in COMMANDS)
    context = get_command(app).make_context("crisptree", ["fit"], resilient_parsing=True)
    for name, (_, summary) in COMMANDS.items():
        _, command, _ = context.command.resolve_command(context, [name])
        assert " ".join(command.help.split("\n\n")[0].split()) == summary


def test_columns_that_cannot_be_used_are_refused_before_slow_modules_are_imported(tmp_path):
    rows = "".join(f"{row}.5,2020-01-{row % 28 + 1:02},{'uv'[row % 2]}\n" for row in range(200))
    (tmp_path / "dates.csv").write_text(f"a,day,y\n{rows}")
    source = (
        "import sys, crisptree.cli as cli\n"
        f"cli._exit_now = lambda code: print(sorted({HEAVY - {'pyarrow'}!r} & set(sys.modules)))\n"
        "cli.main()\n"
    )
    command = [sys.executable, "-c", source, "fit", "dates.csv", "-t", "y", "-o", "x.crisp"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "'day' holds dates" in result.stderr
    assert result.stdout.splitlines()[-1] == "[]"
