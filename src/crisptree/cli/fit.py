"""``crisptree fit``: from a table to a model file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from crisptree.cli import options
from crisptree.cli.options import OUTPUT, TABLE, TRAINING, TREE
from crisptree.cli.rows import accuracies
from crisptree.cli.speaking import Bar, Speaker
from crisptree.cli.training import Request, TrainingTable, class_weights, image_shape, read_training, read_validation
from crisptree.cli.whole import check_output
from crisptree.tables.errors import counted
from crisptree.tables.survey import MAX_CATEGORIES, Choices

Algorithm = Literal["em", "alternating", "likelihood", "non_greedy"]
Split = Literal["oblique", "axis", "conv"]
NO = {"show_default": False}


def fit(
    data: options.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The model file to write (.crisp).", rich_help_panel=OUTPUT, **NO)
    ],
    target: options.Target = None,
    depth: Annotated[
        int | None, typer.Option(min=0, help="Most splits on a path.", show_default="8", rich_help_panel=TREE)
    ] = None,
    leaves: Annotated[
        int | None,
        typer.Option(min=2, help="Most leaves; the tree then grows best first.", rich_help_panel=TREE, **NO),
    ] = None,
    split: Annotated[
        Split | None, typer.Option(help="What a split asks.", show_default="oblique", rich_help_panel=TREE)
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option("--image-shape", metavar="HxW[xC]", help="Rows are images.", rich_help_panel=TREE, **NO),
    ] = None,
    algorithm: Annotated[
        Algorithm | None, typer.Option(help="How to train.", show_default="em", rich_help_panel=TRAINING)
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Epochs of every split.", show_default="20", rich_help_panel=TRAINING)
    ] = None,
    finetune_epochs: Annotated[
        int | None, typer.Option(min=0, help="Epochs of the tree.", show_default="40", rich_help_panel=TRAINING)
    ] = None,
    l1: Annotated[
        float | None, typer.Option(min=0, help="Strength of Σ|β|: zeros.", rich_help_panel=TRAINING, **NO)
    ] = None,
    l2: Annotated[float | None, typer.Option(min=0, help="Strength of Σβ².", rich_help_panel=TRAINING, **NO)] = None,
    roughness: Annotated[
        float | None,
        typer.Option(min=0, help="Strength of differences of neighbouring pixels.", rich_help_panel=TRAINING, **NO),
    ] = None,
    class_weight: Annotated[
        list[str] | None,
        typer.Option(help="balanced, or CLASS=WEIGHT, which may be repeated.", rich_help_panel=TRAINING, **NO),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="The paper's protocol; other options change it.", rich_help_panel=TRAINING)
    ] = False,
    early_stopping: Annotated[
        bool,
        typer.Option(
            "--early-stopping",
            help="Keep the epoch that is best on the validation rows, or on a tenth of the rows.",
            rich_help_panel=TRAINING,
        ),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Makes the run repeatable.", rich_help_panel=TRAINING)] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.", rich_help_panel=TRAINING)] = "auto",
    jobs: options.Jobs = None,
    validation: Annotated[
        Path | None,
        typer.Option(help="A table of validation rows, scored after every epoch.", rich_help_panel=TABLE, **NO),
    ] = None,
    holdout: Annotated[
        float | None,
        typer.Option(help="A share of the rows to leave out and score at the end.", rich_help_panel=TABLE, **NO),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="A column of row weights.", rich_help_panel=TABLE, autocompletion=options.column_names, **NO),
    ] = None,
    drop: options.Drop = [],  # noqa: B006 (typer makes a new list for every call)
    categorical: Annotated[
        list[str],
        typer.Option(
            help="A column of numbers that are names of categories. May be repeated.",
            rich_help_panel=TABLE,
            autocompletion=options.column_names,
            **NO,
        ),
    ] = [],  # noqa: B006
    missing: options.Missing = [],  # noqa: B006
    max_categories: Annotated[
        int, typer.Option(min=2, help="Most values of a category.", rich_help_panel=TABLE)
    ] = MAX_CATEGORIES,
    delimiter: options.Delimiter = None,
    as_json: options.Json = False,
) -> None:
    """Train a tree on a table and write it, with its preprocessing, to a model file.

    Text columns become one feature per value; where a number is missing the mean of training stands in.

    Examples:
      crisptree fit iris.csv --target species -o iris.crisp

      crisptree fit train.parquet -t label --drop id --holdout 0.2 --depth 6 -o model.crisp

      crisptree fit digits.npz --image-shape 8x8 --roughness 0.01 -o digits.crisp
    """
    check_output(output, (".crisp",))
    if holdout is not None and not 0 < holdout < 1:
        raise typer.BadParameter(f"--holdout must lie between 0 and 1; got {holdout}.")
    given: dict[str, Any] = {
        "max_depth": depth,
        "max_leaf_nodes": leaves,
        "split": split,
        "image_shape": image_shape(shape),
        "algorithm": algorithm,
        "epochs": epochs,
        "finetune_epochs": finetune_epochs,
        "l1": l1,
        "l2": l2,
        "roughness": roughness,
        "n_jobs": jobs,
    }
    parameters = {name: value for name, value in given.items() if value is not None}
    parameters |= {"early_stopping": early_stopping, "random_state": seed, "device": device}
    request = Request(
        data=data,
        target=target,
        weights=weights,
        choices=Choices(drop, categorical, missing, max_categories, keep_constant="image_shape" in parameters),
        delimiter=options.check_delimiter(delimiter),
        holdout=holdout,
        seed=seed,
    )
    speaker = Speaker(as_json)
    with Bar(speaker.err) as bar:
        table = read_training(request, speaker, bar)
        held_out = read_validation(validation, table, request, speaker) if validation is not None else None
        parameters["class_weight"] = class_weights(class_weight, table.y)
        if "image_shape" not in parameters and table.image_shape is not None:
            parameters["image_shape"] = table.image_shape
        started = time.monotonic()
        model = _trained(parameters, paper, table, held_out, speaker, bar)
        seconds = time.monotonic() - started
    model.save(output)
    scores = {"training": accuracies(model, table.X, table.truth)}
    if held_out is not None:
        scores["validation"] = accuracies(model, *held_out)
    if table.held_out is not None:
        scores["held out"] = accuracies(model, *table.held_out)
    _tell(speaker, model, table, scores, seconds, output)


def _trained(
    parameters: dict[str, Any], paper: bool, table: TrainingTable, held_out: Any, speaker: Speaker, bar: Bar
) -> Any:
    from crisptree import CrispTreeClassifier
    from crisptree.cli.epochs import epoch_bar

    make = CrispTreeClassifier.paper if paper else CrispTreeClassifier
    model = make(**parameters, callbacks=[epoch_bar(bar)])
    validation = None if held_out is None else (held_out[0], table.classes[held_out[1]])
    bar.update("training", None)
    with speaker.warnings_as_notes():
        model.fit(table.X, table.y, table.weight, validation=validation)
    model.callbacks = None
    if table.preprocessing.named:
        model.feature_names_in_ = table.feature_names
    model.__dict__["preprocessing_"] = table.preprocessing
    return model


def _tell(
    speaker: Speaker,
    model: Any,
    table: TrainingTable,
    scores: dict[str, dict[str, float]],
    seconds: float,
    output: Path,
) -> None:
    shown = Table()
    for column in ("accuracy on", "hard", "soft"):
        shown.add_column(column, justify="left" if column == "accuracy on" else "right")
    for name, score in scores.items():
        shown.add_row(name, f"{score['hard']:.4f}", f"{score['soft']:.4f}")
    columns, n_features = table.preprocessing.columns, table.X.shape[1]
    speaker.show(
        f"{counted(len(table.y), 'row')} · {counted(len(columns), 'column')} · {counted(n_features, 'feature')} · "
        f"{len(model.classes_)} classes · trained in {seconds:.1f} s"
    )
    speaker.show("hard: one path per row, as it predicts · soft: all leaves, for comparison")
    speaker.show(shown)
    speaker.show(f"depth {model.get_depth()} · {model.get_n_leaves():,} leaves · {output}")
    speaker.finish(
        {
            "model": str(output),
            "rows": len(table.y),
            "columns": [column.name for column in columns],
            "features": int(table.X.shape[1]),
            "classes": model.classes_.tolist(),
            "left_out": table.preprocessing.left_out,
            "depth": model.get_depth(),
            "leaves": model.get_n_leaves(),
            "seconds": seconds,
            "accuracy": scores,
        }
    )
