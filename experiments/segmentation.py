"""Membranes in electron microscopy (ISBI 2012): `python -m experiments.segmentation [--which …] [--seeds 0,1]`.

Slices 0–19 are trained on, 20–24 are for choices, 25–29 are tested. Each row and seed is one record; the page is
written from those that are there.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from rich.console import Console
from scipy import ndimage
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import accuracy_score, f1_score, jaccard_score, recall_score, roc_auc_score

from crisptree import CrispSegmenter, metrics
from crisptree.datasets import Dataset, load_isbi
from experiments import markdown, methods, provenance
from experiments.progress import announce, left_out, median_seconds
from experiments.roughness import draw as draw_weights
from experiments.roughness import neighbour_correlation, save
from experiments.store import Store, as_json, store_of

PAGE = provenance.RESULTS / "segmentation.md"
FOLDER, DATA = provenance.RESULTS / "segmentation", "isbi"
IMAGES = provenance.ROOT / "docs" / "images"
KEPT = provenance.ROOT / "build" / "segmentation"
MEMBRANE, CELL = 0, 1
FIGURE_ROW, PLAIN_ROW = "finetuned", "unsmoothed"
PAPER_ROW = "paper"
PAPER_ROWS = (PAPER_ROW, "paper_300k", "paper_sample")
"""The paper's protocol, whole, which its picture and its verdicts come from, and with few pixels per epoch."""

FAR, DARK = 10, 0.2
"""Cell pixels so far from every labelled membrane are inside a cell; of these the darkest fifth of a slice is dark.
ISBI labels no mitochondria: they are dark regions inside cells."""

COMMON: dict[str, Any] = {"window": 31, "max_depth": 8, "learning_rate": 0.001, "batch_size": 256}
JOINT: dict[str, Any] = {
    "algorithm": "likelihood",
    "epochs": 8,
    "finetune_epochs": 20,
    "pixels_per_epoch": 100_000,
    "spatial_penalty": 1e-2,
    "learning_rate_decay": "linear",
    "normalise_images": True,
}
COARSE: dict[str, Any] = {"window": 15, "scales": (1, 2, 4), "spatial_penalty": 1e-3}
ROWS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "paper": {"pixels_per_epoch": None},
    "paper_300k": {"pixels_per_epoch": 300_000},
    "paper_sample": {"pixels_per_epoch": 100_000},
    "finetuned": COMMON | JOINT,
    "unsmoothed": COMMON | JOINT | {"spatial_penalty": 0.0},
    "brightness": COMMON | JOINT | {"normalise_images": False},
    "scales": COMMON | JOINT | COARSE,
    "stacked": COMMON | JOINT | COARSE | {"stages": 2},
    "forest": {"window": 31, "n_estimators": 100, "pixels": 100_000},
}
"""What each row changes, of ``CrispSegmenter.paper`` for those of the paper, else of ``CrispSegmenter``. The forest
sees the windows of some pixels, as all of them do not fit into memory."""

WHAT = {
    "defaults": "`CrispSegmenter()`, the defaults when it ran",
    "paper": "as in the paper: greedy EM, 40 epochs per split of all pixels in batches of 1000, no smoothing",
    "paper_300k": "the paper's protocol, but every epoch sees 300,000 pixels, 5.7 % of all",
    "paper_sample": "the paper's protocol, but every epoch sees 100,000 pixels, 1.9 % of all",
    "finetuned": "grown and finetuned with spatial penalty, every slice by its own mean and spread",
    "unsmoothed": "the same without spatial penalty",
    "brightness": "the same with spatial penalty, but slices as bright as they are",
    "scales": "with spatial penalty and normalised slices, on three scales of 15 × 15 samples",
    "stacked": "these in two stages: the second tree also sees the first one's probabilities",
    "forest": "scikit-learn's random forest, 100 trees, on a sample of windows",
}
COLUMNS = {
    "pixel_accuracy": "pixel accuracy",
    "roc_auc": "ROC AUC",
    "f1": "F1 of membrane",
    "iou_membrane": "IoU of membrane",
    "adapted_rand_error": "adapted Rand error",
    "membrane_errors": "membrane pixels missed",
    "inside_errors": "pixels inside cells called membrane",
    "dark_inside_errors": "dark ones of these",
    "same_leaf": "neighbours in one leaf",
}


class Model(Protocol):
    """What is measured: probabilities of shape (n, height, width) for membrane, and leaves where there are some.

    ``parameters`` are all that say what was trained, defaults too.
    """

    parameters: dict[str, Any]

    def probability(self, images: np.ndarray) -> np.ndarray: ...

    def leaves(self, images: np.ndarray) -> np.ndarray | None: ...

    def neighbour_correlation(self) -> float | None: ...


class Ours:
    """A segmenter of this library."""

    def __init__(
        self, name: str, data: Dataset, config: dict[str, Any], seed: int, kept: Path | None, device: str
    ) -> None:
        make = CrispSegmenter.paper if name in PAPER_ROWS else CrispSegmenter.from_flat
        model = make(**config, random_state=seed, device=device, n_jobs=-1)
        self.parameters = methods.effective_parameters(model)
        self.model = model.fit(data.X_train, data.y_train)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            self.model.save(kept)

    def probability(self, images: np.ndarray) -> np.ndarray:
        return self.model.predict_proba(images)[..., MEMBRANE]

    def leaves(self, images: np.ndarray) -> np.ndarray:
        return self.model.leaf_indices(images)

    def neighbour_correlation(self) -> float:
        side = self.model.window
        weights = self.model.tree_.scaled_hyperplanes()[0].reshape(-1, side, side, self.model.n_features_in_ // side**2)
        return neighbour_correlation(np.moveaxis(weights, -1, 1).reshape(-1, side, side))


class Forest:
    """A random forest on the windows of some training pixels."""

    def __init__(
        self, name: str, data: Dataset, config: dict[str, Any], seed: int, kept: Path | None, device: str
    ) -> None:
        self.parameters, self.window, rng = dict(config), config["window"], np.random.default_rng(seed)
        views = self._views(data.X_train)
        pixels = rng.choice(data.y_train.size, config["pixels"], replace=False)
        place = np.unravel_index(pixels, data.y_train.shape)
        rows = views[place].reshape(len(pixels), -1)
        self.forest = RandomForestClassifier(config["n_estimators"], n_jobs=2, random_state=seed)
        self.forest.fit(rows, data.y_train[place])

    def _views(self, images: np.ndarray) -> np.ndarray:
        half = self.window // 2
        padded = np.pad(images, ((0, 0), (half, half), (half, half)), mode="reflect")
        return np.lib.stride_tricks.sliding_window_view(padded, (self.window, self.window), axis=(1, 2))

    def probability(self, images: np.ndarray) -> np.ndarray:
        views = self._views(images)
        lines = [
            self.forest.predict_proba(block.reshape(-1, self.window**2))[:, MEMBRANE]
            for image in views
            for block in np.array_split(image, 16)
        ]
        return np.concatenate(lines).reshape(images.shape)

    def leaves(self, images: np.ndarray) -> None:
        return None

    def neighbour_correlation(self) -> None:
        return None


MODELS = {name: Forest if name == "forest" else Ours for name in ROWS}


def measure(model: Model, images: np.ndarray, truth: np.ndarray) -> dict[str, float | None]:
    """Compute all metrics of one part of the data; segments are the connected components of cells."""
    started = time.perf_counter()
    probability = model.probability(images)
    seconds = time.perf_counter() - started
    found = np.where(probability > 0.5, MEMBRANE, CELL)
    pieces = [[ndimage.label(image == CELL)[0] for image in stack] for stack in (truth, found)]
    leaves, flat = model.leaves(images), (truth.ravel(), found.ravel())
    inside, dark = inside_cells(images, truth)
    return {
        "pixel_accuracy": accuracy_score(*flat),
        "roc_auc": roc_auc_score(truth.ravel() == MEMBRANE, probability.ravel()),
        "f1": f1_score(*flat, pos_label=MEMBRANE, zero_division=1.0),
        "iou_membrane": jaccard_score(*flat, pos_label=MEMBRANE),
        "iou_cell": jaccard_score(*flat, pos_label=CELL),
        "adapted_rand_error": metrics.adapted_rand_error(*pieces),
        "membrane_errors": 1 - recall_score(*flat, pos_label=MEMBRANE),
        "inside_errors": float(np.mean(found[inside] == MEMBRANE)) if inside.any() else None,
        "dark_inside_errors": float(np.mean(found[dark] == MEMBRANE)) if dark.any() else None,
        "same_leaf": None if leaves is None else metrics.neighbours_in_same_leaf(leaves),
        "seconds_per_slice": seconds / len(images),
    }


def inside_cells(images: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Find the pixels inside cells and the dark ones among them, slice by slice.  Two (n, height, width)"""
    inside = np.stack([ndimage.distance_transform_edt(labels == CELL) >= FAR for labels in truth])
    smooth = np.stack([ndimage.uniform_filter(image.astype(np.float64), 5) for image in images])
    limits = [np.quantile(image[here], DARK) if here.any() else 0.0 for image, here in zip(smooth, inside, strict=True)]
    return inside, inside & (smooth <= np.array(limits)[:, None, None])


def is_current(store: Store, name: str, seed: int) -> bool:
    """Return True if the record of a row and seed has the present configuration and all metrics."""
    found = store.get(name, seed)
    config = as_json({**ROWS[name], "seed": seed})
    return found is not None and found["config"] == config and set(COLUMNS) <= set(found["test"])


def run(name: str, seed: int, data: Dataset, device: str = "cpu", commit: str | None = None) -> None:
    """Train and measure one row, unless its record is current."""
    store, config = store_of("segmentation", FOLDER, DATA), {**ROWS[name], "seed": seed}
    if is_current(store, name, seed):
        return
    started = time.perf_counter()
    model = MODELS[name](name, data, ROWS[name], seed, KEPT / f"{name}-seed-{seed}.crisp", device)
    seconds = time.perf_counter() - started
    store.put(
        {
            "row": name,
            "seed": seed,
            "config": config,
            "parameters": model.parameters,
            "fingerprint": provenance.fingerprint(data),
            "seconds": seconds,
            "neighbour_correlation": model.neighbour_correlation(),
            "validation": measure(model, data.X_valid, data.y_valid),
            "test": measure(model, data.X_test, data.y_test),
            "commit": commit or provenance.commit(provenance.RESULTS),
            "machine": provenance.machine(device),
            "versions": provenance.versions(),
        },
    )


def page() -> str:
    """Write the table of test metrics, mean ± spread over seeds, and of the validation metrics."""
    store = store_of("segmentation", FOLDER, DATA)
    lines = [
        "# Segmentation: membranes in electron microscopy (ISBI 2012)",
        "",
        *_headline(store),
        "512 × 512 slices: 0–19 for training, 20–24 for validation, 25–29 for test. Deterministic trees, one leaf per "
        "pixel; mean ± standard deviation over seeds.",
        "",
        "    python -m experiments.segmentation --seeds 0,1,2",
        "",
    ]
    for part in ("test", "validation"):
        lines += [f"## {part.capitalize()} slices", "", "| row | seeds | " + " | ".join(COLUMNS.values()) + " |"]
        lines.append("|" + "---|" * (len(COLUMNS) + 2))
        for name in ROWS:
            if found := store.records(row=name):
                values = [_spread([cell[part].get(key) for cell in found]) for key in COLUMNS]
                lines.append(f"| `{name}`: {WHAT[name]} | {len(found)} | " + " | ".join(values) + " |")
        lines.append("")
    lines += verdict(store)
    for picture, words in PICTURES.items():
        if (IMAGES / picture).exists():
            lines += [f"![Input, ground truth, prediction and leaves](../images/{picture})", "", f"*{words}*", ""]
    first = {name: found[0] for name in ROWS if name != "forest" and (found := store.records(row=name))}
    lines += markdown.parameter_table({f"`{name}`": one["parameters"] for name, one in first.items()})
    notes = FOLDER / "notes.md"
    lines += notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    return markdown.wrap("\n".join(lines).rstrip() + "\n")


def _headline(store: Store) -> list[str]:
    """Say what three rows reach on the test slices, where all of them have records."""
    scores = {
        row: [100 * cell["test"]["pixel_accuracy"] for cell in store.records(row=row)]
        for row in ("defaults", "forest", "stacked")
    }
    if not all(scores.values()):
        return []
    ours, forest, stacked = (f"{np.mean(found):.1f} %" for found in scores.values())
    return [
        f"**A default `CrispSegmenter` classifies {ours} of the pixels of new slices correctly, a random forest of 100 "
        f"trees {forest}; two stages on three scales reach {stacked}.**",
        "",
    ]


PICTURES = {
    "segmentation.png": "Grown and finetuned with spatial penalty, the first test slice: (a) input, (b) ground truth, "
    "(c) prediction, darker where membrane is more probable, (d) leaves from left to right, from black to white.",
    "segmentation-paper.png": "The same by the paper's protocol, all pixels in every epoch: membranes stand out, "
    "mitochondria are grey to dark in (c), and within cells neighbouring pixels often lie in different leaves (d).",
}


def verdict(store: Store) -> list[str]:
    """Test the paper's statements under its protocol, and say what the better training makes of them."""
    rows = {row: store.records(row=row) for row in (PAPER_ROW, FIGURE_ROW)}
    lines, seeds = ["## The paper's claims", ""], len(rows[PAPER_ROW])
    if not seeds:
        return [*lines, "They cannot be tested: no tree of the paper's protocol has been trained.", ""]
    lines += [
        f"On the test slices, {seeds} seed{'s' if seeds > 1 else ''} of the row “{WHAT[PAPER_ROW]}”; in brackets that "
        f"of “{WHAT[FIGURE_ROW]}”.",
        "",
    ]

    def value(name: str, row: str = PAPER_ROW) -> list[float]:
        return [cell["test"][name] for cell in rows[row] if cell["test"].get(name) is not None]

    def both(name: str) -> str:
        return f"{_spread(value(name))} ({_spread(value(name, FIGURE_ROW)) if value(name, FIGURE_ROW) else '–'})"

    same = "confirmed" if np.mean(value("same_leaf")) > 0.5 else "refuted"
    lines.append(f"* “Most adjacent pixels are routed to the same leaf”: **{same}**, {both('same_leaf')} of them.")
    found = "confirmed" if np.mean(value("membrane_errors")) < 0.5 else "refuted"
    lines.append(
        f"* “Most of the membranes are correctly identified”: **{found}**, {both('membrane_errors')} of the membrane "
        "pixels are missed."
    )
    claim = "* “Many mitochondria are falsely classified as membrane”: "
    if not value("dark_inside_errors"):
        return [*lines, f"{claim}**open**, the records do not hold the figure.", ""]
    wrong, rate = np.mean(value("dark_inside_errors")), np.mean(value("inside_errors"))
    lines.append(
        f"{claim}**{'confirmed' if wrong > 2 * rate else 'refuted'}**. ISBI has no labels of mitochondria; they are "
        f"dark and inside cells. Of the pixels {FAR} and more from every labelled membrane {both('inside_errors')} are "
        f"called membrane, of the darkest {DARK:.0%} among them {both('dark_inside_errors')}; “many” is taken as more "
        "than twice the rate inside cells."
    )
    return [*lines, ""]


def _spread(values: list[float | None]) -> str:
    numbers = np.array([value for value in values if value is not None])
    if not len(numbers):
        return "–"
    text = f"{numbers.mean():.4f}" + (f" ± {numbers.std(ddof=1):.4f}" if len(numbers) > 1 else "")
    return text + (f" ({len(numbers)} of {len(values)} seeds)" if len(numbers) < len(values) else "")


def draw(data: Dataset) -> None:
    """Draw the paper's figure for the first test slice, and weights with and without spatial penalty."""
    import crisptree
    from crisptree.plots import plot_segmentation

    kept = {row: sorted(KEPT.glob(f"{row}-seed-*.crisp")) for row in ROWS}
    IMAGES.mkdir(parents=True, exist_ok=True)
    for row, picture in zip((FIGURE_ROW, PAPER_ROW), PICTURES, strict=True):
        if kept[row]:
            model, image = crisptree.load(kept[row][0]), data.X_test[0]
            chance = model.predict_proba(image)[..., MEMBRANE]
            axes = plot_segmentation(image, data.y_test[0], model.leaf_image(image), chance, class_name="membrane")
            save(axes[0].figure, IMAGES / picture)
            _grey(IMAGES / picture)
    if kept[FIGURE_ROW] and kept[PLAIN_ROW]:
        draw_weights(kept[PLAIN_ROW][0], kept[FIGURE_ROW][0], IMAGES / "weights-isbi.png")


def _grey(picture: Path) -> None:
    """Convert an image file to grey, a third of its size."""
    from PIL import Image

    Image.open(picture).convert("L").save(picture, optimize=True)


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--which", default=",".join(ROWS), help="rows, separated by commas")
    parser.add_argument("--seeds", default="0", help="seeds, separated by commas")
    parser.add_argument("--device", default="cpu", help="where to train")
    parser.add_argument("--commit", help="what to record where git cannot say it")
    parser.add_argument("--dry-run", action="store_true", help="list the missing records and about how long they take")
    options = parser.parse_args()
    console, store = Console(highlight=False, soft_wrap=True), store_of("segmentation", FOLDER, DATA)
    names = options.which.split(",") if options.which else []
    wanted = [(name, seed) for seed in map(int, options.seeds.split(",")) for name in names]
    missing = [key for key in wanted if not is_current(store, *key)]
    if options.dry_run:
        listed = [(name, f"seed {seed}") for name, seed in missing]
        announce(console, "Section 4.3", listed, median_seconds(store.records(), "row"))
        return
    data = left_out(load_isbi, "Section 4.3", console)
    if data is not None:
        for name, seed in missing:
            run(name, seed, data, options.device, options.commit)
            PAGE.write_text(page(), encoding="utf-8")
        try:
            draw(data)
        except ImportError as error:  # a machine that trains need not draw; its trees are kept
            console.print(f"No pictures: {error}", markup=False)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
