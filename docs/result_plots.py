"""Draw the charts of the results pages from the tables of the same pages: ``make pictures``, or with names of pages."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

HERE = Path(__file__).parent
NUMBER = re.compile(r"(-?[\d.]+)(?: ± ([\d.]+))?")
COLORS = ["#3b6fb6", "#d55e00", "#4c9f70", "#8a63b0"]
MAX_LABEL = 46
"""Characters; longer labels end with an ellipsis."""


@dataclass(frozen=True)
class Chart:
    """A row of points for every row of the first table of a page that has the columns ``series``.

    ``series`` may be empty for all columns of the first table; ``labels`` are the columns that name a row, and rows
    match ``rows``. ``panels`` gives every series an axis of its own, ``unit`` marks the value of no difference.
    """

    xlabel: str
    series: tuple[str, ...] = ()
    labels: tuple[int, ...] = (0,)
    rows: str = ""
    log: bool = False
    panels: bool = False
    unit: float | None = None


CHARTS = {
    "accuracy": Chart("test accuracy in %", ("greedy hard", "finetuned hard", "finetuned soft")),
    "cnn": Chart("test accuracy in %", ("greedy, hard", "finetuned, hard")),
    "defaults": Chart("accuracy in %", panels=True),
    "distill": Chart("test accuracy in %", ("test accuracy, %",), rows="digits", labels=(1,)),
    "export": Chart("bytes of flash", ("flash, measured",), labels=(0, 2)),
    "extension": Chart("validation accuracy in %", ("grown, hard", "finetuned, hard", "finetuned, soft")),
    "forests": Chart("test accuracy in %", ("crisp forest, 25 trees", "random forest, 100 trees", "one of its trees")),
    "prediction": Chart(
        "time over that of scikit-learn",
        ("10,000 rows, ratio to scikit-learn", "one row, ratio to scikit-learn"),
        log=True,
        unit=1,
    ),
    "readable-trees": Chart("accuracy in %, or R² × 100", ("default", "readable", "CART, 8 leaves")),
    "recipe": Chart("validation accuracy in %", ("MNIST", "Fashion-MNIST", "Connect-4"), panels=True),
    "scale": Chart("processor time, 1 process over 2", ("1/2",), labels=(0, 1, 2), unit=1),
    "sparse": Chart("MB", ("rows in MB", "peak of the fit in MB"), log=True),
    "tables": Chart("time over that of conversion and array", ("ratio",), unit=1),
    "training-speed": Chart("seconds of a fit", ("CPU, one thread, s", "CUDA, s"), labels=(0, 1), log=True),
}
"""The chart of every page that has one; it stands below the answer."""


def read_table(text: str, series: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the first Markdown table that has these columns."""
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        lines = [line.strip().strip("|").split("|") for line in table.splitlines()]
        header, _, *rows = [[cell.strip().replace("`", "") for cell in line] for line in lines]
        if set(series) <= set(header):
            return header, rows
    raise ValueError(f"no table has the columns {', '.join(series)}")


def parse(cell: str) -> tuple[float, float] | None:
    """Return the number of a cell and its spread; None without a number."""
    match = NUMBER.match(cell.replace(",", ""))
    return match and (float(match[1]), float(match[2] or 0))


def draw(axes: Axes, chart: Chart, name: str, cells: list[str], color: str) -> None:
    """Draw the points of one series."""
    known = [(place, *point) for place, point in enumerate(map(parse, cells)) if point]
    places, values, spreads = zip(*known, strict=True)
    axes.errorbar(values, places, xerr=[*spreads], fmt="o", ms=5, lw=1.2, color=color, label=name)
    axes.set_xscale("log" if chart.log else "linear")
    if chart.log:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.xaxis.set_minor_formatter("")
    if chart.unit is not None:
        axes.axvline(chart.unit, color="#9aa7b5", lw=1, zorder=0)
    axes.grid(axis="x", color="#e3e6ea", lw=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)


def draw_page(page: str, chart: Chart) -> None:
    """Draw the chart of a page and save it."""
    header, rows = read_table((HERE / "results" / f"{page}.md").read_text(encoding="utf-8"), chart.series)
    rows = [row for row in rows if re.search(chart.rows, row[0])]
    series = chart.series or [name for name, cell in zip(header, rows[0], strict=True) if name and parse(cell)]
    columns = {name: header.index(name) for name in series}
    rows = [row for row in rows if any(parse(row[column]) for column in columns.values())]
    labels = [shorten(", ".join(row[column] for column in chart.labels), MAX_LABEL, placeholder="…") for row in rows]
    n_panels = len(series) if chart.panels else 1
    size = (8, 1.2 + 0.3 * len(rows))
    figure, panels = plt.subplots(1, n_panels, figsize=size, sharey=True, squeeze=False, layout="constrained")
    for number, (name, column) in enumerate(columns.items()):
        axes = panels[0, number if chart.panels else 0]
        draw(axes, chart, name, [row[column] for row in rows], COLORS[0 if chart.panels else number])
        if chart.panels:
            axes.set_title(name, fontsize=9)
    panels[0, 0].set_yticks(range(len(rows)), labels)
    panels[0, 0].set_ylabel(", ".join(header[column] for column in chart.labels))
    panels[0, 0].set_ylim(len(rows) - 0.5, -0.5)
    figure.supxlabel(chart.xlabel, fontsize=10)
    if n_panels < len(series):
        figure.legend(frameon=False, loc="outside upper center", ncols=len(series))
    figure.savefig(HERE / "images" / f"result-{page}.png", dpi=100)
    plt.close(figure)


def show_chart(page: str) -> None:
    """Insert the chart below the answer, which is the first paragraph of its page, unless it is there."""
    path = HERE / "results" / f"{page}.md"
    text = path.read_text(encoding="utf-8")
    image = f"(../images/result-{page}.png)"
    if image not in text:
        title, answer, rest = text.split("\n\n", 2)
        chart = CHARTS[page]
        path.write_text(
            "\n\n".join([title, answer, f"![{chart.xlabel[0].upper()}{chart.xlabel[1:]}]{image}", rest]),
            encoding="utf-8",
        )


def main(pages: list[str]) -> None:
    """Draw the charts of these pages, or of all, and show them there."""
    mpl.use("Agg")
    for page in pages or CHARTS:
        draw_page(page, CHARTS[page])
        show_chart(page)


if __name__ == "__main__":
    main(sys.argv[1:])
