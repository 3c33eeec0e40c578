"""Checks before a fit: parameters, their combinations, rows and targets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length, check_random_state

from crisptree.data.raw_rows import SparseRows
from crisptree.data.validation import (
    CheckedRows,
    InputSchema,
    RawInput,
    check_fit_rows,
    find_image_shape,
    is_sparse,
    needs_encoder,
    resolve_columns,
)
from crisptree.encoding.containers import materialize, refuse_batches
from crisptree.inference.flat_tree import SPARSE_LINEAR, has_linear_leaves
from crisptree.parameters.training import Parameter, Rule, is_whole
from crisptree.structure import TreeStructure
from crisptree.targets import Target
from crisptree.targets.base import (
    TargetEncoding,
    check_sample_weight,
    check_total_weight,
    detach,
    rescale_weights,
    sum_weights,
    weigh_classes,
)

if TYPE_CHECKING:
    from crisptree.learning.process_group import ProcessGroup
    from crisptree.learning.samples import RowSet


MAX_BALANCED_DEPTH = 16


def values(*allowed: Any) -> Rule:
    """Make the rule that allows some values only."""
    *others, last = map(repr, allowed)
    text = f"{', '.join(others)} or {last}" if others else last
    return Rule(lambda value: not callable(value) and value in allowed, text)


HYPERPLANES = values("auto", "oblique")
LINEAR = values("auto", "oblique", "axis")
CONSTANT = values("auto", "constant")
MINI_BATCHES = values("auto", "adam")
ONE_START = values("auto", 1)
GRADIENT_GROWTH = values("greedy", "balanced")
NONE, ZERO, FALSE = values(None), values(0), values(False)
EMPTY = Rule(lambda value: not value, "None")
ZERO_OR_AUTO = values("auto", 0)
ALL_FEATURES = Rule(
    lambda value: value in ("auto", None) or (isinstance(value, float) and value == 1.0), "'auto', None or 1.0"
)
FIXED_ALPHA = Rule(lambda value: value != "auto", "a number or None")

Values = Mapping[str, Any]


CONSTRAINTS = ("monotonic_cst", "max_features_per_split", "interaction_cst")


def are_constrained(parameters: Values) -> bool:
    """Return True if the weights of splits are constrained."""
    return any(parameters.get(name) for name in CONSTRAINTS)


def requires_hyperplanes(parameters: Values) -> bool:
    """Return True if constraints hold hyperplanes only; thresholds have one weight, whatever its limit."""
    return any(parameters.get(name) for name in ("monotonic_cst", "interaction_cst"))


class Capability(NamedTuple):
    """Requirements on parameters in one situation."""

    situation: str  # in the documentation
    phrase: str  # in errors, with the values of parameters in braces
    applies: Callable[[Values], bool]  # of parameters and the arguments of ``violations``
    requires: Mapping[str, Rule]
    reason: str  # and what to do instead


CAPABILITIES = (
    Capability(
        "split modules (`split='conv'` or a callable)",
        "split modules",
        lambda v: not LINEAR.holds(v["split"]),
        {"l1": ZERO_OR_AUTO, "input_noise": ZERO_OR_AUTO},
        "Their penalty is l2.",
    ),
    Capability(
        "splits that are no hyperplanes",
        "split={split!r}",
        lambda v: not HYPERPLANES.holds(v["split"]),
        {"spatial_penalty": ZERO},
        "Only hyperplanes have a weight image to smooth. Take split='oblique'.",
    ),
    Capability(
        "`grow='cart'`",
        "grow={grow!r}",
        lambda v: v["grow"] == "cart",
        {"split": LINEAR, "max_shift": ZERO},
        "It finds thresholds on rows as they are, and makes hyperplanes of them.",
    ),
    Capability(
        "`grow` as a function",
        "grow={grow!r}",
        lambda v: callable(v["grow"]),
        {"split": HYPERPLANES, "max_shift": ZERO},
        "It returns hyperplanes, and takes rows as they are.",
    ),
    Capability(
        "`optimizer='lbfgs'`",
        "optimizer='lbfgs'",
        lambda v: v["optimizer"] == "lbfgs",
        {
            "split": HYPERPLANES,
            "algorithm": values("likelihood"),
            "spatial_penalty": ZERO,
            "max_shift": ZERO,
            "early_stopping": FALSE,
            "device": values("auto", "cpu"),
        },
        "It minimises the likelihood of hyperplanes over full batches, on the CPU. Take optimizer='adam'.",
    ),
    Capability(
        "constraints (`monotonic_cst`, `max_features_per_split`, `interaction_cst`)",
        "`monotonic_cst`, `max_features_per_split` and `interaction_cst`",
        are_constrained,
        {"split": HYPERPLANES, "grow": GRADIENT_GROWTH},
        "Constraints hold the weights of hyperplanes after every step.",
    ),
    Capability(
        "monotonic constraints (`monotonic_cst`)",
        "`monotonic_cst`",
        lambda v: bool(v.get("monotonic_cst")),
        {"leaf_model": CONSTANT},
        "The values of leaves are ordered, which models of leaves do not have.",
    ),
    Capability(
        "`grow='balanced'`",
        "grow='balanced'",
        lambda v: v["grow"] == "balanced",
        {
            "max_depth": Rule(
                lambda value: value == "auto" or (is_whole(value) and value <= MAX_BALANCED_DEPTH),
                f"'auto' or a number of at most {MAX_BALANCED_DEPTH}",
            ),
            "max_leaf_nodes": NONE,
            "warm_start": FALSE,
        },
        "It builds a complete tree of 2^max_depth leaves, which does not grow further.",
    ),
    Capability(
        "random shifts (`max_shift` above 0)",
        "max_shift={max_shift!r}",
        lambda v: bool(v.get("max_shift")),
        {"scale": values("auto", "global", None)},
        "A shifted pixel takes the place of one with another spread.",
    ),
    Capability(
        "linear leaves (`leaf_model='linear'`)",
        "leaf_model={leaf_model!r}",
        has_linear_leaves,
        {"split": LINEAR, "max_shift": ZERO},
        "Their models are of the features that hyperplanes see, pixels in their places. Take leaf_model='constant' for "
        "anything else.",
    ),
    Capability(
        "pruning of linear leaves",
        "leaf_model={leaf_model!r}",
        has_linear_leaves,
        {"ccp_alpha": NONE},
        "What a leaf saves is counted for constant ones. Limit max_depth or max_leaf_nodes, raise leaf_l2, or "
        "truncate(depth) the fitted tree.",
    ),
    Capability(
        "linear leaves of a few features (`leaf_model='sparse_linear'`)",
        "leaf_model={leaf_model!r}",
        lambda v: v.get("leaf_model") == SPARSE_LINEAR,
        {"round_splits": values(True), "max_leaf_nodes": Rule(lambda value: value is not None, "a number")},
        "They are those of readable trees: CrispTreeClassifier.readable().",
    ),
    Capability(
        "rounded splits (`round_splits=True`)",
        "round_splits={round_splits!r}",
        lambda v: bool(v.get("round_splits")),
        {"split": LINEAR, "image_shape": NONE},
        "The numbers of a threshold or of a short weighted sum are rounded, which images do not have.",
    ),
    Capability(
        "rows that are no images",
        "rows that are no images",
        lambda v: v["is_image"] is False,
        {"spatial_penalty": ZERO, "max_shift": ZERO},
        "Say with `image_shape` how a row is an image, e.g. image_shape=(28, 28), or give X as (n, height, width).",
    ),
    Capability(
        "sparse rows",
        "sparse rows",
        lambda v: v["rows"] == "sparse",
        {
            "split": HYPERPLANES,
            "grow": GRADIENT_GROWTH,
            "leaf_model": CONSTANT,
            "image_shape": NONE,
            "device": values("auto", "cpu"),
            "optimizer": MINI_BATCHES,
            "categorical_features": values("auto", None),
            "round_splits": FALSE,
        },
        "Give X.toarray() where that fits into memory, or fewer features, such as those of a TruncatedSVD.",
    ),
    Capability(
        "rows in batches",
        "a fit on batches",
        lambda v: v["rows"] == "batches",
        {
            "split": HYPERPLANES,
            "grow": values("greedy"),
            "algorithm": values("likelihood"),
            "max_leaf_nodes": NONE,
            "optimizer": MINI_BATCHES,
            "n_init": ONE_START,
            "max_shift": ZERO,
            "image_shape": NONE,
            "warm_start": FALSE,
            "round_splits": FALSE,
            **dict.fromkeys(CONSTRAINTS, EMPTY),
        },
        "Its rows are never all in memory at once.",
    ),
    Capability(
        "rows in batches without `eval_set`",
        "a fit on batches without `eval_set`",
        lambda v: v["rows"] == "batches" and not v["has_validation"],
        {"early_stopping": FALSE, "ccp_alpha": FIXED_ALPHA},
        "No rows are held out of batches. Give fit eval_set=(X, y), arrays in memory.",
    ),
    Capability(
        "process groups",
        "a fit by several processes",
        lambda v: v["rows"] == "process group",
        {
            "split": LINEAR,
            "grow": values("greedy", "cart"),
            "optimizer": MINI_BATCHES,
            "n_init": ONE_START,
            "max_shift": ZERO,
            "round_splits": FALSE,
            "warm_start": FALSE,
        },
        "It trains on sums over the rows of all processes.",
    ),
    Capability(
        "forests without `eval_set`",
        "a forest without `eval_set`",
        lambda v: v["is_forest"] and not v["has_validation"],
        {"early_stopping": FALSE},
        "Rows that a tree has not drawn score the forest. Give fit an eval_set.",
    ),
    Capability(
        "forests whose splits are not found one by one: split modules, growth other than `'greedy'` and `'cart'`",
        "split={split!r} and grow={grow!r}",
        lambda v: v["is_forest"] and not _draws_features(v),
        {"max_features": ALL_FEATURES},
        "Features are drawn for splits that are found one by one.",
    ),
    Capability(
        "patches of images (`max_features=(height, width)`)",
        "max_features={max_features!r}",
        lambda v: v["is_forest"] and isinstance(v["max_features"], tuple | list),
        {"split": values("oblique"), "grow": values("greedy"), "optimizer": MINI_BATCHES},
        "A patch is the part of an image whose pixels a hyperplane has weights for.",
    ),
)
"""In the order in which they are checked."""


def _draws_features(v: Values) -> bool:
    return LINEAR.holds(v["split"]) and v["grow"] in ("greedy", "cart")


def check_parameters(declared: Mapping[str, Parameter], parameters: Values, **fit: Any) -> None:
    """Check every parameter by its rule, and all of them by the table; ``fit`` are arguments of ``violations``."""
    for name, declaration in declared.items():
        if declaration.rule is not None:
            declaration.rule.check(name, parameters[name])
    check_capabilities(parameters, **fit)


def check_capabilities(parameters: Values, **fit: Any) -> None:
    """Refuse unsupported combinations of parameters; ``fit`` are arguments of ``violations``."""
    for message in violations(parameters, **fit):
        raise ValueError(message)


def violations(
    parameters: Values,
    *,
    rows: str = "array",
    is_image: bool | None = None,
    is_forest: bool = False,
    has_validation: bool = True,
) -> Iterator[str]:
    """Describe the unsupported combinations of parameters.

    ``rows`` is "array", "sparse", "batches" or "process group"; ``is_image`` is None before X is read.
    """
    values = {
        **parameters,
        **{"rows": rows, "is_image": is_image, "is_forest": is_forest, "has_validation": has_validation},
    }
    for capability in CAPABILITIES:
        if capability.applies(values):
            for name, rule in capability.requires.items():
                if name in parameters and not rule.holds(parameters[name]):
                    yield (
                        f"`{name}` must be {rule.sentence} for {capability.phrase.format(**values)}; got "
                        f"{parameters[name]!r}. {capability.reason}"
                    )


def describe_capabilities() -> str:
    """Write the table as Markdown."""
    lines = ["| with | must be | because |", "|---|---|---|"]
    for capability in CAPABILITIES:
        needs = "; ".join(f"`{name}`: {rule.sentence}" for name, rule in capability.requires.items())
        lines.append(f"| {capability.situation} | {needs} | {capability.reason} |")
    return "\n".join(lines) + "\n"


MAX_FEATURES_OF_LINEAR_LEAVES = 512
"""The time of a linear model grows with the third power of their number."""


LOCAL_PARAMETERS = ("n_jobs", "verbose", "callbacks", "random_state", "device")
"""Parameters that may differ between processes; rank 0 draws the seed and runs callbacks and the progress display."""

MAX_ROWS_IN_DIGEST = 1000
"""Evenly spaced rows whose checksum a warm start compares."""


class RowModel(Protocol):
    """Estimator as the pipeline sees it: its parameters, its target encoding and the schema of its columns."""

    ENCODING: ClassVar[type[TargetEncoding]]

    @property
    def input_schema(self) -> InputSchema: ...

    @classmethod
    def declared_parameters(cls) -> dict[str, Parameter]: ...
    def training_parameters(self) -> dict[str, Any]: ...
    def set_input_schema(self, schema: InputSchema) -> None: ...
    def check_rows(self, X: Any) -> npt.NDArray[np.float32] | SparseRows: ...


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Checked rows: float32 features (an array, windows, or sparse rows), encoded y and positive weights.

    ``image_shape`` is None where a row is no image; ``source`` maps copies to the rows that they are copies of;
    ``missing_indicators`` maps features that may be missing to the features that indicate it.
    """

    X: Any
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]
    encoding: TargetEncoding
    image_shape: tuple[int, ...] | None
    source: npt.NDArray[np.intp] | None = None
    missing_indicators: Mapping[int, int] = field(default_factory=dict)

    @property
    def target(self) -> Target:
        """The target of y."""
        return self.encoding.target_of(self.y)

    @property
    def rows(self) -> RowSet:
        """The rows as a ``RowSet``."""
        from crisptree.learning.samples import RowSet

        return RowSet(self.X, self.y, self.weight)

    def digest(self) -> str:
        """Compute a checksum of y, of weights and of some rows."""
        X = self.X[np.linspace(0, len(self.y) - 1, min(len(self.y), MAX_ROWS_IN_DIGEST)).astype(np.int64)]
        checksum = hashlib.sha256()
        for part in (self.y, self.weight, *((X.data, X.index) if isinstance(X, SparseRows) else (X,))):
            checksum.update(np.ascontiguousarray(part).data)
        return checksum.hexdigest()

    def describe(self, held_out: RowSet | None) -> dict[str, Any]:
        """Return the data of a checkpoint's fingerprint by the names that errors use."""
        return {
            "X": self.X,
            "y": self.y,
            "sample_weight": self.weight,
            "classes": self.encoding.classes,
            "image_shape of X": self.image_shape,
            "validation": held_out,
        }


def draw_seed(random_state: Any) -> int:
    """Draw the seed of a fit."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def check_training_rows(
    estimator: RowModel, X: Any, y: Any, sample_weight: Any, *, reset: bool, multi_output: bool = False
) -> CheckedRows:
    """Validate X and y of a fit and the parameters that depend on X; set the input schema of the estimator.

    Without ``reset``, rows must have the columns of the estimator.
    """
    parameters = estimator.training_parameters()
    raw = RawInput.read(X, parameters["image_shape"])
    image_shape, max_shift = raw.image_shape, parameters["max_shift"]
    check_capabilities(parameters, rows="sparse" if raw.is_sparse else "array", is_image=image_shape is not None)
    if image_shape is not None and max_shift >= min(image_shape[:2]):
        raise ValueError(
            f"`max_shift` must be below the sides of an image; got {max_shift} for images of {image_shape}."
        )
    rows = check_fit_rows(
        *(estimator, raw, y, sample_weight),
        categorical=parameters["categorical_features"],
        schema=None if reset else estimator.input_schema,
        encoded_by=estimator.input_schema.encoded_by,
        multi_output=multi_output,
    )
    check_features_of_leaves(parameters, rows.X.shape[1])
    estimator.set_input_schema(rows.schema)
    return rows


def check_features_of_leaves(parameters: Values, n_features: int) -> None:
    """Check that linear leaves, if there are to be any, have few enough features."""
    if has_linear_leaves(parameters) and n_features > MAX_FEATURES_OF_LINEAR_LEAVES:
        raise ValueError(
            f"X must have at most {MAX_FEATURES_OF_LINEAR_LEAVES} features for leaf_model='linear', which solves a "
            f"regression of all features in every node; got {n_features:,} features. Take leaf_model='constant' "
            "or fewer features, such as those of a PCA."
        )


def check_training_data(
    estimator: RowModel,
    X: Any,
    y: Any,
    sample_weight: Any,
    previous: TargetEncoding | None = None,
    *,
    reset: bool = True,
) -> TrainingData:
    """Validate rows, y and weights of a fit. Rows of weight zero are left out before anything is learned.

    ``previous`` is the encoding of a previous fit. Without ``reset``, rows must have the columns of the estimator.
    """
    refuse_batches(X, type(estimator).__name__)
    X, y, sample_weight = detach(X), materialize(detach(y), "y"), detach(sample_weight)
    encoding = estimator.ENCODING
    target = encoding.read(y)
    rows = check_training_rows(estimator, X, y, sample_weight, reset=reset, multi_output=target.is_multi_output)
    weight = check_sample_weight(sample_weight, rows.X)
    encoded = encoding.learn(target, rows.y, weight, estimator.training_parameters(), previous)
    X, source = rows.X, target.source
    if not encoded.kept.all():
        X = X[encoded.kept]
        source = None if source is None else source[encoded.kept]
    image_shape, indicators = rows.schema.image_shape, rows.missing_indicators
    return TrainingData(X, encoded.y, encoded.weight, encoded.encoding, image_shape, source, indicators)


class CheckedFit(NamedTuple):
    """Checked parameters, with columns by number, training rows and validation rows of a fit."""

    parameters: dict[str, Any]
    data: TrainingData
    held_out: RowSet | None


def check_fit(
    estimator: RowModel,
    rows: tuple[Any, Any, Any],
    eval_set: Any,
    encoding: TargetEncoding | None = None,
    *,
    reset: bool = True,
    is_forest: bool = False,
) -> CheckedFit:
    """Validate what a fit on rows in memory, (X, y, sample_weight), gets."""
    parameters = estimator.training_parameters()
    has_validation = eval_set is not None
    check_parameters(estimator.declared_parameters(), parameters, is_forest=is_forest, has_validation=has_validation)
    data = check_training_data(estimator, *rows, encoding, reset=reset)
    held_out = None
    if has_validation:
        held_out = check_validation(estimator, eval_set, data.encoding, may_be_soft=True)
    return CheckedFit(resolve_columns(parameters, estimator.input_schema), data, held_out)


def check_order(parameters: Mapping[str, Any], target: Target) -> None:
    """Check that y has two classes or one output where predictions are to be monotonic."""
    if parameters.get("monotonic_cst") and target.n_values != 2:
        what = f"{target.n_values // 2} outputs" if target.is_regression else f"{target.n_values} classes"
        raise ValueError(
            f"y must have two classes, or one output, for `monotonic_cst`; got {what}, whose predictions have no "
            "order. Fit one estimator for each, or leave `monotonic_cst` None."
        )


def kept_rows(class_weight: Any, y: Any, sample_weight: Any, n_kept: int) -> npt.NDArray[np.bool_]:
    """Return which rows of a fit had a positive weight; there were ``n_kept``.  (n,)"""
    y, sample_weight = detach(y), detach(sample_weight)
    n_rows = len(y) if hasattr(y, "__len__") else n_kept
    if n_rows == n_kept:
        return np.ones(n_rows, dtype=bool)
    weight = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64) * np.ones(n_rows)
    weight = weigh_classes(class_weight, np.asarray(y), rescale_weights(weight))
    return np.asarray(weight > 0)


def validation_pair(validation: Any, names: str = "(X, y)") -> tuple[Any, Any]:
    """Return the two parts of ``eval_set``: a pair, or a list of one pair as in LightGBM."""
    is_list = isinstance(validation, tuple | list)
    pairs = list(validation) if is_list and len(validation) and all(map(_is_pair, validation)) else [validation]
    if len(pairs) != 1:
        raise ValueError(
            f"`eval_set` must be one pair {names}; got a list of {len(pairs)} pairs. Give one of them, or concatenate "
            "them."
        )
    (pair,) = pairs
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        came = f"{type(pair).__name__} of length {len(pair)}" if isinstance(pair, tuple | list) else type(pair).__name__
        raise ValueError(f"`eval_set` must be a pair {names}; got {came}.")
    return pair[0], pair[1]


def _is_pair(value: Any) -> bool:
    """Return True for a pair (X, y) in a list, False for a row, an image or a column of y."""
    if not isinstance(value, tuple | list) or len(value) != 2 or isinstance(value[0], str):
        return False
    try:
        n_axes = [len(part.shape) if hasattr(part, "shape") else np.ndim(part) for part in value]
    except ValueError:  # rows of different lengths
        return False
    return n_axes[0] > n_axes[1] >= 1 or isinstance(value[0], Mapping)


def check_validation(
    estimator: RowModel,
    validation: Any,
    encoding: TargetEncoding,
    *,
    may_be_soft: bool = False,
) -> RowSet:
    """Check the explicit validation rows, all of one weight, and encode their y."""
    from crisptree.learning.samples import RowSet

    X, y = validation_pair(validation)
    X = estimator.check_rows(X)
    y = encoding.encode_validation(detach(y), may_be_soft=may_be_soft)
    check_consistent_length(X, y)
    return RowSet(X, y, np.ones(len(y)))


def holds_out(parameters: Mapping[str, Any]) -> bool:
    """Return True if a fit needs validation rows."""
    return bool(parameters["finetune_epochs"]) and bool(parameters["early_stopping"])


def check_warm_start(
    parameters: Mapping[str, Any],
    previous: TreeStructure,
    has_validation: bool,
) -> None:
    """Check that a warm start does not shrink the tree, and holds the same rows out again."""
    for name, size in (("max_depth", previous.depth), ("max_leaf_nodes", previous.n_leaves)):
        limit = parameters[name]
        if limit not in (None, "auto") and limit < size:
            raise ValueError(
                f"`{name}` must be at least {size} with warm_start=True, because the tree that is there has as much; "
                f"got {limit}. Use a new estimator for a smaller tree."
            )
    if holds_out(parameters) and not has_validation and not is_whole(parameters["random_state"]):
        raise ValueError(
            "`random_state` must be a whole number for warm_start with early_stopping, so that the same rows are held "
            f"out again; got {parameters['random_state']!r}. Or give fit an eval_set."
        )


class LocalRows(NamedTuple):
    """Validated rows of one process with unencoded y, weights, column names and image shape."""

    X: npt.NDArray[np.float32]
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]
    names: npt.NDArray[Any] | None
    image_shape: tuple[int, ...] | None


def check_local_rows(estimator: RowModel, X: Any, y: Any, sample_weight: Any) -> LocalRows:
    """Validate the rows of this process; there may be none."""
    parameters = estimator.training_parameters()
    X, y, sample_weight = materialize(detach(X)), detach(y), detach(sample_weight)
    if is_sparse(X):
        raise ValueError("X must be dense for a fit by several processes; got a sparse matrix. Use X.toarray().")
    if needs_encoder(parameters["categorical_features"], X):
        raise ValueError(
            "X must be all finite numbers for a fit by several processes, because no process sees all values of a "
            "column; got a table with text, categories or missing values. Encode it first, "
            "by a TableEncoder fitted on all rows."
        )
    if y is None or estimator.ENCODING.read(y).classes is not None:
        raise ValueError("y must be class labels, (n_samples,), or numbers for a fit by several processes.")
    n_rows = len(np.asarray(y))
    if sample_weight is not None:  # of all processes alike, so that none may rescale its own
        check_total_weight(sum_weights(np.asarray(sample_weight, dtype=np.float64)))
    if sample_weight is not None and n_rows and not np.any(np.asarray(sample_weight) > 0):
        X, y, sample_weight, n_rows = X[:0], y[:0], None, 0
    if not n_rows:
        none = np.asarray(X, dtype=np.float32)
        shape = find_image_shape(none, parameters["image_shape"])
        none = none.reshape(0, int(np.prod(none.shape[1:], dtype=np.int64)))
        return LocalRows(none, np.asarray(y), np.zeros(0), None, shape)
    rows = check_training_rows(
        estimator, X, y, sample_weight, reset=True, multi_output=estimator.ENCODING.read(y).is_multi_output
    )
    y = estimator.ENCODING.check(rows.y)
    weight = check_sample_weight(sample_weight, rows.X)
    kept = weight > 0
    return LocalRows(rows.X[kept], y[kept], weight[kept], rows.schema.feature_names, rows.schema.image_shape)


def check_same_parameters(group: ProcessGroup, own: dict[str, Any]) -> None:
    gathered = group.gather({name: value for name, value in own.items() if name not in LOCAL_PARAMETERS})
    for rank, other in enumerate(gathered):
        names = [name for name in other if other[name] != gathered[0][name]]
        if names:
            raise ValueError(
                f"all processes must fit with the same parameters; process {rank} differs from process 0 in "
                f"{', '.join(names)}."
            )
