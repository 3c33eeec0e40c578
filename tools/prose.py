"""Check the prose of the Markdown pages: lines of at most 100 columns, the field's vocabulary, no lost lines.

``python tools/prose.py`` prints every finding and fails if a page has more of them than it is
allowed. Code, tables and single words that no line break can shorten (addresses) are not checked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAX_COLUMNS = 100

NOT_BUT = {
    r"trees? of numbers|forests? of numbers|leaves of numbers|targets? of numbers|of numbers$": "regression",
    r"judg(e|es|ed|ing)\b": "score, validate",
    r"rows that judge|held out to judge": "validation rows",
    r"\bwas asked|\bwere asked|\bsplits? (that it )?asked|\bis asked|\bare asked|asks? hundreds": "visits",
    r"the way of a|its way down|\bthe way that a row": "decision path",
    r"\bholes?\b": "missing values",
    r"\bleft over\b": "residuals",
    r"drawn together": "pooled",
    r"\broughness\b": "spatial penalty",
    r"\brivals?\b": "baselines",
    r"\bmade (data|table|tables|images)\b|\(made\)": "synthetic data",
    r"as good as|on a level with|beyond chance": "comparable to, within one standard error of",
    r"\b(said|told|says|tells|tell) (what|where|how|so|why|of|about|about the same|nothing)\b": "be explicit",
    r"by chance|at chance|drawn by chance": "at random",
    r"\bsettled?\b": "finalized, selected",
    r"\bendurance\b|fits that survive": "checkpoints",
    r"out of the bag, for nothing": "out-of-bag score",
    r"in words\b": "with an error message",
    r"\bthe truth\b": "true labels",
    r"\b(every|each|whole) turns?\b|turns (are|become)|\bthe turns\b|last turns": "split probabilities",
    r"\bwhat (is|was) held out\b": "held-out rows",
    r"fast lane|\bspool\b|keepsake": "fast path, disk cache, checkpoint",
    r"for nothing\b|\bfor free\b": "without further cost",
    r"\bpays off where\b|\bdear\b|\bplain defaults\b": "defaults",
}
"""Patterns of words and phrases (see CONTRIBUTING.md), and what to write in their place."""

ALLOWED_LONG: dict[str, int] = {}
ALLOWED_WORDS: dict[str, int] = {}
"""Findings of pages that are still to be edited. Numbers may only fall; finished pages leave the list."""


def pages() -> list[Path]:
    """All Markdown pages that people read."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *(ROOT / "docs").rglob("*.md")]
    built = {"build", ".venv", "auto_examples", "generated"}
    return sorted(page for page in found if not built & set(page.relative_to(ROOT).parts))


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """Numbered lines without code blocks, tables, headings and pictures."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(`{3,}|:{3,})", line)
        if fence is not None:
            fence = None if line.strip() == fence else fence
        elif mark:
            fence = mark[1]
        elif not re.match(r"\||#|!\[| {4}|<", line):
            yield number, line


def long_lines(text: str) -> list[tuple[int, str]]:
    """Lines that a line break would shorten to the limit."""
    return [
        (number, line)
        for number, line in prose_lines(text)
        if len(line) > MAX_COLUMNS and " " in line.strip().lstrip("*->0123456789. ")
    ]


def dialect(text: str) -> list[tuple[int, str]]:
    """Words that only this project uses, with what to write in their place."""
    found = []
    for number, line in prose_lines(text):
        words = re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)
        for pattern, instead in NOT_BUT.items():
            found += [(number, f"{match[0]!r}: {instead}") for match in re.finditer(pattern, words, re.I)]
    return found


def comments(text: str) -> list[tuple[int, str]]:
    """Lines that begin with a percent sign, which MyST takes for comments."""
    return [(number, line) for number, line in prose_lines(text) if line.lstrip().startswith("%")]


def check(name: str, text: str) -> list[str]:
    """Findings beyond what a page is allowed, and allowances that it no longer needs."""
    failures = [f"{name}:{number}: a line that begins with % is a comment: {line}" for number, line in comments(text)]
    for findings, allowed in ((long_lines(text), ALLOWED_LONG), (dialect(text), ALLOWED_WORDS)):
        if len(findings) > allowed.get(name, 0):
            failures += [f"{name}:{number}: {line}" for number, line in findings]
        elif name in allowed and not findings:
            failures.append(f"{name}: take this page off the list in tools/prose.py")
    return failures


def main() -> int:
    """Check all pages."""
    failures = []
    for page in pages():
        failures += check(page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8"))
    print(*failures, sep="\n", end="\n" if failures else "")  # noqa: T201
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
