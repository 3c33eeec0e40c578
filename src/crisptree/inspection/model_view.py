"""Uniform read access to a fitted estimator, alone or at the end of a Pipeline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from crisptree.inference import CrispTree, FlatTree, route_rows
from crisptree.inference.node_arrays import node_tables
from crisptree.inspection.display import (
    Names,
    check_names,
    format_moments,
    format_number,
    format_short,
    format_terms,
    sanitize_names,
)
from crisptree.inspection.validation import validate_row, validate_rows
from crisptree.targets.base import class_numbers, detach

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class InputColumn:
    """A column of the input table, encoded as one feature, or as one for each level of a category.

    Examples
    --------
    >>> InputColumn("plan", "category", 0, ("basic", "gold")).value(np.array([0.0, 1.0]))
    'gold'
    """

    name: str
    kind: str  # "number", "boolean" or "category"
    feature: int  # index of its first feature
    categories: tuple[str, ...] = ()  # levels of a category, as in the table
    fill: float | None = None  # replaces a missing number; None for categories, and where the model has none
    missing: bool = False  # whether one more feature, its last, is 1 where the value is missing
    label: Any = None  # its label in the table, which may be a number

    @property
    def n_features(self) -> int:
        """Number of its features without the missing-value indicator."""
        return len(self.categories) if self.kind == "category" else 1

    @property
    def features(self) -> list[int]:
        """Indices of its features without the missing-value indicator."""
        return list(range(self.feature, self.feature + self.n_features))

    @property
    def missing_feature(self) -> int | None:
        """Index of the missing-value indicator."""
        return self.feature + self.n_features if self.missing else None

    @property
    def all_features(self) -> list[int]:
        """Indices of its features, including the missing-value indicator."""
        return list(range(self.feature, self.feature + self.n_features + self.missing))

    def is_missing(self, row: npt.NDArray[Any]) -> bool:
        """Return True if a row of features has no value in this column."""
        return self.missing_feature is not None and bool(row[self.missing_feature] > 0)

    def value(self, row: npt.NDArray[Any]) -> Any:
        """Return the value of this column in a row of features; None where it is missing or an unknown level."""
        if self.is_missing(row):
            return None
        if self.kind != "category":
            return float(row[self.feature])
        return next((level for j, level in zip(self.features, self.categories, strict=True) if row[j] > 0.5), None)


class NotLinearError(TypeError, ValueError):
    """Raised where linear splits are needed and the splits of the tree are modules."""


@dataclass(frozen=True, eq=False)
class ModelView:
    """A fitted model with its display names; ``view_model`` makes it.

    Nodes are numbered as in a ``TreeStructure``: splits first, then leaves.
    """

    estimator: Any  # fitted; the last step of a Pipeline, the first tree of a forest
    transformers: tuple[Any, ...]  # earlier steps of the Pipeline; empty without one
    class_names: list[str]  # one line of text for every class, or for every output of a regressor
    feature_names: list[str]  # likewise for every feature of the tree
    trees: tuple[CrispTree, ...]  # several for a forest

    @property
    def tree(self) -> CrispTree:
        return self.estimator.tree_

    @property
    def is_regression(self) -> bool:
        """True if leaves hold means and variances instead of class frequencies."""
        return self.tree.target.is_regression

    @property
    def n_targets(self) -> int | None:
        """Number of regression targets; None for classification."""
        return self.tree.n_values // 2 if self.is_regression else None

    @property
    def classes(self) -> npt.NDArray[Any]:
        """Class labels; empty for regression.  (n_classes,)"""
        return np.zeros(0) if self.is_regression else np.asarray(self.estimator.classes_)

    @cached_property
    def preprocessing(self) -> Any:
        """Preprocessing that encodes the columns of a table as the features of the tree; None without one."""
        for holder in (self.estimator, *self.transformers[-1:]):
            while hasattr(holder, "steps"):  # only the last step of a Pipeline outputs the features of the tree
                holder = holder.steps[-1][1]
            stored = getattr(holder, "__dict__", {}).get("preprocessing_")
            if stored is not None:
                return stored if len(stored.origin) == self.tree.n_features else None
        return None

    @cached_property
    def raw_columns(self) -> tuple[InputColumn, ...]:
        """Columns that the model was trained on, by their names in the table; the features without a preprocessing."""
        if self.preprocessing is None:
            names = resolve_feature_names(self.estimator, None, self.transformers)
            get_means = self.estimator.input_schema.means
            means = [None] * len(names) if get_means is None else get_means().tolist()
            return tuple(
                InputColumn(name, "number", feature, fill=mean)
                for feature, (name, mean) in enumerate(zip(names, means, strict=True))
            )
        columns, feature = [], 0
        for column in self.preprocessing.columns:
            is_filled = self.preprocessing.fill or column.missing
            fill = float(column.mean) if is_filled and not math.isnan(column.mean) else None
            columns.append(
                InputColumn(column.name, column.kind, feature, tuple(column.categories), fill, bool(column.missing))
            )
            feature += len(columns[-1].all_features)
        return tuple(columns)

    @cached_property
    def columns(self) -> tuple[InputColumn, ...]:
        """The same with display names, and with the labels by which a caller names them."""
        stored, labels, raw = self.preprocessing, self._column_labels, self.raw_columns
        if stored is None:
            own = [] if self.transformers else [str(name) for name in getattr(self.estimator, "feature_names_in_", ())]
            pairs = zip(self.feature_names, labels or own or self.feature_names, strict=True)
            return tuple(
                replace(column, name=name, label=label) for column, (name, label) in zip(raw, pairs, strict=True)
            )
        label_of = dict(zip(stored.input_names, labels, strict=False)) if not stored.named else {}
        return tuple(
            replace(
                column,
                name=name if column.kind == "category" else self.feature_names[column.feature],
                label=label_of.get(column.name, column.name),
            )
            for column, name in zip(raw, sanitize_names(column.name for column in raw), strict=True)
        )

    @property
    def _column_labels(self) -> list[Any]:
        """Column labels of the DataFrame that the model itself was fitted on, where they are no text."""
        behind_steps = any(not hasattr(step, "encode_rows") or hasattr(step, "steps") for step in self.transformers)
        return [] if behind_steps else self.estimator.__dict__.get("column_labels_", [])

    def describe_value(self, feature: int, value: float) -> str:
        """Describe the value of a feature: "age = 41", or "plan is basic" where the features are those of a table."""
        preprocessing = self._display_preprocessing
        if preprocessing is None or list(preprocessing.feature_names) != self.feature_names:
            return f"{self.feature_names[feature]} = {format_short(value)}"
        return str(preprocessing.describe(feature, value))

    @cached_property
    def _display_preprocessing(self) -> Any:
        return None if self.preprocessing is None else sanitize_preprocessing(self.preprocessing)

    def restore_table_row(self, x: npt.NDArray[Any]) -> dict[Any, Any] | None:
        """Invert the preprocessing of one row: a dict by column label; None where it is not invertible."""
        if self.image_shape is not None:
            return None
        if self.preprocessing is not None or not self.transformers:
            return {column.label: _restore_value(column.kind, column.value(x)) for column in self.columns}
        rows = x[None].astype(np.float64)
        for transformer in reversed(self.transformers):
            if not hasattr(transformer, "inverse_transform"):
                return None
            rows = np.asarray(transformer.inverse_transform(rows))
            if rows.ndim != 2 or rows.dtype.kind not in "fiu":
                return None  # the words of a text are no columns
        names = getattr(self.transformers[0], "feature_names_in_", None)
        if names is None:
            names = [f"x{number}" for number in range(rows.shape[1])]
        values = (_restore_value("number", value) for value in rows[0].tolist())
        return dict(zip(map(str, names), values, strict=True))

    @property
    def image_shape(self) -> tuple[int, int, int] | None:
        """(height, width, channels) where a row is an image, else None."""
        shape = self.estimator.image_shape_
        if shape is None:
            return None
        height, width, channels = (*shape, 1)[:3]
        return height, width, channels

    @property
    def has_weight_images(self) -> bool:
        """True if the weights of a split are an image."""
        return self.image_shape is not None and isinstance(self.tree, FlatTree)

    @property
    def has_axis_splits(self) -> bool:
        """True if every split uses one feature only."""
        tree = self.tree
        return isinstance(tree, FlatTree) and bool(np.all(np.count_nonzero(tree.weight, axis=1) == 1))

    @property
    def split_name(self) -> str:
        """Kind of its splits: "oblique", "axis", "conv", or the name of a function."""
        split = getattr(self.estimator, "split", "module")
        name = split if isinstance(split, str) else getattr(split, "__name__", "module")
        return name if name.isidentifier() else "module"  # a lambda has no name

    def scaled_weights(self, split: int) -> Doubles:
        """Return β of a split in the scaled space of training, which weight images show.  (n_features,)

        A pixel that is constant in training has no influence, and the tree keeps no weight for it. Under a spatial
        penalty it has the weight that the penalty alone gives, so that the image has no frame.
        """
        tree = require_linear_splits(self.tree, "a weight image")
        weights: Doubles = tree.statistics.scaling.unfold(tree.weight[split], tree.bias[split])[0]
        if self.image_shape is None or not getattr(self.estimator, "spatial_penalty", 0.0):
            return weights
        is_constant = tree.statistics.scaling.factor == 0
        return fill_smoothly(weights.reshape(self.image_shape), is_constant.reshape(self.image_shape)).reshape(-1)

    # Node values.

    @cached_property
    def node_values(self) -> Doubles:
        """Class frequencies of every node, or means and variances in the units of y.  (n_nodes, n_outputs)"""
        return self.tree.restore_units(node_tables(self.tree))

    @cached_property
    def bar_heights(self) -> Doubles:
        """Bars that are drawn for a node: class frequencies, or means scaled to 0 … 1 over all nodes.  (n_nodes, n)"""
        if not self.is_regression:
            return self.node_values
        means = self.node_values[:, : len(self.class_names)]
        low, span = means.min(axis=0), np.ptp(means, axis=0)
        return (means - low) / np.where(span > 0, span, 1.0)

    def node_moments(self, node: int) -> list[tuple[str, float, float]]:
        """Return (name, mean, standard deviation) of every regression output at a node."""
        values, names = self.node_values[node], self.class_names
        return [(name, float(values[k]), float(np.sqrt(values[len(names) + k]))) for k, name in enumerate(names)]

    @cached_property
    def node_weights(self) -> Doubles:
        """Total sample weight of the training rows at every node.  (n_nodes,)"""
        return self.tree.target.weight(self.tree.statistics.node_counts)

    def name_node(self, node: int) -> str:
        """Name a node, such as "split 0" or "leaf 3"."""
        n_splits = self.tree.structure.n_splits
        return f"split {node}" if node < n_splits else f"leaf {node - n_splits}"

    def count_rows(self, node: int, spec: str = ",.6g") -> str:
        """Format the total weight of the training rows at a node, such as "1 row" or "2,000 rows"."""
        number = format(self.node_weights[node], spec)
        return f"{number} row{'' if number == '1' else 's'}"

    def rank_classes(self, node: int) -> list[tuple[str, float]]:
        """Return the classes of a node and their frequencies, the most frequent first."""
        values = self.node_values[node]
        return [(self.class_names[k], float(values[k])) for k in np.argsort(-values, kind="stable")]

    def describe_node(self, node: int) -> str:
        """Describe the prediction of a node: its most frequent class and its share, or means and standard deviations.

        For a linear leaf these describe its training rows; ``linear_leaf_terms`` describes its model.
        """
        if self.is_regression:
            names, means, spreads = zip(*self.node_moments(node), strict=True)
            return format_moments(means, spreads, names)
        name, share = self.rank_classes(node)[0]
        return f"{name} ({share:.1%})"

    def linear_leaf_terms(self, node: int, terms: int | None = 3, decimals: int = 3) -> list[tuple[str, list[str]]]:
        """Format the model of a linear leaf: the name of every output, its constant and its largest terms in raw units.

        Of classes it is the score of the most frequent one. Empty where leaves are constant.
        """
        models = linear_models(self.tree) if isinstance(self.tree, FlatTree) else None
        if models is None:
            return []
        formatted = []
        outputs = range(len(self.class_names)) if self.is_regression else [int(self.node_values[node].argmax())]
        for output in outputs:
            weight, bias = models[0][node, output], models[1][node, output]
            effect = np.abs(weight) * self.tree.statistics.scaling.spread
            order = np.argsort(-effect, kind="stable")
            order = order[effect[order] > 0]
            if not self.is_regression and not len(order):
                continue  # the leaf has shares
            shown = order if terms is None else order[:terms]
            parts = format_terms([(weight[j], self.feature_names[j]) for j in shown], decimals, signed=True)
            if len(order) > len(shown):
                parts.append(f"+ {len(order) - len(shown)} more")
            name = self.class_names[output] if self.is_regression else f"score of {self.class_names[output]}"
            formatted.append((name, [format_number(bias, decimals), *parts]))
        return formatted

    def predict_leaf(self, leaf: int, row: Singles | None = None) -> Any:
        """Return the class label or mean that a leaf predicts; linear leaves need ``row``, (1, n_features)."""
        output = self.tree.labels(leaf) if row is None else self.tree.predictions(np.array([leaf]), row)[0]
        if self.is_regression:
            return float(output[0]) if len(output) == 1 else output
        return self.classes[output]

    # Rows and labels.

    def prepare_rows(self, X: Any) -> Singles:
        """Apply the earlier steps to rows and validate them.  (n, n_features)"""
        return validate_rows(self.estimator, self.transformers, X)

    def prepare_row(self, x: Any, name: str = "x") -> Singles:
        """Apply the earlier steps to one row and validate it; ``name`` is used in errors.  (1, n_features)"""
        return validate_row(self.estimator, self.transformers, x, name)

    def apply(self, rows: Singles) -> Integers:
        """Return the leaf that each prepared row reaches.  (n,)"""
        return route_rows(self.tree, rows, self.estimator.n_jobs)

    def soft_predict_proba(self, rows: Singles, steepness: float | None = None) -> Doubles:
        """Return class probabilities of the probabilistic tree for prepared rows.  (n, n_classes)"""
        nameless = self.estimator.with_input_schema(feature_names=None)  # the rows are an array
        return np.asarray(nameless.soft_predict_proba(rows, steepness=steepness))

    def encode_labels(self, y: Any, n_rows: int) -> Integers:
        """Return the class index of every label; refuse labels that the model does not know.  (n,)"""
        labels = np.asarray(y).reshape(-1)
        if len(labels) != n_rows:
            raise ValueError(f"`y` must have a label for each of the {n_rows} rows of X; got {len(labels)}.")
        numbers = class_numbers(labels, self.classes)
        unknown = list(dict.fromkeys(labels[numbers < 0].tolist()))
        if unknown:
            raise ValueError(
                f"`y` must hold classes that the model knows, {self.classes.tolist()}; got {unknown} too. Leave such "
                "rows out."
            )
        return numbers

    def encode_target(self, y: Any, n_rows: int) -> npt.NDArray[Any]:
        """Return class indices (n,), or the numbers of a regression target (n, n_outputs), validated."""
        if not self.is_regression:
            return self.encode_labels(y, n_rows)
        values, n_outputs = np.asarray(detach(y), dtype=np.float64), len(self.class_names)
        has_shape = values.shape == (n_rows, n_outputs) or (n_outputs == 1 and values.shape == (n_rows,))
        if not has_shape or not np.isfinite(values).all():
            numbers = "a finite number" if n_outputs == 1 else f"{n_outputs} finite numbers"
            raise ValueError(f"`y` must hold {numbers} for each of the {n_rows} rows of X; got shape {values.shape}.")
        return values.reshape(n_rows, n_outputs)

    def confusion_matrix(self, true: Integers, predicted: Integers) -> Integers:
        """Count rows by true class (row) and predicted class (column), both given as class indices."""
        n_classes = len(self.classes)
        return np.bincount(true * n_classes + predicted, minlength=n_classes**2).reshape(n_classes, n_classes)

    def check_is_classification(self, purpose: str, hint: str) -> None:
        """Refuse a regression model."""
        if self.is_regression:
            raise TypeError(
                f"{purpose} needs a classification model; got a {type(self.estimator).__name__}, which is a regression "
                f"model. {hint}"
            )

    def check_takes_rows(self, purpose: str) -> None:
        """Refuse a segmenter, which takes images and labels their pixels, where rows with one class each are needed."""
        from sklearn.base import is_classifier

        if not is_classifier(self.estimator):
            raise TypeError(
                f"{purpose} needs a classifier of rows; got a {type(self.estimator).__name__}. For a segmenter compare "
                "the labels of the pixels with predict(images)."
            )


def view_model(
    model: Any, purpose: str, *, class_names: Names = None, feature_names: Names = None, forests: bool = False
) -> ModelView:
    """Make the view of a fitted estimator, or of a fitted Pipeline or search that ends in one.

    ``purpose`` is the function to name in errors. Without ``forests`` a forest is refused.
    """
    transformers, estimator = unwrap_model(model)
    forest = getattr(estimator, "__dict__", {}).get("forest_") if forests else None
    if forest is not None:
        estimator = estimator.tree(0)
    if "encoder_" in getattr(estimator, "__dict__", {}):  # it encodes tables by itself
        transformers, estimator = (*transformers, estimator.encoder_), strip_encoder(estimator)
    tree = getattr(estimator, "tree_", None)
    if not isinstance(tree, CrispTree):
        raise _unsupported_model(model, estimator, purpose)
    trees = (tree,) if forest is None else tuple(forest.trees)
    if tree.target.is_regression:
        n_outputs = tree.n_values // 2
        name = getattr(estimator, "target_name_", None) or "y"
        default = [name] if n_outputs == 1 else [f"y{k}" for k in range(n_outputs)]
        classes = check_names(default if class_names is None else class_names, n_outputs, "class_names", "outputs")
    else:
        labels = estimator.classes_ if class_names is None else class_names
        classes = check_names(labels, tree.n_values, "class_names", "classes")
    features = resolve_feature_names(estimator, feature_names, transformers)
    view = ModelView(estimator, transformers, classes, sanitize_names(features), trees)
    if view.preprocessing is not None and list(view.preprocessing.feature_names) == features:
        return replace(view, feature_names=list(sanitize_preprocessing(view.preprocessing).feature_names))
    return view


def fill_smoothly(image: Doubles, missing: npt.NDArray[np.bool_]) -> Doubles:
    """Fill pixels so that the squared differences of neighbours, βᵀMβ, are smallest.  Two (height, width, channels)

    There each is the mean of its neighbours, which is repeated until nothing changes.
    """
    if not missing.any() or missing.all():
        return image
    ones = np.pad(np.ones_like(image), ((1, 1), (1, 1), (0, 0)))
    n_neighbours = ones[:-2, 1:-1] + ones[2:, 1:-1] + ones[1:-1, :-2] + ones[1:-1, 2:]
    filled = np.where(missing, image[~missing].mean(), image)
    for _ in range(10 * max(image.shape)):
        edge = np.pad(filled, ((1, 1), (1, 1), (0, 0)))
        means = (edge[:-2, 1:-1] + edge[2:, 1:-1] + edge[1:-1, :-2] + edge[1:-1, 2:]) / n_neighbours
        filled = np.where(missing, means, filled)
    return filled


def linear_models(tree: FlatTree) -> tuple[Doubles, Doubles] | None:
    """Return the weights and offsets of linear leaves, for regression in the units of y; None for constant ones.

    (n_nodes, n_outputs, n_features), (n_nodes, n_outputs)
    """
    weight, bias = tree.linear_weight, tree.linear_bias
    center, unit = tree.statistics.y_center, tree.statistics.y_unit
    if weight is None or bias is None:
        return None
    if center is None or unit is None:
        return weight, bias
    return weight * np.asarray(unit)[..., None], bias * unit + center


def require_linear_splits(tree: CrispTree, purpose: str) -> FlatTree:
    """Return the tree; refuse one whose splits are modules."""
    if not isinstance(tree, FlatTree):
        raise NotLinearError(
            f"{purpose} needs linear splits; the splits of this tree are modules, which have no weight per feature. "
            "Train with split='oblique' or 'axis', or use sklearn.inspection.permutation_importance, explain.path, "
            "explain.attribute_errors and plot_tree, which work with modules too."
        )
    return tree


def unwrap_model(model: Any) -> tuple[tuple[Any, ...], Any]:
    """Return the transformers before the estimator, and the estimator: the best one of a search such as GridSearchCV.

    A Pipeline may end in a Pipeline or a search.
    """
    transformers = []
    while hasattr(model, "best_estimator_") or hasattr(model, "named_steps"):
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
            continue
        if len(model.steps) > 1:
            transformers.append(model[:-1])
        model = model.steps[-1][1]
    return tuple(transformers), model


def is_trained_softly(estimator: Any) -> bool:
    """Return False for splits that a search found or that were rounded, and that are no longer a probabilistic tree."""
    given = estimator.flat_parameters()
    values = given | getattr(estimator, "best_params_", {})
    is_search = values["split"] == "axis" and (given["split"] == "auto" or values["grow"] == "cart")
    return not values.get("round_splits") and (bool(values["finetune_epochs"]) or not is_search)


def strip_encoder(estimator: Any) -> Any:
    """Return a copy of a fitted estimator that takes encoded rows and keeps the preprocessing of its encoder."""
    trees = estimator.forest_ if hasattr(estimator, "forest_") else estimator.tree_
    return estimator.with_input_schema(
        n_features=trees.n_features,
        feature_names=None,
        encoder=None,
        encoded_by=estimator.input_schema.preprocessing,
    )


def _meta_estimator_hint(estimator: Any) -> str:
    """Return what to pass in place of a meta-estimator."""
    if hasattr(estimator, "cv_results_"):
        return " It was fitted with refit=False and keeps no model: fit it with refit=True."
    if hasattr(estimator, "param_grid") or hasattr(estimator, "param_distributions"):
        return " It is not fitted: call fit first, then its best_estimator_ is used."
    if any(hasattr(estimator, name) for name in ("estimator", "estimators", "estimator_", "estimators_")):
        return " It is a meta-estimator: pass one of its fitted models, such as estimator_ or one of estimators_."
    return ""


def _unsupported_model(model: Any, estimator: Any, purpose: str) -> Exception:
    """Return the error for a model that has no view."""
    from sklearn.exceptions import NotFittedError

    needs = f"{purpose} needs a fitted crisptree model"
    if isinstance(estimator, CrispTree):
        return TypeError(f"{needs}, which knows its classes; got its tree. Pass the model.")
    kind = type(estimator).__name__
    if "forest_" in getattr(estimator, "__dict__", {}):
        return TypeError(f"{purpose} needs a single tree; got a {kind}. Pass one of its trees, tree(0), or to_tree(X).")
    got = f"a {kind}" if estimator is model else f"a {type(model).__name__} whose last step is a {kind}"
    if not any(base.__module__.startswith("crisptree.") for base in type(estimator).__mro__):
        return TypeError(f"{needs}, or a Pipeline that ends in one; got {got}.{_meta_estimator_hint(estimator)}")
    return NotFittedError(f"{needs}; got {got} that is not fitted. Call fit first.")


def resolve_feature_names(estimator: Any, names: Names = None, transformers: Sequence[Any] = ()) -> list[str]:
    """Return one name for every feature: ``names``, those that the earlier steps of a Pipeline output, the columns of
    ``fit``, the features of a stored preprocessing, pixels, or x0, x1, …

    Examples
    --------
    >>> import numpy as np
    >>> from crisptree import CrispTreeClassifier
    >>> rows = np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> model = CrispTreeClassifier(max_depth=1, image_shape=(1, 2)).fit(rows, [0, 1])
    >>> resolve_feature_names(model)
    ['pixel (0, 0)', 'pixel (0, 1)']
    >>> resolve_feature_names(model, ["left", "right"])
    ['left', 'right']
    """
    n_features = int(estimator.tree_.n_features)
    if names is not None:
        return check_names(names, n_features, "feature_names", "features")
    numbered = [f"x{feature}" for feature in range(n_features)]
    output_names = _names_out(transformers)
    if len(output_names) == n_features and output_names != numbered:  # pixel positions are more informative
        return output_names
    seen = getattr(estimator, "feature_names_in_", None)
    if seen is not None:
        return [str(name) for name in seen]
    stored = estimator.__dict__.get("preprocessing_")
    if stored is not None and len(stored.feature_names) == n_features:
        return [str(name) for name in stored.feature_names]
    if estimator.image_shape_ is not None:
        return [f"pixel {position}" for position in np.ndindex(*estimator.image_shape_)]
    return numbered


def _names_out(transformers: Sequence[Any]) -> list[str]:
    """Return the names that the last transformer gives its output; an empty list where it has none."""
    names = None
    for transformer in transformers:
        names = _try_names_out(transformer, names)
        if names is None and hasattr(transformer, "steps"):  # a step in the middle may have no names
            names = _try_names_out(transformer.steps[-1][1], None)
    return [] if names is None else [str(name) for name in names]


def _try_names_out(transformer: Any, names: Any) -> Any:
    try:
        return transformer.get_feature_names_out(names)
    except Exception:  # a foreign transformer may raise anything; the features are numbered then
        return None


def sanitize_preprocessing(preprocessing: Any) -> Any:
    """Sanitize the names of the columns and categories of a stored preprocessing."""
    names = sanitize_names(column.name for column in preprocessing.columns)
    columns = (
        replace(column, name=name, categories=tuple(sanitize_names(column.categories)))
        for name, column in zip(names, preprocessing.columns, strict=True)
    )
    return replace(preprocessing, columns=tuple(columns), inputs=())


def _restore_value(kind: str, value: Any) -> Any:
    """Return a value in the type of the table: bool, level, or a float without the digits that float32 adds."""
    if value is None or kind == "category":
        return value
    return value > 0.5 if kind == "boolean" else float(str(np.float32(value)))
