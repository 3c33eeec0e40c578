"""Model files of estimators: header, trees and preprocessing to sections and back.

This module knows no estimator: a class registers itself by its name, and sets its own attributes from the sections.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, is_dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from crisptree.data.validation import InputSchema, check_image_shape
from crisptree.encoding.preprocessing import SECTION_VERSION, Column, Preprocessing
from crisptree.encoding.table_encoder import TableEncoder
from crisptree.exceptions import TableError
from crisptree.files import reading
from crisptree.inference import CrispTree, FlatTree
from crisptree.parameters.estimators import check_argument
from crisptree.parameters.training import NEVER, RENAMED, RENAMED_VALUES, Parameter
from crisptree.persistence.model_file import (
    ModelFile,
    ModelFileError,
    Section,
    Sections,
    check_known,
    check_labels,
    read,
)
from crisptree.persistence.trees import SHARED, known_sections, trees_from_file, trees_to_sections
from crisptree.pipeline.validation import check_parameters
from crisptree.targets.base import LABEL_TYPES, check_utf8, label_type
from crisptree.targets.regression import MAX_VALUE, RegressionEncoding

if TYPE_CHECKING:
    from crisptree.estimators.base import Estimator
    from crisptree.estimators.classifier import CrispTreeClassifier
    from crisptree.estimators.forest import CrispForestClassifier, CrispForestRegressor
    from crisptree.estimators.pixels import CrispPixelRegressor, CrispSegmenter
    from crisptree.estimators.regressor import CrispTreeRegressor

    PublicEstimator: TypeAlias = (
        CrispTreeClassifier
        | CrispTreeRegressor
        | CrispForestClassifier
        | CrispForestRegressor
        | CrispSegmenter
        | CrispPixelRegressor
    )

ESTIMATOR = SHARED
"""Section of the header."""

TREE, GREEDY, STAGE, MEMBER = "tree", "greedy", "stage", "member"
"""Sections of the tree that predicts, of the one before finetuning and, with their numbers, of the trees of earlier
stages of pixels and of a forest."""

PREPROCESSING = "preprocessing"
"""Section of the encoding of a table; optional, since numeric rows need none."""

KNOWN = {ESTIMATOR, PREPROCESSING, *known_sections((TREE, GREEDY, STAGE, MEMBER))}

REGISTRY: dict[str, type[Estimator]] = {}
"""Estimators by their names in files. A class registers itself when its module is imported."""

Restored = TypeVar("Restored")

ReadTrees = Callable[[Iterable[str]], dict[str, CrispTree]]
"""Read and check the trees of some sections."""

MAX_OUTPUTS = 10_000
"""Outputs of a regressor in a file."""


def register(cls: type[Estimator]) -> None:
    """Let files hold estimators of a class."""
    REGISTRY[cls.__name__] = cls


def find_class(name: Any) -> type[Estimator] | None:
    """Return the estimator of a name, if it is one of the public names of the package."""
    import crisptree

    if name not in crisptree.__all__:
        return None
    getattr(crisptree, name)  # which imports its module, where it registers itself
    return REGISTRY.get(name)


def sections_of(estimator: Estimator) -> Sections:
    """Return the sections of a fitted estimator."""
    schema, parameters = estimator.input_schema, estimator.flat_parameters()
    names: Sequence[Any] | npt.NDArray[Any] | None = schema.feature_names
    preprocessing = schema.preprocessing
    if schema.encoder is not None and preprocessing is not None:
        names = preprocessing.feature_names if preprocessing.named else None  # those that the tree sees
    sections = trees_to_sections(estimator._named_trees(), parameters["split"], optional=(GREEDY,))
    header = {
        "class": type(estimator).__name__,
        "parameters": _parameters_to_json(parameters),
        **(
            {"outputs": estimator.n_outputs_}
            if _is_regressor(estimator)
            else {"classes": _labels_to_json(estimator.classes_)}
        ),
        "feature_names": None if names is None else [str(name) for name in names],
        "image_shape": None if schema.image_shape is None else list(schema.image_shape),
        "channels": getattr(estimator, "channels_", None),
        "module": sections[TREE].content.pop("module", None) if TREE in sections else None,  # as the first files say
    }
    if schema.target_name:
        header["target"] = schema.target_name
    header |= estimator._extra_header()
    selected = getattr(estimator, "best_params_", {})
    if selected:
        header["chosen"] = _parameters_to_json(selected)
    sections[ESTIMATOR] = Section(header)
    if preprocessing is not None:
        sections[PREPROCESSING] = preprocessing_to_section(preprocessing)
    return sections


def _is_regressor(estimator: Estimator) -> bool:
    return estimator.ENCODING is RegressionEncoding


def load(path: str | PathLike[str], split: Callable[[tuple[int, ...]], Any] | None = None) -> PublicEstimator:
    """Read an estimator that ``save`` wrote; it predicts as before, bit for bit.

    A model that was trained on a table with text or missing values, here or on the command line, takes such tables.

    Parameters
    ----------
    path : str or path
        The model file, or a JSON document that ``export.json`` made.
    split : callable, default=None
        The function that builds the split modules, needed for trees with modules of one's own and for no others.

    Examples
    --------
    >>> import crisptree, numpy as np, tempfile, pathlib
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["low", "low", "high", "high"])
    >>> model = crisptree.CrispTreeClassifier(max_depth=1, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(pathlib.Path(folder) / "x.crisp")
    ...     crisptree.load(pathlib.Path(folder) / "x.crisp").predict(X).tolist()
    ['low', 'low', 'high', 'high']
    """
    return restore(read(path), split)


def restore(file: ModelFile, split: Callable[[tuple[int, ...]], Any] | None = None) -> PublicEstimator:
    """Restore the estimator of a model file that ``read`` has checked."""
    with reading(file.path, ModelFileError, "crisptree model file"):
        check_known(file.sections, KNOWN, file.path)
        restored: PublicEstimator = _estimator(file, split, file.path)
        return restored


def _estimator(file: ModelFile, split: Callable[[tuple[int, ...]], Any] | None, path: str | PathLike[str]) -> Any:
    header = file.section(ESTIMATOR).content
    model = _unfitted(header, split, path)
    n_values = _restore_target(model, header)

    def read_trees(names: Iterable[str]) -> dict[str, CrispTree]:
        trees = trees_from_file(file, names, n_values, split)
        for tree in trees.values():
            _check_target(model, tree, path)
        return trees

    tree = model._restore_trees(file, read_trees)
    names = header.get("feature_names")
    schema = InputSchema(
        tree.n_features,
        None if names is None else _feature_names(names, tree),
        image_shape=read_image_shape(file, tree, getattr(model, "image_shape", None)),
        target_name=header["target"] if isinstance(header.get("target"), str) else None,
    )
    model.set_input_schema(schema)
    model.history_ = []
    if "chosen" in header:
        model.best_params_ = _selected(header["chosen"], model.declared_parameters())
    if PREPROCESSING in file.sections:
        _restore_preprocessing(model, schema, _preprocessing(file, tree))
    return model


def _restore_target(model: Any, header: dict[str, Any]) -> int:
    """Set the fitted attributes that describe y; return the number of values of a leaf."""
    if _is_regressor(model):
        n_outputs = header.get("outputs")
        if not isinstance(n_outputs, int) or isinstance(n_outputs, bool) or not 0 < n_outputs <= MAX_OUTPUTS:
            raise ModelFileError(f"the model file must store the number of outputs; it stores {n_outputs!r}.")
        model.n_outputs_ = n_outputs
        return 2 * n_outputs
    model.classes_ = _labels_from_json(header.get("classes"))
    return len(model.classes_)


def _check_target(model: Any, tree: CrispTree, path: str | PathLike[str]) -> None:
    """Check that leaves are those of the estimator's target, for regression with the units of y."""
    statistics = tree.statistics
    expected = "gaussians" if _is_regressor(model) else "classes"
    if tree.target_name != expected:
        raise ModelFileError(
            f"{path} holds a {type(model).__name__} with leaves of {tree.target_name!r}, which is invalid."
        )
    if _is_regressor(model):
        center, unit = statistics.y_center, statistics.y_unit
        if (
            center is None
            or unit is None
            or len(unit) != model.n_outputs_
            or not np.all((unit >= 0) & (unit <= MAX_VALUE) & (np.abs(center) <= MAX_VALUE))
        ):
            raise ModelFileError(f"{path} must store the units of the {model.n_outputs_} outputs; it does not.")
    if not _is_bounded(tree):
        raise ModelFileError(
            f"{path} must hold leaves whose predictions are finite; its values are so large that they overflow."
        )


def _is_bounded(tree: CrispTree) -> bool:
    """Return True if predictions of finite float32 rows, and their squares, are finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        bounds = [tree.restore_units(table) for table in (tree.leaves, tree.statistics.soft_leaves)]
        if any((np.abs(tree.target.independent_outputs(bound)) > 100 * MAX_VALUE).any() for bound in bounds):
            return False
        if isinstance(tree, FlatTree) and tree.linear_weight is not None and tree.linear_bias is not None:
            parts = [tree.linear_bias] if tree.linear_variance is None else [tree.linear_bias, tree.linear_variance]
            if any((np.abs(part) > MAX_VALUE).any() for part in parts):
                return False
            parts[0] = np.abs(tree.linear_weight).sum(axis=2) * np.finfo(np.float32).max  # of the largest row
            bounds.append(tree.restore_units(np.concatenate(parts, axis=1)))
    return all(bool(np.isfinite(bound).all()) for bound in bounds)


def _unfitted(header: dict[str, Any], split: Any, path: str | PathLike[str]) -> Any:
    """Make the estimator with its parameters, which must be valid."""
    name, content = header.get("class"), header.get("parameters")
    cls = find_class(name)
    if cls is None:
        raise ModelFileError(f"{path} holds a {name!r}, unknown to this version of crisptree. Update it.")
    if not isinstance(content, dict):
        raise ModelFileError("the model file must hold the estimator's parameters; it does not.")
    declared = cls.declared_parameters()
    before = {name: one.default if one.before is NEVER else one.before for name, one in declared.items()}
    try:
        stored = _parameters_from_json(content)
        parameters = before | {name: value for name, value in stored.items() if name in declared}
        if split is not None:
            parameters["split"] = split
        check_parameters(declared, parameters)
    except (AttributeError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise ModelFileError(f"the model file holds an invalid parameter: {error}") from error
    return cls.from_flat(**parameters)


def _selected(content: Any, declared: Mapping[str, Parameter]) -> dict[str, Any]:
    """Read and validate the values that the fit selected, with which a warm start continues."""
    try:
        selected = _parameters_from_json(content)
        for name, value in selected.items():
            if rule := declared[name].rule:
                rule.check(name, value)
    except (AttributeError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise ModelFileError(f"the model file holds an invalid selected value: {error}") from error
    return selected


def _restore_preprocessing(model: Any, schema: InputSchema, preprocessing: Preprocessing) -> None:
    """Attach the encoder of tables; images and numeric rows are not encoded."""
    if schema.image_shape is not None or not (preprocessing.named or not preprocessing.keeps_numbers):
        model.set_input_schema(replace(schema, encoded_by=preprocessing))
        return
    encoder = TableEncoder.of(preprocessing)
    names = getattr(encoder, "feature_names_in_", None)
    model.set_input_schema(replace(schema, n_features=encoder.n_features_in_, feature_names=names, encoder=encoder))


def _preprocessing(file: ModelFile, tree: CrispTree) -> Preprocessing:
    try:
        preprocessing = preprocessing_from_section(file.section(PREPROCESSING))
    except TableError as error:
        raise ModelFileError(f"{file.path}: {error}") from error
    if preprocessing.n_features != tree.n_features:
        raise ModelFileError(
            f"{file.path} holds a preprocessing for {preprocessing.n_features} features and a tree for "
            f"{tree.n_features}."
        )
    return preprocessing


def preprocessing_to_section(preprocessing: Preprocessing) -> Section:
    """Return the section of a preprocessing, which may be left out; values that are the default are not in it."""
    columns = [
        {"name": column.name, "kind": column.kind}
        | ({"categories": list(column.categories)} if column.categories else {})
        | ({"grouped": True} if column.grouped else {})
        | ({"part": column.part, "date": column.date, "day_first": column.day_first} if column.part else {})
        for column in preprocessing.columns
    ]
    content = {
        "version": SECTION_VERSION,
        "named": preprocessing.named,
        "missing": list(preprocessing.missing),
        "target": preprocessing.target,
        "left_out": dict(preprocessing.left_out),
        "inputs": list(preprocessing.inputs),
        "columns": columns,
    }
    number_format = preprocessing.number_format
    optional = {
        "written": None if number_format == Preprocessing.number_format else asdict(number_format),
        "id": preprocessing.id,
        "handle_missing": None if preprocessing.fill else "error",
        "notes": list(preprocessing.notes) or None,
    }
    content |= {name: value for name, value in optional.items() if value is not None}
    mean = np.array([column.mean for column in preprocessing.columns], dtype=np.float64)
    missing = np.array([column.missing for column in preprocessing.columns], dtype=np.uint8)
    return Section(content, {"mean": mean, "missing": missing}, required=False)


def preprocessing_from_section(section: Section) -> Preprocessing:
    """Restore a preprocessing; types and lengths are checked."""
    content, arrays = section.content, section.arrays
    if content.get("version") != SECTION_VERSION:
        raise TableError(
            f"the preprocessing in the model file has version {content.get('version')!r}; this version of "
            f"crisptree reads version {SECTION_VERSION}. Update it."
        )
    try:
        entries, mean, missing = content["columns"], arrays["mean"], arrays["missing"]
        if (mean.dtype.kind, missing.dtype.kind) != ("f", "u") or {mean.shape, missing.shape} != {(len(entries),)}:
            raise TypeError("means and indicators of missing values must be as many as columns")
        parts = zip(entries, mean.tolist(), missing.astype(bool).tolist(), strict=True)
        preprocessing = _restore(
            Preprocessing,
            content | {"number_format": content.get("written", {})},
            columns=tuple(_restore(Column, entry, mean=mean, missing=missing) for entry, mean, missing in parts),
            fill=content.get("handle_missing") != "error",
        )
        _check_preprocessing(preprocessing)
    except (KeyError, TypeError, AttributeError) as error:
        raise TableError(f"the preprocessing in the model file is damaged ({error}). Write the file again.") from error
    return preprocessing


def _check_preprocessing(preprocessing: Preprocessing) -> None:
    """Raise TypeError for columns that no training makes."""
    columns, inputs = preprocessing.columns, preprocessing.inputs
    if wrong := [column.name for column in columns if not column.is_consistent]:
        raise TypeError(f"the column {wrong[0]!r}")
    if len({column.name for column in columns}) < len(columns) or len(set(inputs)) < len(inputs):
        raise TypeError("columns must have different names")
    if inputs and not {column.input_name for column in columns} <= set(inputs):
        raise TypeError("the columns that are used must be among those of the table")


def _restore(kind: type[Restored], content: dict[str, Any], **further: Any) -> Restored:
    """Make a dataclass of a JSON object, whose entries are checked by the types of its fields; ``further`` are others.

    Entries that are no fields are ignored.
    """
    types = get_type_hints(kind)
    own = {name: value for name, value in content.items() if name in types and name not in further}
    return kind(**{name: _check_type(value, types[name]) for name, value in own.items()}, **further)


def _check_type(value: Any, kind: Any) -> Any:
    """Return a value of a JSON object, a list as a tuple, if it is of the type; containers hold texts."""
    if isinstance(kind, type) and is_dataclass(kind):
        return _restore(kind, value)
    container = get_origin(kind)
    if container is tuple and isinstance(value, list):
        return tuple(_check_type(text, str) for text in value)
    if container is dict and isinstance(value, dict):
        return {name: _check_type(text, str) for name, text in value.items()}
    if container in (tuple, dict) or not isinstance(value, kind):
        raise TypeError(f"{value!r} must be of type {getattr(kind, '__name__', kind)}")
    return value


def read_image_shape(file: ModelFile, tree: CrispTree, default: Any = None) -> tuple[int, ...] | None:
    """Read the shape of a row that is an image; old files leave it to the parameter."""
    sides = file.section(ESTIMATOR).content.get("image_shape", default)
    try:
        check_argument("image_shape", sides)
        shape = None if sides is None else tuple(int(side) for side in sides)
        check_image_shape(shape, tree.n_features)
    except ValueError as error:
        raise ModelFileError(f"the model file stores an invalid image shape: {error}") from error
    return shape


def _feature_names(names: Any, tree: CrispTree) -> npt.NDArray[np.object_]:
    if not isinstance(names, list) or len(names) != tree.n_features or not all(isinstance(n, str) for n in names):
        raise ModelFileError(f"the model file must name its {tree.n_features} columns; it does not.")
    try:
        check_utf8(names, "names of columns")
    except ValueError as error:
        raise ModelFileError(f"the model file cannot be used: {error}") from None
    return np.array(names, dtype=object)


def _parameters_to_json(parameters: dict[str, Any]) -> dict[str, Any]:
    """Convert parameters to JSON values; functions and generators are left out."""
    plain: dict[str, Any] = {}
    for name, value in parameters.items():
        with suppress(TypeError):
            plain[name] = _to_json(value)
    return plain


def _parameters_from_json(content: dict[str, Any]) -> dict[str, Any]:
    """Convert JSON values of parameters back, those of earlier versions by their names of today."""
    values = {RENAMED.get(name, name): _parameter_from_json(value) for name, value in content.items()}
    return {
        name: RENAMED_VALUES.get((name, value), value) if isinstance(value, str) else value
        for name, value in values.items()
    }


def _to_json(value: Any) -> Any:
    """Convert a parameter to a JSON value, a dict to pairs; ``_parameter_from_json`` inverts this."""
    value = _item(value)
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}  # an ignore_label; JSON has no number for it
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, tuple | list):
        return [_to_json(part) for part in value]
    if isinstance(value, dict):
        return {"pairs": [[_to_json(key), _to_json(part)] for key, part in value.items()]}
    if isinstance(value, TableEncoder):
        return {"encoder": _parameters_to_json(value.get_params(deep=False))}
    raise TypeError(f"a {type(value).__name__} has no JSON value.")


def _parameter_from_json(value: Any) -> Any:
    if isinstance(value, dict) and "encoder" in value:
        return TableEncoder(**{name: _parameter_from_json(part) for name, part in value["encoder"].items()})
    if isinstance(value, dict):
        return float(value["float"]) if "float" in value else dict(value["pairs"])
    return tuple(value) if isinstance(value, list) else value


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _labels_to_json(classes: npt.NDArray[Any]) -> dict[str, Any]:
    kind = label_type(classes)
    if classes.dtype.kind in "mM":
        return {"values": classes.view(np.int64).tolist(), "type": kind}  # in the unit that the type names
    if classes.dtype.kind == "S":
        return {"values": [label.decode("latin-1") for label in classes.tolist()], "type": kind}
    return {"values": [_item(label) for label in classes.tolist()], "type": kind}


def _labels_from_json(content: Any) -> npt.NDArray[Any]:
    try:
        values, kind = list(content["values"]), LABEL_TYPES[content["type"]]
        plain = all(isinstance(label, str | int | float | bool) for label in values)
        if not plain or not 0 < len(set(values)) == len(values):
            raise ModelFileError("the class labels of a model file must be a list of different values.")
        if kind in (str, bytes):
            check_labels(values)
        check_utf8(values, "class labels")
        if kind is bytes:
            values = [label.encode("latin-1") for label in values]
        is_time = isinstance(kind, np.dtype) and kind.kind in "mM"
        classes = np.array(values, dtype=np.int64 if is_time else kind)
        if classes.tolist() != values:  # 1.5 among whole numbers would become another's 1
            raise ModelFileError(f"the class labels of a model file must be of the type it names, {content['type']}.")
        if is_time and np.isnat(classes.view(kind)).any():
            raise ModelFileError("the class labels of a model file must not be missing (NaT).")
        return classes.view(kind) if is_time else classes
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ModelFileError("the model file must hold class labels; it does not.") from error
