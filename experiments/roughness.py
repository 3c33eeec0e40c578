"""Section 4.2 of the paper: weight images with and without the spatial penalty, and what it does to the accuracy.

``python -m experiments.roughness`` trains what has not been trained, one record each, and writes the table. λ is
chosen on validation rows; then trees with that λ and with none are trained on all rows but the test's. The windows of
ISBI's slices are trained by ``python -m experiments.segmentation``; the table takes their numbers from its records.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console

from crisptree import CrispTreeClassifier, load
from crisptree.datasets import Dataset, load_fashion_mnist, load_mnist
from experiments import markdown, methods, provenance
from experiments.comparing import LOWER, MARGIN, Comparison
from experiments.progress import announce, left_out, median_seconds
from experiments.store import ENDING, Record, store_of
from experiments.table import Summary
from experiments.trees import Rows

RESULTS = provenance.RESULTS / "roughness"
PAGE = "images.md"
KEPT = provenance.ROOT / "build" / "roughness"
IMAGES = provenance.ROOT / "docs" / "images"
LOADERS = {"mnist": load_mnist, "fashion_mnist": load_fashion_mnist}
TITLES = {"mnist": "MNIST", "fashion_mnist": "Fashion-MNIST"}
STRENGTHS = (1e-2, 3e-2, 6e-2, 1e-1)
CHOOSING_SEEDS = (0, 1, 2)
SETTINGS = {"max_depth": 8, "epochs": 50, "finetune_epochs": 50, "scale": "global", "penalty_share": "rows"}
WAYS: dict[str, dict[str, Any]] = {
    "em": {},
    "likelihood": {"algorithm": "likelihood", "learning_rate_decay": "linear"},
}
"""How the tree is trained: as in the paper, and better."""

SHALLOW = "shallow"
SHALLOW_SETTINGS = {"max_depth": 4, "epochs": 20, "finetune_epochs": 20, "scale": "global", "penalty_share": "none"}
SHALLOW_STRENGTH = 0.3
"""The trees of the supplement, whose weight images are drawn: the paper's one λ for all splits, not chosen by accuracy
but so that a person sees what a split looks for."""

WINDOWS = {0.0: "unsmoothed", 1e-2: "finetuned"}
"""λ of the rows of the segmentation that differ in nothing else."""


def neighbour_correlation(images: npt.NDArray[np.float64]) -> float:
    """Compute the mean correlation of neighbouring pixels, horizontal and vertical, over images.

    Examples
    --------
    >>> ramp = np.add.outer(np.arange(8.0), np.arange(8.0))
    >>> round(neighbour_correlation(ramp[None]), 2), neighbour_correlation(np.ones((1, 4, 4)))
    (1.0, 0.0)
    """
    found = []
    for image in images:
        pairs = ((image[:, :-1], image[:, 1:]), (image[:-1], image[1:]))
        one, other = (np.concatenate([pair[side].ravel() for pair in pairs]) for side in (0, 1))
        spread = one.std() * other.std()
        found.append(float(np.mean((one - one.mean()) * (other - other.mean())) / spread) if spread > 0 else 0.0)
    return float(np.mean(found))


@dataclass(frozen=True)
class Fit:
    """One tree: what it is trained and scored on, λ, and a seed."""

    data: str
    way: str
    part: str
    roughness: float
    seed: int

    def __str__(self) -> str:
        return f"{self.data}-{self.way}-{self.part}-{self.roughness:g}-seed-{self.seed}"


def measured(fit: Fit, data: Dataset, device: str, kept: Path) -> dict[str, Any]:
    """Train one tree and score it: on validation rows after the training rows, on test rows after all others."""
    fitted, scored = {
        "validation": ((data.X_train, data.y_train), (data.X_valid, data.y_valid)),
        "test": (data.all_but_test(), (data.X_test, data.y_test)),
    }[fit.part]
    settings = SHALLOW_SETTINGS if fit.way == SHALLOW else SETTINGS | WAYS[fit.way]
    model = CrispTreeClassifier.paper(
        **settings,
        spatial_penalty=fit.roughness,
        image_shape=data.image_shape,
        random_state=fit.seed,
        device=device,
        n_jobs=-1,
    )
    started = time.perf_counter()
    model.fit(*fitted)
    seconds = time.perf_counter() - started
    kept.parent.mkdir(parents=True, exist_ok=True)
    model.save(kept)
    weights = model.tree_.scaled_hyperplanes()[0].reshape(-1, *data.image_shape)
    soft = model.classes_[model.soft_predict_proba(scored[0]).argmax(axis=1)]
    return {
        **asdict(fit),
        "parameters": methods.effective_parameters(model),
        "fingerprint": provenance.fingerprint(data),
        "seconds": round(seconds, 1),
        "hard": model.score(*scored),
        "soft": float(np.mean(soft == scored[1])),
        "train_hard": model.score(*fitted),
        "greedy": model.before_finetuning().score(*scored),
        "neighbour_correlation": neighbour_correlation(weights),
    }


class Run:
    """The fits of one data set: those that have records are not repeated, unless their tree is to be drawn."""

    def __init__(self, name: str, given: argparse.Namespace, console: Console) -> None:
        self.name, self.given, self.console = name, given, console
        self.store = store_of("roughness", given.results, name)
        self.seeds = [int(seed) for seed in given.seeds.split(",")]

    def missing(self) -> list[Fit]:
        """List the fits without a record."""
        return [fit for fit in self.wanted() if self._record(fit) is None]

    def wanted(self) -> Iterator[Fit]:
        """List all fits; those on test rows follow λ, the best of the validation records that are there."""
        if self.given.shallow:
            for seed in self.seeds:
                yield from (Fit(self.name, SHALLOW, "test", strength, seed) for strength in (0.0, SHALLOW_STRENGTH))
            return
        for way in WAYS:
            trials = [Fit(self.name, way, "validation", one, seed) for one in STRENGTHS for seed in CHOOSING_SEEDS]
            yield from trials
            scores: dict[float, list[float]] = {strength: [] for strength in STRENGTHS}
            for fit in trials:
                if found := self._record(fit):
                    scores[fit.roughness].append(found["hard"])
            best = max(STRENGTHS, key=lambda strength: np.mean(scores[strength] or [0.0]))
            for seed in self.seeds:
                yield from (Fit(self.name, way, "test", strength, seed) for strength in (0.0, best))

    def train(self, data: Dataset) -> None:
        """Train what is missing, and draw the shallow trees of the first seed."""
        for fit in self.wanted():
            file = KEPT / f"{fit}.crisp"
            is_drawn = self.given.shallow and fit.seed == self.seeds[0]
            if self._record(fit) is None or (is_drawn and not file.exists()):
                found = measured(fit, data, self.given.device, file)
                commit = self.given.commit or provenance.commit(self.given.results)
                self.store.put(found | {"commit": commit, "machine": provenance.machine(self.given.device)})
                self.console.print(f"{fit}: {found['hard']:.4f}")
        if self.given.shallow:
            self._draw(data)

    def _record(self, fit: Fit) -> Record | None:
        return self.store.get(fit.way, fit.part, fit.roughness, fit.seed)

    def _draw(self, data: Dataset) -> None:
        fits = [Fit(self.name, SHALLOW, "test", strength, self.seeds[0]) for strength in (SHALLOW_STRENGTH, 0.0)]
        smooth, plain = (load(KEPT / f"{fit}.crisp") for fit in fits)
        scores = [100 * model.score(data.X_test, data.y_test) for model in (smooth, plain)]
        titles = (
            f"λ = {SHALLOW_STRENGTH:g}: {scores[0]:.1f} % of the test images",
            f"without the penalty: {scores[1]:.1f} % of the test images",
        )
        save(draw_clearest(smooth, plain, data.all_but_test(), titles), IMAGES / picture_of(self.name))


SHOWN = (1, 1, 2, 5)
"""So many splits of every depth, from the root down."""


def resemblance(model: CrispTreeClassifier, rows: Rows) -> npt.NDArray[np.float64]:
    """Correlate every split's weights with the difference of the mean images on its two sides.  (n_splits,)"""
    X, _ = rows
    path, tree = model.decision_path(X).tocsc(), model.tree_
    weights = tree.scaled_hyperplanes()[0]
    found = np.zeros(tree.structure.n_splits)
    for split in range(tree.structure.n_splits):
        here = X[path[:, split].indices]
        is_right = here @ tree.weight[split] + tree.bias[split] > 0
        difference = here[is_right].mean(axis=0) - here[~is_right].mean(axis=0)
        found[split] = np.corrcoef(weights[split], difference)[0, 1]
    return np.nan_to_num(found)


def clearest(model: CrispTreeClassifier, rows: Rows) -> list[tuple[int, int]]:
    """Select the clearest splits as (depth, split), level by level."""
    clear = resemblance(model, rows)
    chosen = []
    for depth, (splits, number) in enumerate(zip(model.tree_.structure.levels, SHOWN, strict=False)):
        best = sorted(splits.tolist(), key=lambda split: -clear[split])[:number]
        chosen += [(depth, split) for split in best]
    return chosen


def draw_clearest(smooth: CrispTreeClassifier, plain: CrispTreeClassifier, rows: Rows, titles: tuple[str, str]) -> Any:
    """Two rows of grey images, each normalised to the whole range as in the paper."""
    import matplotlib.pyplot as plt

    from crisptree.plots import plot_weights

    figure = plt.figure(figsize=(1.55 * sum(SHOWN), 4.4), layout="constrained")
    for part, model, title in zip(figure.subfigures(2, 1), (smooth, plain), titles, strict=True):
        part.suptitle(title, x=0.005, ha="left", fontsize=10, fontweight="bold")
        axes = part.subplots(1, sum(SHOWN))
        for axis in axes:
            axis.set_axis_off()
        chosen = clearest(model, rows)
        splits = [split for _, split in chosen]
        plot_weights(model, splits, axes[: len(splits)])
        for axis, (depth, _) in zip(axes, chosen, strict=False):
            axis.set_title(f"depth {depth}", fontsize=9)
    return figure


def picture_of(name: str) -> str:
    """Draw a data set's weight images."""
    return f"weights-{name.replace('_', '-')}.png"


def draw(plain: Path, smooth: Path, picture: Path) -> None:
    """Weight images with and without the penalty, from trees that are kept."""
    from crisptree.plots import plot_weights

    if plain.exists() and smooth.exists():
        models = [load(file) for file in (smooth, plain)]
        shown = range(min(7, *(model.tree_.structure.n_splits for model in models)))
        axes = plot_weights(models[0], compare=models[1], style="both", nodes=shown)
        save(axes.flat[0].figure, picture)


def save(figure: Any, picture: Path) -> None:
    """Write a figure to a file and let go of it."""
    import matplotlib.pyplot as plt

    figure.savefig(picture, dpi=110)
    plt.close(figure)


def page(results: Path) -> str:
    """Write the table in Markdown."""
    groups = _groups(results, "test")
    pairs = _pairs(groups)
    lines = [
        "# Weight images with and without the spatial penalty",
        "",
        *_headline(pairs),
        "Depth 8, 50 + 50 epochs in batches of 1000 as in the paper, but one scale for all pixels, and a penalty that "
        'falls with the share of the rows that visit a split in finetuning (`penalty_share="rows"`). `em` is the '
        "paper's training, `likelihood` gradient ascent on the likelihood with a learning rate that falls linearly. "
        "Deterministic trees, mean ± standard deviation over seeds. λ was selected on validation rows with "
        f"{len(CHOOSING_SEEDS)} seeds; the trees of the table are trained on training and validation rows. The "
        "correlation is that of neighbouring weights, averaged over all splits.",
        "",
        "    python -m experiments.roughness --seeds 0,1,2,3,4",
        "",
        "`shallow` are the trees of the pictures below: depth 4, 20 + 20 epochs by EM, and one λ for every split "
        '(`penalty_share="none"`), as in the paper (`python -m experiments.roughness --shallow`). '
        f"λ = {SHALLOW_STRENGTH:g} is where a person sees what the splits look for.",
        "",
        "| data | training | λ | seeds | test, hard | test, soft | greedy, hard | training rows, hard | "
        "neighbours' correlation |",
        "|" + " --- |" * 9,
    ]
    for (name, way, roughness), found in groups.items():
        scores = [_spread(found, metric) for metric in ("hard", "soft", "greedy", "train_hard")]
        correlation = np.mean([one["neighbour_correlation"] for one in found])
        lines.append(f"| {name} | {way} | {roughness:g} | {len(found)} | {' | '.join(scores)} | {correlation:.2f} |")
    lines += ["", *_verdict(pairs), "", *_chosen(results), "", *_windows(results.parent / "segmentation")]
    for name in sorted({name for name, *_ in groups}):
        lines += [
            "",
            f"## {name}",
            "",
            f"![Weights of the clearest splits, with the penalty above, without below](../images/{picture_of(name)})",
            "",
            "*The splits at every depth whose weights most resemble the difference of the images that they part, grey "
            "from the smallest to the largest weight. A pixel that is constant in training has no influence; under the "
            "penalty it is drawn with the weight that the penalty alone gives.*",
        ]
    return markdown.wrap("\n".join([*lines, ""]))


def _groups(results: Path, part: str) -> dict[tuple[str, str, float], list[Record]]:
    """Group the finished fits of one part by data, training and λ."""
    groups: dict[tuple[str, str, float], list[Record]] = {}
    for file in sorted(results.glob(f"*{ENDING}")):
        for found in store_of("roughness", results, file.stem).records(part=part):
            groups.setdefault((found["data"], found["way"], found["roughness"]), []).append(found)
    return dict(sorted(groups.items()))


def _pairs(groups: dict[tuple[str, str, float], list[Record]]) -> dict[tuple[str, str, float], Comparison]:
    """Compare the trees of every λ with those of none."""
    return {
        key: Comparison(
            *(
                Summary(tuple(100 * one["hard"] for one in groups[name, way, strength]))
                for strength in (roughness, 0.0)
            ),
            f"{name}, {way}, λ = {roughness:g}",
            "λ = 0",
        )
        for key in groups
        for name, way, roughness in [key]
        if roughness and (name, way, 0.0) in groups
    }


def _headline(pairs: dict[tuple[str, str, float], Comparison]) -> list[str]:
    """Say by how much the penalty changes the test accuracy, at depth 8 and in the shallow trees."""
    deep = [pair.lead for (_, way, _), pair in pairs.items() if way != SHALLOW]
    if not deep:
        return []
    shallow: dict[str, list[float]] = {}
    for (name, way, _), pair in pairs.items():
        if way == SHALLOW:
            shallow.setdefault(name, []).append(pair.lead)
    more = " and ".join(
        f"{min(leads):+.1f} to {max(leads):+.1f} on {TITLES.get(name, name)}" for name, leads in shallow.items()
    )
    return [
        "**The spatial penalty makes the weight images of splits smooth and changes the test accuracy by "
        f"{min(deep):+.1f} to {max(deep):+.1f} points at depth 8.**"
        + (f" At depth 4, where λ is larger, it changes by {more}." if more else ""),
        "",
    ]


def _verdict(pairs: dict[tuple[str, str, float], Comparison]) -> list[str]:
    """Test that the penalty does not decrease the accuracy, for the λ of the pictures and those selected."""
    if not pairs:
        return []
    lines = [
        "## Without decreasing accuracy",
        "",
        "The paper's claim for the regularised trees, by the rules of [the depth curves](paper.md):",
        "",
    ]
    for what, is_shallow in (
        ("λ selected on validation rows, depth 8", False),
        ("shallow trees of the pictures", True),
    ):
        found = [pair for (_, way, _), pair in pairs.items() if (way == SHALLOW) == is_shallow]
        worse = [sum(pair.outcome(margin) == LOWER for pair in found) for margin in (None, MARGIN)]
        said = [f"**{'refuted' if number else 'confirmed'}** ({number} of {len(found)} lower)" for number in worse]
        lines += [f"* {what}: by spread {said[0]}, by a margin of {MARGIN:g} points {said[1]}."] if found else []
    return [
        *lines,
        "",
        "| | by spread | by margin |",
        "| --- | --- | --- |",
        *(f"| {pair} | {pair.outcome()} | {pair.outcome(MARGIN)} |" for pair in pairs.values()),
    ]


def _spread(found: list[Record], metric: str) -> str:
    return str(Summary(tuple(100 * one[metric] for one in found)))


def _chosen(results: Path) -> list[str]:
    """List the validation accuracies from which λ was selected."""
    lines = ["On validation rows:", "", "| data | training | λ | seeds | hard |", "|" + " --- |" * 5]
    for (name, way, roughness), found in _groups(results, "validation").items():
        lines.append(f"| {name} | {way} | {roughness:g} | {len(found)} | {_spread(found, 'hard')} |")
    return lines


def _windows(results: Path) -> list[str]:
    """List the trees on the windows of ISBI's slices, which another experiment trains."""
    lines = [
        "Windows of 31 × 31 pixels of ISBI's slices, depth 8 ([segmentation](segmentation.md)), test slices:",
        "",
        "| λ | seeds | pixel accuracy | ROC AUC | neighbours' correlation |",
        "|" + " --- |" * 5,
    ]
    before = len(lines)
    for roughness, row in WINDOWS.items():
        if found := store_of("segmentation", results, "isbi").records(row=row):
            scores = [
                Summary(tuple(100 * one["test"][metric] for one in found)) for metric in ("pixel_accuracy", "roc_auc")
            ]
            correlation = np.mean([one["neighbour_correlation"] for one in found])
            lines.append(f"| {roughness:g} | {len(found)} | {scores[0]} | {scores[1]} | {correlation:.2f} |")
    if len(lines) == before:
        return []
    if (IMAGES / "weights-isbi.png").exists():
        lines += ["", "![Weights of the first splits, smooth above, plain below](../images/weights-isbi.png)"]
    return lines


def main() -> None:
    """Run what is not there, then write the table."""
    parser = argparse.ArgumentParser(prog="experiments.roughness", description=__doc__)
    parser.add_argument("data", nargs="*", default=list(LOADERS), help=f"of {', '.join(LOADERS)}")
    parser.add_argument("--seeds", default="0,1,2", help="with commas")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--shallow", action="store_true", help="only the shallow trees, and their pictures")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--commit", default=None, help="what to record where git cannot say it")
    parser.add_argument("--dry-run", action="store_true", help="list the missing records and about how long they take")
    given = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    for name in given.data:
        run, title = Run(name, given, console), f"Section 4.2, {name}{', shallow trees' if given.shallow else ''}"
        if given.dry_run:
            names = [(fit.way, str(fit)) for fit in run.missing()]
            announce(console, title, names, median_seconds(run.store.records(), "way"))
        elif (data := left_out(LOADERS[name], title, console)) is not None:
            run.train(data)
    if given.dry_run:
        return
    (given.results.parent / PAGE).write_text(page(given.results), encoding="utf-8")


if __name__ == "__main__":
    main()
