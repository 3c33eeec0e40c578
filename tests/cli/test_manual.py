"""The commands of the manual do what it says, and print what it prints."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.running import QUICK, run
from tests.encoding.writers import customers, write

ROOT = Path(__file__).parents[2]
MANUAL = ROOT / "docs" / "guide" / "command-line.md"

TIMED = {"fit", "predict"}
"""Columns of tables that hold times."""


def examples(text):
    """The commands of a page's console blocks, a remark behind each, and the lines that are printed after it."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *printed = part.splitlines()
            command, _, remark = line.partition("  # ")
            found.append((command, remark, printed))
    return found


def typed(command):
    """What a shell prints for a command of ours, for ``cat FILE``, and for the one piped into the other."""
    first, _, second = command.partition(" | ")
    stdin = Path(shlex.split(first)[1]).read_text(encoding="utf-8") if first.startswith("cat ") else None
    ours = second if stdin is not None else first
    if not ours:
        return 0, stdin
    name, *arguments = shlex.split(ours)
    assert name == "crisptree"
    answer = run(*arguments, stdin=stdin)
    return answer.exit_code, answer.output


def without_times(lines):
    """What is the same each time: no seconds and ratios of times, no bytes of a file, no frames of tables."""
    result, timed = [], set()
    for line in lines:
        if not re.sub(r"[━─┏┓┗┛┳┻┡┩╇└┘┴┌┐┬├┤┼ ]", "", line):
            continue
        cells = [cell.strip() for cell in re.split("[┃│]", line)]
        if line.startswith("┃"):
            timed = {place for place, cell in enumerate(cells) if cell in TIMED}
        cells = ["…" if place in timed else cell for place, cell in enumerate(cells)]
        result.append(re.sub(r"\d[\d.,e+-]* (m?s|bytes)\b", r"… \1", " | ".join(cells)))
    return result


def shape_of(lines):
    """Headers of tables and the first line, without digits: a tree and its scores differ in their last bits."""
    lines = without_times(lines)
    return [re.sub(r"\d[\d.,]*", "0", line) for line in lines[:1]]


def test_the_worked_example_prints_what_the_manual_documents(tmp_path, monkeypatch):
    text = MANUAL.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (script,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    exec(compile(script, str(MANUAL), "exec"), {})
    commands = examples(text)
    assert len(commands) == 10
    for command, remark, printed in commands:
        code, seen = typed(command)
        assert code == (1 if remark == "fails" else 0), seen
        if remark != "not shown":
            assert shape_of(seen.splitlines()) == shape_of(printed), command
    assert (tmp_path / "tree.svg").is_file()


def test_slow_commands_print_what_quick_ones_print(tmp_path, monkeypatch):
    monkeypatch.setattr("crisptree.pipeline.monitoring.SECONDS_BETWEEN_LINES", -1.0)  # a line after every epoch
    table = write(customers(60), tmp_path / "table.csv")
    answer = run("fit", table, "-t", "buys", "-o", tmp_path / "m.crisp", *QUICK)
    assert answer.exit_code == 0
    assert "growing" not in answer.output


def test_the_command_of_the_readme_trains_a_model(tmp_path, monkeypatch):
    (command,) = re.findall(r"`(crisptree fit [^`]*)`", (ROOT / "README.md").read_text(encoding="utf-8"))
    table = customers(60)
    write(table.rename_columns([*table.column_names[:-1], "column"]), tmp_path / "table.csv")
    monkeypatch.chdir(tmp_path)
    code, seen = typed(f"{command} --depth 1 --epochs 2 --split oblique --l1 0 --input-noise 0 --shrinkage 0")
    assert code == 0
    assert "held out" in seen
    assert (tmp_path / "model.crisp").is_file()


def test_times_do_not_count_and_all_else_does():
    assert without_times(["trained in 3.8 s", "takes 7e-05 ms"]) == ["trained in … s", "takes … ms"]
    table = ["┏━━┓", "┃ model ┃ fit ┃ leaves ┃", "│ tree │ 1/20 │ 3 │"]
    assert without_times(table) == [" | model | … | leaves | ", " | tree | … | 3 | "]


@pytest.mark.parametrize("command", ["cat x.txt", "cat x.txt | crisptree --version"])
def test_a_shell_is_played(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.txt").write_text("a\n")
    code, seen = typed(command)
    assert code == 0
    assert seen == "a\n" or seen.startswith("crisptree ")
