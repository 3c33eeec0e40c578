"""``crisptree segment fit``, ``predict`` and ``explain``: classification or regression of every pixel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
import typer

import crisptree
from crisptree.cli import options
from crisptree.cli.options import OUTPUT, TRAINING, option, output_option, with_options
from crisptree.cli.output import Output
from crisptree.cli.tables import is_image_model, load_model
from crisptree.cli.training import train
from crisptree.datasets.files import NamedImage, read_images, write_png, write_tif
from crisptree.exceptions import TableError, format_count, format_names
from crisptree.files import atomic_write
from crisptree.parameters.estimators import SegmenterParameters

app = typer.Typer(
    name="segment",
    help="Train on images with a class or a value per pixel, and predict those of other images.",
    no_args_is_help=True,
)

Images = Annotated[
    Path, typer.Argument(help="A folder of .png and .tif, or one file of many pages.", show_default=False)
]

MAX_CLASSES_WITHOUT_NOTE = 64
"""With more different labels the task may be a regression, which a note reports."""


@app.command("fit")
@with_options(
    SegmenterParameters,
    without=("class_weight", "leaf_l2", "max_shift", "optimizer", "n_init", "time_budget", "max_candidates"),
)
def fit_images(
    images: Images,
    labels: Annotated[
        Path,
        typer.Argument(help="The same for the labels: the value of a pixel is its target.", show_default=False),
    ],
    output: Annotated[Path, output_option("The model file to write (.crisp).")],
    *,
    parameters: dict[str, Any],
    task: Annotated[
        Literal["auto", "classification", "regression"],
        typer.Option(help="auto is a regression if labels have fractions.", rich_help_panel=TRAINING),
    ] = "auto",
    paper: Annotated[
        bool, option("--paper", help="The paper's settings; other options change them.", panel=TRAINING)
    ] = False,
    balanced: Annotated[bool, option("--balanced", help="Give all classes the same weight.", panel=TRAINING)] = False,
    holdout: Annotated[
        int, typer.Option(min=0, help="How many of the last images to hold out and score.", rich_help_panel=TRAINING)
    ] = 0,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Train a tree that predicts every pixel, its class or a value, from the window around it.

    Images and labels are paired by name, or in order where names differ. Labels with fractions, in a .tif, are a
    regression; whole ones are classes unless --task regression is given.

    Examples:
      crisptree segment fit images/ labels/ -o membranes.crisp

      crisptree segment fit stack.tif labels.tif --window 21 --scales 1,4 --holdout 5 -o model.crisp

      crisptree segment fit noisy/ clean/ --task regression --window 7 -o denoise.crisp
    """
    options.check_output(output, (".crisp",))
    options.check_free([output], force)
    out = Output(as_json)
    label_images, is_regression = _read_labels(labels, task, out)
    X, y = _pair(read_images(images), label_images, images, labels)
    n_kept = len(X) - holdout
    if n_kept < 1:
        raise TableError(f"--holdout must leave at least one image to train on; got {holdout} of {len(X)}.")
    model = _make_model(is_regression, parameters, balanced, paper)
    with out.progress() as progress:
        seconds = train(model, out, progress, X[:n_kept], y[:n_kept])
    model.save(output)
    scores = {"training": model.score(X[:n_kept], y[:n_kept])}
    if holdout:
        scores["held out"] = model.score(X[n_kept:], y[n_kept:])
    texts = " · ".join(f"{name} {score:.4f}" for name, score in scores.items())
    outputs = format_count(model.n_outputs_, "output") if is_regression else f"{len(model.classes_)} classes"
    out.show(f"{format_count(n_kept, 'image')} · {outputs} · trained in {seconds:.1f} s")
    out.show(f"{'R²' if is_regression else 'pixel accuracy'} (hard): {texts}")
    out.show(f"depth {model.get_depth()} · {model.get_n_leaves()} leaves · {output}")
    document: dict[str, Any] = {"model": str(output), "images": n_kept}
    if is_regression:
        document |= {"task": "regression", "outputs": model.n_outputs_, "r2": scores}
    else:
        document |= {"task": "classification", "classes": model.classes_.tolist(), "pixel_accuracy": scores}
    out.finish({**document, "depth": model.get_depth(), "leaves": model.get_n_leaves(), "seconds": seconds})


def _read_labels(path: Path, task: str, out: Output) -> tuple[list[NamedImage], bool]:
    """Read the label images, and decide whether they are a regression."""
    if task == "regression":
        return read_images(path), True
    label_images = read_images(path, labels=True, floats=task == "auto")
    if any(label_image.array.dtype.kind == "f" for label_image in label_images):
        out.note(f"{path} holds numbers with fractions, so this is a regression (--task regression).")
        return label_images, True
    n_values = len(np.unique(np.concatenate([np.unique(label_image.array) for label_image in label_images])))
    if task == "auto" and n_values > MAX_CLASSES_WITHOUT_NOTE:
        out.note(
            f"{path} has {n_values:,} different values, each of them a class. If they are quantities, use --task "
            "regression."
        )
    return label_images, False


def _make_model(is_regression: bool, parameters: dict[str, Any], balanced: bool, paper: bool) -> Any:
    model: Any = crisptree.CrispPixelRegressor if is_regression else crisptree.CrispSegmenter
    make = model.paper if paper else model.from_flat
    if not is_regression:
        return make(class_weight="balanced" if balanced else None, **parameters)
    if balanced:
        raise typer.BadParameter("--balanced is for classification; the labels are a regression.")
    ignore_value = parameters.pop("ignore_label", None)
    return make(ignore_value=ignore_value, **parameters)


@app.command("predict")
def predict_images(
    model: options.Model,
    images: Images,
    output: Annotated[Path, output_option("The folder to write to; it is created.")],
    proba: Annotated[
        bool, option("--proba", help="Also NAME.proba.npy, a probability per class.", panel=OUTPUT)
    ] = False,
    std: Annotated[
        bool,
        option("--std", help="Regression: also NAME.std.tif, the standard deviation.", panel=OUTPUT),
    ] = False,
    leaf: Annotated[bool, option("--leaf", help="Also NAME.leaf.png, a grey per leaf.", panel=OUTPUT)] = False,
    jobs: options.Jobs = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Predict every pixel: one .png of classes per image, or one .tif of values.

    Several outputs per pixel are written as NAME.npy, (height, width, outputs).

    Examples:
      crisptree segment predict membranes.crisp new/ -o labelled/

      crisptree segment predict model.crisp stack.tif --proba --leaf -o labelled/

      crisptree segment predict denoise.crisp noisy/ --std -o clean/
    """
    out = Output(as_json)
    if output.exists() and not output.is_dir():
        raise TableError(f"{output} must be a folder; it is a file.")
    estimator = _load_image_model(model)
    estimator.n_jobs = jobs
    leaf_values = _collect_leaf_values(estimator, proba, std, leaf, out)
    pictures = read_images(images)
    options.check_free((output / f"{picture.name}{ending}" for picture in pictures for ending in leaf_values), force)
    output.mkdir(parents=True, exist_ok=True)
    written: list[str] = []
    with out.progress() as progress:
        for index, picture in enumerate(pictures):
            progress.update(f"predicting {images.name}", index / len(pictures), picture.name)
            # A list of one: a single RGB array would look like many narrow images to a model of grey images.
            leaves = estimator.leaf_indices([picture.array])[0]
            for ending, values in leaf_values.items():
                name = f"{picture.name}{ending}"
                with atomic_write(output / name) as temporary:
                    WRITERS[Path(name).suffix](temporary, values[leaves])
                written.append(name)
    out.show(f"{format_count(len(pictures), 'image')} → {output}")
    document: dict[str, Any] = {"model": str(model), "images": len(pictures), "output": str(output), "files": written}
    if isinstance(estimator, crisptree.CrispSegmenter):
        classes = map(str, estimator.classes_.tolist())
        document["values"] = dict(zip(classes, _grey_values(estimator.classes_).tolist(), strict=True))
    out.finish(document)


@app.command("explain")
def explain_pixel(
    model: options.Model,
    image: Annotated[Path, typer.Argument(help="A .png or .tif, or a folder or stack of them.", show_default=False)],
    row: Annotated[int, typer.Option(min=0, help="Row of the pixel, from 0 at the top.")],
    column: Annotated[int, typer.Option(min=0, help="Column of the pixel, from 0 at the left.")],
    name: Annotated[str | None, option("--image", help="The name of one of several images.")] = None,
    top: Annotated[int, typer.Option(min=0, help="How many values of the window to name at every split.")] = 5,
    as_json: options.Json = False,
) -> None:
    """Explain the prediction of one pixel: the splits on its path and the values that decide each of them.

    A value of the window is named by its position in the window and its plane.

    Example:
      crisptree segment explain membranes.crisp new/slice7.png --row 120 --column 64
    """
    from crisptree.explain import Pixel, path

    out, estimator, pictures = Output(as_json), _load_image_model(model), read_images(image)
    names = [picture.name for picture in pictures]
    if name is None and len(pictures) != 1:
        raise TableError(f"{image} must hold one image; it holds {len(pictures)}. Name one of them with --image.")
    if name is not None and name not in names:
        raise TableError(f"--image must be one of {format_names(names, 12)}; got {name!r}.")
    picture = pictures[0 if name is None else names.index(name)]
    explained = path(estimator, Pixel([picture.array], row, column), top=top)
    out.show(str(explained))
    steps = [
        {"split": step.split, "score": step.score, "right": step.goes_right, "before": step.before.tolist()}
        | {"pushes": [{"value": push.text, "amount": push.amount} for push in step.pushes]}
        for step in explained.steps
    ]
    document: dict[str, Any] = {"model": str(model), "image": picture.name, "row": row, "column": column}
    document |= {"leaf": explained.leaf, "predicted": np.asarray(explained.predicted).tolist(), "steps": steps}
    out.finish(document | {"classes": explained.classes.tolist(), "values": explained.probabilities.tolist()})


def _load_image_model(path: Path) -> Any:
    """Load a model of pixels; refuse one of rows."""
    model: Any = load_model(path)
    if not is_image_model(model):
        raise crisptree.ModelFileError(
            f"{path} must hold a segmenter or a pixel regressor; it holds a {type(model).__name__}. Use "
            "crisptree predict for rows of a table."
        )
    return model


WRITERS: dict[str, Any] = {".png": write_png, ".tif": write_tif, ".npy": np.save}


def _collect_leaf_values(model: Any, proba: bool, std: bool, leaf: bool, out: Output) -> dict[str, npt.NDArray[Any]]:
    """Return what is written for each leaf, by the ending of its file; .tif holds one output, .npy several."""
    values = model.tree_.leaf_values()
    if isinstance(model, crisptree.CrispPixelRegressor):
        if proba:
            raise typer.BadParameter("--proba is for classification; the model is a regression. Use --std.")
        n = model.n_outputs_
        mean, deviation = values[:, :n].astype(np.float32), np.sqrt(values[:, n:]).astype(np.float32)
        parts = {".tif": mean[:, 0]} if n == 1 else {".npy": mean}
        if std:
            parts |= {".std.tif": deviation[:, 0]} if n == 1 else {".std.npy": deviation}
    else:
        if std:
            raise typer.BadParameter("--std is for regression; the model is a classification. Use --proba.")
        greys = _grey_values(model.classes_)
        if not np.array_equal(greys, model.classes_):
            out.note(f"classes are written as 0 … {len(greys) - 1}, in the order {model.classes_.tolist()}.")
        parts = {".png": greys[model.tree_.labels()]}
        if proba:
            parts[".proba.npy"] = values.astype(np.float32)
    if leaf:
        from crisptree.pipeline.pixels import leaf_greys

        parts[".leaf.png"] = np.round(255 * leaf_greys(model.tree_)).astype(np.uint8)
    return parts


def _grey_values(classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the pixel value of every class: its label if that is a grey of 8 or 16 bits, else its index."""
    fits = classes.dtype.kind in "biu" and classes.min() >= 0 and classes.max() < 2**16
    values = classes.astype(np.int64) if fits else np.arange(len(classes))
    return values.astype(np.uint8 if values.max() < 2**8 else np.uint16)


def _pair(
    pictures: list[NamedImage], label_images: list[NamedImage], images: Path, labels: Path
) -> tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]]:
    """Pair images and labels by name if all names agree, else in order."""
    if len(pictures) != len(label_images):
        counts = f"{images} holds {format_count(len(pictures), 'image')} and {labels} {len(label_images)}"
        raise TableError(f"there must be as many labels as images; {counts}.")
    by_name = {label_image.name: label_image for label_image in label_images}
    if {picture.name for picture in pictures} == set(by_name):
        label_images = [by_name[picture.name] for picture in pictures]
    for picture, label_image in zip(pictures, label_images, strict=True):
        if picture.array.shape[:2] != label_image.array.shape[:2]:
            size, other = (" × ".join(map(str, image.array.shape[:2])) for image in (picture, label_image))
            raise TableError(
                f"an image and its labels must have the same size; image {picture.name} is {size}, "
                f"labels {label_image.name} are {other}."
            )
    return [picture.array for picture in pictures], [label_image.array for label_image in label_images]
