"""Export formats: one table of what each supports, and the comparison of an export with its model, row by row.

Functions, command line and documentation share the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.export.portable import ExportError, Portable
from crisptree.inference import CrispTree, FlatTree, route_rows
from crisptree.inference.flat_tree import visit_splits
from crisptree.inference.node_arrays import MAX_FLOAT32
from crisptree.inspection import view_model

Singles = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FEATURES = {
    "oblique": "oblique splits",
    "axis": "axis-aligned splits",
    "module": "split modules",
    "missing": "missing values",
    "categories": "categories",
    "forest": "forests",
    "regression": "regression",
    "segmenter": "segmenters",
    "linear": 'leaf_model="linear"',
    "leaf": "leaf numbers",
}
"""Features that a model may need of a format, and their names in messages."""

UNIT_ROUNDOFF = 2.0**-24
"""Largest relative error of one rounding to single precision."""

TOLERANCE = 1e-6
"""Allowed difference of outputs of the same leaf, because some exports store them in single precision."""

MODULE_ROUNDING = 1e-5
"""Rounding error of a module in another library, relative to the spread of its scores."""


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows before and after encoding."""

    X: Singles  # after the encoder  (n, n_features)
    columns: Mapping[str, Sequence[Any]]  # before it, by name: numbers, booleans, text, None for missing values

    def __len__(self) -> int:
        return len(self.X)

    def unfilled(self, portable: Portable) -> Singles:
        """Rows of a model whose columns are its features, with NaN where a value is missing."""
        X = np.array(self.X, order="C")
        for index, column in enumerate(portable.inputs):
            X[[value is None for value in self.columns[column.name]], index] = np.nan
        return X


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of a model, or of an export of it."""

    leaves: Integers  # −1 if unknown  (n,) or (n, n_trees)
    outputs: Doubles  # class probabilities, or regression targets  (n, n_outputs)
    classes: Integers  # class indices; −1 for regression, or if unknown  (n,)
    notes: tuple[str, ...] = ()  # remarks on the run, such as versions of libraries
    exact: bool = True  # whether the export should reach the same leaves; quantized weights do not

    @classmethod
    def of(
        cls, leaves: Any, outputs: Any, labels: Iterable[Any], classes: Iterable[Any], notes: tuple[str, ...] = ()
    ) -> Predictions:
        """Convert predicted labels to class indices; regression has no ``classes``, and any labels are ignored."""
        index = {label: number for number, label in enumerate(classes)}
        predicted = np.array([index.get(label, -1) for label in labels] if index else [-1] * len(leaves), np.int64)
        return cls(np.asarray(leaves, np.int64), np.asarray(outputs, np.float64), predicted, notes)


@dataclass(frozen=True)
class Agreement:
    """Result of the comparison of an export with its model; ``print`` it for a text.

    Parameters
    ----------
    target : str
        Name of the export format.
    rows : int
        Number of rows.
    equal_leaves, equal_classes : int
        Rows that reach the same leaf (of a forest: in every tree), and that get the same class.
    largest_difference : float
        Largest difference of any probability on rows that reach the same leaf; for regression relative to the size of
        the target.
    near : int
        Rows so near to a boundary on their path that another order or precision of the sum may change their leaf.
    unexplained : int
        Rows that reach another leaf without being near a boundary or overflowing; 0 for a correct exact export.
    notes : tuple of str
        Remarks on the run.
    exact : bool
        Whether the export should reach the same leaves.
    wrong_classes : int
        Rows that reach the same leaf but get another class.
    what : {"probabilities", "values"}
        What leaves hold: class probabilities, or the values of a regression, which has no classes.
    overflows : int
        Rows that single precision cannot hold: a score on their path may overflow, and another order or precision of
        the sum then reaches another leaf; or the predicted value is beyond the export's output, which is infinite.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = load_iris(return_X_y=True)
    >>> fixed = {"split": "oblique", "input_noise": 0.3, "l1": 0.0, "shrinkage": 1.0, "random_state": 0}
    >>> model = CrispTreeClassifier(**fixed, max_depth=2, leaf_model="constant").fit(X, y)
    >>> agreement = export.check(model, X, "json")
    >>> agreement.equal_leaves, agreement.unexplained
    (150, 0)
    """

    target: str
    rows: int
    equal_leaves: int
    equal_classes: int
    largest_difference: float
    near: int
    unexplained: int
    notes: tuple[str, ...] = field(default=())
    exact: bool = True
    wrong_classes: int = 0
    what: str = "probabilities"
    overflows: int = 0

    @property
    def holds(self) -> bool:
        """True if rounding or overflow explains every difference, or the export is not exact by design."""
        explained = self.unexplained == self.wrong_classes == 0
        return not self.exact or (explained and self.largest_difference <= TOLERANCE)

    @property
    def n_changed(self) -> int:
        """Number of rows that get another class, or of a regression another leaf."""
        return self.rows - (self.equal_leaves if self.what == "values" else self.equal_classes)

    @property
    def changed(self) -> float:
        """Share of rows that get another class, or of a regression another leaf."""
        return self.n_changed / max(self.rows, 1)

    def __str__(self) -> str:
        same_class = f", {self.equal_classes:,} get the same class" if self.what == "probabilities" else ""
        lines = [
            f"{self.target}: {self.equal_leaves:,} of {self.rows:,} rows reach the same leaf{same_class}; {self.what} "
            f"differ by at most {self.largest_difference:.3g}; {self.near:,} rows lie within rounding of a boundary"
        ]
        if self.overflows:
            infinite = "" if self.what == "probabilities" else ", and larger values are infinite in single precision"
            lines.append(
                f"{self.overflows:,} rows overflow single precision (±{MAX_FLOAT32:.2g}), where another order or "
                f"precision of the sum may turn them{infinite}"
            )
        if self.unexplained and self.exact:
            lines.append(f"{self.unexplained:,} rows reach another leaf WITHOUT being near a boundary or overflowing")
        if self.wrong_classes and self.exact:
            lines.append(f"{self.wrong_classes:,} rows reach the same leaf and get ANOTHER class")
        if self.largest_difference > TOLERANCE and self.exact:
            lines.append(f"{self.what} of the same leaf are NOT the same")
        return "\n".join([*lines, *self.notes])


@dataclass(frozen=True)
class ExportFormat:
    """A format that models are exported to.

    Its module has ``render(portable, **options)``, which returns text or bytes, and ``run(portable, written, rows)``,
    which runs the written model on rows.
    """

    name: str  # on the command line
    title: str  # in messages
    endings: tuple[str, ...]  # of file names; the first one is usual
    module: str
    options: tuple[str, ...] = ()  # keywords of ``render``
    unsupported: Mapping[str, str] = field(default_factory=dict)  # keys of ``FEATURES``: the reason and what to do
    takes_estimator: bool = False  # whether ``render`` takes the model itself, because it stores more than plain values

    def check(self, portable: Portable) -> None:
        """Reject a model that needs something unsupported."""
        for word, reason in self.unsupported.items():
            if word in portable.uses:
                raise ExportError(f"{self.title} does not support {FEATURES[word]}: {reason}")

    def write(self, model: Any, **options: Any) -> str | bytes:
        """Export a model to this format."""
        portable = Portable.of(model, f"an export to {self.title}")
        self.check(portable)
        unknown = [name for name in options if name not in self.options]
        if unknown:
            options_text = ", ".join(f"`{name}`" for name in self.options) or "none"
            raise ExportError(f"{self.title} takes the options {options_text}; got `{unknown[0]}`.")
        written: str | bytes = self._module().render(model if self.takes_estimator else portable, **options)
        return written

    def run(self, model: Any, written: str | bytes, rows: EncodedRows) -> Predictions:
        """Run the written model on rows."""
        predictions: Predictions = self._module().run(Portable.of(model), written, rows)
        return predictions

    def _module(self) -> Any:
        return import_module(f"crisptree.export.{self.module}")


NO_MODULES = "its splits are modules of torch. Train with split='oblique' or 'axis', or keep the model file (.crisp)."
NO_IMAGES = (
    "its rows are windows that must be cut out of images first. Keep the model file (.crisp), or export to JSON."
)
NO_LINEAR_LEAVES = (
    "its leaves hold constants only. Train with leaf_model='constant', or export to C, ONNX, JavaScript or JSON."
)

_LINEAR_SPLITS_ONLY = {"module": NO_MODULES, "segmenter": NO_IMAGES}
_CONSTANT_LEAVES_ONLY = _LINEAR_SPLITS_ONLY | {"linear": NO_LINEAR_LEAVES}
_AXIS_SPLITS_ONLY = {
    "oblique": "its splits compare one feature with a threshold. Train with split='axis'."
} | _CONSTANT_LEAVES_ONLY
_C_OPTIONS = ("name", "integer", "inputs", "max_flash", "max_stack")

FORMATS = {
    each.name: each
    for each in (
        ExportFormat("c", "C99", (".h", ".c"), "c99", _C_OPTIONS, _LINEAR_SPLITS_ONLY),
        ExportFormat("onnx", "ONNX", (".onnx",), "onnx_graph", ("name", "form"), _LINEAR_SPLITS_ONLY),
        ExportFormat("js", "JavaScript", (".mjs", ".js"), "javascript", (), _LINEAR_SPLITS_ONLY),
        ExportFormat("sql", "SQL", (".sql",), "sql_statement", ("table",), _CONSTANT_LEAVES_ONLY),
        ExportFormat("json", "a JSON document", (".json",), "json_document", takes_estimator=True),
        ExportFormat(
            "sklearn",
            "scikit-learn",
            (".joblib",),
            "sklearn_tree",
            ("form",),
            _AXIS_SPLITS_ONLY | _CONSTANT_LEAVES_ONLY,
        ),
    )
}
"""By name; a new format is one entry here and one module."""


def find_format(name: str) -> ExportFormat:
    """Return a format, or raise an error that lists all of them."""
    if name not in FORMATS:
        raise ExportError(f"an export must go to one of {', '.join(FORMATS)}; got {name!r}.")
    return FORMATS[name]


def support_table() -> str:
    """Markdown table of the features that each format supports."""
    lines = ["| | " + " | ".join(f"`{name}`" for name in FORMATS) + " |", "| --- |" + " --- |" * len(FORMATS)]
    for word, name in FEATURES.items():
        cells = ["–" if word in each.unsupported else "yes" for each in FORMATS.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write(model: Any, to: str, **options: Any) -> str | bytes:
    """Export a fitted model to a format, by the name of the format.

    Parameters
    ----------
    model : CrispTreeClassifier, CrispSegmenter or Pipeline
        A fitted estimator, or a fitted Pipeline of a ``TableEncoder`` and one.
    to : str
        One of the formats of ``crisptree export``; docs/guide/export/index.md has a table of what each supports.
    **options
        Options of the format.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from crisptree import CrispTreeClassifier, export
    >>> model = CrispTreeClassifier(max_depth=2, random_state=0).fit(*load_iris(return_X_y=True))
    >>> "iris_predict" in export.write(model, "c", name="iris")
    True
    """
    return find_format(to).write(model, **options)


def check(model: Any, X: Any, to: str, **options: Any) -> Agreement:
    """Export a model, run the export on rows, and compare its predictions with the model row by row.

    Parameters
    ----------
    model : CrispTreeClassifier or Pipeline
        As in ``write``.
    X : array-like or table
        Rows as the model takes them.
    to : str
        The format.
    **options
        Options of the format.

    Returns
    -------
    Agreement
        How many rows reach the same leaf, and whether rounding explains those that do not.

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier, export
    >>> X, y = np.array([[0.0], [1.0], [8.0], [9.0]]), ["low", "low", "high", "high"]
    >>> model = CrispTreeClassifier(max_depth=1, split="axis", random_state=0).fit(X, y)
    >>> agreement = export.check(model, X, "sklearn")
    >>> agreement.rows, agreement.equal_leaves, agreement.holds
    (4, 4, True)
    """
    return check_written(model, encode_rows(model, X), to, find_format(to).write(model, **options))


def check_written(model: Any, rows: EncodedRows, to: str, written: str | bytes) -> Agreement:
    """Run an earlier export on rows, and compare its predictions with the model."""
    return compare(model, rows.X, find_format(to).run(model, written, rows), to)


def encode_rows(model: Any, X: Any) -> EncodedRows:
    """Encode rows, given in any form that the model accepts."""
    view = view_model(model, "a comparison", forests=True)
    encoder: Any = view.transformers[-1] if view.transformers else None
    while hasattr(encoder, "steps"):
        encoder = encoder.steps[-1][1]
    if encoder is not None:
        return EncodedRows(view.prepare_rows(X), encoder.extract_columns(X))
    names = Portable.of(model).feature_names
    if isinstance(X, Mapping):
        X = np.stack([np.asarray(X[name], dtype=np.float64) for name in names], axis=1)
    if X is None or np.ndim(X) != 2 or hasattr(X, "toarray"):
        exact = encoded = view.prepare_rows(X)
    else:  # as ``predict`` does, which fills missing values
        with np.errstate(over="ignore", invalid="ignore"):  # scikit-learn sums all values: inf − inf
            encoded = view.estimator.check_rows(X)
        exact = np.asarray(view.estimator.in_training_order(X), dtype=np.float64)
    columns = exact.astype(np.float64).astype(object)
    columns[np.isnan(exact)] = None
    return EncodedRows(encoded, {name: columns[:, index].tolist() for index, name in enumerate(names)})


def predict_with_model(model: Any, X: Singles) -> Predictions:
    """Predict encoded rows with the model itself: the mean of the outputs of its trees."""
    view = view_model(model, "a comparison", forests=True)
    trees, n_targets = view.trees, view.n_targets
    leaves = np.stack([route_rows(tree, X, None) for tree in trees], axis=1)
    outputs = np.zeros((len(X), trees[0].n_values))
    for tree, reached in zip(trees, leaves.T, strict=True):
        outputs += tree.leaf_values(reached, X)
    outputs /= len(trees)
    classes = np.full(len(X), -1) if n_targets is not None else trees[0].target.predict(outputs)
    return Predictions(leaves, outputs[:, :n_targets], np.asarray(classes, np.int64))


def _output_scale(truth: Predictions, fits: npt.NDArray[np.bool_]) -> Any:
    """Scale of differences: 1 for probabilities, the spread of each target for regression."""
    outputs = truth.outputs[fits]
    if (truth.classes >= 0).any() or not len(outputs):
        return 1.0
    spread = np.ptp(outputs, axis=0)
    return np.where(spread > 0, spread, np.where(outputs[0] == 0, 1.0, np.abs(outputs[0])))


def compare(model: Any, X: Singles, predictions: Predictions, target: str) -> Agreement:
    """Compare the predictions of an export with those of its model."""
    view, truth = view_model(model, "a comparison", forests=True), predict_with_model(model, X)
    same = np.asarray((truth.leaves == predictions.leaves.reshape(truth.leaves.shape)).all(axis=1))
    near, overflows = np.any([sensitive_rows(tree, X) for tree in view.trees], axis=0)
    sizes = np.abs(truth.outputs)
    fits = np.asarray((sizes <= MAX_FLOAT32).all(axis=1))
    gap = np.abs(truth.outputs - predictions.outputs) / np.maximum(sizes, _output_scale(truth, fits))
    gap[np.isnan(gap)] = np.inf
    # The infinity of the right sign is all that an output of single precision can give here.
    lost = (sizes > MAX_FLOAT32) & (predictions.outputs == np.copysign(np.inf, truth.outputs))
    gap[lost] = 0.0
    overflows |= lost.any(axis=1)
    right = truth.classes == predictions.classes
    return Agreement(
        target=target,
        rows=len(X),
        equal_leaves=int(same.sum()),
        equal_classes=int(right.sum()),
        largest_difference=float(gap[same].max(initial=0.0)),
        near=int(near.sum()),
        unexplained=int((~same & ~near & ~overflows).sum()),
        notes=predictions.notes,
        exact=predictions.exact,
        wrong_classes=int((same & ~right).sum()),
        what="values" if view.is_regression else "probabilities",
        overflows=int(overflows.sum()),
    )


def sensitive_rows(tree: CrispTree, X: Singles) -> npt.NDArray[np.bool_]:
    """Find rows whose leaf another order or precision of a sum may change: by rounding, and by overflow.  (2, n)

    The scores of two orders or precisions of the sum of k terms differ by at most (k + 3) · 2⁻²⁴ · (Σ|w x| + |b|), and
    no partial sum exceeds Σ|w x| + |b| by more than that.
    """
    near, overflows = np.zeros((2, len(X)), dtype=bool)
    for split, rows, scores in visit_splits(tree, X):
        if isinstance(tree, FlatTree):
            weight = tree.weight[split].astype(np.float64)
            used = np.flatnonzero(weight)
            sizes = np.abs(X[np.ix_(rows, used)].astype(np.float64)) @ np.abs(weight[used]) + abs(tree.bias[split])
            bound = (len(used) + 3) * UNIT_ROUNDOFF * sizes
            overflows[rows[sizes + bound > MAX_FLOAT32]] = True
        else:
            bound = np.full(len(rows), MODULE_ROUNDING * max(float(tree.statistics.score_spread[split]), 1.0))
            overflows[rows[~np.isfinite(scores)]] = True
        near[rows[np.abs(scores) <= bound]] = True
    return np.stack([near, overflows])
