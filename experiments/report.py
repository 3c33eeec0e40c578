"""Figure, tables and claims of the finished cells: ``python -m experiments.report [configuration ...]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from experiments import claims, configs, provenance
from experiments.figure import draw, save
from experiments.methods import METHODS
from experiments.table import MISSING, Results

RESULTS = provenance.RESULTS / "paper"
TABLES = {
    "test_hard": "Test accuracy of the hard tree",
    "train_hard": "Accuracy of the hard tree on the rows it was trained on",
    "test_soft": "Soft test accuracy: every leaf is visited, no rival of a hard tree",
    "train_soft": "Soft accuracy on the rows it was trained on",
}

INTRODUCTION = """\
# The paper's depth curves

Made by `python -m experiments.report` from the records of `python -m experiments.run`; experiments/README.md says
how. Single unpruned trees without regularisation, features of zero mean and unit variance. The number of epochs of our
trees is chosen on validation rows; final trees are trained on training and validation rows together. Accuracy in %,
mean ± standard deviation over seeds where there are several. **Hard** is the deterministic tree that predicts: one
path, one leaf. **Soft** is the probabilistic tree, which visits all leaves; it stands in tables of its own. A cell that
has not run is shown as —.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Read cells, write a page and its figure."""
    parser = argparse.ArgumentParser(prog="experiments.report", description="Figure, tables and claims.")
    parser.add_argument("configs", nargs="*", help="names or TOML files; all of the paper's for none")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the folder of the results")
    parser.add_argument("--output", type=Path, help="the page (.md); the figure lies beside it")
    given = parser.parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    output = given.output or given.results.with_name(given.results.name + ".md")
    try:
        all_results = [Results.read(configs.read(path), given.results) for path in configs.find(given.configs)]
    except ValueError as error:
        console.print(str(error), markup=False)
        return 2
    for path in write(all_results, output):
        console.print(f"written: {path}", markup=False)
    return 0


def write(all_results: Sequence[Results], output: Path) -> list[Path]:
    """The page, and the figure where anything is finished."""
    finished = [results for results in all_results if results.done]
    pictures = save(draw(finished), output.with_suffix("")) if finished else []
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page(all_results, [picture.name for picture in pictures]), encoding="utf-8")
    return [output, *pictures]


def page(all_results: Sequence[Results], pictures: Sequence[str]) -> str:
    """The whole page in Markdown."""
    parts = [INTRODUCTION]
    if pictures:
        parts.append(f"![Accuracy over the maximum depth]({pictures[0]})\n")
        parts.append(
            "*Test above train, one column per data set. Ours solid, rivals dashed, both hard; bands are one standard "
            "deviation over seeds. Dotted: the soft tree's soft score, which visits all leaves.*\n"
        )
    parts.append(claims_section(all_results))
    parts += [data_section(results) for results in all_results]
    return "\n".join(parts)


def claims_section(all_results: Sequence[Results]) -> str:
    """Every claim with its verdict and numbers."""
    lines = [
        "## The paper's claims\n",
        "Judged with hard routing on means over the finished cells, which are named. “Higher” means a higher mean.",
        f"Two schemes count as equally accurate at a depth where their means differ by at most {claims.ALIKE} points,",
        "or by no more than the spread of the difference between single seeds, √(s² + s′²).\n",
    ]
    for judgement in claims.judge({results.config.data: results for results in all_results}):
        lines.append(f"* **{judgement.claim}: {judgement.verdict}.** {judgement.words}")
    return "\n".join(lines) + "\n"


def data_section(results: Results) -> str:
    """The tables of one data set."""
    done, capped, asked = results.counted()
    heading = f"## {results.config.title}\n"
    if not done and not capped:
        return f"{heading}\nNo cell has run: all {asked} are missing.\n"
    words = f"{done} of {asked} cells are finished"
    words += f", {capped} were given up at the time cap" if capped else ""
    soft = results.config.soft
    words += f"; the soft tree is asked for up to depth {soft.max_depth}" if soft else ""
    parts = [heading, f"{words}. Commits and machines: {'; '.join(results.origins()) or MISSING}.\n"]
    for metric, name in TABLES.items():
        shown = [method for method in results.methods if not metric.endswith("soft") or has_soft(method)]
        rows = [[METHODS[method].label, *_row(results, method, metric)] for method in shown]
        if rows:
            header = ["", *(f"depth {depth}" for depth in results.config.depths)]
            parts.append(f"### {results.config.title}: {name}\n\n{markdown(header, rows)}")
    return "\n".join(parts)


def has_soft(method: str) -> bool:
    """Whether a method trains a probabilistic tree."""
    return METHODS[method].family != "rivals"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _row(results: Results, method: str, metric: str) -> list[str]:
    return [results.shown(method, depth, metric) for depth in results.config.depths]


if __name__ == "__main__":
    sys.exit(main())
