"""``crisptree data`` lists and downloads data sets, ``crisptree demo`` trains a tree on one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console

import crisptree
from crisptree.cli import options
from crisptree.cli.evaluation import compute_accuracies, predict_hard_and_soft
from crisptree.cli.output import PLAIN, make_table
from crisptree.datasets import load_digits
from crisptree.datasets.catalog import (
    CATALOG,
    Publication,
    find,
    get_homes,
)
from crisptree.datasets.download import DownloadError, fetch
from crisptree.files import atomic_write
from crisptree.sanitization import sanitize

app = typer.Typer(name="data", help="List data sets and download them.", no_args_is_help=True)

DataHome = Annotated[
    Path | None,
    typer.Option("--data-home", help="Folder of data sets; default: $CRISPTREE_DATA, then the cache."),
]


@app.command("list")
def list_data(data_home: DataHome = None) -> None:
    """List every data set and the place of its files."""
    console = Console()
    rows = [
        [each.name, each.title, f"{sum(each.rows.values()):,}", *_describe_files(each, data_home)]
        for each in CATALOG.values()
    ]
    columns = ("name", "what it is", "rows", "download", "here")
    console.print(make_table(columns, rows, left=("what it is", "here")))
    console.print(sanitize(f"Looked for in {', then '.join(map(str, get_homes(data_home)))}"), **PLAIN)


def _describe_files(publication: Publication, data_home: Path | None) -> tuple[str, str]:
    if not publication.files:
        return "–", "comes with scikit-learn"
    sizes, files = [file.size for file in publication.files], find(publication.name, data_home)
    size = "size not known" if None in sizes else f"{sum(size or 0 for size in sizes) / 1e6:.1f} MB"
    return size, str(files.paths[0] if len(files.paths) == 1 else files.paths[0].parent) if files else "no"


@app.command("fetch")
def fetch_data(
    names: Annotated[list[str], typer.Argument(help=f"Which: {', '.join(CATALOG)}.")],
    data_home: DataHome = None,
) -> None:
    """Download data sets from their publishers and verify their checksums.

    Example: crisptree data fetch mnist fashion_mnist
    """
    for name in names:
        if name not in CATALOG:
            raise typer.BadParameter(f"there is no data set {name!r}; known are {', '.join(CATALOG)}.")
    console = Console()
    for name in names:
        if not CATALOG[name].files:
            console.print(f"{name}: comes with scikit-learn, there is nothing to fetch.")
        for file in CATALOG[name].files:
            try:
                path = fetch(file, get_homes(data_home)[0] / name)
            except DownloadError as error:
                Console(stderr=True).print(f"{name}: {sanitize(str(error))}", style="red", **PLAIN)
                raise typer.Exit(1) from error
            console.print(f"{name}: {sanitize(str(path))}", **PLAIN)


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the model and the figure.")] = Path("demo"),
    depth: Annotated[int, typer.Option(min=1, max=8, help="Maximum depth.")] = 4,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    force: options.Force = False,
) -> None:
    """Train a tree on 8 × 8 digits, print its accuracy, save it and draw it.

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
        max_depth=depth, image_shape=digits.image_shape, spatial_penalty=1e-2, random_state=seed, verbose=1
    ).fit(X, y)
    console.print(f"Trained in {time.perf_counter() - started:.1f} s.\n")
    console.print("Accuracy (hard: one path per image, as in predict; soft: all leaves, for comparison)")
    rows = []
    for name, tree in (("greedy", model.before_finetuning()), ("finetuned", model)):
        cells: list[str] = []
        for images, labels in ((X, y), (digits.X_test, digits.y_test)):
            predictions = predict_hard_and_soft(tree, images, tree.classes_)
            scores = compute_accuracies(np.searchsorted(tree.classes_, labels), *predictions)
            cells += [f"{score:.3f}" for score in scores.values()]
        rows.append([name, *cells])
    console.print(make_table(("tree", "train hard", "train soft", "test hard", "test soft"), rows))
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
    console.print(f"figure   {output / 'tree.png'}", soft_wrap=True)
