"""Section 4.4 of the paper: a small convolutional network at each of nine splits, on MNIST.

``python -m experiments.cnn`` trains what has not been trained, one record for every row and seed, and writes the page.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from rich.console import Console
from torch import nn
from torch.nn.functional import affine_grid, grid_sample

from crisptree import CrispTreeClassifier, explain
from crisptree.datasets import Dataset, load_mnist
from crisptree.splits import ConvNet
from experiments import markdown, methods, provenance
from experiments.progress import announce, left_out, median_seconds
from experiments.store import Record, store_of
from experiments.table import Summary

Images = npt.NDArray[np.float32]

RESULTS, DATA = provenance.RESULTS / "cnn", "mnist"
COPIES = 5
TURN, SIZE, MOVE = 0.2, 0.1, 0.1
"""Radians, share of the size (and of the shear), share of half a side: how far a copy may be from its image."""


def with_dropout(input_shape: tuple[int, ...]) -> nn.Module:
    """Build the paper's network with dropout of a tenth of its 96 values."""
    layers = ConvNet(input_shape).layers
    return nn.Sequential(*layers[:7], nn.Dropout(0.1), *layers[7:])


def as_they_are(images: Images, seed: int) -> Images:
    """Return the images without augmentation."""
    return images


def with_copies(images: Images, seed: int) -> Images:
    """Append randomly rotated, scaled, sheared and shifted copies of the images."""
    random, n = np.random.default_rng(seed), len(images)
    found = [images]
    for _ in range(COPIES - 1):
        angle, size = random.uniform(-TURN, TURN, n), random.uniform(1 - SIZE, 1 + SIZE, n)
        maps = np.zeros((n, 2, 3), dtype=np.float32)
        maps[:, 0, 0] = maps[:, 1, 1] = size * np.cos(angle)
        maps[:, 1, 0] = size * np.sin(angle)
        maps[:, 0, 1] = random.uniform(-SIZE, SIZE, n) - maps[:, 1, 0]
        maps[:, :, 2] = random.uniform(-MOVE, MOVE, (n, 2))
        grid = affine_grid(torch.from_numpy(maps), [n, 1, *images.shape[1:]], align_corners=False)
        found.append(grid_sample(torch.from_numpy(images)[:, None], grid, align_corners=False)[:, 0].numpy())
    return np.concatenate(found)


SHARED = {"max_depth": None, "max_leaf_nodes": 10}
ROWS: dict[str, tuple[str, dict[str, Any], Callable[[Images, int], Images]]] = {
    "protocol": ("the paper's training", {"split": "conv"}, as_they_are),
    "paper": (
        "longer steps: twice the learning rate, 30 + 30 epochs, one scale for all pixels",
        {"split": "conv", "scale": "global", "learning_rate": 2e-3, "epochs": 30, "finetune_epochs": 30},
        as_they_are,
    ),
    "regularised": (
        f"regularised: dropout of a tenth, {COPIES - 1} slightly moved copies of every image, a falling learning rate",
        {
            "split": with_dropout,
            "scale": "global",
            "learning_rate": 4e-3,
            "learning_rate_decay": "linear",
            "epochs": 6,
            "finetune_epochs": 12,
            "steepness_step": 0.4,
        },
        with_copies,
    ),
}
"""What each row changes of ``CrispTreeClassifier.paper``: zero mean and unit variance, 50 + 50 epochs, rate 0.001."""

PUBLISHED = Summary((98.2,), known_spread=0.3)
"""The paper's accuracy, section 4.4."""


def run(name: str, seed: int, data: Dataset, device: str, commit: str) -> dict[str, Any]:
    """Train one tree on all rows but the test's and measure it."""
    _, changes, prepared = ROWS[name]
    X, y = data.all_but_test()
    images, test = (rows.astype(np.float32).reshape(-1, 28, 28) for rows in (X, data.X_test))
    training = prepared(images, seed)
    model = CrispTreeClassifier.paper(**SHARED | changes, random_state=seed, device=device, n_jobs=-1)
    started = time.perf_counter()
    model.fit(training, np.tile(y, len(training) // len(images)))
    seconds = time.perf_counter() - started
    soft = model.classes_[model.soft_predict_proba(test).argmax(axis=1)]
    blamed = explain.attribute_errors(model, test, data.y_test)
    return {
        "row": name,
        "seed": seed,
        "parameters": methods.effective_parameters(model),
        "fingerprint": provenance.fingerprint(data),
        "metrics": {
            "test_greedy": model.before_finetuning().score(test, data.y_test),
            "test_hard": model.score(test, data.y_test),
            "test_soft": float(np.mean(soft == data.y_test)),
            "train_hard": model.score(images, y),
        },
        "cnns_per_image": float(model.decision_path(test).sum(axis=1).mean()) - 1,
        "leaves": model.get_n_leaves(),
        "classes_with_a_leaf": len(set(model.tree_.labels().tolist())),
        "blame": [[int(split), int(errors), float(share)] for split, errors, share in blamed.table()],
        "seconds": round(seconds, 1),
        "training_rows": len(training),
        "commit": commit,
        "machine": provenance.machine(device),
        "versions": provenance.versions(),
    }


def page(results: Path) -> str:
    """Write the table of all finished rows in Markdown."""
    found: dict[str, list[Record]] = {}
    for record in store_of("cnn", results, DATA).records():
        found.setdefault(record["row"], []).append(record)
    lines = [
        "# Networks as splits on MNIST",
        "",
        _summary(found),
        "",
        "![Test accuracy in %](../images/result-cnn.png)",
        "",
        "Section 4.4 of the paper: best-first growth to 10 leaves, then finetuning. 60,000 training images, 10,000 "
        "test images, mean ± standard deviation over seeds. Greedy is the tree before finetuning, hard the "
        "deterministic tree, soft the probabilistic one; the paper's training has the values of its section 4.1.",
        "",
        "    python -m experiments.cnn",
        "",
        "| | seeds | greedy, hard | finetuned, hard | finetuned, soft | training, hard | CNNs per image | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        f"| the paper's figure | | | {PUBLISHED.mean:g} ± {PUBLISHED.spread:g} | | | | |",
    ]
    for name, (title, _, _) in ROWS.items():
        if not (seeds := found.get(name)):
            lines.append(f"| {title} | — | — | — | — | — | — | — |")
            continue
        parts = [
            str(Summary(tuple(100 * record["metrics"][metric] for record in seeds)))
            for metric in ("test_greedy", "test_hard", "test_soft", "train_hard")
        ]
        visited = np.mean([record["cnns_per_image"] for record in seeds])
        seconds = np.median([record["seconds"] for record in seeds])
        where = seeds[0]["machine"]["gpu"] or seeds[0]["machine"]["cpu"]
        lines.append(f"| {title} | {len(seeds)} | {' | '.join(parts)} | {visited:.2f} | {seconds:.0f} ({where}) |")
    lines += ["", "One-vs-rest would evaluate 10 networks per image, one-vs-one 45.", ""]
    lines += markdown.parameter_table(
        {title.partition(":")[0]: found[name][0]["parameters"] for name, (title, *_) in ROWS.items() if name in found}
    )
    lines += _blamed(found)
    return markdown.wrap("\n".join(lines))


def _summary(found: dict[str, list[Record]]) -> str:
    """Compare the tree of the paper's values with the paper's figure, and say what better training gives."""
    hard = {name: Summary(tuple(100 * one["metrics"]["test_hard"] for one in seeds)) for name, seeds in found.items()}
    if "protocol" not in hard:
        return "**The row with the values of section 4.1 has not been run.**"
    own, visited = hard["protocol"], np.mean([record["cnns_per_image"] for record in found["protocol"]])
    tie = "tied with" if abs(own.mean - PUBLISHED.mean) <= np.hypot(own.spread or 0.0, PUBLISHED.spread) else "not"
    others = "; ".join(
        f"{ROWS[name][0].partition(':')[0]}, {one} %" for name, one in hard.items() if name != "protocol"
    )
    return (
        f"**A tree with a small convolutional network at each split, trained with the paper's values, reaches {own} % "
        f"on MNIST, {tie} the paper's {PUBLISHED.mean:g} ± {PUBLISHED.spread:g} %, with {visited:.1f} of its networks "
        f"per image.** With other training, in the table: {others}."
    )


def _blamed(found: dict[str, list[Record]]) -> list[str]:
    """Attribute the errors of one tree to its splits (the remark of section 4.4)."""
    seeds = found.get("regularised") or found.get("paper")
    if not seeds:
        return []
    first = seeds[0]
    rows = [
        f"| {'nobody' if split < 0 else split} | {errors} | {100 * share:.0f} % |"
        for split, errors, share in first["blame"]
    ]
    return [
        f"## Errors per split ({first['row']}, seed {first['seed']})",
        "",
        "| split | errors on the test images | share |",
        "| --- | --- | --- |",
        *rows,
        "",
    ]


def main() -> None:
    """Run what is asked for and not there, then write the page."""
    parser = argparse.ArgumentParser(prog="experiments.cnn", description=__doc__)
    parser.add_argument("--rows", default=",".join(ROWS), help="which rows of the table, with commas")
    parser.add_argument("--seeds", default="0,1,2,3,4", help="with commas")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--commit", default=None, help="what to record where git cannot say it")
    parser.add_argument("--dry-run", action="store_true", help="list the missing records and about how long they take")
    given = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    store = store_of("cnn", given.results, DATA)
    wanted = [(name, seed) for seed in map(int, given.seeds.split(",")) for name in given.rows.split(",")]
    missing = [key for key in wanted if store.get(*key) is None]
    if given.dry_run:
        names = [(name, f"seed {seed}") for name, seed in missing]
        announce(console, "Section 4.4", names, median_seconds(store.records(), "row"))
        return
    data = left_out(load_mnist, "Section 4.4", console) if missing else None
    commit = given.commit or provenance.commit(given.results)
    for name, seed in missing if data else ():
        record = run(name, seed, data, given.device, commit)
        store.put(record)
        console.print(f"{name}, seed {seed}: {record['metrics']} in {record['seconds']} s")
    given.results.with_suffix(".md").write_text(page(given.results), encoding="utf-8")


if __name__ == "__main__":
    main()
