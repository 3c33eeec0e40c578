"""docs/results/regression.md from the lines of bench_regression.py."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.regression_data import NAMES
from benchmarks.timing import table

PAGE = Path(__file__).parent.parent / "docs" / "results" / "regression.md"
Lines = list[dict[str, Any]]


def write_page(errors: Lines, times: Lines, predictions: Lines) -> None:
    """Write the page and keep its notes."""
    kept = PAGE.read_text(encoding="utf-8").partition(NOTES)[2] if PAGE.exists() else "\n"
    PAGE.write_text(page(errors, times, predictions) + NOTES + kept, encoding="utf-8")


def page(errors: Lines, times: Lines, predictions: Lines) -> str:
    """Write all but the notes.

    Examples
    --------
    >>> line = {"set": "diabetes", "model": "crisp", "depth": 2, "seed": 0, "rows": 221, "rmse": 61.0}
    >>> baseline = line | {"model": "tuned tree", "rmse": 63.0, "validated": 64.0}
    >>> print(by_depth([line, baseline], [2]).splitlines()[2])
    | diabetes (221) | 61 / 63 |
    """
    depths = sorted({line["depth"] for line in errors if line["depth"] is not None})
    seeds = sorted({line["seed"] for line in errors})
    counts = _counts(errors, depths)
    text = f"{INTRODUCTION}Seeds: {', '.join(map(str, seeds))}.\n\n"
    text += f"## Constant leaves, depth by depth\n\n{BY_DEPTH}{by_depth(errors, depths)}\n{counts}\n"
    text += f"## Linear leaves\n\n{LINEAR}{against(errors, LINEAR_COLUMNS)}\n"
    text += f"## Forests\n\n{FOREST}{against(errors, FOREST_COLUMNS)}\n"
    if times:
        rows = [
            [STEPS[each["device"]], each["set"], f"{each['rows']:,}", str(each["depth"]), f"{each[OVER]:.2f}"]
            for each in times
        ]
        columns = ["steps", "data", "rows", "depth", OVER]
        text += f"## Training time\n\n{TIME}{table(columns, rows)}\n"
    if predictions:
        rows = [[str(each["depth"]), f"{each['100000']:.2f}", f"{each['1']:.2f}"] for each in predictions]
        columns = ["depth", "100,000 rows, over the classifier", "one row, over the classifier"]
        text += f"## Prediction time\n\n{PREDICTION}{table(columns, rows)}\n"
    return text


def _of(errors: Lines, name: str, model: str, depth: int | None = None) -> dict[int, float]:
    """Errors by seed."""
    return {
        line["seed"]: line["rmse"]
        for line in errors
        if (line["set"], line["model"], line["depth"]) == (name, model, depth) and "rmse" in line
    }


def _common(*found: dict[int, float]) -> Iterable[list[float]]:
    """Errors on the seeds that all models have been run with: others would compare different rows."""
    seeds = sorted(set.intersection(*(set(one) for one in found)))
    return [[one[seed] for seed in seeds] for one in found]


def _title(errors: Lines, name: str) -> str:
    rows = next((line["rows"] for line in errors if line["set"] == name), 0)
    return f"{name} ({rows:,})"


def _said(values: list[float]) -> str:
    spread = f" ± {np.std(values, ddof=1):.2g}" if len(values) > 1 else ""
    return f"{np.mean(values):.4g}{spread}" if values else "—"


def by_depth(errors: Lines, depths: list[int]) -> str:
    """Ours and theirs with the same largest depth; bold where ours is no better."""
    rows = []
    for name in NAMES:
        cells = []
        for depth in depths:
            ours, theirs = _common(_of(errors, name, "crisp", depth), _of(errors, name, "tuned tree", depth))
            pair = f"{np.mean(ours):.4g} / {np.mean(theirs):.4g}" if ours else "—"
            cells.append(f"**{pair}**" if ours and np.mean(ours) >= np.mean(theirs) else pair)
        if any(cell != "—" for cell in cells):
            rows.append([_title(errors, name), *cells])
    return table(["data (rows)", *(f"depth {depth}" for depth in depths)], rows)


def _counts(errors: Lines, depths: list[int]) -> str:
    better, cells = 0, 0
    for name in NAMES:
        for depth in depths:
            ours, theirs = _common(_of(errors, name, "crisp", depth), _of(errors, name, "tuned tree", depth))
            cells += bool(ours)
            better += bool(ours) and bool(np.mean(ours) < np.mean(theirs))
    return f"Ours is better in {better} of {cells} cells.\n"


LINEAR_COLUMNS = ["crisp, linear leaves", "linear regression", "LightGBM, one linear tree"]
FOREST_COLUMNS = ["crisp forest", "random forest"]


def against(errors: Lines, columns: list[str]) -> str:
    """Means and spreads of some models that have no depth of their own, and how the first compares with each other."""
    rows = []
    missing = {line["model"]: line["missing"] for line in errors if "missing" in line}
    for name in NAMES:
        found = [_of(errors, name, model) for model in columns]
        if not found[0]:
            continue
        cells = [
            _said(list(one.values())) if one else missing.get(model, "—")
            for one, model in zip(found, columns, strict=True)
        ]
        ratios = []
        for other in found[1:]:
            ours, theirs = _common(found[0], other)
            ratios.append(f"{100 * (np.mean(ours) / np.mean(theirs) - 1):+.1f} %" if ours else "—")
        rows.append([_title(errors, name), *cells, *ratios])
    return table(["data (rows)", *columns, *(f"ours beside {name}" for name in columns[1:])], rows)


INTRODUCTION = """# Numbers

Root mean squared errors on rows that no model saw, made by

    python -m benchmarks.bench_regression run --out FOLDER --jobs 16
    python -m benchmarks.bench_regression page --out FOLDER

Half of diabetes and of each of Friedman's functions trains, and four fifths of 100,000 made house prices. "Rotated"
tables have their standardised columns turned by a random orthogonal matrix. Every seed draws rows, rotation and split
anew; means are over seeds, and a spread is that of one seed. Ours are plain defaults: what they choose, they choose by
held-out training rows.
"""

BY_DEPTH = """Crisp / scikit-learn's tree with the same largest depth, its fewest rows in a leaf tuned by 5-fold
cross-validation. Bold where ours is no better.

"""

LINEAR = """`leaf_model="linear"` at the default depth; LightGBM grows one tree with `linear_tree`, its number of leaves
and `linear_lambda` tuned by 3-fold cross-validation. A negative number is an error of ours that is smaller.

"""

FOREST = """`CrispForestRegressor` of 25 trees beside `RandomForestRegressor` of 100, both with their defaults.

"""

TIME = """Time of a fit of numbers over that of the same rows with y cut into five classes, medians of fits in turn,
nothing chosen: `python -m benchmarks.bench_regression time --out FOLDER`, CPU time of one thread, and with
`--device cuda` seconds of the clock on one H200, once kernels are built.

"""

PREDICTION = """`python -m benchmarks.bench_regression predict --out FOLDER`: complete trees of either kind on the same
rows, medians of calls in turn by the clock.

"""

STEPS, OVER = {"cpu": "native", "cuda": "CUDA"}, "over the classifier"

NOTES = "## Notes\n"
