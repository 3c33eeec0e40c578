"""Figure, tables and claims of the finished cells: ``python -m experiments.report [configuration ...]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from experiments import claims, configs, provenance
from experiments.claims import Verdict
from experiments.comparing import RULE
from experiments.figure import draw, save
from experiments.methods import ALGORITHMS, METHODS
from experiments.published import Published
from experiments.table import EARLIER, MISSING, Results

RESULTS = provenance.RESULTS / "paper"
TABLES = {
    "test_hard": "Test accuracy of the hard tree",
    "train_hard": "Accuracy of the hard tree on the rows it was trained on",
    "test_soft": "Soft test accuracy: every leaf is visited, no baseline of a hard tree",
    "train_soft": "Soft accuracy on the rows it was trained on",
}

INTRODUCTION = """\
# The paper's depth curves

Made by `python -m experiments.report` from the records of `python -m experiments.run`; experiments/README.md says
how. Single unpruned trees without regularisation, features of zero mean and unit variance; final trees are trained on
training and validation rows together. Accuracy in %, mean ± standard deviation over seeds where there are several.
**Hard** is the deterministic tree that predicts: one path, one leaf. **Soft** is the probabilistic tree, which visits
all leaves; it stands in tables of its own.

The baselines are **our re-implementations** from their descriptions, not their authors' programs: a verdict against
them says nothing of the published curves, which stand in a section of their own. A cell without a number says why.
"""

MADE_WORDS = """
Rows made by the law that `experiments/standins.py` states, for those who have no files of SensIT or Protein. No claim
of the paper is tested on them.
"""

EARLIER_WORDS = f"""\
{EARLIER} This cell is of an earlier set-up of the baseline, and the next run replaces it: OC1 with 50 coordinates a
round and 2000 rows, CO2 with the best of three ν at every leaf by training gain, non-greedy training with ν from 10,
100 and 1000.
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
    """Write the page, and the figure if anything is finished."""
    finished = [results for results in all_results if results.done]
    pictures = save(draw(finished), output.with_suffix("")) if finished else []
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page(all_results, [picture.name for picture in pictures]), encoding="utf-8")
    return [output, *pictures]


def page(all_results: Sequence[Results], pictures: Sequence[str]) -> str:
    """Write the whole page in Markdown."""
    parts = [INTRODUCTION]
    if pictures:
        parts.append(f"![Accuracy over the maximum depth]({pictures[0]})\n")
        parts.append(
            "*One column per data set: test accuracy, our lead on test rows from depth 6 on, training accuracy. Ours "
            "solid, re-implemented baselines dashed, all hard; bands are a standard deviation over seeds, bars the "
            "width of a tie. Dotted: the soft tree's soft score, which visits all leaves.*\n"
        )
    parts += [start_section(all_results), claims_section(all_results), published_section(all_results)]
    sections = [data_section(results) for results in all_results]
    parts += [EARLIER_WORDS] if any(f" {EARLIER} |" in section for section in sections) else []
    return "\n".join([*parts, *sections])


def start_section(all_results: Sequence[Results]) -> str:
    """Describe the selection of epochs, and whether Finetuned starts from the tree of the Greedy line."""
    lines = []
    for results in all_results:
        pairs = [(algorithm, depth) for algorithm in ALGORITHMS for depth in results.config.depths]
        epochs = [
            tuple(results.epochs(f"{stage}_{a}", depth) for stage in ("greedy", "finetuned")) for a, depth in pairs
        ]
        both = [pair for pair in epochs if None not in pair]
        if not both:
            continue
        seeds = sorted({number for (name, _), number in results.choices.items() if name.endswith(ALGORITHMS)})
        chosen = f"trials of {_spoken(seeds)}" if seeds else "no trials"
        same = sum(one == other for one, other in both)
        line = f"* {results.config.title}: {chosen}; the same tree in {same} of {len(both)} cases."
        methods = [f"{stage}_{algorithm}" for stage in ("greedy", "finetuned") for algorithm in ALGORITHMS]
        others = sum(results.is_by_other_epochs(name, depth) for name in methods for depth in results.config.depths)
        if others:
            line += (
                f" In {others} of {len(methods) * len(results.config.depths)} cases of a method and a depth the cells "
                "are still those of the epochs that the first seed alone had chosen; the next run replaces them."
            )
        lines.append(line)
    if not lines:
        return ""
    return (
        "The epochs of growth and finetuning are one number, chosen on validation rows for every method and depth from "
        "{20, 35, 50, 65}, by the mean over the seeds that made trials. So **Finetuned does not always start from the "
        "tree of the Greedy line**: where it chose other epochs, its own greedy tree was grown with those.\n\n"
        + "\n".join(lines)
        + "\n"
    )


def claims_section(all_results: Sequence[Results]) -> str:
    """List every claim with its verdict and numbers."""
    by_name = {results.config.data: results for results in all_results}
    leads = [line for results in all_results if (line := claims.higher_from(results))]
    lines = [
        "## The paper's claims against our re-implementations\n",
        f"{RULE}\n",
        "“At all depths” is confirmed where every comparison is higher and refuted where one is lower; in between ties "
        f"keep it open. “Generally” and “equally” are tested as a share: at least {claims.SHARE:.0%} of the "
        f"comparisons higher, or tied. Ours is {METHODS[claims.OURS].label}.\n",
        verdicts_table(claims.evaluate_claims(by_name)),
        *(f"* {line}" for line in leads),
    ]
    return "\n".join(lines) + "\n"


def published_section(all_results: Sequence[Results]) -> str:
    """List the baselines' published accuracies, and the claims against them."""
    published = Published.read()
    by_name = {results.config.data: results for results in all_results}
    sources = [f"[{number}] {source}" for number, source in enumerate(published.sources.values(), start=1)]
    header, rows = published.table(all_results)
    if len(header) == 1:
        return ""
    lines = [
        "## Against published values\n",
        "What is known of the baselines' test accuracies in %; what is not known to us is left empty. Data are split "
        "and prepared by their authors' own protocols, so a difference of a point says little.\n",
        f"{markdown(header, rows)}",
        "; ".join(sources) + ".\n",
        verdicts_table(published.evaluate_claims(by_name)),
    ]
    return "\n".join(lines)


def verdicts_table(verdicts: Iterable[Verdict]) -> str:
    """Claims, verdicts, how many comparisons are higher, tied and lower, and which stand against the claim."""
    header = ["data set", "claim", "verdict", "higher", "tied", "lower", "beside it"]
    rows = [[j.data, j.claim, f"**{j.verdict}**", *j.counts, j.words] for j in verdicts]
    return markdown(header, rows)


def data_section(results: Results) -> str:
    """Write the tables of one data set."""
    done, capped, asked = results.counted()
    heading = f"## {results.config.title}\n"
    heading += MADE_WORDS if results.config.made else ""
    if not done and not capped:
        command = f"`python -m experiments.run {results.config.data}` makes them"
        return f"{heading}\nNo cell has run: all {asked} are missing. {command}.\n"
    words = f"{done} of {asked} cells are finished"
    words += f", {capped} were given up at the time cap" if capped else ""
    soft = results.config.soft
    words += f"; the soft tree is asked for up to depth {soft.max_depth}" if soft else ""
    words += f". One after another the fits took {results.hours():.1f} h, trials on validation rows not counted"
    parts = [heading, f"{words}. Commits and machines: {'; '.join(results.origins()) or MISSING}.\n"]
    for metric, name in TABLES.items():
        shown = [method for method in results.methods if not metric.endswith("soft") or has_soft(method)]
        rows = [[METHODS[method].label, *_row(results, method, metric)] for method in shown]
        if rows:
            header = ["", *(f"depth {depth}" for depth in results.config.depths)]
            parts.append(f"### {results.config.title}: {name}\n\n{markdown(header, rows)}")
    return "\n".join(parts)


def has_soft(method: str) -> bool:
    """Return True if a method trains a probabilistic tree."""
    return METHODS[method].family != "baselines"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Format a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _spoken(seeds: Sequence[int]) -> str:
    """Format the range of the number of seeds behind a selection."""
    few, many = seeds[0], seeds[-1]
    return (f"{few} to {many} seeds" if few < many else f"{many} seeds") if many > 1 else "one seed"


def _row(results: Results, method: str, metric: str) -> list[str]:
    return [results.shown(method, depth, metric) for depth in results.config.depths]


if __name__ == "__main__":
    sys.exit(main())
