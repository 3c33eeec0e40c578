"""Section 4.2 of the paper: weight images with and without the spatial penalty, and what it does to the accuracy.

``python -m experiments.roughness`` trains what has not been trained, one JSON file each, and writes the table. λ is
chosen on validation rows with one seed; then trees with that λ and with none are trained on all rows but the test's.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console

from crisptree import CrispTreeClassifier, load
from crisptree.datasets import Dataset, load_fashion_mnist, load_mnist
from experiments import cells, provenance
from experiments.table import Summary

RESULTS = provenance.RESULTS / "roughness"
PAGE = "images.md"
KEPT = provenance.ROOT / "build" / "roughness"
IMAGES = provenance.ROOT / "docs" / "images"
LOADERS = {"mnist": load_mnist, "fashion_mnist": load_fashion_mnist}
STRENGTHS = (1e-4, 3e-4, 1e-3, 1e-2)
SETTINGS = {"max_depth": 8, "epochs": 50, "finetune_epochs": 50, "scale": "global", "algorithm": "likelihood"}


def neighbour_correlation(images: npt.NDArray[np.float64]) -> float:
    """The mean over images of the correlation between neighbouring pixels, side by side and one below the other.

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


def measured(
    data: Dataset, part: str, roughness: float, seed: int, device: str, kept: Path | None = None
) -> dict[str, Any]:
    """Train one tree and score it: on validation rows after the training rows, on test rows after all others."""
    fitted, scored = {
        "validation": ((data.X_train, data.y_train), (data.X_valid, data.y_valid)),
        "test": (data.all_but_test(), (data.X_test, data.y_test)),
    }[part]
    model = CrispTreeClassifier.paper(
        **SETTINGS, roughness=roughness, image_shape=data.image_shape, random_state=seed, device=device
    )
    started = time.perf_counter()
    model.fit(*fitted)
    seconds = time.perf_counter() - started
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        model.save(kept)
    weights = model.tree_.scaled_hyperplanes()[0].reshape(-1, *data.image_shape)
    soft = model.classes_[model.soft_predict_proba(scored[0]).argmax(axis=1)]
    return {
        "part": part,
        "roughness": roughness,
        "seed": seed,
        "hard": model.score(*scored),
        "soft": float(np.mean(soft == scored[1])),
        "train_hard": model.score(*fitted),
        "greedy": model.greedy().score(*scored),
        "neighbour_correlation": neighbour_correlation(weights),
        "seconds": round(seconds, 1),
    }


def run(name: str, seeds: list[int], given: argparse.Namespace, console: Console) -> None:
    """All fits of one data set that are not there yet."""
    data, commit = LOADERS[name](), given.commit or provenance.commit(given.results)

    def result(part: str, roughness: float, seed: int) -> dict[str, Any]:
        file = given.results / f"{name}-{part}-{roughness:g}-seed-{seed}.json"
        if (found := cells.read(file)) is None:
            found = measured(data, part, roughness, seed, given.device, _kept(name, part, roughness, seed))
            found |= {"data": name, "commit": commit, "machine": provenance.machine(given.device)}
            cells.write(file, found)
            console.print(f"{name}, {part}, λ = {roughness:g}, seed {seed}: {found['hard']:.4f}")
        return found

    best = max(STRENGTHS, key=lambda roughness: result("validation", roughness, seeds[0])["hard"])
    for seed in seeds:
        for roughness in (0.0, best):
            result("test", roughness, seed)


def _kept(name: str, part: str, roughness: float, seed: int) -> Path:
    return KEPT / f"{name}-{part}-{roughness:g}-seed-{seed}.crisp"


def draw(name: str, seed: int) -> None:
    """Weight images with and without the penalty, from the trees that are kept."""
    from crisptree.plots import plot_weights

    kept = sorted(KEPT.glob(_kept(name, "test", 0.0, seed).name.replace("-0-", "-*-")), key=_strength)
    if len(kept) == 2:
        plain, smooth = map(load, kept)
        axes = plot_weights(smooth, compare=plain, style="both", nodes=range(7))
        axes.flat[0].figure.savefig(IMAGES / f"weights-{name.replace('_', '-')}.png", dpi=110)


def _strength(path: Path) -> float:
    return load(path).roughness


def page(results: Path) -> str:
    """The table in Markdown."""
    lines = [
        "# Weight images with and without the spatial penalty",
        "",
        "Depth 8, 50 + 50 epochs in batches of 1000 as in the paper, but one scale for all pixels and the gradient of "
        "the likelihood in place of EM. Hard routing, mean ± standard deviation over seeds. λ is chosen on validation "
        "rows with one seed; the trees of the table are trained on all rows but the test's. The correlation is that of "
        "neighbouring weights, averaged over all splits. `python -m experiments.roughness` makes this page.",
        "",
        "| data | λ | seeds | test, hard | test, soft | greedy, hard | training rows, hard | neighbours' correlation |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    groups: dict[tuple[str, float], list[dict[str, Any]]] = {}
    for file in sorted(results.glob("*-test-*.json")):
        found = cells.read(file)
        assert found is not None
        groups.setdefault((found["data"], found["roughness"]), []).append(found)
    for (name, roughness), found in sorted(groups.items()):
        scores = [
            str(Summary(tuple(100 * one[metric] for one in found)))
            for metric in ("hard", "soft", "greedy", "train_hard")
        ]
        correlation = np.mean([one["neighbour_correlation"] for one in found])
        lines.append(f"| {name} | {roughness:g} | {len(found)} | {' | '.join(scores)} | {correlation:.2f} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Run what is not there, then write the table."""
    parser = argparse.ArgumentParser(prog="experiments.roughness", description=__doc__)
    parser.add_argument("data", nargs="*", default=list(LOADERS), help=f"of {', '.join(LOADERS)}")
    parser.add_argument("--seeds", default="0,1,2", help="with commas")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--commit", default=None, help="what to record where git cannot say it")
    given = parser.parse_args()
    for name in given.data:
        seeds = [int(seed) for seed in given.seeds.split(",")]
        run(name, seeds, given, Console())
        draw(name, seeds[0])
    (given.results.parent / PAGE).write_text(page(given.results), encoding="utf-8")


if __name__ == "__main__":
    main()
