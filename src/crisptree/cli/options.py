"""Arguments and flags of the commands; those of an estimator are made from its table of parameters."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter as Argument
from inspect import Signature, signature
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from crisptree.encoding.preprocessing import MAX_CATEGORIES
from crisptree.encoding.table_files import TableFile, open_table, resolve_encoding
from crisptree.encoding.text_formats import DEFAULT_FORMAT, THOUSANDS, NumberFormat
from crisptree.exceptions import TableError
from crisptree.parameters.estimators import CLASSIFICATION_SCORINGS, REGRESSION_SCORINGS, TreeParameters
from crisptree.parameters.training import Parameter, Rule, TrainingOptions, is_whole, one_of, whole

FORMATS = ".csv, .tsv, .parquet, .npz or LIBSVM (.libsvm, .svm, .txt); text also as .gz, .bz2, .xz"

TABLE, TREE, TRAINING, OUTPUT = "The table", "The tree", "Training", "Output"
"""Panels of the help."""


def option(*names: str, help: str, panel: str | None = None, show_default: bool = False, **more: Any) -> Any:
    """Declare a flag; its default is shown only on request."""
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=show_default, **more)


def output_option(help: str, **more: Any) -> Any:
    """Declare the flag that names the file to write."""
    return option("--output", "-o", help=help, panel=OUTPUT, **more)


def complete_columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """List, for the shell's completion, the columns of the first table named on the command line."""
    for word in (ctx.params.get("data"), *ctx.args):
        try:
            names = open_table(Path((word[0] if isinstance(word, list) else word) or "")).names
        except (TableError, OSError):
            continue  # a model, a flag, or an incomplete word
        return [name for name in names if name.startswith(incomplete)]
    return []


def column_option(*names: str, help: str) -> Any:
    """Declare a flag that takes column names, which the shell completes."""
    return option(*names, help=help, panel=TABLE, autocompletion=complete_columns)


def check_jobs(jobs: int | None) -> int | None:
    """Check the number of threads with the rule of the estimators."""
    rule = TreeParameters.PARAMETERS["n_jobs"].rule
    assert rule is not None
    if not rule.holds(jobs):
        raise typer.BadParameter(f"must be {rule.sentence}; got {jobs}.")
    return jobs


JOBS_HELP = "Threads; by default all available cores, -2 is all but one."

Model = Annotated[Path, typer.Argument(help="A model file (.crisp).", metavar="MODEL", show_default=False)]
Data = Annotated[Path, typer.Argument(help=f"The table: {FORMATS}; - is stdin.", metavar="TABLE", show_default=False)]
Tables = Annotated[
    list[Path],
    typer.Argument(
        help=f"The table: {FORMATS}; several .parquet or a folder of them; - is stdin.",
        metavar="TABLE",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    column_option("--target", "-t", help="The target column; by default the one that the model was trained on."),
]
Drop = Annotated[list[str], column_option("--drop", help="Columns to leave out: a,b. May be repeated.")]
DropMissingTarget = Annotated[
    bool, option("--drop-missing-target", help="Leave out rows without a target.", panel=TABLE)
]
Id = Annotated[
    str | None,
    column_option("--id", help="A column that identifies the rows: not a feature, but shown beside them."),
]
Force = Annotated[bool, option("--force", help="Replace existing files.", panel=OUTPUT)]
Jobs = Annotated[int | None, option("--jobs", "-j", callback=check_jobs, help=JOBS_HELP)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]


@dataclass
class ColumnRoles:
    """Flags that assign roles to the columns of a training table."""

    target: Annotated[
        str | None,
        column_option("--target", "-t", help="The target column; .npz and LIBSVM files have their own, named y."),
    ] = None
    task: Annotated[
        Literal["auto", "classification", "regression"],
        typer.Option(help="Classification or regression; auto decides by the target.", rich_help_panel=TABLE),
    ] = "auto"
    weights: Annotated[str | None, column_option(help="A column of sample weights.")] = None
    drop: Drop = field(default_factory=list)
    categorical: Annotated[
        list[str],
        column_option("--categorical", help="Columns of numbers that name categories: a,b. May be repeated."),
    ] = field(default_factory=list)
    numeric: Annotated[
        list[str],
        column_option("--numeric", help="Columns of digits that are numbers, though some begin with 0: a,b."),
    ] = field(default_factory=list)
    dates: Annotated[
        list[str],
        column_option("--dates", help="Columns of dates or times that become numbers, such as year and month: a,b."),
    ] = field(default_factory=list)
    max_categories: Annotated[
        int, typer.Option(min=2, help="Maximum number of values of a category.", rich_help_panel=TABLE)
    ] = MAX_CATEGORIES
    min_frequency: Annotated[
        float | None,
        option(help="Group values of a category in fewer rows, or in a smaller share of the rows.", panel=TABLE),
    ] = None
    handle_missing: Annotated[
        Literal["fill", "error"],
        typer.Option(help="Values missing in new rows where none was in training.", rich_help_panel=TABLE),
    ] = "fill"
    drop_missing_target: DropMissingTarget = False

    def __post_init__(self) -> None:
        """Refuse a frequency that groups nothing."""
        if self.min_frequency is not None and not self.min_frequency > 0:
            raise typer.BadParameter(
                f"--min-frequency must be a number of rows, or a share of them, above 0; got {self.min_frequency:g}."
            )


@dataclass
class CsvFormat:
    """Flags that describe how a text table is written; None, or an empty list, where the user did not say."""

    delimiter: Annotated[
        str | None, option(help="Separator of the columns of a .csv, if not a comma.", panel=TABLE)
    ] = None
    encoding: Annotated[str | None, option(help="Text encoding, if not UTF-8: cp1252, say.", panel=TABLE)] = None
    decimal: Annotated[
        str | None, option(help="Decimal mark: . (or that of the model) or ,", panel=TABLE, metavar="MARK")
    ] = None
    thousands: Annotated[
        str | None,
        option(help=f"Thousands separator: one of {' '.join(map(repr, THOUSANDS))}", panel=TABLE, metavar="MARK"),
    ] = None
    unit: Annotated[
        list[str], option(help="A unit to strip from numbers, such as € or %. May be repeated.", panel=TABLE)
    ] = field(default_factory=list)
    missing: Annotated[
        list[str],
        option(help="A text that means a missing value, beside an empty field and nan. May be repeated.", panel=TABLE),
    ] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Refuse what no table can be written like."""
        self.delimiter = "\t" if self.delimiter == "\\t" else self.delimiter
        if self.delimiter is not None and len(self.delimiter.encode()) != 1:
            raise typer.BadParameter(f"--delimiter must be one character; got {self.delimiter!r}.")
        with _csv_flags_in_errors():
            encoding = None if self.encoding is None else resolve_encoding(self.encoding)
        self.encoding = None if encoding == "utf-8" else encoding
        self.number_format(NumberFormat(",") if self.thousands == "." else DEFAULT_FORMAT)

    def open(
        self, path: Path | Sequence[Path], n_features: int | None = None, default: NumberFormat = DEFAULT_FORMAT
    ) -> TableFile:
        """Open a table; what the flags do not say about its numbers is taken from ``default``."""
        how: dict[str, Any] = {"delimiter": self.delimiter, "encoding": self.encoding}
        return open_table(path, **how, number_format=self.number_format(default), n_features=n_features)

    def number_format(self, default: NumberFormat = DEFAULT_FORMAT) -> NumberFormat:
        """Return how numbers are written."""
        decimal = self.decimal or default.decimal
        # A default thousands separator that is now the decimal mark cannot be meant any more.
        thousands = self.thousands or (default.thousands if default.thousands != decimal else None)
        with _csv_flags_in_errors():
            return NumberFormat(decimal, thousands, tuple(self.unit) or default.units)


@contextmanager
def _csv_flags_in_errors() -> Iterator[None]:
    try:
        yield
    except TableError as error:
        text = re.sub(r"`(encoding|decimal|thousands|unit)`", r"--\1", str(error))
        raise typer.BadParameter(text) from None


def check_output(path: Path, endings: Sequence[str]) -> Path:
    """Refuse a path that cannot be written before any work is done; ``check_free`` looks for existing files."""
    if path.suffix.lower() not in endings:
        raise typer.BadParameter(f"-o must end in {' or '.join(endings)}; got {str(path)!r}.")
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise TableError(f"there is no folder {path.parent} for {path.name}. Create it first.")
    if not os.access(path.parent, os.W_OK):
        raise TableError(f"the folder {path.parent} cannot be written to.")
    return path


def check_free(paths: Iterable[Path], force: bool) -> None:
    """Refuse to replace existing files without --force."""
    existing = [] if force else [path for path in paths if path.exists()]
    if existing:
        more = f" (and {len(existing) - 1} more)" if len(existing) > 1 else ""
        raise TableError(f"{existing[0]}{more} already exists and is kept. Use --force to replace it.")


TREE_PARAMETERS = (
    *("window", "scales", "normalise_images", "stages"),
    *("max_depth", "max_leaf_nodes", "split", "image_shape"),
)
"""These come first, in this order and in a panel of their own; the others are about training."""

PANELS = {**dict.fromkeys(TREE_PARAMETERS, TREE), "n_jobs": None}
SHORT_FLAGS = {"n_jobs": "-j"}
HELP = {
    "n_jobs": JOBS_HELP,
    "class_weight": "balanced, or CLASS=WEIGHT, which may be repeated.",
}
"""Defaults of commands that differ from those in Python."""

METAVARS = {"image_shape": "HxW[xC]", "scales": "N[,N...]", "max_features": "<int|float|HxW|none>"}
"""Syntax of values that are more than a word."""

OVERRIDES: dict[str, dict[str, Any]] = {
    # Runs of a command are reproducible unless the user asks for another seed.
    "random_state": {"default": 0, "rule": whole(0, high=2**32 - 1)},
    # Whether a target is one of classes is not known before the table is read.
    "scoring": {"rule": one_of(None, *CLASSIFICATION_SCORINGS, *REGRESSION_SCORINGS)},
    # Entries CLASS=WEIGHT are parsed when the classes of the table are known.
    "class_weight": {"rule": None},
    "ignore_label": {"rule": Rule(is_whole, "a whole number, as the pixels of a label image are")},
}
"""Values that a command does not accept, unlike the Python interface."""

UNSET: tuple[Any, ...] = (None, False, [])


@dataclass(frozen=True)
class ParameterOption:
    """An estimator parameter on the command line: its name in Python, its declaration and its annotated types."""

    name: str
    declared: Parameter
    types: tuple[Any, ...]

    @property
    def argument(self) -> Argument:
        """The argument from which typer makes the flag; its value is text, except for switches and choices."""
        declared, default = self.declared, self.declared.default
        names = [name for name in (declared.flag, SHORT_FLAGS.get(self.name)) if name]
        words = tuple(word for word in declared.rule.words if word) if declared.rule else ()
        shown: dict[str, Any] = {
            "help": HELP.get(self.name, declared.help),
            "rich_help_panel": PANELS.get(self.name, TRAINING),
        }
        kind: Any = str | None
        unset: str | bool | None = None
        if bool in self.types:
            kind, unset = bool, False
        elif any(get_origin(kind) is dict for kind in self.types):
            kind = list[str] | None
        elif words:
            kind = Literal[words] | None
        else:
            types = [kind.__name__ for kind in self.types if kind in (int, float, str)] or ["int"]
            none = ["none"] if default is not None and declared.rule is not None and declared.rule.holds(None) else []
            shown["metavar"] = METAVARS.get(self.name) or f"<{'|'.join(types + none)}>"
        if "default" in OVERRIDES.get(self.name, {}):
            unset = str(default)
        elif kind is not bool and default is not None:
            shown["show_default"] = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
        annotation = Annotated[kind, typer.Option(*names, **shown)]
        return Argument(self.name, Argument.KEYWORD_ONLY, default=unset, annotation=annotation)

    def parse(self, text: Any) -> Any:
        """Convert the text of a flag to a value of the parameter and check its rule."""
        if text is True:
            return not self.declared.default
        value = _parse_text(text, self.types) if isinstance(text, str) else text
        if self.declared.rule is not None:
            self.declared.rule.check(self.name, value)
        return value


def parameter_options(estimator: type[TreeParameters], without: Collection[str] = ()) -> dict[str, ParameterOption]:
    """Return an option for every parameter that has a flag."""
    hints = get_type_hints(TrainingOptions) | get_type_hints(estimator)
    parameters = estimator.declared_parameters()
    names = [name for name, declared in parameters.items() if declared.flag and name not in without]
    first = [name for name in TREE_PARAMETERS if name in names]
    options = {}
    for name in dict.fromkeys([*first, *names]):
        declared = replace(parameters[name], **OVERRIDES.get(name, {}))
        hint = hints[name]
        types = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        options[name] = ParameterOption(name, declared, types)
    return options


def with_options(
    estimator: type[TreeParameters] | None = None, *, without: Collection[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command whose arguments stand for several flags each.

    An argument whose type is a dataclass gets one flag per field. With an estimator, the argument ``parameters`` gets
    the flags of its parameters, and is a dictionary of those that the user has set. Errors of the library name the
    parameter; here they name the flag.
    """
    options = {} if estimator is None else parameter_options(estimator, without)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

        @wraps(command)
        def run(**arguments: Any) -> None:
            texts = {name: arguments.pop(name) for name in options}
            for name, group in groups.items():
                arguments[name] = group(**{part.name: arguments.pop(part.name) for part in fields(group)})
            if estimator is not None:
                try:
                    values = {name: options[name].parse(text) for name, text in texts.items() if text not in UNSET}
                except ValueError as error:
                    raise typer.BadParameter(_with_flags_of(str(error), options)) from None
                arguments["parameters"] = values
            try:
                command(**arguments)
            except ValueError as error:
                text = _with_flags_of(str(error), options)
                if text != str(error):
                    error.args = (text, *error.args[1:])
                raise

        expanded: list[Argument] = []
        for argument in signature(command).parameters.values():
            if argument.name == "parameters":
                expanded += [option.argument for option in options.values()]
            elif argument.name in groups:
                expanded += _group_arguments(groups[argument.name])
            else:
                expanded.append(argument.replace(kind=Argument.KEYWORD_ONLY, annotation=hints[argument.name]))
        run.__annotations__ = {argument.name: argument.annotation for argument in expanded}
        run.__signature__ = Signature(expanded)  # type: ignore[attr-defined]
        return run

    return decorate


def _group_arguments(group: Any) -> list[Argument]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Argument(
            part.name,
            Argument.KEYWORD_ONLY,
            default=part.default if part.default_factory is MISSING else part.default_factory(),
            annotation=hints[part.name],
        )
        for part in fields(group)
    ]


def _parse_text(text: str, types: tuple[Any, ...]) -> Any:
    """Convert a text to the first type that accepts it; one that none accepts is left for the rule to refuse.

    Examples
    --------
    >>> _parse_text("28x28", (tuple[int, ...],)), _parse_text("none", (int, NoneType)), _parse_text("2", (int, float))
    ((28, 28), None, 2)
    """
    if NoneType in types and text.lower() == "none":
        return None
    for kind in types:
        try:
            if get_origin(kind) is tuple:
                return tuple(map(int, re.split("[,x×]", text)))
            if kind in (int, float):
                return kind(text)
            if kind is Any:
                return int(text)
        except ValueError:
            continue
    return text


def _with_flags_of(text: str, options: dict[str, ParameterOption]) -> str:
    """Replace the names of parameters in an error message by their flags."""

    def flag(match: re.Match[str]) -> str:
        option = options.get(match[1])
        return f"{option.declared.flag} {METAVARS.get(option.name, '')}".rstrip() if option else match[0]

    return re.sub(r"`(\w+)`", flag, text)
