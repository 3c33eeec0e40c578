"""Estimators to model files and back: a file gives trees, the trees and the file's header give an estimator."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.data.images import WindowView
from crisptree.encoding.errors import TableError
from crisptree.encoding.preprocessing import Preprocessing
from crisptree.encoding.table_encoder import TableEncoder
from crisptree.estimators.arguments import check_argument
from crisptree.estimators.base import TreeEstimator
from crisptree.estimators.capabilities import check_parameters
from crisptree.estimators.classifier import CrispTreeClassifier
from crisptree.estimators.forest import CrispForestClassifier
from crisptree.estimators.forest_base import ForestEstimator
from crisptree.estimators.forest_parameters import MOST_TREES
from crisptree.estimators.forest_regressor import CrispForestRegressor
from crisptree.estimators.image_validation import check_window_reach
from crisptree.estimators.images import check_image_shape
from crisptree.estimators.parameters import NEVER, Parameter
from crisptree.estimators.pixel_regressor import CrispPixelRegressor
from crisptree.estimators.pixels import PixelEstimator, seen_channels
from crisptree.estimators.regressor import CrispTreeRegressor
from crisptree.estimators.segmenter import CrispSegmenter
from crisptree.estimators.validation import take_up_encoder
from crisptree.files import reading
from crisptree.inference import CrispTree, FlatTree
from crisptree.inference.forest import CrispForest
from crisptree.persistence.model_file import (
    ModelFile,
    ModelFileError,
    Section,
    Sections,
    check_channels,
    check_labels,
    read,
    write,
)
from crisptree.persistence.trees import SHARED as ESTIMATOR
from crisptree.persistence.trees import known_sections, trees_from_file, trees_to_sections
from crisptree.targets.labels import LABEL_TYPES, check_utf8, label_type
from crisptree.targets.regression import MAX_VALUE

TREE, GREEDY, STAGE, MEMBER = "tree", "greedy", "stage", "member"
"""The tree that predicts, the one before finetuning, and with their numbers those of earlier stages of pixels and
those of a forest."""

PREPROCESSING = "preprocessing"
"""What is done to a table before the tree sees it; whoever has rows of numbers does without."""

KNOWN = {ESTIMATOR, PREPROCESSING, *known_sections((TREE, GREEDY, STAGE, MEMBER))}

FORESTS = (CrispForestClassifier, CrispForestRegressor)
OF_NUMBERS = (CrispTreeRegressor, CrispForestRegressor, CrispPixelRegressor)
OF_PIXELS = (CrispSegmenter, CrispPixelRegressor)

Forest = CrispForestClassifier | CrispForestRegressor
Estimator = CrispTreeClassifier | CrispTreeRegressor | Forest | CrispSegmenter | CrispPixelRegressor

ESTIMATORS: dict[str, type[Estimator]] = {
    kind.__name__: kind for kind in (CrispTreeClassifier, CrispTreeRegressor, *FORESTS, *OF_PIXELS)
}
"""What a file may hold."""

MOST_NUMBERS = 10_000
"""Outputs of a regressor that a file may name."""


def save(estimator: TreeEstimator | ForestEstimator, path: str | PathLike[str]) -> None:
    """Write a fitted estimator; see ``load``."""
    write(path, sections_of(estimator))


def sections_of(estimator: TreeEstimator | ForestEstimator) -> Sections:
    """All that a file keeps of a fitted estimator."""
    known, parameters = estimator.__dict__, estimator.get_params(deep=False)
    names, preprocessing = known.get("feature_names_in_"), known.get("preprocessing_")
    if "encoder_" in known:
        preprocessing = known["encoder_"].preprocessing_
        names = preprocessing.feature_names if preprocessing.named else None  # those that the tree sees
    sections = trees_to_sections(_named_trees(known), parameters["split"], optional=(GREEDY,))
    header = {
        "class": type(estimator).__name__,
        "parameters": _parameters_to_json(parameters),
        **(
            {"outputs": known["n_outputs_"]}
            if "n_outputs_" in known
            else {"classes": _labels_to_json(known["classes_"])}
        ),
        "feature_names": None if names is None else [str(name) for name in names],
        "image_shape": None if estimator.image_shape_ is None else list(estimator.image_shape_),
        "channels": known.get("channels_"),
        "module": sections[TREE].content.pop("module", None) if TREE in sections else None,  # as the first files say
    }
    if known.get("target_name_"):
        header["target"] = known["target_name_"]
    if "forest_" in known:
        header |= {"trees": len(known["forest_"]), "seed": known["seed_"], "rows": known["n_rows_"]}
        header["oob_score"] = _finite(known.get("oob_score_"))
    if known.get("chosen_"):
        header["chosen"] = _parameters_to_json(known["chosen_"])
    sections[ESTIMATOR] = Section(header)
    if preprocessing is not None:
        content, arrays = preprocessing.section()
        sections[PREPROCESSING] = Section(content, arrays, required=False)
    return sections


def _named_trees(known: Mapping[str, Any]) -> dict[str, CrispTree]:
    """All trees of a fitted estimator by the names of their sections."""
    if "forest_" in known:
        return {f"{MEMBER}_{number}": tree for number, tree in enumerate(known["forest_"])}
    stages = {f"{STAGE}_{number}": tree for number, tree in enumerate(known.get("earlier_trees_", []))}
    return {TREE: known["tree_"], GREEDY: known["greedy_tree_"], **stages}


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def load(path: str | PathLike[str], split: Callable[[tuple[int, ...]], Any] | None = None) -> Estimator:
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
    with reading(path, ModelFileError, "crisptree model file"):
        return _estimator(read(path, KNOWN), split, path)


def _estimator(file: ModelFile, split: Callable[[tuple[int, ...]], Any] | None, path: str | PathLike[str]) -> Estimator:
    header = file.section(ESTIMATOR).content
    model = _unfitted(header, split, path)
    n_values = _take_up_answers(model, header)
    if isinstance(model, FORESTS):
        return _with_forest(model, file, n_values, split)
    stages = [f"{STAGE}_{number}" for number in range(getattr(model, "stages", 1) - 1)]
    names = [TREE, *([GREEDY] if GREEDY in file.sections else []), *stages]
    trees = trees_from_file(file, names, n_values, split)
    model.tree_, model.greedy_tree_ = trees[TREE], trees.get(GREEDY, trees[TREE])
    if model.greedy_tree_.n_features != model.tree_.n_features:
        raise ModelFileError(f"{path} holds two trees for rows of different widths, which cannot be.")
    for tree in trees.values():
        _check_target(model, tree, path)
    model.n_features_in_, model.history_ = model.tree_.n_features, []
    model.image_shape_ = _image_shape(header.get("image_shape", getattr(model, "image_shape", None)), model.tree_)
    if isinstance(model, PixelEstimator):
        _take_up_stages(model, [trees[name] for name in stages], header.get("channels"), path)
    if "chosen" in header:
        model.__dict__["chosen_"] = _chosen(header["chosen"], ESTIMATORS[header["class"]].PARAMETERS)
    _take_up_names(model, file, model.tree_)
    return model


def _with_forest(model: Forest, file: ModelFile, n_values: int, split: Any) -> Forest:
    """The forest with its trees, which must all take the same rows."""
    header = file.section(ESTIMATOR).content
    numbers = [header.get(name) for name in ("trees", "seed", "rows")]
    if not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in numbers):
        raise ModelFileError(f"{file.path} must say how many trees, which seed and how many rows; it says {numbers}.")
    n_trees, model.seed_, model.n_rows_ = (int(one or 0) for one in numbers)
    if not 0 < n_trees <= MOST_TREES:
        raise ModelFileError(f"{file.path} must hold 1 to {MOST_TREES:,} trees; it says {n_trees:,}.")
    trees = trees_from_file(file, (f"{MEMBER}_{number}" for number in range(n_trees)), n_values, split)
    model.forest_ = CrispForest.of(list(trees.values()))
    for tree in trees.values():
        _check_target(model, tree, file.path)
        if tree.n_features != model.forest_.n_features:
            raise ModelFileError(f"{file.path} holds trees for rows of different widths, which cannot be.")
    first = model.forest_.trees[0]
    model.n_features_in_, model.history_ = first.n_features, []
    model.image_shape_ = _image_shape(header.get("image_shape"), first)
    score = header.get("oob_score")
    if score is not None:
        if not isinstance(score, float | int) or isinstance(score, bool) or not math.isfinite(score):
            raise ModelFileError(f"{file.path} must say a finite score out of the bag; it says {score!r}.")
        model.oob_score_ = float(score)
    if "chosen" in header:
        model.__dict__["chosen_"] = _chosen(header["chosen"], type(model).PARAMETERS)
    _take_up_names(model, file, first)
    return model


def _take_up_names(model: Estimator, file: ModelFile, tree: CrispTree) -> None:
    """Names of y and of columns, and what is done to a table, where the file has them."""
    header = file.section(ESTIMATOR).content
    if isinstance(header.get("target"), str):
        model.target_name_ = header["target"]
    if header.get("feature_names") is not None:
        model.feature_names_in_ = _feature_names(header["feature_names"], tree)
    if PREPROCESSING in file.sections:
        _take_up_preprocessing(model, _preprocessing(file, tree))


def _take_up_answers(model: Estimator, header: dict[str, Any]) -> int:
    """What the file says of y; how many numbers a leaf has."""
    if isinstance(model, OF_NUMBERS):
        n_outputs = header.get("outputs")
        if not isinstance(n_outputs, int) or isinstance(n_outputs, bool) or not 0 < n_outputs <= MOST_NUMBERS:
            raise ModelFileError(f"the model file must say how many numbers a row has; it says {n_outputs!r}.")
        model.n_outputs_ = n_outputs
        return 2 * n_outputs
    model.classes_ = _labels_from_json(header.get("classes"))
    return len(model.classes_)


def _check_target(model: Estimator, tree: CrispTree, path: str | PathLike[str]) -> None:
    """Leaves of numbers belong to regressors, with the units of y, and to nobody else."""
    statistics = tree.statistics
    wanted = "gaussians" if isinstance(model, OF_NUMBERS) else "classes"
    if tree.target != wanted:
        raise ModelFileError(f"{path} holds a {type(model).__name__} with leaves of {tree.target!r}, which cannot be.")
    if isinstance(model, OF_NUMBERS):
        center, unit = statistics.y_center, statistics.y_unit
        if (
            center is None
            or unit is None
            or len(unit) != model.n_outputs_
            or not np.all((unit >= 0) & (unit <= MAX_VALUE) & (np.abs(center) <= MAX_VALUE))
        ):
            raise ModelFileError(f"{path} must say in which units the {model.n_outputs_} outputs are; it does not.")
    if not _is_bounded(tree):
        raise ModelFileError(
            f"{path} must hold leaves whose predictions are finite; its values are so large that they overflow."
        )


def _is_bounded(tree: CrispTree) -> bool:
    """Whether no finite row of float32 features is predicted an infinite value, or one that has no square."""
    with np.errstate(over="ignore", invalid="ignore"):
        bounds = [tree.in_units(table) for table in (tree.leaves, tree.statistics.soft_leaves)]
        if any((np.abs(tree.meaning.told(bound)) > 100 * MAX_VALUE).any() for bound in bounds):
            return False
        if isinstance(tree, FlatTree) and tree.linear_weight is not None and tree.linear_bias is not None:
            parts = [tree.linear_bias] if tree.linear_variance is None else [tree.linear_bias, tree.linear_variance]
            if any((np.abs(part) > MAX_VALUE).any() for part in parts):
                return False
            parts[0] = np.abs(tree.linear_weight).sum(axis=2) * np.finfo(np.float32).max  # of the largest row
            bounds.append(tree.in_units(np.concatenate(parts, axis=1)))
    return all(bool(np.isfinite(bound).all()) for bound in bounds)


def _unfitted(header: dict[str, Any], split: Any, path: str | PathLike[str]) -> Estimator:
    """The estimator with its parameters, held to their rules."""
    name, content = header.get("class"), header.get("parameters")
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ModelFileError(f"{path} holds a {name!r}, unknown to this version of crisptree. Update it.")
    if not isinstance(content, dict):
        raise ModelFileError("the model file must hold the estimator's parameters; it does not.")
    declared = ESTIMATORS[name].PARAMETERS
    before = {name: one.default if one.before is NEVER else one.before for name, one in declared.items()}
    try:
        given = {name: _parameter_from_json(value) for name, value in content.items()}
        parameters = before | {name: value for name, value in given.items() if name in declared}
        if split is not None:
            parameters["split"] = split
        check_parameters(declared, parameters)
    except (AttributeError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise ModelFileError(f"the model file holds a parameter that cannot be: {error}") from error
    return ESTIMATORS[name](**parameters)


def _chosen(content: Any, declared: Mapping[str, Parameter]) -> dict[str, Any]:
    """What the fit chose, held to the rules of the parameters: a tree that grows on goes on with it."""
    try:
        chosen = {name: _parameter_from_json(value) for name, value in content.items()}
        for name, value in chosen.items():
            if rule := declared[name].rule:
                rule.check(name, value)
    except (AttributeError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise ModelFileError(f"the model file holds a choice that cannot be: {error}") from error
    return chosen


def _take_up_stages(model: PixelEstimator, stages: list[CrispTree], channels: Any, path: str | PathLike[str]) -> None:
    """The channels of images and the trees of its earlier stages, all fitting each other."""
    check_channels(channels, path)
    check_window_reach(model.window, model.scales)
    model.channels_, model.earlier_trees_ = channels, []
    for tree in stages:
        if tree.n_features != _window_view(model).n_features:
            raise ModelFileError(f"{path} holds a stage that looks at other windows than its parameters say.")
        model.earlier_trees_.append(tree)
    if model.image_shape_ != _window_view(model).image_shape:
        raise ModelFileError(f"{path} holds a tree that looks at other windows than its parameters say.")
    model.looks_at_ = model._looks_at()


def _window_view(model: PixelEstimator) -> WindowView:
    return WindowView(model.window, tuple(model.scales), seen_channels(model))


def _take_up_preprocessing(model: Estimator, preprocessing: Preprocessing) -> None:
    """Let the model take the tables that it was trained on; images and rows of numbers need nothing done to them."""
    if model.image_shape_ is None and (preprocessing.named or not preprocessing.keeps_numbers):
        take_up_encoder(model, TableEncoder.of(preprocessing))
    else:
        model.__dict__["preprocessing_"] = preprocessing


def _preprocessing(file: ModelFile, tree: CrispTree) -> Preprocessing:
    section = file.section(PREPROCESSING)
    try:
        preprocessing = Preprocessing.from_section(section.content, section.arrays)
    except TableError as error:
        raise ModelFileError(f"{file.path}: {error}") from error
    if preprocessing.n_features != tree.n_features:
        raise ModelFileError(
            f"{file.path} holds a preprocessing for {preprocessing.n_features} features and a tree for "
            f"{tree.n_features}."
        )
    return preprocessing


def _image_shape(sides: Any, tree: CrispTree) -> tuple[int, ...] | None:
    try:
        check_argument("image_shape", sides)
        shape = None if sides is None else tuple(int(side) for side in sides)
        check_image_shape(shape, tree.n_features)
    except ValueError as error:
        raise ModelFileError(
            f"the model file says of what shape its images are, and that cannot be: {error}"
        ) from error
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
    """Plain values as they are, dicts as pairs; functions, generators and the like are left out."""
    plain: dict[str, Any] = {}
    for name, value in parameters.items():
        scalar = _item(value)
        if isinstance(scalar, float) and not math.isfinite(scalar):
            plain[name] = {"float": repr(scalar)}  # an ignore_label; JSON has no number for it
        elif scalar is None or isinstance(scalar, bool | int | float | str):
            plain[name] = scalar
        elif isinstance(scalar, tuple | list) and all(isinstance(side, int | np.integer) for side in scalar):
            plain[name] = [int(side) for side in scalar]
        elif isinstance(scalar, tuple | list) and all(isinstance(column, str | int | np.integer) for column in scalar):
            plain[name] = [_item(column) for column in scalar]
        elif isinstance(scalar, tuple | list) and all(isinstance(group, tuple | list) for group in scalar):
            plain[name] = [[_item(column) for column in group] for group in scalar]
        elif isinstance(scalar, TableEncoder):
            plain[name] = {"encoder": _parameters_to_json(scalar.get_params(deep=False))}
        elif isinstance(scalar, dict):
            plain[name] = {"pairs": [[_item(key), _item(weight)] for key, weight in scalar.items()]}
    return plain


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
