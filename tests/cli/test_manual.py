"""The commands of docs/command-line.md do what it says."""

import re
import shlex
from pathlib import Path

from tests.cli.running import run

MANUAL = Path(__file__).parents[2] / "docs" / "command-line.md"


def test_the_worked_example_runs(tmp_path, monkeypatch):
    text = MANUAL.read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    (script,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    exec(compile(script, str(MANUAL), "exec"), {})
    blocks = [block.splitlines() for block in re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL)]
    assert len(blocks) == 5
    for block in blocks:
        for place, line in enumerate(block):
            if not line.startswith("$ crisptree "):
                continue
            command, _, remark = line.removeprefix("$ crisptree ").partition("  # ")
            answer = run(*shlex.split(command))
            assert answer.code == (1 if remark == "fails" else 0), answer.said
            shown = [said for said in block[place + 1 :] if said.startswith(("note: ", "error: ", '"id"', "2 rows"))]
            for said in shown:
                assert said in (answer.raw + answer.notes).splitlines()
    assert (tmp_path / "tree.svg").is_file()
