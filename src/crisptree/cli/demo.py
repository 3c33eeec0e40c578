"""``crisptree demo``: a tree on the bundled digits, from data to picture."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

import crisptree
from crisptree.cli import options
from crisptree.cli.output import table_of
from crisptree.cli.rows import accuracies
from crisptree.datasets import Dataset, load_digits
from crisptree.persistence.writing import atomic_write


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the model and the picture.")] = Path(
        "demo"
    ),
    depth: Annotated[int, typer.Option(min=1, max=8, help="Largest number of splits on a path.")] = 4,
    seed: Annotated[int, typer.Option(help="Makes the run repeatable.")] = 0,
    force: options.Force = False,
) -> None:
    """Train a tree on 8 × 8 digits, print how well it does, save it and draw it.

    Example: crisptree demo --depth 5 -o my-first-tree
    """
    from crisptree.plots import plot_tree
    from crisptree.plots.style import save_figure

    options.check_free((output / name for name in ("digits.crisp", "tree.png")), force)
    console, digits = Console(), load_digits()
    X, y = digits.all_but_test()
    console.print(f"Training a tree of depth {depth} on {len(X)} digits of 8 × 8 pixels …")
    started = time.perf_counter()
    model = crisptree.CrispTreeClassifier(
        max_depth=depth, image_shape=digits.image_shape, roughness=1e-2, random_state=seed, verbose=1
    ).fit(X, y)
    console.print(f"Trained in {time.perf_counter() - started:.1f} s.\n")
    console.print("Accuracy (hard: one path per image, as it predicts; soft: all leaves, for comparison)")
    console.print(_scores(model, X, y, digits))
    visited = model.decision_path(digits.X_test).sum(axis=1).mean() - 1
    console.print(
        f"depth {model.get_depth()} · {model.get_n_leaves()} leaves · a test image visits {visited:.1f} of "
        f"{model.tree_.structure.n_splits} splits on average\n"
    )
    output.mkdir(parents=True, exist_ok=True)
    model.save(output / "digits.crisp")
    with atomic_write(output / "tree.png") as temporary:
        save_figure(plot_tree(model), temporary, dpi=150)
    console.print(f"model    {output / 'digits.crisp'}", soft_wrap=True)
    console.print(f"picture  {output / 'tree.png'}", soft_wrap=True)


def _scores(model: crisptree.CrispTreeClassifier, X: np.ndarray, y: np.ndarray, digits: Dataset) -> Table:
    rows = []
    for name, tree in (("greedy", model.greedy()), ("finetuned", model)):
        cells = []
        for images, labels in ((X, y), (digits.X_test, digits.y_test)):
            scores = accuracies(tree, images, np.searchsorted(tree.classes_, labels))
            cells += [f"{score:.3f}" for score in scores.values()]
        rows.append([name, *cells])
    return table_of(("tree", "train hard", "train soft", "test hard", "test soft"), rows)
