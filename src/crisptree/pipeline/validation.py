"""Validation of the arguments of a fit: rows, labels, weights and parameters that depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length, check_random_state

from crisptree.data.sparse import SparseRows
from crisptree.data.validation import CheckedRows, InputSchema, RawInput, check_fit_rows
from crisptree.encoding.containers import materialize, refuse_batches
from crisptree.parameters.declaration import Parameter
from crisptree.parameters.rules import is_whole
from crisptree.pipeline.capabilities import check_capabilities
from crisptree.structure import TreeStructure
from crisptree.targets import Target
from crisptree.targets.base import TargetEncoding
from crisptree.targets.labels import check_sample_weight, rescale_weights, weigh_classes
from crisptree.tensors import detach

if TYPE_CHECKING:
    from crisptree.learning.task import RowSet

MAX_FEATURES_OF_LINEAR_LEAVES = 512
"""The time of a linear model grows with the third power of their number."""


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
    def part(self) -> RowSet:
        """The rows as a ``RowSet``."""
        from crisptree.learning.task import RowSet

        return RowSet(self.X, self.y, self.weight)

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
    if parameters["leaf_model"] == "linear" and rows.X.shape[1] > MAX_FEATURES_OF_LINEAR_LEAVES:
        raise ValueError(
            f"X must have at most {MAX_FEATURES_OF_LINEAR_LEAVES} features for leaf_model='linear', which solves a "
            f"regression of all features in every node; got {rows.X.shape[1]:,} features. Take leaf_model='constant' "
            "or fewer features, such as those of a PCA."
        )
    estimator.set_input_schema(rows.schema)
    return rows


def check_training_data(
    estimator: RowModel,
    X: Any,
    y: Any,
    sample_weight: Any,
    earlier: TargetEncoding | None = None,
    *,
    reset: bool = True,
    is_part: bool = False,
) -> TrainingData:
    """Validate rows, y and weights of a fit. Rows of weight zero are left out before anything is learned.

    ``earlier`` is the encoding of an earlier fit; with ``is_part``, y may lack classes of it. Without ``reset``, rows
    must have the columns of the estimator.
    """
    refuse_batches(X, type(estimator).__name__)
    X, y, sample_weight = detach(X), materialize(detach(y), "y"), detach(sample_weight)
    encoding = estimator.ENCODING
    target = encoding.read(y)
    rows = check_training_rows(estimator, X, y, sample_weight, reset=reset, multi_output=target.is_multi_output)
    weight = check_sample_weight(sample_weight, rows.X)
    encoded = encoding.learn(target, rows.y, weight, estimator.training_parameters(), earlier, is_part=is_part)
    X, source = rows.X, target.source
    if not encoded.kept.all():
        X = X[encoded.kept]
        source = None if source is None else source[encoded.kept]
    image_shape, indicators = rows.schema.image_shape, rows.missing_indicators
    return TrainingData(X, encoded.y, encoded.weight, encoded.encoding, image_shape, source, indicators)


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
    name: str | None = None,
    *,
    may_be_soft: bool = False,
) -> RowSet:
    """Check the explicit validation rows, all of one weight, and encode their y."""
    from crisptree.learning.task import RowSet

    X, y = validation_pair(validation)
    X = estimator.check_rows(X)
    y = encoding.encode_validation(detach(y), name, may_be_soft=may_be_soft)
    check_consistent_length(X, y)
    return RowSet(X, y, np.ones(len(y)))


def holds_out(parameters: Mapping[str, Any]) -> bool:
    """Return True if a fit needs validation rows."""
    selects_nu = parameters["algorithm"] == "non_greedy" and parameters["nu"] is None
    return bool(parameters["finetune_epochs"]) and (bool(parameters["early_stopping"]) or selects_nu)


def check_warm_start(
    parameters: Mapping[str, Any],
    earlier: TreeStructure,
    has_validation: bool,
) -> None:
    """Check that a warm start does not shrink the tree, and holds the same rows out again."""
    for name, size in (("max_depth", earlier.depth), ("max_leaf_nodes", earlier.n_leaves)):
        limit = parameters[name]
        if limit not in (None, "auto") and limit < size:
            raise ValueError(
                f"`{name}` must be at least {size} with warm_start=True, because the tree that is there has as much; "
                f"got {limit}. Use a new estimator for a smaller tree."
            )
    if holds_out(parameters) and not has_validation and not is_whole(parameters["random_state"]):
        raise ValueError(
            "`random_state` must be a whole number for warm_start where rows are held out (early_stopping, or nu=None "
            f"with algorithm='non_greedy'), so that they are the same again; got {parameters['random_state']!r}. Or "
            "give fit an eval_set."
        )
