"""``crisptree segment fit`` and ``crisptree segment predict``: a class for every pixel of images in folders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

import crisptree
from crisptree.cli import options
from crisptree.cli.options import OUTPUT, TRAINING, option, output_option
from crisptree.cli.output import Output
from crisptree.cli.parameters import with_parameters
from crisptree.cli.training import train
from crisptree.datasets.image_files import NamedImage, read_images, write_png
from crisptree.estimators.parameters import SegmenterParameters
from crisptree.persistence.writing import written_whole
from crisptree.tables.errors import TableError, counted

app = typer.Typer(
    name="segment", help="Train on labelled images, and label others pixel by pixel.", no_args_is_help=True
)

Images = Annotated[
    Path, typer.Argument(help="A folder of .png and .tif, or one file of many pages.", show_default=False)
]


@app.command("fit")
@with_parameters(SegmenterParameters, without=("class_weight",))
def fit_images(
    images: Images,
    labels: Annotated[
        Path, typer.Argument(help="The same for the labels: a pixel's value is its class.", show_default=False)
    ],
    output: Annotated[Path, output_option("The model file to write (.crisp).")],
    *,
    parameters: dict[str, Any],
    balanced: Annotated[bool, option("--balanced", help="Weigh all classes alike.", panel=TRAINING)] = False,
    holdout: Annotated[
        int, typer.Option(min=0, help="How many of the last images to leave out and score.", rich_help_panel=TRAINING)
    ] = 0,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Train a tree that says of every pixel what it belongs to, from the window around it.

    Images and labels belong together by their names, or by their order where names differ.

    Examples:
      crisptree segment fit images/ labels/ -o membranes.crisp

      crisptree segment fit stack.tif labels.tif --window 21 --scales 1,4 --holdout 5 -o model.crisp
    """
    options.check_output(output, (".crisp",))
    options.check_free([output], force)
    out = Output(as_json)
    pictures, truth = _paired(images, labels)
    n_kept = len(pictures) - holdout
    if n_kept < 1:
        raise TableError(f"--holdout must leave at least one image to train on; got {holdout} of {len(pictures)}.")
    model = crisptree.CrispSegmenter(class_weight="balanced" if balanced else None, **parameters)
    with out.progress() as progress:
        seconds = train(model, out, progress, pictures[:n_kept], truth[:n_kept])
    model.save(output)
    scores = {"training": model.score(pictures[:n_kept], truth[:n_kept])}
    if holdout:
        scores["held out"] = model.score(pictures[n_kept:], truth[n_kept:])
    said = " · ".join(f"{name} {score:.4f}" for name, score in scores.items())
    out.show(f"{counted(n_kept, 'image')} · {len(model.classes_)} classes · trained in {seconds:.1f} s")
    out.show(f"pixel accuracy (hard): {said}")
    out.show(f"depth {model.get_depth()} · {model.get_n_leaves()} leaves · {output}")
    document = {"model": str(output), "images": n_kept, "classes": model.classes_.tolist(), "pixel_accuracy": scores}
    out.finish({**document, "depth": model.get_depth(), "leaves": model.get_n_leaves(), "seconds": seconds})


@app.command("predict")
def predict_images(
    model: options.Model,
    images: Images,
    output: Annotated[Path, output_option("The folder to write to; it is made.")],
    proba: Annotated[
        bool, option("--proba", help="Also NAME.proba.npy, a probability per class.", panel=OUTPUT)
    ] = False,
    leaf: Annotated[bool, option("--leaf", help="Also NAME.leaf.png, a grey per leaf.", panel=OUTPUT)] = False,
    jobs: options.Jobs = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Label every pixel: one .png per image, whose values are the classes.

    Examples:
      crisptree segment predict membranes.crisp new/ -o labelled/

      crisptree segment predict model.crisp stack.tif --proba --leaf -o labelled/
    """
    out = Output(as_json)
    if output.exists() and not output.is_dir():
        raise TableError(f"{output} must be a folder; it is a file.")
    segmenter: Any = crisptree.load(model)
    if not isinstance(segmenter, crisptree.CrispSegmenter):
        raise crisptree.ModelFileError(f"{model} must hold a segmenter; it holds a {type(segmenter).__name__}.")
    segmenter.n_jobs = jobs
    values = _grey_values(segmenter.classes_)
    if not np.array_equal(values, segmenter.classes_):
        out.note(f"classes are written as 0 … {len(values) - 1}, in the order {segmenter.classes_.tolist()}.")
    pictures = read_images(images)
    endings = [".png", *([".proba.npy"] if proba else []), *([".leaf.png"] if leaf else [])]
    options.check_free((output / f"{picture.name}{ending}" for picture in pictures for ending in endings), force)
    output.mkdir(parents=True, exist_ok=True)
    written: list[str] = []
    with out.progress() as progress:
        for place, picture in enumerate(pictures):
            progress.update(f"labelling {images.name}", place / len(pictures), picture.name)
            written += _write_one(segmenter, picture, output, values, proba, leaf)
    out.show(f"{counted(len(pictures), 'image')} → {output}")
    document = {"model": str(model), "images": len(pictures), "output": str(output), "files": written}
    out.finish({**document, "values": dict(zip(map(str, segmenter.classes_.tolist()), values.tolist(), strict=True))})


def _write_one(
    model: Any, picture: NamedImage, folder: Path, values: npt.NDArray[Any], proba: bool, leaf: bool
) -> list[str]:
    # As a list of one: an RGB image alone would look like many narrow ones to a model of grey images.
    leaves = model.apply([picture.array])[0]
    parts: dict[str, npt.NDArray[Any]] = {f"{picture.name}.png": values[model.tree_.labels()][leaves]}
    if proba:
        parts[f"{picture.name}.proba.npy"] = model.tree_.leaf_values(leaves).astype(np.float32)
    if leaf:
        parts[f"{picture.name}.leaf.png"] = np.round(255 * model.leaf_image([picture.array])[0]).astype(np.uint8)
    for name, array in parts.items():
        with written_whole(folder / name) as temporary:
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
        there = f"{images} holds {counted(len(pictures), 'image')} and {labels} {len(truths)}"
        raise TableError(f"there must be as many labels as images; {there}.")
    by_name = {truth.name: truth for truth in truths}
    if {picture.name for picture in pictures} == set(by_name):
        truths = [by_name[picture.name] for picture in pictures]
    for picture, truth in zip(pictures, truths, strict=True):
        if picture.array.shape[:2] != truth.array.shape:
            size, other = (" × ".join(map(str, image.array.shape[:2])) for image in (picture, truth))
            raise TableError(
                f"an image and its labels must be of one size; image {picture.name} is {size}, labels {truth.name} are "
                f"{other}."
            )
    return [picture.array for picture in pictures], [truth.array for truth in truths]
