"""``crisptree segment fit`` and ``crisptree segment predict``: a class for every pixel of images in folders."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import typer

import crisptree
from crisptree.cli import options
from crisptree.cli.options import OUTPUT, TRAINING, TREE
from crisptree.cli.speaking import Bar, Speaker
from crisptree.cli.whole import check_output, whole_file
from crisptree.datasets.image_files import NamedImage, read_images, write_png
from crisptree.tables.errors import TableError, counted

app = typer.Typer(
    name="segment", help="Train on labelled images, and label others pixel by pixel.", no_args_is_help=True
)

NO = {"show_default": False}
Images = Annotated[
    Path, typer.Argument(help="A folder of .png and .tif, or one file of many pages.", show_default=False)
]


@app.command("fit")
def fit_images(
    images: Images,
    labels: Annotated[
        Path, typer.Argument(help="The same for the labels: a pixel's value is its class.", show_default=False)
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The model file to write (.crisp).", rich_help_panel=OUTPUT, **NO)
    ],
    window: Annotated[int, typer.Option(min=1, help="Side of the window, odd.", rich_help_panel=TREE)] = 31,
    scales: Annotated[str, typer.Option(help="Where windows sample, e.g. 1,4.", rich_help_panel=TREE)] = "1",
    normalise: Annotated[
        bool, typer.Option("--normalise", help="Each image by its own mean and spread.", rich_help_panel=TREE)
    ] = False,
    stages: Annotated[int, typer.Option(min=1, help="Trees that follow each other.", rich_help_panel=TREE)] = 1,
    depth: Annotated[int, typer.Option(min=0, help="Most splits on a path.", rich_help_panel=TREE)] = 8,
    leaves: Annotated[
        int | None, typer.Option(min=2, help="Most leaves; grows best first.", rich_help_panel=TREE, **NO)
    ] = None,
    split: Annotated[
        Literal["oblique", "axis", "conv"], typer.Option(help="What a split asks.", rich_help_panel=TREE)
    ] = "oblique",
    algorithm: Annotated[
        Literal["em", "alternating", "likelihood"], typer.Option(help="How to train.", rich_help_panel=TRAINING)
    ] = "em",
    epochs: Annotated[int, typer.Option(min=1, help="Epochs of every split.", rich_help_panel=TRAINING)] = 20,
    finetune_epochs: Annotated[int, typer.Option(min=0, help="Epochs of the tree.", rich_help_panel=TRAINING)] = 40,
    pixels_per_epoch: Annotated[
        int, typer.Option(min=1, help="Pixels that an epoch goes through.", rich_help_panel=TRAINING)
    ] = 300_000,
    l1: Annotated[float, typer.Option(min=0, help="Strength of Σ|β|: zeros.", rich_help_panel=TRAINING)] = 0.0,
    l2: Annotated[float, typer.Option(min=0, help="Strength of Σβ².", rich_help_panel=TRAINING)] = 0.0,
    roughness: Annotated[
        float, typer.Option(min=0, help="Strength of differences of neighbouring weights.", rich_help_panel=TRAINING)
    ] = 0.0,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Weigh all classes alike.", rich_help_panel=TRAINING)
    ] = False,
    ignore_label: Annotated[
        int | None, typer.Option(help="The value of pixels without a label.", rich_help_panel=TRAINING, **NO)
    ] = None,
    holdout: Annotated[
        int, typer.Option(min=0, help="How many of the last images to leave out and score.", rich_help_panel=TRAINING)
    ] = 0,
    early_stopping: Annotated[
        bool,
        typer.Option("--early-stopping", help="Keep the best epoch on some of the images.", rich_help_panel=TRAINING),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Makes the run repeatable.", rich_help_panel=TRAINING)] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.", rich_help_panel=TRAINING)] = "auto",
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Train a tree that says of every pixel what it belongs to, from the window around it.

    Images and labels belong together by their names, or by their order where names differ.

    Examples:
      crisptree segment fit images/ labels/ -o membranes.crisp

      crisptree segment fit stack.tif labels.tif --window 21 --scales 1,4 --holdout 5 -o model.crisp
    """
    check_output(output, (".crisp",))
    speaker = Speaker(as_json)
    pictures, truth = _paired(images, labels)
    n_kept = len(pictures) - holdout
    if n_kept < 1:
        raise TableError(f"--holdout must leave at least one image to train on; got {holdout} of {len(pictures)}.")
    with Bar(speaker.err) as bar:
        from crisptree.cli.epochs import epoch_bar

        model = crisptree.CrispSegmenter(
            window=window,
            scales=_scales(scales),
            normalise_images=normalise,
            stages=stages,
            max_depth=depth,
            max_leaf_nodes=leaves,
            split=split,
            algorithm=algorithm,
            epochs=epochs,
            finetune_epochs=finetune_epochs,
            pixels_per_epoch=pixels_per_epoch,
            l1=l1,
            l2=l2,
            roughness=roughness,
            class_weight="balanced" if balanced else None,
            ignore_label=ignore_label,
            early_stopping=early_stopping,
            random_state=seed,
            device=device,
            n_jobs=jobs,
            callbacks=[epoch_bar(bar)],
        )
        started = time.monotonic()
        bar.update("training", None)
        with speaker.warnings_as_notes():
            model.fit(pictures[:n_kept], truth[:n_kept])
    seconds = time.monotonic() - started
    model.callbacks = None
    model.save(output)
    scores = {"training": model.score(pictures[:n_kept], truth[:n_kept])}
    if holdout:
        scores["held out"] = model.score(pictures[n_kept:], truth[n_kept:])
    said = " · ".join(f"{name} {score:.4f}" for name, score in scores.items())
    speaker.show(f"{counted(n_kept, 'image')} · {len(model.classes_)} classes · trained in {seconds:.1f} s")
    speaker.show(f"pixel accuracy (hard): {said}")
    speaker.show(f"depth {model.get_depth()} · {model.get_n_leaves()} leaves · {output}")
    document = {"model": str(output), "images": n_kept, "classes": model.classes_.tolist(), "pixel_accuracy": scores}
    speaker.finish({**document, "depth": model.get_depth(), "leaves": model.get_n_leaves(), "seconds": seconds})


@app.command("predict")
def predict_images(
    model: options.Model,
    images: Images,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write to; it is made.", rich_help_panel=OUTPUT, **NO)
    ],
    proba: Annotated[
        bool, typer.Option("--proba", help="Also NAME.proba.npy, a probability per class.", rich_help_panel=OUTPUT)
    ] = False,
    leaf: Annotated[
        bool, typer.Option("--leaf", help="Also NAME.leaf.png, a grey per leaf.", rich_help_panel=OUTPUT)
    ] = False,
    jobs: options.Jobs = None,
    as_json: options.Json = False,
) -> None:
    """Label every pixel: one .png per image, whose values are the classes.

    Examples:
      crisptree segment predict membranes.crisp new/ -o labelled/

      crisptree segment predict model.crisp stack.tif --proba --leaf -o labelled/
    """
    speaker = Speaker(as_json)
    if output.exists() and not output.is_dir():
        raise TableError(f"{output} must be a folder; it is a file.")
    segmenter: Any = crisptree.load(model)
    if not isinstance(segmenter, crisptree.CrispSegmenter):
        raise crisptree.ModelFileError(f"{model} must hold a segmenter; it holds a {type(segmenter).__name__}.")
    segmenter.n_jobs = jobs
    values = _grey_values(segmenter.classes_)
    if not np.array_equal(values, segmenter.classes_):
        speaker.note(f"classes are written as 0 … {len(values) - 1}, in the order {segmenter.classes_.tolist()}.")
    pictures = read_images(images)
    output.mkdir(parents=True, exist_ok=True)
    written: list[str] = []
    with Bar(speaker.err) as bar:
        for place, picture in enumerate(pictures):
            bar.update(f"labelling {images.name}", place / len(pictures), picture.name)
            written += _write_one(segmenter, picture, output, values, proba, leaf)
    speaker.show(f"{counted(len(pictures), 'image')} → {output}")
    document = {"model": str(model), "images": len(pictures), "output": str(output), "files": written}
    speaker.finish(
        {**document, "values": dict(zip(map(str, segmenter.classes_.tolist()), values.tolist(), strict=True))}
    )


def _write_one(
    model: Any, picture: NamedImage, folder: Path, values: npt.NDArray[Any], proba: bool, leaf: bool
) -> list[str]:
    # As a list of one: an RGB image alone would look like many narrow ones to a model of grey images.
    leaves = model.apply([picture.array])[0]
    parts: dict[str, npt.NDArray[Any]] = {f"{picture.name}.png": values[model.tree_.majority][leaves]}
    if proba:
        parts[f"{picture.name}.proba.npy"] = model.tree_.leaves[leaves].astype(np.float32)
    if leaf:
        parts[f"{picture.name}.leaf.png"] = np.round(255 * model.leaf_image([picture.array])[0]).astype(np.uint8)
    for name, array in parts.items():
        with whole_file(folder / name) as temporary:
            if name.endswith(".npy"):
                np.save(temporary, array)
            else:
                write_png(temporary, array)
    return list(parts)


def _grey_values(classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The pixel value of every class: its label where that is a grey of 8 or 16 bits, else its number."""
    fits = classes.dtype.kind in "biu" and classes.min() >= 0 and classes.max() < 2**16
    values = classes.astype(np.int64) if fits else np.arange(len(classes))
    return values.astype(np.uint8 if values.max() < 2**8 else np.uint16)


def _paired(images: Path, labels: Path) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]]:
    """Images and their labels, by name where all names agree, else by order."""
    pictures, truths = read_images(images), read_images(labels, labels=True)
    if len(pictures) != len(truths):
        raise TableError(
            f"there must be as many labels as images; {images} holds {counted(len(pictures), 'image')} and {labels} "
            f"{len(truths)}."
        )
    by_name = {truth.name: truth for truth in truths}
    if {picture.name for picture in pictures} == set(by_name):
        truths = [by_name[picture.name] for picture in pictures]
    for picture, truth in zip(pictures, truths, strict=True):
        if picture.array.shape[:2] != truth.array.shape:
            raise TableError(
                f"an image and its labels must be of one size; image {picture.name} is {_size(picture)}, labels "
                f"{truth.name} are {_size(truth)}."
            )
    return [picture.array for picture in pictures], [truth.array for truth in truths]


def _size(picture: NamedImage) -> str:
    return " × ".join(map(str, picture.array.shape[:2]))


def _scales(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"--scales must be whole numbers such as 1,4; got {text!r}.") from None
