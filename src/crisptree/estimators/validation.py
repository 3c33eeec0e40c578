"""The front door: parameters, rows, labels and weights are checked here once, with errors that help."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from crisptree.estimators.images import as_rows, check_image_shape, image_shape_of
from crisptree.structure import TreeStructure

ALGORITHMS = ("em", "alternating", "likelihood", "non_greedy")
ANNEALING = ("linear", "geometric")
DECAYS = ("none", "linear", "cosine")
RIVALS = ("axis_aligned", "random", "oc1", "co2")
GROW = ("greedy", "balanced", *RIVALS)
SEGMENTER_ALGORITHMS, SEGMENTER_GROW = ALGORITHMS[:3], GROW[:2]
SCALES = ("feature", "global", None)
DEEPEST_BALANCED = 16
MOST_STAGES = 8
SPLITS = ("oblique", "axis", "conv")

Rule = tuple[Callable[[Any], bool], str]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _whole(low: int, *, none: bool = False, remark: str = "") -> Rule:
    def holds(value: Any) -> bool:
        if value is None:
            return none
        return _is_whole(value) and bool(value >= low)

    return holds, f"a whole number of at least {low}" + (" or None" if none else "") + remark


def _number(low: float, *, strict: bool = False, high: float = 1e30, none: bool = False) -> Rule:
    def holds(value: Any) -> bool:
        if value is None:
            return none
        if not isinstance(value, Real) or not math.isfinite(value):
            return False
        number = float(value)
        return (number > low if strict else number >= low) and number < high

    return holds, f"a number {'above' if strict else 'at least'} {low:g} and below {high:g}" + (none * " or None")


def _one_of(names: tuple[str | None, ...]) -> Rule:
    return lambda value: (value is None or isinstance(value, str)) and value in names, "one of " + ", ".join(
        map(repr, names)
    )


def _flag() -> Rule:
    return lambda value: isinstance(value, bool | np.bool_), "True or False"


RULES: dict[str, Rule] = {
    "split": (
        lambda value: callable(value) or (isinstance(value, str) and value in SPLITS),
        "'oblique', 'axis', 'conv' or a function split(input_shape) that returns a torch.nn.Module",
    ),
    "algorithm": _one_of(ALGORITHMS),
    "grow": _one_of(GROW),
    "max_depth": _whole(0, none=True, remark=" (0 gives a single leaf, None grows until the leaves are pure)"),
    "max_leaf_nodes": _whole(2, none=True),
    "min_samples_split": _whole(2),
    "min_samples_leaf": _whole(1),
    "min_weight_fraction_leaf": _number(0.0, high=0.5),
    "min_impurity_decrease": _number(0.0),
    "epochs": _whole(1),
    "finetune_epochs": _whole(0, remark=" (0 keeps the greedy tree)"),
    "min_updates": _whole(0, remark=" (0 counts epochs alone)"),
    "learning_rate": (
        lambda value: (isinstance(value, str) and value == "auto") or _number(0.0, strict=True)[0](value),
        f"'auto' or {_number(0.0, strict=True)[1]}",
    ),
    "learning_rate_decay": _one_of(DECAYS),
    "batch_size": _whole(1),
    "steepness": _number(0.0, strict=True),
    "steepness_step": _number(0.0),
    "annealing": _one_of(ANNEALING),
    "l1": _number(0.0),
    "l2": _number(0.0),
    "leaf_prior": _number(0.0),
    "roughness": _number(0.0),
    "image_shape": (
        lambda value: (
            value is None
            or (
                isinstance(value, tuple | list)
                and len(value) in (2, 3)
                and all(_is_whole(side) and side > 0 for side in value)
            )
        ),
        "None, (height, width) or (height, width, channels)",
    ),
    "nu": _number(0.0, strict=True, none=True),
    "mass_threshold": _number(0.0, high=1.0),
    "scale": _one_of(SCALES),
    "validation_fraction": _number(0.0, strict=True, high=1.0),
    "early_stopping": _flag(),
    "warm_start": _flag(),
    "n_jobs": (
        lambda value: value is None or (_is_whole(value) and (value == -1 or 1 <= value < 2**31)),
        "None or -1 for all cores, or a whole number of at least 1",
    ),
    "verbose": (lambda value: isinstance(value, bool) or (_is_whole(value) and value >= 0), "0 or larger"),
    "callbacks": (
        lambda value: value is None or (isinstance(value, list | tuple) and all(map(callable, value))),
        "None or a list of functions that take a record of an epoch",
    ),
}


IMAGE_RULES: dict[str, Rule] = {
    "window": (
        lambda value: _is_whole(value) and value > 0 and value % 2 == 1,
        "an odd whole number of at least 1, so that a pixel stands in its middle",
    ),
    "scales": (
        lambda value: (
            isinstance(value, tuple | list)
            and len(value) > 0
            and len(set(value)) == len(value)
            and all(_is_whole(scale) and scale > 0 for scale in value)
        ),
        "a tuple of different whole numbers of at least 1, such as (1,) or (1, 4)",
    ),
    "normalise_images": _flag(),
    "stages": (lambda value: _is_whole(value) and 1 <= value <= MOST_STAGES, f"a whole number from 1 to {MOST_STAGES}"),
    "pixels_per_epoch": _whole(1, none=True, remark=" (None shows all of them)"),
}
"""Rules for what only estimators of images have."""

ARGUMENTS: dict[str, Rule] = {
    "depth": _whole(0),
    "max_terms": _whole(1, none=True),
    "tolerance": _number(0.0, high=1.0, none=True),
}
"""Rules for what methods are given and is no parameter of the estimator."""


def check_parameter(name: str, value: Any) -> None:
    """Hold one parameter, or one argument of a method, to its rule."""
    holds, sentence = (RULES | IMAGE_RULES | ARGUMENTS)[name]
    if not holds(value):
        raise ValueError(f"`{name}` must be {sentence}; got {value!r}.")


def check_parameters(parameters: dict[str, Any]) -> None:
    """Hold every parameter to its rule, and those that depend on each other too."""
    for name in RULES | IMAGE_RULES:
        if name in parameters:
            check_parameter(name, parameters[name])
    if parameters["split"] != "oblique" and parameters["roughness"] > 0:
        raise ValueError(
            "`roughness` must be 0 unless split='oblique': only hyperplanes have a weight image to smooth; "
            f"got roughness={parameters['roughness']!r}."
        )
    if parameters["split"] not in ("oblique", "axis") and parameters["l1"] > 0:
        raise ValueError(f"`l1` must be 0 for split modules; got {parameters['l1']!r}. Use l2 instead.")
    if parameters["split"] != "oblique":
        for name, value in (("grow", parameters["grow"]), ("algorithm", parameters["algorithm"])):
            if value in (*RIVALS, "non_greedy"):
                raise ValueError(
                    f"`split` must be 'oblique' for {name}={value!r}, which works on hyperplanes; "
                    f"got {parameters['split']!r}."
                )
    if parameters["grow"] == "balanced":
        if parameters["max_depth"] is None or parameters["max_depth"] > DEEPEST_BALANCED:
            raise ValueError(
                f"`max_depth` must be a number of at most {DEEPEST_BALANCED} for grow='balanced', which builds "
                f"2^max_depth leaves; got {parameters['max_depth']!r}."
            )
        if parameters["max_leaf_nodes"] is not None:
            raise ValueError(
                "`max_leaf_nodes` must be None for grow='balanced', which builds all 2^max_depth leaves; "
                f"got {parameters['max_leaf_nodes']!r}."
            )
        if parameters["warm_start"]:
            raise ValueError("`warm_start` must be False for grow='balanced': a complete tree does not grow on.")


def check_segmenter_parameters(parameters: dict[str, Any]) -> None:
    """The same for a segmenter, which has no rivals and takes up no earlier tree."""
    for name, known in (("algorithm", SEGMENTER_ALGORITHMS), ("grow", SEGMENTER_GROW)):
        holds, sentence = _one_of(known)
        if not holds(parameters[name]):
            raise ValueError(f"`{name}` must be {sentence}; got {parameters[name]!r}.")
    check_parameters({**parameters, "warm_start": False})


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Checked rows: float32 features (an array, or windows), class numbers, positive weights; the image that a row is.

    ``image_shape`` is None where a row is no image.
    """

    X: Any
    y: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]
    classes: npt.NDArray[Any]
    image_shape: tuple[int, ...] | None


def check_rows(estimator: Any, X: Any, *, reset: bool = False) -> npt.NDArray[np.float32]:
    """Finite float32 rows with the right number and names of columns; rows are rounded before anything else."""
    X = as_rows(X, estimator.image_shape_)
    with np.errstate(over="ignore"):  # what does not fit is infinite then, and named as such
        return validate_data(estimator, X, dtype=np.float32, order="C", reset=reset)


def check_training_data(estimator: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool = True) -> TrainingData:
    """Rows, labels and weights of a fit. Rows of weight zero are left out before anything is learned."""
    image_shape = image_shape_of(X, estimator.image_shape)
    if estimator.roughness > 0 and image_shape is None:
        raise ValueError(
            f"`roughness` must come with `image_shape`; got roughness={estimator.roughness!r} and no image_shape. Say "
            "how a row is an image, e.g. image_shape=(28, 28), give X as (n, height, width), or set roughness=0."
        )
    X = as_rows(X, image_shape)
    with np.errstate(over="ignore"):
        X, y = validate_data(estimator, X, y, dtype=np.float32, order="C", reset=reset)
    check_image_shape(image_shape, X.shape[1])
    check_classification_targets(y)
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    weight = weight * class_factors(estimator.class_weight, y, weight)
    kept = weight > 0
    if not kept.any():
        raise ValueError(
            "the weights must leave at least one row with a positive weight; got only zeros. "
            "Leave sample_weight and class_weight None to weigh all rows alike."
        )
    if not kept.all():
        X, y, weight = X[kept], y[kept], weight[kept]
    classes, numbers = np.unique(y, return_inverse=True)
    return TrainingData(X, numbers.astype(np.int64), weight, classes, image_shape)


def check_more_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> TrainingData:
    """Rows, labels and weights for a fitted estimator, whose columns and classes they must have."""
    rows, numbers = check_validation(estimator, (X, y), estimator.classes_, "y")
    weight = _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
    weight = weight * class_factors(estimator.class_weight, column_or_1d(y), weight)
    kept = weight > 0
    if not kept.any():
        raise ValueError("the weights must leave at least one row with a positive weight; got only zeros.")
    return TrainingData(rows[kept], numbers[kept], weight[kept], estimator.classes_, estimator.image_shape_)


def class_factors(
    class_weight: Any, y: npt.NDArray[Any], weight: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64] | float:
    """Each row's factor; "balanced" counts rows by their weight, so that a repeated row equals a weight of two."""
    if class_weight is None:
        return 1.0
    classes, numbers = np.unique(y, return_inverse=True)
    if isinstance(class_weight, str) and class_weight == "balanced":
        totals = np.bincount(numbers, weights=weight)
        factors = np.divide(totals.sum() / (totals > 0).sum(), totals, out=np.zeros_like(totals), where=totals > 0)
    elif isinstance(class_weight, dict):
        factors = compute_class_weight(class_weight, classes=classes, y=y)
        if not (np.all(np.isfinite(factors)) and np.all(factors >= 0)):
            raise ValueError(f"`class_weight` must hold finite numbers of at least 0; got {class_weight!r}.")
    else:
        raise ValueError(f"`class_weight` must be None, 'balanced' or a dict by class; got {class_weight!r}.")
    return np.asarray(factors[numbers], dtype=np.float64)


def check_validation(
    estimator: Any, validation: Any, classes: npt.NDArray[Any], name: str = "validation labels"
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """The explicit validation rows and their class numbers."""
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        raise ValueError(f"`validation` must be a pair (X, y); got {type(validation).__name__}.")
    X = check_rows(estimator, validation[0])
    y = column_or_1d(validation[1])
    check_consistent_length(X, y)
    known = set(classes.tolist())
    unknown = [label for label in dict.fromkeys(y.tolist()) if label not in known]
    if unknown:
        raise ValueError(
            f"{name} must be among the training classes {classes.tolist()}; got {unknown} too. Leave those rows out."
        )
    return X, np.searchsorted(classes, y)


def holds_out(estimator: Any) -> bool:
    """Whether a fit needs validation rows, its own where it is given none."""
    chooses_nu = estimator.algorithm == "non_greedy" and estimator.nu is None
    return bool(estimator.finetune_epochs) and (bool(estimator.early_stopping) or chooses_nu)


def check_warm_start(
    estimator: Any,
    known: TreeStructure,
    known_classes: npt.NDArray[Any],
    classes: npt.NDArray[Any],
    has_validation: bool,
) -> None:
    """A warm start goes on with the classes it knows, to a larger tree."""
    if not np.array_equal(known_classes, classes):
        raise ValueError(
            f"`warm_start` must go on with the same classes; the tree knows {known_classes.tolist()} and y has "
            f"{classes.tolist()}. Use a new estimator for other data."
        )
    for name, size in (("max_depth", known.depth), ("max_leaf_nodes", known.n_leaves)):
        limit = getattr(estimator, name)
        if limit is not None and limit < size:
            raise ValueError(
                f"`{name}` must be at least {size} with warm_start=True, because the tree that is there has as much; "
                f"got {limit}. Use a new estimator for a smaller tree."
            )
    if holds_out(estimator) and not has_validation and not _is_whole(estimator.random_state):
        raise ValueError(
            "`random_state` must be a whole number for warm_start where rows are held out (early_stopping, or nu=None "
            f"with algorithm='non_greedy'), so that they are the same again; got {estimator.random_state!r}. Or give "
            "fit a validation set."
        )
