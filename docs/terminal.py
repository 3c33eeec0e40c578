"""Draw a session of the command line as a picture: ``make pictures``."""

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
COLUMNS = 118
COMMANDS = (
    "fit customers.csv --target buys --drop id,since --depth 3 --leaf-model constant -o customers.crisp",
    "inspect customers.crisp",
)
"""On the table of docs/guide/command-line.md."""


def main() -> None:
    """Run the commands and save what they print."""
    page = (HERE / "guide" / "command-line.md").read_text(encoding="utf-8")
    make_table = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert make_table
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", make_table[1]], cwd=folder, check=True)
        console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
        environment = os.environ | {"COLUMNS": str(COLUMNS)}
        for command in COMMANDS:
            console.print(Text(f"$ crisptree {command}", style="bold"))
            call = [sys.executable, "-m", "crisptree", *command.split()]
            done = subprocess.run(call, cwd=folder, env=environment, check=True, capture_output=True, text=True)
            console.print(Text.from_ansi(done.stderr + done.stdout))
        drawn = console.export_svg(title="crisptree", unique_id="crisptree")
    # The fonts of the template would come from the network; those of the reader's machine are as good.
    picture = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    (HERE / "images" / "terminal.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
