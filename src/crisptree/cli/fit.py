"""``crisptree fit``: from a table to a model file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import crisptree
from crisptree.cli import options
from crisptree.cli.options import TABLE, TRAINING, column_option, option, output_option
from crisptree.cli.output import Output, table_of
from crisptree.cli.parameters import with_parameters
from crisptree.cli.rows import accuracies
from crisptree.cli.training import Request, TrainingTable, class_weights, read_training, read_validation, train
from crisptree.estimators.parameters import ClassifierParameters
from crisptree.tables.errors import counted
from crisptree.tables.survey import MAX_CATEGORIES, Choices


@with_parameters(ClassifierParameters)
def fit(
    data: options.Data,
    output: Annotated[Path, output_option("The model file to write (.crisp).")],
    *,
    target: options.Target = None,
    parameters: dict[str, Any],
    paper: Annotated[
        bool, option("--paper", help="The paper's protocol; other options change it.", panel=TRAINING)
    ] = False,
    validation: Annotated[
        Path | None, option(help="A table of validation rows, scored after every epoch.", panel=TABLE)
    ] = None,
    holdout: Annotated[
        float | None, option(help="A share of the rows to leave out and score at the end.", panel=TABLE)
    ] = None,
    weights: Annotated[str | None, column_option(help="A column of row weights.")] = None,
    drop: options.Drop = [],  # noqa: B006 (typer makes a new list for every call)
    categorical: Annotated[
        list[str], column_option(help="A column of numbers that are names of categories. May be repeated.")
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
    options.check_output(output, (".crisp",))
    if holdout is not None and not 0 < holdout < 1:
        raise typer.BadParameter(f"--holdout must lie between 0 and 1; got {holdout}.")
    choices = Choices(drop, categorical, missing, max_categories, keep_constant="image_shape" in parameters)
    request = Request(data, target, weights, choices, delimiter, holdout, seed=parameters["random_state"])
    out = Output(as_json)
    with out.progress() as progress:
        table = read_training(request, out, progress)
        judges = None if validation is None else read_validation(validation, table, request, out)
        parameters = {"image_shape": table.image_shape, **parameters}
        parameters["class_weight"] = class_weights(parameters.get("class_weight"), table.y)
        make = crisptree.CrispTreeClassifier.paper if paper else crisptree.CrispTreeClassifier
        model = make(**parameters)
        rows = None if judges is None else (judges[0], table.classes[judges[1]])
        seconds = train(model, out, progress, table.X, table.y, table.weight, validation=rows)
    if table.preprocessing.named:
        model.feature_names_in_ = np.array(table.preprocessing.feature_names, dtype=object)
    model.__dict__["preprocessing_"] = table.preprocessing
    model.save(output)
    model.__dict__.pop("feature_names_in_", None)  # scikit-learn would warn of rows that have none
    scored = {"training": (table.X, table.truth), "validation": judges, "held out": table.held_out}
    scores = {name: accuracies(model, *rows) for name, rows in scored.items() if rows is not None}
    _show(out, model, table, scores, seconds, output)


def _show(
    out: Output, model: Any, table: TrainingTable, scores: dict[str, dict[str, float]], seconds: float, output: Path
) -> None:
    shown = [[name, f"{score['hard']:.4f}", f"{score['soft']:.4f}"] for name, score in scores.items()]
    columns, n_features = table.preprocessing.columns, table.X.shape[1]
    out.show(
        f"{counted(len(table.y), 'row')} · {counted(len(columns), 'column')} · {counted(n_features, 'feature')} · "
        f"{len(model.classes_)} classes · trained in {seconds:.1f} s"
    )
    out.show("hard: one path per row, as it predicts · soft: all leaves, for comparison")
    out.show(table_of(("accuracy on", "hard", "soft"), shown))
    out.show(f"depth {model.get_depth()} · {model.get_n_leaves():,} leaves · {output}")
    names = [column.name for column in columns]
    document = {"model": str(output), "rows": len(table.y), "columns": names, "features": n_features}
    document |= {"classes": model.classes_.tolist(), "left_out": table.preprocessing.left_out}
    document |= {"depth": model.get_depth(), "leaves": model.get_n_leaves(), "seconds": seconds, "accuracy": scores}
    out.finish(document)
