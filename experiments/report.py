"""Figure, tables and claims of the finished cells: ``python -m experiments.report [configuration ...]``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

from experiments import claims, configs, markdown, provenance
from experiments.claims import Verdict
from experiments.comparing import MARGIN, RULE, Tally
from experiments.figure import save
from experiments.methods import ALGORITHMS, METHODS, STAGES, stage_of
from experiments.published import Published
from experiments.table import EARLIER, MISSING, Results

RESULTS = provenance.RESULTS / "paper"
TABLES = {
    "test_hard": "Test accuracy of the hard tree",
    "train_hard": "Accuracy of the hard tree on the rows it was trained on",
    "test_soft": "Soft test accuracy: every leaf is visited, no baseline of a hard tree",
    "train_soft": "Soft accuracy on the rows it was trained on",
}

TITLE = "# The paper's depth curves\n"
CLAIMS_ANCHOR = "the-papers-claims-against-our-re-implementations"

PUBLISHED_WORDS = """\
**Against the published values**, which the paper compares with. They are known at some depths only
([sources](#against-published-values)).\
"""

REIMPLEMENTED_WORDS = f"""\
**Against our re-implementations** ([numbers and a second rule](#{CLAIMS_ANCHOR})). They can be better or worse than the
published programs, so a claim can hold against those and be refuted here.\
"""

SUMMARY_COLUMNS = ["data set", "claim", "verdict", "higher / tied / lower", "speaks most against it"]

SUMMARY_LEGEND = {
    "not refuted": "“Not refuted”: ties, none lower.",
    "part of the seeds": "“On part of the seeds”: cells have fewer seeds than asked for, which the tables below show.",
    "where tested": "“Where tested”: the claim is about more data sets, or lines, than have run.",
}
"""What the words of verdicts mean, where they occur."""

INTRODUCTION = """\
Made by `python -m experiments.report` from the records of `python -m experiments.run`; experiments/README.md
describes both. Single unpruned trees without regularisation, features of zero mean and unit variance; final trees are
trained on training and validation rows together. Accuracy in %, mean ± standard deviation over seeds where there are
several.
**Hard** is the deterministic tree that predicts: one path, one leaf. **Soft** is the probabilistic tree, which visits
all leaves; it stands in tables of its own.

The baselines are **our re-implementations** from their descriptions, not their authors' programs: a verdict against
them does not hold for the published curves, which stand in a section of their own. A cell without a number has its
reason in brackets.
"""

MADE_WORDS = """
Rows made by the law that `experiments/standins.py` states, for those who have no files of SensIT or Protein. No claim
of the paper is tested on them.
"""

EARLIER_WORDS = f"""\
{EARLIER} This cell is of an earlier set-up, and the next run replaces it. Finetuned: it starts from a tree of other
epochs than those of the Greedy line at that depth, because growth and finetuning had one number of epochs, chosen for
each line by itself. OC1: 50 coordinates a round and 2000 rows. CO2: the best of three ν at every leaf by training gain.
Non-greedy: ν from 10, 100 and 1000.
"""

LIMIT = """\
## Likelihood and information gain

Section 3.6 of the paper, confirmed: the steeper the splits, the closer the best log-likelihood of a tree is to minus
the weighted entropy of its leaves, and that of a stump to the information gain. Made by
`python docs/pictures.py information_gain`.

![Log-likelihood and information gain as γ grows](../images/information-gain.png)
"""

STARTS_OF_GAMMA = """\
## γ at the start of finetuning

The paper does not state it. Ours starts again at 1; the authors' released code continues from growth. Both lines
select their epochs alike and start from the same greedy trees.
"""

FIGURE_WORDS = {
    "depths": "Test accuracy, our lead on test rows from depth 6 on, training accuracy. Ours solid, re-implemented "
    "baselines dashed, all hard; bands are a standard deviation over seeds, bars the width of a tie by spread. "
    "Dotted: the soft tree's soft score, which visits all leaves.",
    "schemes": "The supplement's comparison of EM and the alternating scheme; in the middle their difference on test "
    "rows, bars the width of a tie by spread.",
}


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
    """Write the page, and the figures of every data set with finished cells."""
    pictures = [path for results in all_results if results.done for path in save(results, output.with_suffix(""))]
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page(all_results, output.stem), encoding="utf-8")
    return [output, *pictures]


def page(all_results: Sequence[Results], stem: str = "paper") -> str:
    """Write the whole page in Markdown."""
    parts = [TITLE, *answer(all_results), summary(all_results), INTRODUCTION, start_section(all_results)]
    parts += [claims_section(all_results)]
    parts += [published_section(all_results), gamma_section(all_results)]
    sections = [LIMIT, *(data_section(results, stem) for results in all_results)]
    parts += [EARLIER_WORDS] if any(f" {EARLIER} |" in section for section in sections) else []
    return markdown.wrap("\n".join([*parts, *sections]))


def answer(all_results: Sequence[Results]) -> list[str]:
    """Say from which depth on finetuned trees are ahead of every baseline, on the published data sets."""
    firsts = {found.config.title: claims.first_depth_ahead(found) for found in all_results if not found.config.made}
    ahead = [f"from depth {first} on {title}" for title, first in firsts.items() if first is not None]
    if not ahead:
        return []
    said = f"Finetuned trees have a higher mean test accuracy than every re-implemented baseline {', '.join(ahead)}"
    by_name = {found.config.data: found for found in all_results}
    counts = [_counted(evaluate(by_name)) for evaluate in (Published.read().evaluate_claims, claims.evaluate_claims)]
    return [
        f"**{said}.** Of the paper's claims that can be tested against published values, {counts[0]}; of those against "
        f"our re-implementations, {counts[1]}.\n"
    ]


def _counted(verdicts: Iterable[Verdict]) -> str:
    """Count verdicts by the spread, without what they say about cells and seeds that are missing."""
    found = Counter(_words(one)[0] for one in verdicts if one.tally)
    return ", ".join(f"{found[word]} are {word.partition(':')[0]}" for word in claims.VERDICTS)


def summary(all_results: Sequence[Results]) -> str:
    """List the claims that could be tested with their verdicts, and which data sets have run."""
    has_run = {results.config.title: results.counted()[0] > 0 for results in all_results}
    missing = [title for title, known in has_run.items() if not known]
    ran = ", ".join(title for title, known in has_run.items() if known) or "none"
    parts = [f"Data sets that ran: {ran}." + (f" Not yet: {', '.join(missing)}." if missing else "") + "\n"]
    by_name, published = {results.config.data: results for results in all_results}, Published.read()
    stronger = published.compare_reimplementations(by_name)
    for words, evaluated in (
        (PUBLISHED_WORDS, published.evaluate_claims(by_name)),
        (REIMPLEMENTED_WORDS + (f" {' '.join(stronger)}" if stronger else ""), claims.evaluate_claims(by_name)),
    ):
        rows = [
            [one.data, one.claim, f"**{one.verdict}**", str(one.tally), one.hardest.brief]
            for one in evaluated
            if one.tally and one.hardest
        ]
        if rows:
            parts += [f"{words}\n", markdown.table(SUMMARY_COLUMNS, rows)]
    if len(parts) == 1:
        return parts[0]
    meanings = [meaning for word, meaning in SUMMARY_LEGEND.items() if any(word in part for part in parts)]
    return "\n".join([*parts, " ".join(["Verdicts are by the spread over seeds.", *meanings]), ""])


def start_section(all_results: Sequence[Results]) -> str:
    """Describe how epochs and ν are selected, and where the cells do not follow yet."""
    lines = []
    for results in all_results:
        methods = [name for name in results.methods if stage_of(name) in STAGES[1:]]
        starts = [results.starts_from_greedy_line(name, depth) for name in methods for depth in results.config.depths]
        known = [start for start in starts if start is not None]
        if not known:
            continue
        line = f"* {results.config.title}: Finetuned starts from the Greedy line's tree in {sum(known)} of "
        line += f"{len(known)} cases"
        for name in results.methods if results.trials else ():
            if name in ("co2", "non_greedy"):
                edge, lacking = results.at_the_edge(name)
                line += f"; {METHODS[name].short}'s best ν is the largest tried at {len(edge)} of its depths"
                line += ", and trials of larger ν are missing" if lacking else ""
        lines.append(f"{line}.")
    if not lines:
        return ""
    lines += [line for results in all_results if (line := more_epochs_line(results))]
    return (
        "The Greedy line selects the epochs of growth on validation rows for every depth from {20, 35, 50, 65}, by the "
        "mean over the seeds that made trials. Finetuned starts from that tree and selects the epochs of finetuning "
        f"from the same numbers; cells where it does not yet are marked {EARLIER}. CO2 and Non-greedy select ν, "
        "Non-greedy also its step, with one seed; they train for 20 epochs, and from depth 10 on baselines have three "
        "seeds where ours have five.\n\n" + "\n".join(lines) + "\n"
    )


def more_epochs_line(results: Results) -> str:
    """Say what more epochs would give non-greedy training on validation rows; nothing without trials."""
    if not results.trials_of_epochs or results.config.baselines is None:
        return ""
    usual = str(results.config.baselines.epochs)
    scores = {one["depth"]: one["validation_hard"] for one in results.trials_of_epochs}
    gains = {depth: 100 * (max(found.values()) - found[usual]) for depth, found in scores.items()}
    depth, (epochs, *_) = max(gains, key=lambda at: gains[at]), scores.values()
    mean = sum(gains.values()) / len(gains)
    return (
        f"* {results.config.title}: the best of {', '.join(epochs)} epochs in place of {usual} would raise "
        f"the accuracy of Non-greedy on validation rows by {mean:.2f} points in the mean over {len(gains)} depths, by "
        f"{gains[depth]:.2f} at depth {depth} at most (one seed, "
        f"`python -m experiments.more_epochs {results.config.data}`)."
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
        f"comparisons higher, or tied. Ours is {METHODS[claims.OURS].label}. Counts are comparisons higher / tied / "
        f"lower; those against the claim are written out, {claims.SHOWN} at most.\n",
        verdicts_table(claims.evaluate_claims(by_name)),
        *(f"* {line}" for line in leads),
    ]
    return "\n".join(lines) + "\n"


def _words(verdict: Verdict) -> list[str]:
    """Return the verdicts by spread and by margin without what they say about cells and seeds that are missing."""
    return [text.partition(",")[0] for text in (verdict.verdict, verdict.by_margin)]


def gamma_section(all_results: Sequence[Results]) -> str:
    """Compare finetuning whose γ starts again with that whose γ continues, and the claims under either."""
    asked = [found for found in all_results if found.config.ours and STAGES[-1] in found.config.ours.stages]
    ran = [found for found in asked if any(claims.gamma_pairs(found, one) for one in ALGORITHMS)]
    lines = [STARTS_OF_GAMMA] if asked else []
    if missing := [found.config.title for found in asked if found not in ran]:
        lines += [f"The continued line has not been run on {', '.join(missing)}.\n"]
    if not ran:
        return "\n".join(lines)
    rows = [
        [
            found.config.title,
            "EM" if algorithm == "em" else algorithm,
            *(str(Tally.of(pairs, margin)) for margin in (None, MARGIN)),
            ", ".join(f"{pair.lead:+.2f}" for pair in pairs),
        ]
        for found in ran
        for algorithm in ALGORITHMS
        if (pairs := claims.gamma_pairs(found, algorithm))
    ]
    header = ["data set", "training", "by spread", "by margin", "by how much, from depth 2 on"]
    lines += ["Restarting against continuing on test rows, higher / tied / lower over depths:\n"]
    lines += [markdown.table(header, rows)]
    names = {found.config.title for found in ran}
    both = [
        {(one.data, one.claim): one for one in claims.evaluate_claims(results)}
        for results in (
            {found.config.data: found for found in all_results},
            {found.config.data: found.with_gamma_continued() for found in all_results},
        )
    ]
    changed = [
        [data, claim, *("; ".join(dict.fromkeys((each.verdict, each.by_margin))) for each in (one, other))]
        for (data, claim), one in both[0].items()
        if data in names
        for other in [both[1][data, claim]]
        if claims.OPEN not in (one.verdict, other.verdict) and _words(one) != _words(other)
    ]
    if not changed:
        return "\n".join([*lines, "No verdict on a claim depends on it.\n"])
    lines += [
        "The verdicts that depend on it, by spread and, where it is another, by margin; all others are the same:\n"
    ]
    return "\n".join([*lines, markdown.table(["data set", "claim", "γ restarts", "γ continues"], changed)])


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
        f"{markdown.table(header, rows)}",
        "; ".join(sources) + ".\n",
        verdicts_table(published.evaluate_claims(by_name)),
    ]
    return "\n".join(lines)


def verdicts_table(verdicts: Iterable[Verdict]) -> str:
    """Claims, verdicts and counts by both rules, and which comparisons stand against the claim by the spread."""
    header = ["data set", "claim", "by spread", "counts", "by margin", "counts", "comparisons"]
    rows, untested = [], defaultdict(list)
    for one in verdicts:
        if one.tally is None:
            untested[one.claim].append(one.data)
            continue
        by_spread, by_margin = one.counts
        verdict = [f"**{one.verdict}**", by_spread, f"**{one.by_margin}**", by_margin]
        rows.append([one.data, one.claim, *verdict, one.words])
    lines = [markdown.table(header, rows)] if rows else []
    lines += [f"* Open, as no cell has run: {claim} ({', '.join(data)})." for claim, data in untested.items()]
    return "\n".join(lines) + ("\n" if untested else "")


def data_section(results: Results, stem: str) -> str:
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
    words += f", {results.n_other_data} of other data with the same name were left out" if results.n_other_data else ""
    words += f"; the soft tree has cells up to depth {soft.max_depth}" if soft else ""
    words += f". One after another the fits took {results.hours():.1f} h, trials on validation rows not counted"
    parts = [heading, f"{words}. Commits and machines: {'; '.join(results.origins()) or MISSING}.\n"]
    parts += [
        f"![{name}]({stem}-{results.config.data.replace('_', '-')}-{name}.png)\n\n*{said}*\n"
        for name, said in FIGURE_WORDS.items()
        if done
    ]
    for metric, name in TABLES.items():
        shown = [method for method in results.methods if not metric.endswith("soft") or has_soft(method)]
        rows = [[METHODS[method].label, *_row(results, method, metric)] for method in shown]
        if rows:
            header = ["", *(f"depth {depth}" for depth in results.config.depths)]
            parts.append(f"### {results.config.title}: {name}\n\n{markdown.table(header, rows)}")
    return "\n".join(parts)


def has_soft(method: str) -> bool:
    """Return True if a method trains a probabilistic tree."""
    return METHODS[method].family != "baselines"


def _row(results: Results, method: str, metric: str) -> list[str]:
    return [results.shown(method, depth, metric) for depth in results.config.depths]


if __name__ == "__main__":
    sys.exit(main())
