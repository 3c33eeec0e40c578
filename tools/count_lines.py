"""Count the lines of the package, by folder: ``python tools/count_lines.py``."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "crisptree"
KINDS = ("code", "docstrings", "comments", "blank")


def count(path: Path) -> Counter[str]:
    """Count the lines of a file by kind; strings that document a constant count as docstrings."""
    text = path.read_text(encoding="utf-8")
    documented = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    kinds = Counter[str]()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        own = "comments" if stripped.startswith("#") else "code" if stripped else "blank"
        kinds["docstrings" if number in documented else own] += 1
    return kinds


def main() -> None:
    """Print a Markdown table, the largest package first."""
    packages: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for path in SOURCE.rglob("*.py"):
        inside = path.relative_to(SOURCE).parts
        packages[inside[0] if len(inside) > 1 else "top level"] += count(path) + Counter(modules=1)
    packages = defaultdict(Counter, sorted(packages.items(), key=lambda item: -sum(item[1].values())))
    packages["all"] = sum(packages.values(), Counter[str]())
    lines = [f"| package | modules | lines | {' | '.join(KINDS)} |", "| --- " * (3 + len(KINDS)) + "|"]
    for name, kinds in packages.items():
        cells = [kinds["modules"], sum(kinds[kind] for kind in KINDS), *(kinds[kind] for kind in KINDS)]
        lines.append(f"| {name} | {' | '.join(format(cell, ',') for cell in cells)} |")
    print(*lines, sep="\n")  # noqa: T201


if __name__ == "__main__":
    main()
