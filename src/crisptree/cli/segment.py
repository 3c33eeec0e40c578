"""``crisptree segment fit`` and ``crisptree segment predict``: a class or a number for every pixel of images."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import typer

import crisptree
from crisptree.cli import options
from crisptree.cli.options import OUTPUT, TRAINING, option, output_option
from crisptree.cli.output import Output
from crisptree.cli.parameters import with_parameters
from crisptree.cli.rows import takes_images
from crisptree.cli.training import train
from crisptree.datasets.image_files import NamedImage, read_images, write_png, write_tif
from crisptree.encoding.errors import TableError, counted
from crisptree.estimators.parameters import SegmenterParameters
from crisptree.persistence.writing import written_whole

app = typer.Typer(
    name="segment",
    help="Train on images whose pixels have classes or numbers, and give others theirs.",
    no_args_is_help=True,
)

Images = Annotated[
    Path, typer.Argument(help="A folder of .png and .tif, or one file of many pages.", show_default=False)
]

MOST_CLASSES = 64
"""Labels of more values than this may be numbers, and the user is asked."""


@app.command("fit")
@with_parameters(SegmenterParameters, without=("class_weight",))
def fit_images(
    images: Images,
    labels: Annotated[
        Path,
        typer.Argument(help="The same for the labels: a pixel's value is its class or number.", show_default=False),
    ],
    output: Annotated[Path, output_option("The model file to write (.crisp).")],
    *,
    parameters: dict[str, Any],
    task: Annotated[
        Literal["auto", "classification", "regression"],
        typer.Option(help="Learn classes or numbers; auto goes by fractions in the labels.", rich_help_panel=TRAINING),
    ] = "auto",
    balanced: Annotated[bool, option("--balanced", help="Weigh all classes alike.", panel=TRAINING)] = False,
    holdout: Annotated[
        int, typer.Option(min=0, help="How many of the last images to leave out and score.", rich_help_panel=TRAINING)
    ] = 0,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Train a tree that says of every pixel what it belongs to, or a number, from the window around it.

    Images and labels belong together by their names, or by their order where names differ. Labels with fractions, in a
    .tif, are numbers; whole ones are classes unless --task regression says otherwise.

    Examples:
      crisptree segment fit images/ labels/ -o membranes.crisp

      crisptree segment fit stack.tif labels.tif --window 21 --scales 1,4 --holdout 5 -o model.crisp

      crisptree segment fit noisy/ clean/ --task regression --window 7 -o denoise.crisp
    """
    options.check_output(output, (".crisp",))
    options.check_free([output], force)
    out = Output(as_json)
    truths, has_numbers = _read_truths(labels, task, out)
    pictures, truth = _paired(read_images(images), truths, images, labels)
    n_kept = len(pictures) - holdout
    if n_kept < 1:
        raise TableError(f"--holdout must leave at least one image to train on; got {holdout} of {len(pictures)}.")
    model = _estimator(has_numbers, parameters, balanced)
    with out.progress() as progress:
        seconds = train(model, out, progress, pictures[:n_kept], truth[:n_kept])
    model.save(output)
    scores = {"training": model.score(pictures[:n_kept], truth[:n_kept])}
    if holdout:
        scores["held out"] = model.score(pictures[n_kept:], truth[n_kept:])
    said = " · ".join(f"{name} {score:.4f}" for name, score in scores.items())
    answers = counted(model.n_outputs_, "number") if has_numbers else f"{len(model.classes_)} classes"
    out.show(f"{counted(n_kept, 'image')} · {answers} · trained in {seconds:.1f} s")
    out.show(f"{'R²' if has_numbers else 'pixel accuracy'} (hard): {said}")
    out.show(f"depth {model.get_depth()} · {model.get_n_leaves()} leaves · {output}")
    document: dict[str, Any] = {"model": str(output), "images": n_kept}
    if has_numbers:
        document |= {"task": "regression", "outputs": model.n_outputs_, "r2": scores}
    else:
        document |= {"task": "classification", "classes": model.classes_.tolist(), "pixel_accuracy": scores}
    out.finish({**document, "depth": model.get_depth(), "leaves": model.get_n_leaves(), "seconds": seconds})


def _read_truths(path: Path, task: str, out: Output) -> tuple[list[NamedImage], bool]:
    """The label images, and whether they hold numbers; what was recognised is said."""
    if task == "regression":
        return read_images(path), True
    truths = read_images(path, labels=True, floats=task == "auto")
    if any(truth.array.dtype.kind == "f" for truth in truths):
        out.note(f"{path} holds numbers with fractions, so numbers are predicted (--task regression).")
        return truths, True
    n_values = len(np.unique(np.concatenate([np.unique(truth.array) for truth in truths])))
    if task == "auto" and n_values > MOST_CLASSES:
        out.note(
            f"{path} has {n_values:,} different values, each of them a class. If they are numbers, say --task "
            "regression."
        )
    return truths, False


def _estimator(has_numbers: bool, parameters: dict[str, Any], balanced: bool) -> Any:
    if not has_numbers:
        return crisptree.CrispSegmenter(class_weight="balanced" if balanced else None, **parameters)
    if balanced:
        raise typer.BadParameter("--balanced is for classes; the labels are numbers.")
    ignored = parameters.pop("ignore_label", None)
    return crisptree.CrispPixelRegressor(ignore_value=ignored, **parameters)


@app.command("predict")
def predict_images(
    model: options.Model,
    images: Images,
    output: Annotated[Path, output_option("The folder to write to; it is made.")],
    proba: Annotated[
        bool, option("--proba", help="Also NAME.proba.npy, a probability per class.", panel=OUTPUT)
    ] = False,
    std: Annotated[
        bool, option("--std", help="Of numbers: also NAME.std.tif, the spread of each pixel's leaf.", panel=OUTPUT)
    ] = False,
    leaf: Annotated[bool, option("--leaf", help="Also NAME.leaf.png, a grey per leaf.", panel=OUTPUT)] = False,
    jobs: options.Jobs = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Label every pixel: one .png per image, whose values are the classes, or one .tif of numbers.

    Where a pixel has several numbers, they are NAME.npy, (height, width, numbers).

    Examples:
      crisptree segment predict membranes.crisp new/ -o labelled/

      crisptree segment predict model.crisp stack.tif --proba --leaf -o labelled/

      crisptree segment predict denoise.crisp noisy/ --std -o clean/
    """
    out = Output(as_json)
    if output.exists() and not output.is_dir():
        raise TableError(f"{output} must be a folder; it is a file.")
    estimator: Any = crisptree.load(model)
    if not takes_images(estimator):
        raise crisptree.ModelFileError(
            f"{model} must hold a segmenter or a regressor of pixels; it holds a {type(estimator).__name__}. Use "
            "crisptree predict for rows of a table."
        )
    estimator.n_jobs = jobs
    has_numbers = isinstance(estimator, crisptree.CrispPixelRegressor)
    if proba and has_numbers:
        raise typer.BadParameter("--proba is for classes; this model predicts numbers. --std gives their spread.")
    if std and not has_numbers:
        raise typer.BadParameter("--std is for numbers; this model predicts classes. --proba gives their shares.")
    answers = _numbers_of(estimator, std) if has_numbers else _classes_of(estimator, proba, out)
    if leaf:
        from crisptree.estimators.pixels import leaf_greys

        answers[".leaf.png"] = np.round(255 * leaf_greys(estimator.tree_)).astype(np.uint8)
    pictures = read_images(images)
    options.check_free((output / f"{picture.name}{ending}" for picture in pictures for ending in answers), force)
    output.mkdir(parents=True, exist_ok=True)
    written: list[str] = []
    with out.progress() as progress:
        for place, picture in enumerate(pictures):
            progress.update(f"labelling {images.name}", place / len(pictures), picture.name)
            # As a list of one: an RGB image alone would look like many narrow ones to a model of grey images.
            leaves = estimator.apply([picture.array])[0]
            for ending, table in answers.items():
                name = f"{picture.name}{ending}"
                with written_whole(output / name) as temporary:
                    WRITERS[Path(name).suffix](temporary, table[leaves])
                written.append(name)
    out.show(f"{counted(len(pictures), 'image')} → {output}")
    document: dict[str, Any] = {"model": str(model), "images": len(pictures), "output": str(output), "files": written}
    if not has_numbers:
        classes = map(str, estimator.classes_.tolist())
        document["values"] = dict(zip(classes, _grey_values(estimator.classes_).tolist(), strict=True))
    out.finish(document)


WRITERS: dict[str, Any] = {".png": write_png, ".tif": write_tif, ".npy": np.save}


def _classes_of(model: Any, proba: bool, out: Output) -> dict[str, npt.NDArray[Any]]:
    """What is written of classes, by the ending of its file: a value for every leaf."""
    values = _grey_values(model.classes_)
    if not np.array_equal(values, model.classes_):
        out.note(f"classes are written as 0 … {len(values) - 1}, in the order {model.classes_.tolist()}.")
    parts = {".png": values[model.tree_.labels()]}
    if proba:
        parts[".proba.npy"] = model.tree_.leaf_values().astype(np.float32)
    return parts


def _numbers_of(model: Any, std: bool) -> dict[str, npt.NDArray[Any]]:
    """The same of numbers: .tif holds one of a pixel, .npy any number of them."""
    n = model.n_outputs_
    table = model.tree_.leaf_values()
    mean, spread = table[:, :n].astype(np.float32), np.sqrt(table[:, n:]).astype(np.float32)
    parts = {".tif": mean[:, 0]} if n == 1 else {".npy": mean}
    if std:
        parts |= {".std.tif": spread[:, 0]} if n == 1 else {".std.npy": spread}
    return parts


def _grey_values(classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The pixel value of every class: its label where that is a grey of 8 or 16 bits, else its number."""
    fits = classes.dtype.kind in "biu" and classes.min() >= 0 and classes.max() < 2**16
    values = classes.astype(np.int64) if fits else np.arange(len(classes))
    return values.astype(np.uint8 if values.max() < 2**8 else np.uint16)


def _paired(
    pictures: list[NamedImage], truths: list[NamedImage], images: Path, labels: Path
) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]]:
    """Images and their labels, by name where all names agree, else by order."""
    if len(pictures) != len(truths):
        there = f"{images} holds {counted(len(pictures), 'image')} and {labels} {len(truths)}"
        raise TableError(f"there must be as many labels as images; {there}.")
    by_name = {truth.name: truth for truth in truths}
    if {picture.name for picture in pictures} == set(by_name):
        truths = [by_name[picture.name] for picture in pictures]
    for picture, truth in zip(pictures, truths, strict=True):
        if picture.array.shape[:2] != truth.array.shape[:2]:
            size, other = (" × ".join(map(str, image.array.shape[:2])) for image in (picture, truth))
            raise TableError(
                f"an image and its labels must be of one size; image {picture.name} is {size}, labels {truth.name} are "
                f"{other}."
            )
    return [picture.array for picture in pictures], [truth.array for truth in truths]
