"""Estimators to model files and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from crisptree.estimators.images import check_image_shape
from crisptree.estimators.parameters import MOST_STAGES, NEVER, check_argument, check_parameters
from crisptree.inference import CrispTree, FlatTree

if TYPE_CHECKING:
    from crisptree.estimators.base import TreeEstimator
    from crisptree.estimators.classifier import CrispTreeClassifier
    from crisptree.estimators.segmenter import CrispSegmenter
    from crisptree.export.model_file import ModelFile
    from crisptree.export.trees import ModuleReader
    from crisptree.tables.preprocessing import Preprocessing

SECTIONS = ("estimator", "tree", "statistics", "greedy", "greedy_statistics")
PREPROCESSING = "preprocessing"
"""What the command line did to a table before the tree saw it; whoever has rows of numbers does without."""

OPTIONAL = ("greedy", "greedy_statistics", PREPROCESSING)
STAGES = tuple(f"stage_{number}" for number in range(MOST_STAGES - 1))
"""Trees of a segmenter's earlier stages."""

LABEL_TYPES: dict[str, Any] = {
    "bool": bool,
    "object": object,
    "str": str,
    **{name: np.dtype(name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{name: np.dtype(name) for name in ("float16", "float32", "float64")},
}
"""What class labels may be in a file; a type from a file is never built from its name."""

LONGEST_LABELS = 2**20


def save(estimator: TreeEstimator, path: str | PathLike[str]) -> None:
    """Write a fitted estimator; see ``load``."""
    from crisptree.export.model_file import ModelFile, write
    from crisptree.export.trees import statistics_section

    known = estimator.__dict__
    names = known.get("feature_names_in_")
    module, arrays = _tree_arrays(estimator, "tree", estimator.tree_)
    arrays |= _tree_arrays(estimator, "greedy", estimator.greedy_tree_)[1]
    sections: dict[str, Any] = {
        "estimator": {
            "class": type(estimator).__name__,
            "parameters": _parameters_to_json(estimator.get_params(deep=False)),
            "classes": _labels_to_json(estimator.classes_),
            "feature_names": None if names is None else [str(name) for name in names],
            "image_shape": None if estimator.image_shape_ is None else list(estimator.image_shape_),
            "channels": known.get("channels_"),
            "module": module,
        },
        **{section: {} for section in SECTIONS[1:]},
    }
    preprocessing = estimator.__dict__.get("preprocessing_")
    if preprocessing is not None:
        sections[PREPROCESSING], parts = preprocessing.section()
        arrays |= {f"{PREPROCESSING}/{name}": part for name, part in parts.items()}
    for number, tree in enumerate(known.get("earlier_trees_", [])):
        section = STAGES[number]
        module, more = _tree_arrays(estimator, section, tree)
        arrays |= more
        sections |= {section: {"module": module}, statistics_section(section): {}}
    write(path, ModelFile(sections, arrays), OPTIONAL)


def _tree_arrays(estimator: TreeEstimator, section: str, tree: CrispTree) -> tuple[Any, dict[str, npt.NDArray[Any]]]:
    """What a file says of a tree's split modules, where it has some, and all of its arrays."""
    from crisptree.export.trees import tree_arrays

    if isinstance(tree, FlatTree):
        return None, tree_arrays(tree, section)
    from crisptree.estimators.modules import describe

    module, parameters = describe(tree, estimator.get_params(deep=False)["split"])
    return module, tree_arrays(tree, section, parameters)


def load(
    path: str | PathLike[str], split: Callable[[tuple[int, ...]], Any] | None = None
) -> CrispTreeClassifier | CrispSegmenter:
    """Read an estimator that ``save`` wrote; it predicts as before, bit for bit.

    Parameters
    ----------
    path : str or path
        The model file.
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
    from crisptree.estimators.segmenter import CrispSegmenter
    from crisptree.export.model_file import ModelFileError, read
    from crisptree.export.trees import read_tree, statistics_section

    file = read(path, (*SECTIONS, PREPROCESSING, *STAGES, *map(statistics_section, STAGES)))
    header = file.section("estimator")
    kind = _estimator_named(header.get("class"), path)
    classes = _labels_from_json(header.get("classes"))
    modules = _module_reader(header.get("module"), split, path)
    model = kind(**_parameters_from_json(header.get("parameters"), kind, split))
    model.tree_ = read_tree(file, "tree", len(classes), modules)
    model.greedy_tree_ = model.tree_
    if "greedy" in file.sections:
        model.greedy_tree_ = read_tree(file, "greedy", len(classes), modules)
        if model.greedy_tree_.n_features != model.tree_.n_features:
            raise ModelFileError(f"{path} holds two trees for rows of different widths, which cannot be.")
    model.classes_ = classes
    shape = header.get("image_shape", model.get_params(deep=False).get("image_shape"))
    model.image_shape_ = _image_shape(shape, model.tree_)
    model.n_features_in_ = model.tree_.n_features
    if isinstance(model, CrispSegmenter):
        _take_up_stages(model, file, split, path)
    names = header.get("feature_names")
    if names is not None:
        model.feature_names_in_ = _names(names, model.tree_)
    model.history_ = []
    if PREPROCESSING in file.sections:
        model.__dict__["preprocessing_"] = _preprocessing(file, model.tree_, path)
    return model


def _preprocessing(file: ModelFile, tree: CrispTree, path: str | PathLike[str]) -> Preprocessing:
    from crisptree.export.model_file import ModelFileError
    from crisptree.tables.errors import TableError
    from crisptree.tables.preprocessing import Preprocessing

    try:
        preprocessing = Preprocessing.from_section(file.section(PREPROCESSING), file.arrays_of(PREPROCESSING))
    except TableError as error:
        raise ModelFileError(f"{path}: {error}") from error
    if preprocessing.n_features != tree.n_features:
        raise ModelFileError(
            f"{path} holds a preprocessing for {preprocessing.n_features} features and a tree for {tree.n_features}."
        )
    return preprocessing


def _estimator_named(name: Any, path: str | PathLike[str]) -> type[CrispTreeClassifier] | type[CrispSegmenter]:
    from crisptree.estimators.classifier import CrispTreeClassifier
    from crisptree.estimators.segmenter import CrispSegmenter
    from crisptree.export.model_file import ModelFileError

    for kind in (CrispTreeClassifier, CrispSegmenter):
        if name == kind.__name__:
            return kind
    raise ModelFileError(f"{path} holds a {name!r}, unknown to this version of crisptree. Update it.")


def _take_up_stages(model: CrispSegmenter, file: ModelFile, split: Any, path: str | PathLike[str]) -> None:
    """The channels of a segmenter's images and the trees of its earlier stages, all fitting each other."""
    from crisptree.estimators.segmenter import seen_channels
    from crisptree.export.model_file import ModelFileError
    from crisptree.export.trees import read_tree
    from crisptree.images import WindowView

    channels = file.section("estimator").get("channels")
    if channels is not None and not (isinstance(channels, int) and 0 < channels < 2**31):
        raise ModelFileError(f"{path} must say how many channels its images have; it says {channels!r}.")
    model.channels_, model.earlier_trees_ = channels, []
    for section in STAGES[: model.stages - 1]:
        reader = _module_reader(file.section(section).get("module"), split, path)
        tree = read_tree(file, section, len(model.classes_), reader)
        view = WindowView(model.window, tuple(model.scales), seen_channels(model))
        if tree.n_features != view.n_features:
            raise ModelFileError(f"{path} holds a stage that looks at other windows than its parameters say.")
        model.earlier_trees_.append(tree)
    view = WindowView(model.window, tuple(model.scales), seen_channels(model))
    if model.image_shape_ != view.image_shape:
        raise ModelFileError(f"{path} holds a tree that looks at other windows than its parameters say.")
    model.looks_at_ = (model.window, tuple(model.scales), model.normalise_images)


def _module_reader(
    module: Any, split: Callable[[tuple[int, ...]], Any] | None, path: str | PathLike[str]
) -> ModuleReader | None:
    if module is None:
        return None
    from crisptree.estimators.modules import reader

    return reader(module, split, path)


def _image_shape(sides: Any, tree: CrispTree) -> tuple[int, ...] | None:
    from crisptree.export.model_file import ModelFileError

    try:
        check_argument("image_shape", sides)
        shape = None if sides is None else tuple(int(side) for side in sides)
        check_image_shape(shape, tree.n_features)
    except ValueError as error:
        raise ModelFileError(
            f"the model file says of what shape its images are, and that cannot be: {error}"
        ) from error
    return shape


def _names(names: Any, tree: CrispTree) -> npt.NDArray[np.object_]:
    from crisptree.export.model_file import ModelFileError

    if not isinstance(names, list) or len(names) != tree.n_features or not all(isinstance(n, str) for n in names):
        raise ModelFileError(f"the model file must name its {tree.n_features} columns; it does not.")
    return np.array(names, dtype=object)


def _parameters_to_json(parameters: dict[str, Any]) -> dict[str, Any]:
    """Plain values as they are, class weights as pairs; functions, generators and the like are left out."""
    plain: dict[str, Any] = {}
    for name, value in parameters.items():
        scalar = value.item() if isinstance(value, np.generic) else value
        if isinstance(scalar, float) and not math.isfinite(scalar):
            plain[name] = {"float": repr(scalar)}  # an ignore_label; JSON has no number for it
        elif scalar is None or isinstance(scalar, bool | int | float | str):
            plain[name] = scalar
        elif isinstance(scalar, tuple | list) and all(isinstance(side, int | np.integer) for side in scalar):
            plain[name] = [int(side) for side in scalar]
        elif isinstance(scalar, dict):
            pairs = [[_item(key), _item(weight)] for key, weight in scalar.items()]
            plain[name] = {"pairs": pairs}
    return plain


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _parameters_from_json(
    content: Any, kind: type[CrispTreeClassifier] | type[CrispSegmenter], split: Any
) -> dict[str, Any]:
    from crisptree.export.model_file import ModelFileError

    declared = kind.PARAMETERS
    if not isinstance(content, dict):
        raise ModelFileError("the model file must hold the estimator's parameters; it does not.")
    parameters = {name: one.default if one.before is NEVER else one.before for name, one in declared.items()}
    try:
        for name, value in content.items():
            if isinstance(value, dict):
                value = float(value["float"]) if "float" in value else dict(value["pairs"])
            if name in declared:
                parameters[name] = tuple(value) if isinstance(value, list) else value
        if split is not None:
            parameters["split"] = split
        check_parameters(declared, parameters)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise ModelFileError(f"the model file holds a parameter that cannot be: {error}") from error
    return parameters


def _labels_to_json(classes: npt.NDArray[Any]) -> dict[str, Any]:
    kind = "str" if classes.dtype.kind in "UT" else classes.dtype.name
    if kind not in LABEL_TYPES:
        raise TypeError(f"class labels of type {classes.dtype} cannot be saved; use numbers, booleans or strings.")
    return {"values": [_item(label) for label in classes.tolist()], "type": kind}


def _labels_from_json(content: Any) -> npt.NDArray[Any]:
    from crisptree.export.model_file import ModelFileError

    try:
        values, kind = list(content["values"]), LABEL_TYPES[content["type"]]
        if not all(isinstance(label, str | int | float | bool) for label in values) or not 0 < len(set(values)) == len(
            values
        ):
            raise ModelFileError("the class labels of a model file must be a list of different values.")
        # An array of strings takes as much for every label as for the longest.
        if kind is str and len(values) * max(map(len, values)) > LONGEST_LABELS + 16 * sum(map(len, values)):
            raise ModelFileError("the class labels of a model file must not differ so much in length.")
        return np.array(values, dtype=kind)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError("the model file must hold class labels; it does not.") from error
