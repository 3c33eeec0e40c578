"""Rows, labels and weights are checked here once, with errors that help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from crisptree.encoding.containers import as_table, convert_records, get_column_labels, materialize
from crisptree.encoding.errors import listed
from crisptree.encoding.table_encoder import TableEncoder
from crisptree.estimators.capabilities import check_capabilities
from crisptree.estimators.constraints import preprocessing_of_rows
from crisptree.estimators.images import as_rows, check_image_shape, image_shape_of
from crisptree.estimators.rules import is_whole
from crisptree.estimators.sparse_rows import as_sparse_rows, is_sparse
from crisptree.estimators.table_rows import (
    check_columns,
    check_no_dates,
    learned_encoder,
    refusal,
)
from crisptree.streams import refuse_batches
from crisptree.structure import TreeStructure
from crisptree.targets import Target
from crisptree.targets.encoding import TargetEncoding
from crisptree.targets.labels import check_utf8
from crisptree.targets.weights import check_sample_weight, rescale_weights, weigh_classes
from crisptree.tensors import detach

if TYPE_CHECKING:
    from crisptree.data.sparse import SparseRows
    from crisptree.learning.task import Part


MOST_FOR_LINEAR_LEAVES = 512
"""Features: the time of a linear model grows with their third power."""


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Checked rows: float32 features (an array, windows, or sparse rows), encoded y, positive weights; their image.

    ``image_shape`` is None where a row is no image. ``source`` says which row a row is a copy of, where there are
    copies; ``holes`` are features whose values may be missing, and those that tell where they are.
    """

    X: Any
    y: npt.NDArray[Any]
    weight: npt.NDArray[np.float64]
    encoding: TargetEncoding
    image_shape: tuple[int, ...] | None
    source: npt.NDArray[np.intp] | None = None
    holes: Mapping[int, int] = field(default_factory=dict)

    @property
    def target(self) -> Target:
        """What y is."""
        return self.encoding.target_of(self.y)

    @property
    def part(self) -> Part:
        """The rows as training takes them."""
        from crisptree.learning.task import Part

        return Part(self.X, self.y, self.weight)


def check_rows(estimator: Any, X: Any, *, reset: bool = False) -> npt.NDArray[np.float32] | SparseRows:
    """Finite float32 rows with the right number and names of columns; rows are rounded before anything else."""
    refuse_batches(X, f"a fitted {type(estimator).__name__}")
    X = estimator.in_training_order(detach(X))
    encoder = estimator.__dict__.get("encoder_")
    check_columns(X)
    if encoder is not None:
        rows: npt.NDArray[np.float32] = encoder.encoded(X)
        return rows
    X = convert_records(X)
    if isinstance(X, Mapping) and not is_sparse(X):  # a dok_matrix of SciPy is a dictionary too
        return _rows_of_columns(estimator, X)
    check_no_dates(X, fitting=reset)
    X, sparse = as_rows(X, estimator.image_shape_), is_sparse(X)
    with (
        np.errstate(over="ignore", under="ignore"),
        _naming_columns(estimator, X),
    ):  # too large is infinite, and named as such
        rows = validate_data(estimator, X, dtype=np.float32, order="C", reset=reset, accept_sparse="csr")
    return as_sparse_rows(rows, estimator.__dict__.get("tree_")) if sparse else rows


def _rows_of_columns(estimator: Any, columns: Mapping[Any, Any]) -> npt.NDArray[np.float32]:
    """Columns by name, or rows by the names of their columns, for a model of numbers that knows the names."""
    names = estimator.__dict__.get("feature_names_in_")
    if names is None:
        raise ValueError(
            "X must be an array of rows, (n_samples, n_features), as in training, where columns had no names; got "
            "dictionaries. Give the values in the order of the columns, or fit on a table with names."
        )
    lacking = [name for name in names if name not in columns]
    if lacking:
        raise ValueError(f"X must have the columns that the model was trained on; it has no {listed(lacking, 5)}.")
    table = as_table({name: columns[name] for name in names})
    with (
        np.errstate(over="ignore", under="ignore"),
        _naming_columns(estimator, {name: columns[name] for name in names}),
    ):
        rows = np.column_stack([np.asarray(table.column(name)) for name in table.names])
        return np.asarray(check_array(rows, dtype=np.float32, order="C"))


@contextmanager
def _naming_columns(estimator: Any, X: Any, *, fitting: bool = False) -> Iterator[None]:
    """Where rows are no finite numbers, name the column and the row, which scikit-learn does not."""
    try:
        yield
    except ValueError as error:
        found = None
        if re.search(r"NaN|infinity|could not convert|datetime|Timestamp", str(error)):
            found = refusal(X, estimator.__dict__.get("feature_names_in_"), fitting)
        if found is None:
            raise
        raise ValueError(found) from error


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """X and y as scikit-learn has checked them, the image that a row is, and what is known of holes."""

    X: Any
    y: npt.NDArray[Any]
    image_shape: tuple[int, ...] | None
    holes: Mapping[int, int]


def check_fit_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool, multi_output: bool = False
) -> CheckedRows:
    """The rows of a fit: finite float32 numbers, encoded where they must be, with as many y."""
    X = materialize(X)
    image_shape = image_shape_of(X, estimator.image_shape)
    sparse = is_sparse(X)
    rows = "sparse" if sparse else "array"
    check_capabilities(estimator.get_params(deep=False), rows=rows, is_image=image_shape is not None)
    if image_shape is not None and estimator.shifts >= min(image_shape[:2]):
        raise ValueError(
            f"`shifts` must be below the sides of an image; got shifts={estimator.shifts} for images of {image_shape}."
        )
    check_columns(X)
    X = as_rows(X, image_shape)
    if reset:
        check_utf8([_name_of(y)], "the name of y")
        remember(estimator, "column_labels_", get_column_labels(X))
        remember(estimator, "target_name_", _name_of(y))
    X = estimator.in_training_order(X)
    encoder = _encoder(estimator, X, sample_weight, image_shape, reset)
    if encoder is not None:
        if reset:
            encoder.set_target_name(_name_of(y))
        # Rows that weigh nothing, which the encoder has not seen, may have holes where no other row has.
        X = encoder.encoded(X, fill=reset)
    else:
        check_no_dates(X, fitting=reset)
    check_as_many(X, y)
    with np.errstate(over="ignore", under="ignore"), _naming_columns(estimator, X, fitting=reset):
        X, y = validate_data(
            *(estimator, X, y),
            **{"dtype": np.float32, "order": "C", "reset": reset or encoder is not None, "accept_sparse": "csr"},
            multi_output=multi_output,
        )
    if encoder is not None:
        take_up_encoder(estimator, encoder)
    check_utf8(estimator.__dict__.get("feature_names_in_", ()), "names of columns")
    table = preprocessing_of_rows(estimator)
    holes = {} if table is None or table.n_features != X.shape[1] else table.holes
    if sparse:
        X = as_sparse_rows(X)
    check_image_shape(image_shape, X.shape[1])
    if estimator.leaves == "linear" and X.shape[1] > MOST_FOR_LINEAR_LEAVES:
        raise ValueError(
            f"X must have at most {MOST_FOR_LINEAR_LEAVES} features for leaves='linear', which solves a regression of "
            f"all features in every node; got {X.shape[1]:,} features. Take leaves='constant', or fewer features, such "
            "as those of a PCA."
        )
    return CheckedRows(X, y, image_shape, holes)


def check_training_data(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    earlier: TargetEncoding | None = None,
    *,
    reset: bool = True,
    is_part: bool = False,
) -> TrainingData:
    """Check rows, y and weights of a fit. Rows of weight zero are left out before anything is learned.

    ``earlier`` is the encoding to keep to; with ``is_part``, y may lack classes of it. Without ``reset``, rows must
    have the columns that the estimator knows.
    """
    refuse_batches(X, type(estimator).__name__)
    X, y, sample_weight = detach(X), materialize(detach(y), "y"), detach(sample_weight)
    encoding = estimator.ENCODING
    given = encoding.read(y)
    rows = check_fit_rows(estimator, X, y, sample_weight, reset=reset, multi_output=given.is_multi_output)
    weight = check_sample_weight(sample_weight, rows.X)
    encoded = encoding.learn(given, rows.y, weight, estimator, earlier, is_part=is_part)
    X, source = rows.X, given.source
    if not encoded.kept.all():
        X = X[encoded.kept]
        source = None if source is None else source[encoded.kept]
    return TrainingData(X, encoded.y, encoded.weight, encoded.encoding, rows.image_shape, source, rows.holes)


def check_as_many(X: Any, y: Any) -> None:
    """Refuse an X and a y that are not of one length."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) > 1 and hasattr(y, "__len__") and len(y) != shape[0]:
        raise ValueError(
            f"X and y must be of one length; got {shape[0]} rows of X and {len(y)} of y (Found "
            f"input variables with inconsistent numbers of samples: {[shape[0], len(y)]})."
        )


def kept_rows(estimator: Any, y: Any, sample_weight: Any, n_kept: int) -> npt.NDArray[np.bool_]:
    """Which rows of a fit had some weight, of which there were so many.  (n,)"""
    y, sample_weight = detach(y), detach(sample_weight)
    n_rows = len(y) if hasattr(y, "__len__") else n_kept
    if n_rows == n_kept:
        return np.ones(n_rows, dtype=bool)
    weight = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64) * np.ones(n_rows)
    weight = weigh_classes(getattr(estimator, "class_weight", None), np.asarray(y), rescale_weights(weight))
    return np.asarray(weight > 0)


def remember(estimator: Any, name: str, value: Any) -> None:
    """Keep what a fit has learned, or nothing where there is nothing."""
    estimator.__dict__.pop(name, None)
    if value is not None:
        setattr(estimator, name, value)


def _name_of(y: Any) -> str | None:
    """What a Series of labels is called."""
    name = getattr(y, "name", None)
    return name if isinstance(name, str) and name else None


def _encoder(estimator: Any, X: Any, sample_weight: Any, image_shape: Any, reset: bool) -> TableEncoder | None:
    """What makes numbers of X: learned from it, or kept for a warm start; None where they are numbers already."""
    known = estimator.__dict__
    if not reset:
        kept: TableEncoder | None = known.get("encoder_")
        return kept
    known.pop("encoder_", None)
    return None if image_shape is not None else learned_encoder(estimator.categorical, X, sample_weight)


def take_up_encoder(estimator: Any, encoder: TableEncoder) -> None:
    """Let an estimator take the tables that an encoder takes, whose columns are its own then."""
    estimator.encoder_, estimator.n_features_in_ = encoder, encoder.n_features_in_
    estimator.__dict__.pop("feature_names_in_", None)
    if hasattr(encoder, "feature_names_in_"):
        estimator.feature_names_in_ = encoder.feature_names_in_


def validation_pair(validation: Any, names: str = "(X, y)") -> tuple[Any, Any]:
    """The two parts of ``validation``: a pair, or a list with one pair as LightGBM's ``eval_set``."""
    is_list = isinstance(validation, tuple | list)
    pairs = list(validation) if is_list and len(validation) and all(map(_is_pair, validation)) else [validation]
    if len(pairs) != 1:
        raise ValueError(
            f"`validation` must be one pair {names}; got a list of {len(pairs)} pairs. Give one of them, or put their "
            "rows together."
        )
    (pair,) = pairs
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        came = f"{type(pair).__name__} of length {len(pair)}" if isinstance(pair, tuple | list) else type(pair).__name__
        raise ValueError(f"`validation` must be a pair {names}; got {came}.")
    return pair[0], pair[1]


def _is_pair(value: Any) -> bool:
    """Whether an entry of a list is a pair (X, y), and not a row, an image or a column of y."""
    if not isinstance(value, tuple | list) or len(value) != 2 or isinstance(value[0], str):
        return False
    try:
        n_axes = [len(part.shape) if hasattr(part, "shape") else np.ndim(part) for part in value]
    except ValueError:  # rows of different lengths
        return False
    return n_axes[0] > n_axes[1] >= 1 or isinstance(value[0], Mapping)


def check_validation(
    estimator: Any,
    validation: Any,
    encoding: TargetEncoding,
    name: str | None = None,
    *,
    may_be_soft: bool = False,
) -> Part:
    """Check the explicit validation rows, all of one weight, and encode their y."""
    from crisptree.learning.task import Part

    X, y = validation_pair(validation)
    X = check_rows(estimator, X)
    y = encoding.encode_validation(detach(y), name, may_be_soft=may_be_soft)
    check_consistent_length(X, y)
    return Part(X, y, np.ones(len(y)))


def holds_out(parameters: Mapping[str, Any]) -> bool:
    """Whether a fit needs validation rows, its own where it is given none."""
    chooses_nu = parameters["algorithm"] == "non_greedy" and parameters["nu"] is None
    return bool(parameters["finetune_epochs"]) and (bool(parameters["early_stopping"]) or chooses_nu)


def check_warm_start(
    parameters: Mapping[str, Any],
    known: TreeStructure,
    has_validation: bool,
) -> None:
    """A warm start goes on to a larger tree."""
    for name, size in (("max_depth", known.depth), ("max_leaf_nodes", known.n_leaves)):
        limit = parameters[name]
        if limit is not None and limit < size:
            raise ValueError(
                f"`{name}` must be at least {size} with warm_start=True, because the tree that is there has as much; "
                f"got {limit}. Use a new estimator for a smaller tree."
            )
    if holds_out(parameters) and not has_validation and not is_whole(parameters["random_state"]):
        raise ValueError(
            "`random_state` must be a whole number for warm_start where rows are held out (early_stopping, or nu=None "
            f"with algorithm='non_greedy'), so that they are the same again; got {parameters['random_state']!r}. Or "
            "give fit a validation set."
        )
