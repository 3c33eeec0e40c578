"""Write what its commands print into docs/guide/command-line.md, and draw two of them: ``make pictures``."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

HERE = Path(__file__).parent
PAGE, PICTURE = HERE / "guide" / "command-line.md", HERE / "images" / "terminal.svg"
DRAWN = ("crisptree fit customers.csv --target buys --drop", "crisptree inspect")
"""The commands that the picture shows, by their beginning."""

HIDDEN = "not shown"
"""A remark behind a command whose output the page leaves out."""


def run(command: str, folder: str, n_columns: int) -> str:
    """Run a command line in a folder and return what it prints."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"COLUMNS": str(n_columns), "PATH": path, "PYTHONUNBUFFERED": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    printed = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True, **pipes).stdout
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def run_block(block: str, folder: str) -> str:
    """Return a block of commands with what they print now."""
    lines = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        line = part.splitlines()[0]
        printed = run(line, folder, 80)
        lines.append(f"$ {line}\n" if line.endswith(HIDDEN) else f"$ {line}\n{printed}")
    return "".join(lines)


def draw(commands: list[str], folder: str) -> None:
    """Draw commands and what they print."""
    console = Console(record=True, width=118, file=io.StringIO(), force_terminal=True)
    for command in commands:
        console.print(Text(f"$ {command}", style="bold"))
        console.print(Text.from_ansi(run(f"{command} --force" if " -o " in command else command, folder, 118)))
    drawn = console.export_svg(title="crisptree", unique_id="crisptree")
    # The fonts of the template would come from the network; those of the reader's machine are as good.
    PICTURE.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL), encoding="utf-8")


def main() -> None:
    """Write the page anew, and draw the picture."""
    page = PAGE.read_text(encoding="utf-8")
    make_table = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert make_table
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", make_table[1]], cwd=folder, check=True)
        blocks = r"(?<=```console\n).*?(?=```)"
        page = re.sub(blocks, lambda block: run_block(block[0], folder), page, flags=re.DOTALL)
        PAGE.write_text(page, encoding="utf-8")
        commands = re.findall(r"^\$ (.*)$", page, re.MULTILINE)
        draw([command for command in commands if command.startswith(DRAWN)], folder)


if __name__ == "__main__":
    main()
